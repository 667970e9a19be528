"""Ancillas that must hold the value they are freed with: nothing has changed since they were made.

If on every path to a `free` its register was allocated with the same value, and neither the
register nor anything that the value reads has been written since, both have the same bits, and no
comparison is needed.  This holds for code that is entered at its beginning; in a run that continues
in the middle, a debugger may have changed values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rvm.expr import Expr, Place, places
from rvm.host.once import once
from rvm.image import Code
from rvm.stmt import Alloc, Free, Stmt, writes


class Made(NamedTuple):
    """An ancilla's register, and the value that it is made with."""

    reg: int
    value: Expr


def certain(code: Code) -> frozenset[int]:
    """The `id`s of the statements that free an ancilla which must hold their value."""
    return once(code.compiled, certain, frozenset, lambda: frozenset(_certain(code)))


def _certain(code: Code) -> Iterator[int]:
    """A data flow of facts, one for each `alloc`: its register holds its initial value."""
    stmts = [code.stmts(pc) for pc in range(len(code))]
    facts = {pc: made for pc, s in enumerate(stmts) if (made := _made(s)) is not None}
    number = {pc: 1 << k for k, pc in enumerate(facts)}
    about: dict[int, int] = {}
    for pc, made in facts.items():
        for reg in {made.reg, *_read(code, made)}:
            about[reg] = about.get(reg, 0) | number[pc]
    lost = []
    for s in stmts:
        gone = 0
        for place in (p for stmt in s for p in writes(stmt, code.image.inout)):
            gone |= about.get(place.reg, 0)
        lost.append(gone)
    known = _flow(code, lost, number)
    alike: dict[Made, int] = {}
    for pc, made in facts.items():
        alike[made] = alike.get(made, 0) | number[pc]
    for pc, s in enumerate(stmts):
        match s:
            case (Free(Place(reg), value),) if value is not None:
                if known[pc] & alike.get(Made(reg, value), 0):
                    yield id(s[0])


def _made(stmts: tuple[Stmt, ...]) -> Made | None:
    match stmts:
        case (Alloc(Place(reg), value),) if value is not None:
            return Made(reg, value)
    return None


def _read(code: Code, made: Made) -> set[int]:
    """The registers from which a value is made, and the lengths of an array."""
    lengths = (d for d in code.function.registers[made.reg].dims if d is not None)
    return {p.reg for e in (made.value, *lengths) for p in places(e)}


def _flow(code: Code, lost: list[int], number: dict[int, int]) -> list[int]:
    """The facts that hold before each instruction on every path to it."""
    known = [sum(number.values())] * (len(code) + 1)
    known[0] = 0
    settled = False
    while not settled:
        settled = True
        for pc, instr in enumerate(code.instrs):
            after = known[pc] & ~lost[pc] | number.get(pc, 0)
            for following in (pc + 1, instr.aux + 1) if instr.op == "br" else (pc + 1,):
                if known[following] & ~after:
                    known[following] &= after
                    settled = False
    return known
