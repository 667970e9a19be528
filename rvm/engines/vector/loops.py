"""Counting loops: those with an iteration count known in advance, and what their bodies change.

A `for` is `head: cf i != start ; body ; add i, step ; back: br i != end`; its inverse begins its
body with `sub i, step`.  A `while` may have another comparison.  Nothing else in the body changes
i, and nothing changes the bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

from rvm.expr import MIRRORED, OPPOSITES, Apply, Const, Expr, Place, reads
from rvm.image import Code
from rvm.ir.flow import Cycle
from rvm.stmt import Alloc, Branch, Land, Update, writes
from rvm.types import I64


class Declined(Exception):
    """A loop that is not vectorised; the text says why."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A loop over `var`, a register of type i64, in steps of `sign * step`.

    It goes on while the comparison `var going end` holds; then `var landing start` must hold too.
    Its iterations are the instructions `first` to `stop - 1` and the update of the variable,
    before them if `early`, else after them.
    """

    loop: Cycle
    var: int
    sign: int
    step: Expr
    landing: str
    start: Expr
    going: str
    end: Expr
    early: bool
    first: int
    stop: int
    fixed: frozenset[int]
    """All registers that no iteration changes."""

    @property
    def stride(self) -> int | None:
        """The step if it is a constant."""
        return self.sign * self.step.value if isinstance(self.step, Const) else None

    def is_fixed(self, node: Expr) -> bool:
        """Whether an expression has one value throughout the loop."""
        return all(p.reg in self.fixed for p in reads(node))


def counted(code: Code, loop: Cycle) -> Counted:
    """The counter of a loop; Declined if it is not a counting loop."""
    if loop.back - loop.head < 2:
        raise Declined("its body is empty")
    inside = range(loop.head, loop.back)
    own = {p.reg for pc in inside for s in code.stmts(pc) if isinstance(s, Alloc) for p in [s.reg]}
    noted = {p.reg for pc in inside for n in code.notes(pc) for p in writes(n)}
    for reg, held in code.sizes.items():
        if held.size.reg in noted and reg not in own:
            name = code.function.registers[reg].name
            raise Declined(f"how large `{name}` has been is kept for its free")
    back, head = code.stmts(loop.back)[0], code.stmts(loop.head)[0]
    assert isinstance(back, Branch) and isinstance(head, Land)
    changed = frozenset(
        place.reg
        for pc in range(loop.head + 1, loop.back)
        for stmt in (*code.stmts(pc), *code.notes(pc))
        for place in writes(stmt)
    )
    var, going, end = _compared(back.cond, changed)
    other, landing, start = _compared(head.cond, changed)
    if other != var:
        raise Declined("its two conditions are about different variables")
    updates = [
        pc
        for pc in range(loop.head + 1, loop.back)
        if any(p.reg == var for s in code.stmts(pc) for p in writes(s))
    ]
    name = code.function.registers[var].name
    if len(updates) != 1 or updates[0] not in (loop.head + 1, loop.back - 1):
        raise Declined(f"`{name}` is not counted once, at an end of the body")
    stmt = code.stmts(updates[0])[0]
    if not (isinstance(stmt, Update) and stmt.op in "+-" and not stmt.dst.path):
        raise Declined(f"`{name}` is not counted by adding to it")
    early = updates[0] == loop.head + 1
    found = Counted(
        loop,
        var,
        1 if stmt.op == "+" else -1,
        stmt.value,
        landing,
        start,
        going,
        end,
        early,
        loop.head + 1 + early,
        loop.back - (not early),
        frozenset(range(len(code.function.registers))) - changed,
    )
    if not all(map(found.is_fixed, (stmt.value, start, end))):
        raise Declined("its bounds or its step change in the body")
    return found


def _compared(cond: Expr, changed: frozenset[int]) -> tuple[int, str, Expr]:
    """The variable, the comparison and the bound of a condition on something that changes."""
    match cond:
        case Apply("not", (Apply(op, (a, b)),)) if op in OPPOSITES:
            return _compared(Apply(OPPOSITES[op], (a, b), cond.type), changed)
        case Apply("==", _):
            pass
        case Apply(op, (Place(reg, ()) as one, two)) if op in MIRRORED and _counts(one, changed):
            return reg, op, two
        case Apply(op, (one, Place(reg, ()) as two)) if op in MIRRORED and _counts(two, changed):
            return reg, MIRRORED[op], one
    raise Declined("its conditions do not compare what it counts with a bound")


def _counts(place: Place, changed: frozenset[int]) -> bool:
    return place.type == I64 and place.reg in changed
