"""What statements read and write, and what jumps compare, for those who look at loops."""

from __future__ import annotations

from collections.abc import Iterator

from rvm.expr import Apply, Const, Expr, Place, children, walk
from rvm.image import Code
from rvm.stmt import (
    FORWARD,
    Alloc,
    Branch,
    Drop,
    Effect,
    Exchange,
    Free,
    Fresh,
    Land,
    Map,
    Stmt,
    Update,
    When,
)
from rvm.types import F64, I64
from rvm.verify.flow import Liveness, liveness

MAX_STEP = 1 << 20
LENGTHS = ("dim", "len")


def live_at(code: Code, position: int) -> frozenset[int]:
    """The registers that are live at a position of a code."""
    found = code.compiled.get(Liveness)
    if not isinstance(found, Liveness):
        found = code.compiled[Liveness] = liveness(code.function)
    return found.live(len(code) - position if code.undo else position)


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
        or (isinstance(sub, Apply) and sub.fn in ("+", "-", "*", "neg", *LENGTHS))
        for sub in walk(node)
    )


def step_of(stmts: tuple[Stmt, ...], variable: int) -> int | None:
    match stmts:
        case (Update(Place(reg, ()), "+" | "-" as op, Const(int(k))),) if reg == variable:
            return (k if op == "+" else -k) if 0 < abs(k) < MAX_STEP else None
    return None


def written(stmts: tuple[Stmt, ...]) -> set[int]:
    """The registers that statements may change."""
    out: set[int] = set()
    for stmt in stmts:
        match stmt:
            case Update(dst):
                out.add(dst.reg)
            case Exchange(a, b):
                out |= {a.reg, b.reg}
            case Map(dsts):
                out |= {d.reg for d in dsts}
            case When(_, body):
                out |= written(body)
            case Alloc(reg) | Free(reg) | Fresh(reg) | Drop(reg):
                out.add(reg.reg)
    return out


def touched(stmts: tuple[Stmt, ...]) -> Iterator[Place]:
    """Every place that statements read or write."""
    for stmt in stmts:
        match stmt:
            case Update(dst, _, value):
                yield from read_by(dst)
                yield from read_by(value)
            case Exchange(a, b):
                yield from read_by(a)
                yield from read_by(b)
            case Map(dsts, values):
                for node in (*dsts, *values):
                    yield from read_by(node)
            case When(cond, body):
                yield from read_by(cond)
                yield from touched(body)
            case Alloc(reg, value) | Free(reg, value):
                yield reg
                if value is not None:
                    yield from read_by(value)
            case Fresh(reg) | Drop(reg):
                yield reg
            case Branch(cond) | Land(cond):
                yield from read_by(cond)
            case Effect("assert", _, args, when) if when & FORWARD:
                yield from read_by(args[0])


def turns(code: Code) -> frozenset[Expr]:
    """The angles of type f64 of which a code takes both sine and cosine."""
    found: dict[str, set[Expr]] = {"sin": set(), "cos": set()}
    for pc in range(len(code)):
        for value in evaluated(code.stmts(pc)):
            for node in walk(value):
                if isinstance(node, Apply) and node.fn in found and node.args[0].type == F64:
                    found[node.fn].add(node.args[0])
    return frozenset(found["sin"] & found["cos"])


def evaluated(stmts: tuple[Stmt, ...]) -> Iterator[Expr]:
    """The values that statements compute."""
    for stmt in stmts:
        match stmt:
            case Update(_, _, value) | Alloc(_, value) | Free(_, value):
                if value is not None:
                    yield value
            case Map(_, values):
                yield from values
            case When(cond, body):
                yield cond
                yield from evaluated(body)
            case Branch(cond) | Land(cond):
                yield cond
            case Effect("assert", _, args, when) if when & FORWARD:
                yield args[0]


def read_by(node: Expr) -> Iterator[Place]:
    """The places that an expression reads; asking for an array's length does not read it."""
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, Place):
            yield top
        if not (isinstance(top, Apply) and top.fn in LENGTHS):
            stack.extend(children(top))
