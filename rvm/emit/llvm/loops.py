"""Counting loops: those whose rounds and indices can be checked before they begin.

Such a loop is printed twice: as any other, and once more without the checks that hold throughout
(of its come-from, of indices that are affine in its variable, of its ticks).  LLVM can vectorise
that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rvm.emit.llvm.flow import Cycle, Flow
from rvm.expr import Apply, Const, Expr, Index, Place, Span, children, walk
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
    Stmt,
    Update,
    When,
)
from rvm.types import I64, Array, Scalar
from rvm.verify.affine import affine

MAX_STEP = 1 << 20
LENGTHS = ("dim", "len")


@dataclass(frozen=True, slots=True)
class Inside:
    """An index that must be checked for the first and the last round: all instances are proved."""

    item: Expr
    reg: int
    axis: int


@dataclass(frozen=True, slots=True)
class Counted:
    """A loop `variable` += `step` until it is `end`, which never is `start` on the way."""

    cycle: Cycle
    variable: int
    step: int
    end: Expr
    start: Expr
    early: bool
    """Whether the variable is stepped at the beginning of a round, not at its end."""
    indices: tuple[Inside, ...]
    proved: frozenset[int]
    """The `id`s of the index expressions that `indices` speak for."""


def counted(code: Code, flow: Flow) -> dict[int, Counted]:
    """The innermost counting loops of a code, by the position of their come-from."""
    out = {}
    for cycle in flow.cycles:
        found = _counted(code, flow, cycle)
        if found is not None:
            out[cycle.head] = found
    return out


def _counted(code: Code, flow: Flow, cycle: Cycle) -> Counted | None:
    inside = range(cycle.head + 1, cycle.back)
    if not inside or not _simple(code, flow, cycle):
        return None
    ends, starts = _bound(code.stmts(cycle.back)[0]), _bound(code.stmts(cycle.head)[0])
    if ends is None or starts is None or ends[0] != starts[0]:
        return None
    variable = ends[0]
    writers = [pc for pc in inside if variable in written(code.stmts(pc))]
    if len(writers) != 1 or writers[0] not in (inside[0], inside[-1]):
        return None
    step = _step(code.stmts(writers[0]), variable)
    changed = {r for pc in inside for r in written(code.stmts(pc))}
    if step is None or any(p.reg in changed for b in (ends, starts) for p in _read(b[1])):
        return None
    indices: dict[tuple[Expr, int, int], Inside] = {}
    proved: set[int] = set()
    for pc in inside:
        for place in _touched(code.stmts(pc)):
            _look(code, place, variable, changed, indices, proved)
    early = writers[0] == inside[0] and len(inside) > 1
    return Counted(
        cycle, variable, step, ends[1], starts[1], early, tuple(indices.values()), frozenset(proved)
    )


def _simple(code: Code, flow: Flow, cycle: Cycle) -> bool:
    """Whether a loop holds only scalar instructions and ifs that stay inside it."""
    for pc in range(cycle.head + 1, cycle.back):
        instr = code.instrs[pc]
        if pc in flow.apart or pc in flow.calls:
            return False
        if instr.op in ("br", "cf"):
            if not cycle.head < instr.aux < cycle.back or (instr.op == "br") != (instr.aux > pc):
                return False
        elif instr.op in ("push", "pop") or not all(
            isinstance(p.type, Scalar) for p in _touched(code.stmts(pc))
        ):
            return False
    return True


def _bound(stmt: Stmt) -> tuple[int, Expr] | None:
    """(variable, bound) of a jump whose condition is `variable != bound`, of type i64."""
    if not isinstance(stmt, (Branch, Land)):
        return None
    match stmt.cond:
        case Apply("!=", (Place(reg, (), t), bound)) if t == I64 and _plain(bound):
            return reg, bound
    return None


def _plain(node: Expr) -> bool:
    """Whether evaluating an expression cannot fail: whole registers and wrapping arithmetic."""
    return all(
        isinstance(sub, Const)
        or (isinstance(sub, Place) and not sub.path)
        or (isinstance(sub, Apply) and sub.fn in ("+", "-", "*", "neg", *LENGTHS))
        for sub in walk(node)
    )


def _step(stmts: tuple[Stmt, ...], variable: int) -> int | None:
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


def _touched(stmts: tuple[Stmt, ...]) -> Iterator[Place]:
    """Every place that statements read or write."""
    for stmt in stmts:
        match stmt:
            case Update(dst, _, value):
                yield from _read(dst)
                yield from _read(value)
            case Exchange(a, b):
                yield from _read(a)
                yield from _read(b)
            case Map(dsts, values):
                for node in (*dsts, *values):
                    yield from _read(node)
            case When(cond, body):
                yield from _read(cond)
                yield from _touched(body)
            case Alloc(reg, value) | Free(reg, value):
                yield reg
                if value is not None:
                    yield from _read(value)
            case Fresh(reg) | Drop(reg):
                yield reg
            case Branch(cond) | Land(cond):
                yield from _read(cond)


def _read(node: Expr) -> Iterator[Place]:
    """The places that an expression reads; asking for an array's length does not read it."""
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, Place):
            yield top
        if not (isinstance(top, Apply) and top.fn in LENGTHS):
            stack.extend(children(top))


def _look(
    code: Code,
    place: Place,
    variable: int,
    changed: set[int],
    indices: dict[tuple[Expr, int, int], Inside],
    proved: set[int],
) -> None:
    """Enter the indices of a place that can be checked before the loop."""
    registers = code.function.registers
    if not isinstance(registers[place.reg].type, Array) or not place.path:
        return
    first = place.path[0]
    if not isinstance(first, Index):
        return
    for axis, item in enumerate(first.items):
        if isinstance(item, Span) or item.type != I64 or isinstance(item, Const):
            continue
        form = affine(item)
        able = all(_steady(atom, variable, changed) for atom in form.atoms)
        if able and abs(_factor(form.atoms, variable)) < MAX_STEP and _plain(item):
            indices.setdefault((item, place.reg, axis), Inside(item, place.reg, axis))
            proved.add(id(item))


def _steady(atom: object, variable: int, changed: set[int]) -> bool:
    """Whether a part of an index is the loop's variable, or the same in every round."""
    match atom:
        case Place(reg, ()):
            return reg == variable or reg not in changed
        case Apply(fn, (Place(_, ()), *_)):
            return fn in LENGTHS
    return False


def _factor(atoms: object, variable: int) -> int:
    assert isinstance(atoms, dict)
    return next((k for a, k in atoms.items() if isinstance(a, Place) and a.reg == variable), 0)
