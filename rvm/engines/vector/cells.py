"""What one iteration hands to the next: sums and other running values, and values passed on.

A *cell* is a scalar register, or an element that every iteration reaches, which is alive before the
loop and is changed in it.  If it is only ever combined with values (`add`, `xor`, `mul` …) it is a
reduction, and a scan if it is read as well.  If it takes values that do not depend on what it held
(`swap s, x[i]`), each iteration finds what the one before has left.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rvm.engines.vector.access import Access
from rvm.engines.vector.loops import Declined
from rvm.numbers import has_own_system
from rvm.types import Scalar

GROUPS = ({"+", "-"}, {"^"}, {"*"}, {"/"})
"""Updates that one running value may take part in."""


def combiner(ops: set[str], t: Scalar) -> str:
    """The ufunc that the updates of a cell are made with."""
    if has_own_system(t):
        raise Declined(f"numbers of type {t} are combined one by one")
    if t.is_complex and ops & {"*", "/"}:
        raise Declined("a product of complex numbers is rounded in another way by NumPy")
    if ops == {"-"} or (ops == {"/"} and t.is_log):
        return "np.subtract"
    if ops <= {"+", "-"} or (ops == {"*"} and t.is_log):
        return "np.add"
    return {"^": "np.bitwise_xor", "*": "np.multiply", "/": "np.divide"}[next(iter(ops))]


def neutral(f: str, t: Scalar) -> str:
    """What a ufunc combines any value with to the same bits, the sign of zero included."""
    if f in ("np.multiply", "np.divide"):
        return "1.0"
    if t.is_bool:
        return "False"
    if t.is_exact:
        return "0"
    if t.is_complex:
        return "complex(-0.0, -0.0)" if f == "np.add" else "0j"
    return "-0.0" if f == "np.add" else "0.0"


@dataclass(slots=True, eq=False)
class Cell:
    """A cell, which the register `reg` stands for."""

    reg: int
    type: Scalar
    label: str
    """The register or element as the assembly language writes it."""
    access: Access | None
    ops: set[str]
    """The updates that change it, if nothing else does; else none."""
    parts: int = 0
    """How many values it is combined with."""
    reads: dict[int, int] = field(default_factory=dict)
    """Where it is read, behind how many of the parts: the register that is given there."""

    @property
    def is_running(self) -> bool:
        return any(self.ops <= group for group in GROUPS) and bool(self.ops)

    @property
    def combiner(self) -> str:
        """The ufunc that combines it with values."""
        return combiner(self.ops, self.type)

    @property
    def is_reduced(self) -> bool:
        """Whether it is only combined with values, and not read."""
        return self.is_running and not self.reads
