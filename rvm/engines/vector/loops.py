"""Counting loops: those whose trips are known before they begin, and what their bodies change.

A `for` is `head: cf i != start ; body ; add i, step ; back: br i != end`; its inverse begins its
body with `sub i, step`.  Nothing else in the body changes i, and nothing changes the bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rvm.engines.blocks import Loop
from rvm.expr import Apply, Const, Expr, Place
from rvm.image import Code
from rvm.stmt import (
    Alloc,
    Branch,
    Drop,
    Exchange,
    Free,
    Fresh,
    Land,
    Map,
    Pop,
    Push,
    Stmt,
    Update,
    When,
)
from rvm.types import I64
from rvm.verify.alias import reads


class Declined(Exception):
    """A loop that is not vectorised; the text says why."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A loop over `var`, a register of type i64, in steps of `sign * step`.

    Its iterations are the instructions `first` to `stop - 1` and the update of the variable,
    before them if `early`, else behind them.
    """

    loop: Loop
    var: int
    sign: int
    step: Expr
    start: Expr
    end: Expr
    early: bool
    first: int
    stop: int
    changed: frozenset[int]
    """All registers that an iteration changes, the variable among them."""

    @property
    def stride(self) -> int | None:
        """The step if it is a constant."""
        return self.sign * self.step.value if isinstance(self.step, Const) else None

    def is_fixed(self, node: Expr) -> bool:
        """Whether an expression has one value throughout the loop."""
        return all(p.reg not in self.changed for p in reads(node))


def counted(code: Code, loop: Loop) -> Counted:
    """What a loop counts; Declined if it is no counting loop."""
    if loop.back - loop.head < 2:
        raise Declined("its body is empty")
    back, head = code.stmts(loop.back)[0], code.stmts(loop.head)[0]
    assert isinstance(back, Branch) and isinstance(head, Land)
    var, end = _unequal(back.cond)
    other, start = _unequal(head.cond, var)
    if other != var:
        raise Declined("its two conditions are about different variables")
    changed = frozenset(
        place.reg
        for pc in range(loop.head + 1, loop.back)
        for stmt in code.stmts(pc)
        for place in written(stmt)
    )
    updates = [
        pc
        for pc in range(loop.head + 1, loop.back)
        if any(p.reg == var for s in code.stmts(pc) for p in written(s))
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
        start,
        end,
        early,
        loop.head + 1 + early,
        loop.back - (not early),
        changed,
    )
    if not all(map(found.is_fixed, (stmt.value, start, end))):
        raise Declined("its bounds or its step change in the body")
    return found


def _unequal(cond: Expr, var: int | None = None) -> tuple[int, Expr]:
    """The sides of `variable != bound`."""
    match cond:
        case Apply("!=", (Place(reg, ()) as one, two)) if one.type == I64:
            if var is None or reg == var:
                return reg, two
            if isinstance(two, Place) and not two.path:
                return two.reg, one
    raise Declined("it does not count from one bound to another (`for` does)")


def written(stmt: Stmt) -> Iterator[Place]:
    """The places that a statement changes, makes or drops."""
    match stmt:
        case Update(dst, _, _):
            yield dst
        case Exchange(a, b) | Push(a, b) | Pop(a, b):
            yield a
            yield b
        case Map(dsts, _, _):
            yield from dsts
        case When(_, body):
            for inner in body:
                yield from written(inner)
        case Alloc(reg, _) | Free(reg, _) | Fresh(reg) | Drop(reg):
            yield reg
