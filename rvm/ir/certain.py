"""Ancillas that must hold the value they are freed with, so that no comparison is needed.

If on every path to a `free` its register was allocated with the same value, and neither the
register nor anything that the value reads has been written since, both have the same bits.  The
value may be written in another way, with places that hold parts of it.  The bits are also the same
if all that was done to the register is undone bit by bit (`rvm.transform.retraced`).  This holds
for code that is entered at its beginning; in a run that continues in the middle, a debugger may
have changed values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from rvm.expr import Apply, Expr, Place
from rvm.host.once import once
from rvm.image import Code
from rvm.isa import invert_instr
from rvm.stmt import Alloc, Free, Stmt, writes
from rvm.transform.retraced import known_from, lengths_from, retraced


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
    instrs, asked = list(code.instrs), {}
    for pc, s in enumerate(stmts):
        match s:
            case (Free(Place(reg), value),) if value is not None:
                held = {m.reg: m.value for k, m in facts.items() if known[pc] & number[k]}
                alike = [k for k, m in facts.items() if m.reg == reg and _is(m.value, value, held)]
                if any(known[pc] & number[k] for k in alike):
                    yield id(s[0])
                else:
                    asked[pc] = id(s[0])
                if alike:
                    instrs[pc] = invert_instr(code.instrs[alike[0]])
    for pc in retraced(replace(code.function, code=tuple(instrs)), asked, finite=False):
        yield asked[pc]


def _is(value: Expr, other: Expr, held: Mapping[int, Expr]) -> bool:
    """Whether a value is another one, which may be written with places that hold parts of it."""
    if isinstance(other, Place) and not other.path and value != other:
        inner = held.get(other.reg)
        return inner is not None and inner.type == other.type and _is(value, inner, held)
    if isinstance(value, Apply) and isinstance(other, Apply):
        alike = (value.fn, value.type, len(value.args)) == (other.fn, other.type, len(other.args))
        return alike and all(map(lambda a, b: _is(a, b, held), value.args, other.args))
    return value == other


def _made(stmts: tuple[Stmt, ...]) -> Made | None:
    match stmts:
        case (Alloc(Place(reg), value),) if value is not None:
            return Made(reg, value)
    return None


def _read(code: Code, made: Made) -> set[int]:
    """The registers from which a value is made, and the lengths of an array."""
    return known_from(code.function, made.value) | lengths_from(code.function, made.reg)


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
