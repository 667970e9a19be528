"""Functions that only add to results which nothing reads: their gradients need no run forwards.

The values that the adjoint of such a function reads are the same as before the run forwards, and
nothing reads the results that it subtracts from.  So it can start from the initial values of the
function.

A failure forwards must also occur on the way back, and bits erased there count.  For exact values
this holds: the inverse of a function reaches its end only from where the function reaches its own.
Rounded numbers may change only in code that is undone bit by bit, except for additions to results.
See `rvm.transform.retraced`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

from rvm.expr import Expr, Place, index_reads, places
from rvm.host.once import once
from rvm.isa import MAKES, invert_instr, lower
from rvm.program import Function, Program
from rvm.stmt import Call, Update, reads, writes
from rvm.transform.duals import reachable
from rvm.transform.retraced import ABLE, Retraced, Step, known_from, lengths_from


def unread(program: Program, name: str) -> frozenset[int] | None:
    """The parameters that a function changes, if its gradient needs no run forwards; else None."""
    found: tuple[frozenset[int] | None]
    found = once(program.cache, (unread, name), tuple, lambda: (_unread(program.function(name)),))
    return found[0]


def _unread(f: Function) -> frozenset[int] | None:
    changed = {p.reg for i in f.code for s in lower(i) for p in writes(s)}
    results = frozenset(k for k in changed if k < f.n_args)
    code = [Step(f, instr) for instr in f.code]
    gains = {
        pc
        for pc, step in enumerate(code)
        if step.adds and step.changed <= results and not step.is_exact
    }
    for pc, step in enumerate(code):
        able = pc in gains or results.isdisjoint(step.changed)
        if not (able and results.isdisjoint(step.read) and isinstance(step.stmts[0], ABLE)):
            return None
    steady = _steady(f, code)
    asked = {
        pc
        for pc, step in enumerate(code)
        if not (pc in gains or step.is_exact or step.changed <= steady)
    }
    ends = {pc for pc in asked if code[pc].instr.op == "free"}
    return results if asked.issubset(chain.from_iterable(Retraced(code).within(ends))) else None


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
        case [at] if Step(f, f.code[at]).adds:
            # A branch that goes back is a loop's.
            around = (pc for pc in range(at, len(f.code)) if f.code[pc].op == "br")
            return None if any(f.code[pc].aux < at for pc in around) else at
    return None


def _steady(f: Function, code: Sequence[Step]) -> frozenset[int]:
    """The registers that hold one value from when they are made, of what does not change."""
    by: dict[int, list[Step]] = {}
    for step in code:
        for reg in step.changed:
            by.setdefault(reg, []).append(step)
    found = set()
    for reg, steps in by.items():
        made, *others = (step.instr for step in steps)
        if made.op not in MAKES or others != [invert_instr(made)]:
            continue
        known = (known_from(f, e) for e in made.args[1:])
        if by.keys().isdisjoint(lengths_from(f, reg).union(*known)):
            found.add(reg)
    return frozenset(found)
