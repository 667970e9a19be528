"""Loops that exchange values with elements which should be zero, as they were made.

    for i: alloc v = f(i); swap v, x[i]; free v

The `free` compares what was in x[i] with zero, and a loop that may stop in any iteration cannot be
vectorised.  So the elements are compared before the loop, all at once, and if they hold what the
frees expect, the loop is done without comparing them.  This is correct if each iteration reaches
another element, and nothing else in the loop writes to the array.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rvm.expr import Const, Expr, Index, Place, Span
from rvm.image import Code
from rvm.ir.jam import Rounds
from rvm.stmt import Exchange, Free, writes
from rvm.types import I64, Array, Scalar

Factors = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """An element that is exchanged, what it should hold, and the `id` of the `free` that asks."""

    place: Place
    expected: Const
    asks: int


@dataclass(frozen=True, slots=True)
class Vacant:
    """A loop that contains no other, and what it stores in each iteration."""

    rounds: Rounds
    stored: tuple[Stored, ...]


def stored(
    code: Code,
    rounds: Rounds,
    writers: Mapping[int, Sequence[int]],
    proved: Collection[int],
    resolved: Callable[[Expr], Expr | None],
    factors: Callable[[Expr], Factors | None],
) -> Iterator[Stored]:
    """What a loop stores; its indices are resolved to expressions over variables of the nest."""
    inside = range(rounds.cycle.head + 1, rounds.cycle.back)
    registers, n = code.function.registers, code.function.n_args

    def element(place: Place) -> Place | None:
        """An element of a local array that no other instruction here writes, and never twice."""
        match place.path:
            case (Index(items),) if place.reg >= n and isinstance(registers[place.reg].type, Array):
                pass
            case _:
                return None
        if len([pc for pc in writers[place.reg] if pc in inside]) != 1:
            return None
        plain = [i for i in items if not isinstance(i, Span) and i.type == I64]
        found = [resolved(i) for i in plain if id(i) in proved]
        own = [i for i in found if i is not None]
        if len(own) != len(items):
            return None
        if not any(variable == rounds.variable for i in own for variable, _ in factors(i) or ()):
            return None
        return replace(place, path=(Index(tuple(own)),))

    for pc in inside:
        match code.stmts(pc):
            case (Exchange(a, b),):
                for v, place in ((a, b), (b, a)):
                    asks = _asked(code, v, pc + 1, rounds.cycle.back)
                    at = None if asks is None else element(place)
                    if at is not None and asks is not None and isinstance(asks.value, Const):
                        yield Stored(at, asks.value, id(asks))


def _asked(code: Code, v: Place, start: int, end: int) -> Free | None:
    """The `free` further on of a float that was exchanged, which compares it with a constant."""
    t = v.type
    if v.path or v.reg < code.function.n_args or not isinstance(t, Scalar) or t.is_exact:
        return None
    for pc in range(start, end):
        if code.instrs[pc].op in ("br", "cf"):
            return None
        for stmt in code.stmts(pc):
            match stmt:
                case Free(Place(reg), Const()) if reg == v.reg:
                    return stmt
            if any(p.reg == v.reg for p in writes(stmt)):
                return None
    return None
