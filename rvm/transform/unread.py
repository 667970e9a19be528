"""Functions that only add to results which nothing reads: their gradients need no run forwards.

The values that the adjoint of such a function reads are the same as before the run forwards, and
nothing reads the results that it subtracts from.  So it can start from the initial values of the
function.

A failure forwards must also occur on the way back, and bits erased there count.  For exact values
this holds: the inverse of a function reaches its end only from where the function reaches its own.
Rounded numbers may change only in code that is its own inverse, except for additions to results.
Such code creates its registers, and begins with the same values in either direction; the values are
created, exchanged, or added to zero once, and undone to the last bit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from rvm.expr import Const, Expr, Place, index_reads, places
from rvm.host.once import once
from rvm.isa import ENDS, MAKES, invert_instr, lower
from rvm.program import Function, Instr, Program
from rvm.stmt import (
    Alloc,
    Branch,
    Call,
    Exchange,
    Free,
    Land,
    Map,
    Stmt,
    Update,
    When,
    only_exchanges,
    reads,
    writes,
)
from rvm.transform.duals import reachable
from rvm.types import elem_of

_ABLE = Alloc | Free | Branch | Land | Update | Exchange | Map | When
"""The statements of such functions: calls may do more than they show, and effects are seen."""


def unread(program: Program, name: str) -> frozenset[int] | None:
    """The parameters that a function changes, if its gradient needs no run forwards; else None."""
    found: tuple[frozenset[int] | None]
    found = once(program.cache, (unread, name), tuple, lambda: (_unread(program.function(name)),))
    return found[0]


def _unread(f: Function) -> frozenset[int] | None:
    changed = {p.reg for i in f.code for s in lower(i) for p in writes(s)}
    results = frozenset(k for k in changed if k < f.n_args)
    code = [_Step(f, instr, results) for instr in f.code]
    if not all(step.is_able for step in code):
        return None
    steady = _steady(f, code)
    at = 0
    while at < len(code):
        end = _mirrored(code, at)
        step = code[at]
        if end is None and not (step.gains or step.is_exact or step.changed <= steady):
            return None
        at = 1 + (at if end is None else end)
    return results


def gaining(program: Program, name: str) -> frozenset[int]:
    """The parameters that a function, and what it calls, only adds to and never reads."""
    return once(program.cache, (gaining, name), frozenset, lambda: _gaining(program, name))


def _gaining(program: Program, name: str) -> frozenset[int]:
    found = {n: frozenset(range(program.function(n).n_args)) for n in reachable(program, name)}
    while True:
        now = {n: known - _used(program.function(n), found) for n, known in found.items()}
        if now == found:
            return now[name]
        found = now


def _used(f: Function, gained: Mapping[str, Collection[int]]) -> frozenset[int]:
    """The registers that a function uses otherwise, if calls only add to those `gained`."""
    found: set[int] = set()
    for stmt in (s for instr in f.code for s in lower(instr)):
        match stmt:
            case Call(callee, args):
                by_value = (a for k, a in enumerate(args) if k not in gained[callee])
                whole = (a for k, a in enumerate(args) if k in gained[callee])
                found |= {p.reg for a in by_value for p in places(a)}
                found |= {p.reg for a in whole for p in _beside(a)}
            case Update(_, "+" | "-"):
                found |= {p.reg for p in reads(stmt)}
            case _:
                found |= {p.reg for p in (*reads(stmt), *writes(stmt))}
    return frozenset(found)


def _beside(arg: Expr) -> Iterator[Place]:
    """The places that an argument reads besides the one that it passes."""
    return index_reads(arg) if isinstance(arg, Place) else places(arg)


def only_addition(f: Function, reg: int) -> int | None:
    """The position of the only instruction that changes a number, if it adds to it at most once.

    Then the order of additions is the same forwards and back.
    """
    found = [
        pc
        for pc, instr in enumerate(f.code)
        if any(p.reg == reg for s in lower(instr) for p in writes(s))
    ]
    match found:
        case [at] if _adds(lower(f.code[at])):
            # A branch that goes back is a loop's.
            around = (pc for pc in range(at, len(f.code)) if f.code[pc].op == "br")
            return None if any(f.code[pc].aux < at for pc in around) else at
    return None


class _Step:
    """An instruction, and what it does."""

    def __init__(self, f: Function, instr: Instr, results: frozenset[int]) -> None:
        self.instr = instr
        self.stmts = lower(instr)
        self.changed = frozenset(p.reg for s in self.stmts for p in writes(s))
        self.is_exact = all(elem_of(f.registers[reg].type).is_exact for reg in self.changed)
        self.gains = _adds(self.stmts) and self.changed <= results and not self.is_exact
        """Whether it adds to a result, or takes something away."""
        read = {p.reg for s in self.stmts for p in reads(s)}
        able = self.gains or results.isdisjoint(self.changed)
        self.is_able = able and results.isdisjoint(read) and isinstance(self.stmts[0], _ABLE)


def _steady(f: Function, code: Sequence[_Step]) -> frozenset[int]:
    """The registers that hold one value from when they are made, of what does not change."""
    by: dict[int, list[_Step]] = {}
    for step in code:
        for reg in step.changed:
            by.setdefault(reg, []).append(step)
    found = set()
    for reg, steps in by.items():
        made, *others = (step.instr for step in steps)
        if made.op not in MAKES or others != [invert_instr(made)]:
            continue
        lengths = (d for d in f.registers[reg].dims if d is not None)
        if by.keys().isdisjoint(p.reg for e in (*made.args[1:], *lengths) for p in places(e)):
            found.add(reg)
    return frozenset(found)


def _adds(stmts: Sequence[Stmt]) -> bool:
    match stmts:
        case (Update(_, "+" | "-"),):
            return True
    return False


def _is_zero(s: Stmt) -> bool:
    match s:
        case Alloc(_, None | Const(0)):
            return True
    return False


def _mirrored(code: Sequence[_Step], start: int) -> int | None:
    """Where the code ends that begins by making a register and is its own inverse; None if none.

    Additions to results are left out of account.
    """
    if code[start].instr.op not in MAKES:
        return None
    undo = invert_instr(code[start].instr)
    for end in range(start + 1, len(code)):
        if code[end].instr == undo:
            kept = [pc for pc in range(start, end + 1) if not code[pc].gains]
            if _is_own_inverse(code, kept) and _is_retraced([code[pc] for pc in kept]):
                return end
    return None


def _is_own_inverse(code: Sequence[_Step], kept: Sequence[int]) -> bool:
    """Whether the instructions at some positions, from the last on, are what undoes them."""
    place = {pc: k for k, pc in enumerate(kept)}
    last = len(kept) - 1
    for k, pc in enumerate(kept):
        one, undo = code[pc].instr, invert_instr(code[kept[last - k]].instr)
        if one.op in ("br", "cf"):
            to, back = place.get(one.aux), place.get(undo.aux)
            if to is None or back is None or to != last - back:
                return False
            undo = replace(undo, aux=one.aux)
        if one != undo:
            return False
    return True


def _is_retraced(steps: Sequence[_Step]) -> bool:
    """Whether code that is its own inverse changes registers of its own only, each bit by bit."""
    live: set[int] = set()
    zero: set[int] = set()
    half = len(steps) // 2
    for k, step in enumerate(steps):
        instr, changed = step.instr, step.changed
        if instr.op in MAKES:
            live |= changed
            zero |= changed if _is_zero(step.stmts[0]) else set()
            continue
        if not changed <= live:
            return False
        if instr.op in ENDS:
            live -= changed
        elif not step.is_exact and k < half:
            adds = _adds(step.stmts) and changed <= zero
            if not (adds or all(map(only_exchanges, step.stmts))):
                return False
        zero -= changed
        if instr.op in ("br", "cf"):
            zero.clear()
    return not live
