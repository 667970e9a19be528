"""The places that statements read and write, and the comparisons of jumps, for loop analysis."""

from __future__ import annotations

from collections.abc import Iterator

from rvm.expr import LENGTHS, Apply, Const, Expr, Place, walk
from rvm.host.once import once
from rvm.image import Code
from rvm.isa import FUNCTIONS
from rvm.numbers.elementary import TURNING
from rvm.stmt import Branch, Land, Stmt, Update, reads, values, writes
from rvm.types import F64, I64
from rvm.verify.flow import Liveness, liveness

MAX_STEP = 1 << 20


def live_at(code: Code, position: int) -> frozenset[int]:
    """The registers that are live at a position of a code."""
    found = once(code.compiled, Liveness, Liveness, lambda: liveness(code.function))
    live = found.live(len(code) - position if code.undo else position)
    return live.union(p.reg for reg, held in code.sizes.items() if reg in live for p in held)


def bound(stmt: Stmt) -> tuple[int, Expr] | None:
    """(variable, bound) of a jump whose condition is `variable != bound`, of type i64."""
    if not isinstance(stmt, (Branch, Land)):
        return None
    match stmt.cond:
        case Apply("!=", (Place(reg, (), t), bound)) if t == I64 and plain(bound):
            return reg, bound
    return None


def plain(node: Expr) -> bool:
    """Whether evaluating an expression cannot fail: whole registers and wrapping arithmetic."""
    return all(
        isinstance(sub, Const)
        or (isinstance(sub, Place) and not sub.path)
        or (isinstance(sub, Apply) and (sub.fn in LENGTHS or wraps(sub)))
        for sub in walk(node)
    )


def wraps(node: Apply) -> bool:
    """Whether a function maps any i64 numbers to an i64."""
    row = FUNCTIONS[node.fn]
    whole = all(t == I64 for t in (node.type, *(a.type for a in node.args)))
    return whole and row.is_elementwise and not row.is_partial(I64)


def step_of(stmts: tuple[Stmt, ...], variable: int) -> int | None:
    match stmts:
        case (Update(Place(reg, ()), "+" | "-" as op, Const(int(k))),) if reg == variable:
            return (k if op == "+" else -k) if 0 < abs(k) < MAX_STEP else None
    return None


def touched(stmts: tuple[Stmt, ...]) -> Iterator[Place]:
    """Every place that statements read or write."""
    for stmt in stmts:
        yield from writes(stmt)
        yield from reads(stmt)


def turns(code: Code) -> frozenset[Expr]:
    """The angles of type f64 whose sine and cosine are both computed."""
    found: dict[str, set[Expr]] = {fn: set() for fn in TURNING}
    for pc in range(len(code)):
        for node in (n for s in code.stmts(pc) for value in values(s) for n in walk(value)):
            if isinstance(node, Apply) and node.fn in found and node.args[0].type == F64:
                found[node.fn].add(node.args[0])
    return frozenset(set.intersection(*found.values()))
