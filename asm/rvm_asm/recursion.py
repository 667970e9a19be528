"""Functions that call themselves on every way through them, and so never return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rvm.program import Function, Program
from rvm.verify import successors
from rvm.verify.conflicts import CALLS


class Endless(NamedTuple):
    """A call that no run completes, since the function called always reaches it again."""

    function: str
    pc: int
    callee: str


def endless(program: Program) -> Iterator[Endless]:
    """For each function that always calls itself, or others that do, the first such call."""
    functions = {f.name: f for f in program.functions}
    calls = {n: _callees(f) for n, f in functions.items()}
    left = {n for n in functions if n in _reached(calls, n)}
    left |= {n for n in functions if left & _reached(calls, n)}
    before = -1
    while before != len(left):  # what returns is found from the innermost calls outwards
        before = len(left)
        left = {n for n in left if _way(functions[n], left) is not None}
    for name in functions:
        pc = _way(functions[name], left) if name in left else None
        if pc is None:
            continue
        callee = functions[name].code[pc].symbol
        stuck = {n: calls[n] & left for n in left}
        if name in _reached(stuck, name):
            yield Endless(name, pc, callee)


def _callees(f: Function) -> set[str]:
    return {i.symbol for i in f.code if i.op in CALLS}


def _reached(calls: Mapping[str, set[str]], name: str) -> set[str]:
    """The functions that one calls, directly or not; itself only if it is recursive."""
    seen: set[str] = set()
    todo = list(calls[name])
    while todo:
        one = todo.pop()
        if one not in seen and one in calls:
            seen.add(one)
            todo += calls[one]
    return seen


def _way(f: Function, left: set[str]) -> int | None:
    """The first call of one of these functions, if no way to the end avoids them; else None."""
    code, seen, todo = f.code, {0}, [0]
    met: list[int] = []
    while todo:
        at = todo.pop()
        if at == len(code):
            return None
        if code[at].op in CALLS and code[at].symbol in left:
            met.append(at)
            continue
        for after in successors(code, at):
            if after not in seen:
                seen.add(after)
                todo.append(after)
    return min(met, default=None)
