"""Rounds of loops joined, as `rvm.ir.jam` finds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from rvm.ir.blocks import FunctionBuilder
from rvm.ir.flow import FALLS, JUMPS, Edge
from rvm.ir.jam import Jam, Rounds
from rvm.ir.node import Node, Var
from rvm.ir.statements import instruction_at
from rvm.ir.typed import Unprintable
from rvm.ir.values import scalar


@dataclass(frozen=True, slots=True)
class Level:
    """A loop that is being made: its variable, the values it begins and ends with, and how many
    rounds of it are joined."""

    rounds: Rounds
    variable: Var
    first: Node
    end: Node
    many: int


Joined = tuple[Level, Node, int]
"""An outer loop, the value of its variable, and the number of its active iterations."""


def join(b: FunctionBuilder, jam: Jam, rest: str, past: str) -> None:
    """The iterations that can be joined; continue at `rest` if some are left, otherwise at `past`.

    Unprintable if an instruction may be trouble.
    """
    b.leaving(lambda: rest)
    for pc in jam.before:
        instruction_at(b, pc)
    levels = []
    for rounds, many in zip(jam.loops, jam.together, strict=True):
        variable = b.scalars[rounds.variable][0]
        end = scalar(b, rounds.end)
        levels.append(Level(rounds, variable, b.get(variable), end, many))
    for level in levels[1:]:
        b.stay(b.op("ne", level.first, level.end), rest)
    b.leaving(none)
    outer = levels[0]
    ticks = b.op("wmul", _ticks(b, levels), b.i64(outer.many))

    def behind() -> None:
        b.count(ticks)
        _count_rounds(b, levels)

    done, ended = b.fresh("done"), b.fresh("ended")
    _rounds(b, levels, (), jam.body, outer.many, done, behind)
    b.block(done)
    b.fork(b.op("eq", b.get(outer.variable), outer.end), ended, rest)
    b.block(ended)
    on, out = _ways(levels)
    _along(b, on, b.i64(-1))
    _along(b, out, b.i64(1))
    b.jump(past)


def _along(b: FunctionBuilder, edge: Edge, times: Node) -> None:
    if b.kind.counts:
        b.do("edge", times, aux=edge)


def _count_rounds(b: FunctionBuilder, levels: Sequence[Level]) -> None:
    """Count the edges of rounds joined, as if each of them led on to the next round."""
    if not b.kind.counts:
        return
    times = b.i64(levels[0].many)
    _along(b, _ways(levels)[0], times)
    for k, level in enumerate(levels[1:], 1):
        around, inner = levels[k - 1].rounds.cycle, level.rounds.cycle
        guard, behind = inner.head - 1, inner.back + 2
        again, out = _ways(levels[k:])
        for edge in (
            Edge(around.head + 1, guard, FALLS, inner.head),
            Edge(inner.head, inner.head + 1, FALLS, inner.head + 1),
            out,
            Edge(inner.back + 1, behind, FALLS, behind),
        ):
            _along(b, edge, times)
        trips = b.op("wmul", between(b, level.first, level.end, level.rounds.step), times)
        _along(b, again, b.op("wsub", trips, times))
        times = trips


def _ways(levels: Sequence[Level]) -> tuple[Edge, Edge]:
    """The edges back and out of the outermost of some loops, from the last piece of its round."""
    cycle = levels[0].rounds.cycle
    last = levels[1].rounds.cycle.back + 2 if len(levels) > 1 else cycle.head + 1
    return Edge(last, cycle.back, JUMPS, cycle.head + 1), Edge(
        last, cycle.back, FALLS, cycle.back + 1
    )


def none() -> str:
    """The exit where there must be no trouble."""
    raise Unprintable


def _ticks(b: FunctionBuilder, levels: Sequence[Level]) -> Node:
    """The ticks of a round of the outermost of some loops."""
    cycle = levels[0].rounds.cycle
    length = cycle.back - cycle.head
    if len(levels) == 1:
        return b.i64(length)
    inner = levels[1]
    within = inner.rounds.cycle
    trips = between(b, inner.first, inner.end, inner.rounds.step)
    rest = b.i64(length - (within.back - within.head))
    return b.op("wadd", b.op("wmul", trips, _ticks(b, levels[1:])), rest)


def _rounds(
    b: FunctionBuilder,
    levels: Sequence[Level],
    around: tuple[Joined, ...],
    body: Sequence[int],
    many: int,
    done: str,
    behind: Callable[[], None],
) -> None:
    """Groups of iterations of the outermost of some loops, as long as enough are left."""
    level, *within = levels
    rounds = level.rounds
    joined, begin = b.fresh("joined"), b.fresh("begin")
    b.jump(joined)
    b.block(joined)
    at = b.get(level.variable)
    left = between(b, at, level.end, rounds.step)
    b.fork(b.op("uge", left, b.i64(many)), begin, done)
    b.block(begin)
    here = (*around, (level, at, many))
    if within:
        inner = within[0]
        b.set(inner.variable, inner.first)
        for some in sorted({inner.many, 1}, reverse=True):
            out = b.fresh("out")
            _rounds(b, within, here, body, some, out, lambda: None)
            b.block(out)
    else:
        _body(b, here, body)
    b.set(level.variable, b.op("add", at, b.i64(many * rounds.step)))
    behind()
    b.jump(joined)


def _body(b: FunctionBuilder, around: Sequence[Joined], body: Sequence[int]) -> None:
    """The innermost loop's instructions for all rounds that are joined, the next loop's in a row.

    What one round leaves to the next is then stored once.
    """
    for offsets in product(*(range(many) for _, _, many in around)):
        for (level, at, _), offset in zip(around, offsets, strict=True):
            moved = (offset + level.rounds.early) * level.rounds.step
            b.set(level.variable, b.op("add", at, b.i64(moved)))
        for pc in body:
            instruction_at(b, pc)


def between(b: FunctionBuilder, first: Node, end: Node, step: int) -> Node:
    """The number of iterations from one value to another; never negative."""
    distance = b.op("sub", *((end, first) if step > 0 else (first, end)))
    return distance if abs(step) == 1 else b.op("udiv_exact", distance, b.i64(abs(step)))
