"""Slots, which iterations change: scalar registers, and elements of arrays as used.

A slot that every iteration reaches is a *cell*.  If it is only combined with values (`add`, `xor`,
`mul` …) it is a reduction, and if it is also read, a scan.  If it is assigned values that do not
depend on its old value (`swap s, x[i]`), each iteration receives the value left by the previous
one.
"""

from __future__ import annotations

from collections.abc import Hashable
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
    """The neutral element of a ufunc, with which no bit changes, including signs of zero."""
    if f in ("np.multiply", "np.divide"):
        return "1.0"
    if t.is_exact:
        return "0"
    if t.is_complex:
        return "complex(-0.0, -0.0)" if f == "np.add" else "0j"
    return "-0.0" if f == "np.add" else "0.0"


@dataclass(slots=True, eq=False)
class Slot:
    """A scalar register that is live before the loop, or an element (`found`) of an array.

    The register `entry` holds the value that an iteration sees there.
    """

    key: Hashable
    """The register, or the element's."""
    entry: int
    type: Scalar
    label: str
    """The slot in the notation of the assembly language."""
    found: Access | None = None
    ops: set[str] = field(default_factory=set)
    """The operators of updates that change it, and "" for any other change."""
    is_read: bool = False
    parts: int = 0
    """The number of updates that change it."""

    @property
    def is_cell(self) -> bool:
        """Whether it is changed, and the same one in every iteration."""
        return bool(self.ops) and (self.found is None or self.found.kind == "cell")

    @property
    def is_running(self) -> bool:
        """Whether it is a cell that is only combined with values."""
        return self.is_cell and any(self.ops <= group for group in GROUPS)

    @property
    def combiner(self) -> str:
        """The ufunc that combines it with values."""
        return combiner(self.ops, self.type)

    @property
    def is_reduced(self) -> bool:
        """Whether it is only combined with values, and not read."""
        return self.is_running and not self.is_read

    @property
    def is_summed(self) -> bool:
        """Whether it is a scattered element that is only added to, and so may repeat."""
        if self.found is None or self.found.kind != "scattered" or self.is_read:
            return False
        return bool(self.ops) and (self.ops <= {"+", "-"} or self.ops == {"^"})
