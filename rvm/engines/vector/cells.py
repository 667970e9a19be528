"""What one iteration hands to the next: sums and other running values, and values passed on.

A *cell* is a scalar register, or an element that every iteration reaches, which is alive before the
loop and is changed in it.  If it is only ever combined with values (`add`, `xor`, `mul` …) it is a
reduction, and a scan if it is read as well.  If it takes values that do not depend on what it held
(`swap s, x[i]`), each iteration finds what the one before has left.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rvm.engines.vector.access import Access
from rvm.engines.vector.graph import Node
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
    """A cell.  `name` is the variable that holds it between pieces of the loop."""

    reg: int
    type: Scalar
    name: str
    label: str
    """The register or element as the assembly language writes it."""
    access: Access | None
    ops: set[str]
    """The updates that change it, if nothing else does; else none."""
    parts: list[Node] = field(default_factory=list)
    """What it is combined with, in order: a value in each lane."""
    reads: list[tuple[int, Node]] = field(default_factory=list)
    """Where it is read: behind how many of the parts, and the node that stands for it."""
    before: Node | None = None
    """What an iteration finds, where it is not a running value."""
    after: Node | None = None
    """What it leaves."""
    mirrored: bool = False
    """Whether the last iteration is the first lane."""
    alone: Node | None = None
    """The value after the last iteration, if it is computed in the memory of the only part."""

    @property
    def is_running(self) -> bool:
        return any(self.ops <= group for group in GROUPS) and bool(self.ops)

    def keep_part(self) -> None:
        """Leave the only part as it is, since something else uses it too."""
        if self.alone is not None:
            f = combiner(self.ops, self.type)
            self.alone.template = f"final({f}, {{0}}, ({self._slots}), _k, dtype_{self.type.name})"

    @property
    def _slots(self) -> str:
        """The parts in the order of iterations, as arguments of a template."""
        turned = ("[::-1]" if self.mirrored and part.lanes else "" for part in self.parts)
        return "".join(f"{{{k}}}{turn}, " for k, turn in enumerate(turned, 1))

    @property
    def is_reduced(self) -> bool:
        """Whether it is only combined with values, and not read."""
        return self.is_running and not self.reads

    def finish(self, lanes: Node) -> Node | None:
        """Say what the nodes that were read stand for; the value after the last iteration."""
        first = Node(self.name, (), self.type, lanes=False)
        dtype = f"dtype_{self.type.name}"
        if not self.is_running:
            assert self.before is not None and self.after is not None
            self.before.template = f"shifted({{0}}, {{1}}, {{2}}, {dtype})"
            self.before.args = (first, self.after, lanes)
            if not self.after.lanes:
                return self.after
            return Node("{0}[-1].item()", (self.after,), self.type, lanes=False)
        f = combiner(self.ops, self.type)
        slots = self._slots
        args = (first, *self.parts)
        if not self.reads:
            if len(self.parts) == 1 and self.parts[0].fresh and not self.type.is_exact:
                self.alone = Node(
                    f"final_of({f}, {{0}}, {slots[:-2]})", args, self.type, lanes=False
                )
                return self.alone
            how = "total" if self.type.is_exact else "final"
            text = f"{how}({f}, {{0}}, ({slots}), _k, {dtype})"
            return Node(text, args, self.type, lanes=False)
        every = Node(f"running({f}, {{0}}, ({slots}), _k, {dtype})", args, self.type)
        width = len(self.parts)
        for k, node in self.reads:
            node.template = f"{{0}}[{k}::{width}]" if k else f"{{0}}[:-1:{width}]"
            node.args = (every,)
        return Node("{0}[-1].item()", (every,), self.type, lanes=False)
