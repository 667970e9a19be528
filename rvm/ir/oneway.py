"""One-way registers: integers with a known initial value that change by ones in one direction.

In a run that allocates such a register, it never passes its initial value in the other direction:
it would have to wrap, which takes more ticks than a run ever has.  LLVM is told this, since it
cannot derive it from a `while` loop.  Then one comparison suffices for both bounds of an index, and
a condition checked by a come-from need not be checked again.
"""

from __future__ import annotations

from dataclasses import dataclass

from rvm.expr import LENGTHS, Apply, Const, Expr, Place
from rvm.image import Code
from rvm.probes.accesses import changed_places
from rvm.stmt import Alloc, Free, Update
from rvm.types import I64

MOST = 1 << 60
"""The largest magnitude of initial values; array lengths are smaller anyway."""


@dataclass(frozen=True, slots=True)
class OneWay:
    """A register that is `begin` or more, if it goes up, or `begin` or less."""

    reg: int
    begin: Expr
    up: bool


def one_way(code: Code) -> tuple[OneWay, ...]:
    """The monotonic registers among a code's locals."""
    begun: dict[int, Expr] = {}
    ways: dict[int, set[bool]] = {}
    others = set(range(code.function.n_args))
    for pc in range(len(code)):
        match code.stmts(pc):
            case (Alloc(Place(reg, (), t), value),) if t == I64 and reg not in begun:
                if value is not None and _is_known(code, value):
                    begun[reg] = value
                else:
                    others.add(reg)
            case (Update(Place(reg, (), t), "+" | "-" as op, Const(1 | -1 as by)),) if t == I64:
                ways.setdefault(reg, set()).add((op == "+") == (by == 1))
            case (Free(),):
                pass
            case _:
                others |= {place.reg for place in changed_places(code, pc)}
    return tuple(
        OneWay(reg, begin, True in ways[reg])
        for reg, begin in begun.items()
        if reg not in others and len(ways.get(reg, ())) == 1
    )


def _is_known(code: Code, value: Expr) -> bool:
    match value:
        case Const(int(v)):
            return abs(v) <= MOST
        case Apply(fn, (Place(reg, ()), *_)):
            return fn in LENGTHS and reg < code.function.n_args
    return False
