"""Pieces of code that control enters at their beginning and leaves at their end."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from rvm.expr import Apply, Const, Expr, Index, Place, places, rebuild
from rvm.program import Instr


def closed(code: Sequence[Instr], at: int) -> int:
    """The end of the shortest piece of code from a position on that no jump leaves or enters."""
    end, pc = at + 1, at
    while pc < end:
        if code[pc].op in ("br", "cf"):
            end = max(end, code[pc].aux + 1)
        pc += 1
    return end


def segments(code: Sequence[Instr], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The pieces between a closed piece's own jumps; those of pieces within belong to these."""
    last = code[start].aux
    own = {start, last}
    low = start + 1
    at = start + 1
    while at < end:
        if at in own:
            yield low, at
            low = at = at + 1
            continue
        behind = closed(code, at)
        if code[at].op in ("br", "cf") and (behind > end or any(at < o < behind for o in own)):
            # A jump that crosses one of these is one of them.
            own |= {at, code[at].aux}
            continue
        at = behind
    if low < end:
        yield low, end


class Counted(NamedTuple):
    """A loop over evenly spaced numbers: its variable, the bounds, the step, and its body.

    The variable begins as `entered`; the register `behind` was made as `end`, by which the bounds
    are recognised.  The jumps in the body are those of the whole code, in which it begins at `at`.
    """

    variable: int
    entered: Expr
    behind: int
    end: Expr
    first: Expr
    last: Expr
    step: int
    body: Sequence[Instr]
    at: int


def counted(code: Sequence[Instr], start: int, end: int) -> Counted | None:
    """A closed piece of code as a counting loop: a `for` with a constant step, or its inverse.

    Whether the bounds have not changed since `behind` was made is not checked.
    """
    if start < 0 or end - start < 6:
        return None
    skip, top, *inner, again, past = code[start:end]
    if [i.op for i in (skip, top, again, past)] != ["br", "cf", "br", "cf"]:
        return None
    if (skip.aux, top.aux) != (end - 1, end - 2) or skip.args != past.args:
        return None
    match skip.args[0], top.args[0], again.args[0]:
        case (
            Apply("==", (begin, Place(behind, ()) as stop)),
            Apply("!=", (Place(variable, ()) as counts, entered)),
            Apply("!=", (Place() as leaves, left)),
        ) if leaves == counts and (entered, left) in ((begin, stop), (stop, begin)):
            made = _made(code, start, behind)
        case _:
            return None
    turned = entered == stop
    step, body = (inner[0], inner[1:]) if turned else (inner[-1], inner[:-1])
    match made, step.op, step.args:
        case (
            Apply("for_end", (first, last, Const(int(by)))),
            "add" | "sub",
            (Place() as stepped, Const(int(size))),
        ) if first == begin and stepped == counts and by:
            size = size if step.op == "add" else -size
        case _:
            return None
    if size != (-by if turned else by):
        return None
    if turned:
        first, last = last, first
    at = start + 3 if turned else start + 2
    if any(i.op in ("br", "cf") and not at <= i.aux < at + len(body) for i in body):
        return None
    return Counted(variable, entered, behind, made, first, last, size, body, at)


def _made(code: Sequence[Instr], before: int, reg: int) -> Expr | None:
    """The expression that made a register on the straight path to a position; None if not there."""
    for instr in reversed(code[:before]):
        if instr.op in ("br", "cf"):
            return None
        match instr.op, instr.args:
            case "alloc", (Place(made, ()), value) if made == reg:
                return value
    return None


def with_register(instr: Instr, old: int, new: int) -> Instr:
    """An instruction with one register replaced by another."""

    def renamed(node: Expr) -> Expr:
        made = rebuild(node, renamed)
        return replace(made, reg=new) if isinstance(made, Place) and made.reg == old else made

    return replace(instr, args=tuple(map(renamed, instr.args)))


def touches_own(code: Sequence[Instr], variable: int, changed: Collection[int]) -> bool:
    """Whether code uses, of some arrays, only elements whose first index is the loop variable.

    The iterations can then be executed in any order.
    """

    def is_own(place: Place) -> bool:
        match place.path:
            case (Index((Place(reg, ()), *_)), *_):
                return reg == variable
        return False

    found = (p for i in code for arg in i.args for p in places(arg))
    return all(is_own(p) for p in found if p.reg in changed)
