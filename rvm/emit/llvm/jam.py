"""Rounds of a loop joined: the loop inside it then runs once for several of them.

    for i, for k, for j: C[i, j] += A[i, k] * B[k, j]

goes through row i of C for each k.  Joined, it does so for four k at a time, and for each j adds
what they give, one after the other: each element has the same numbers added in the same order.  So
no bit differs, while C is loaded and stored a quarter as often.  Where the inner loop adds to one
element, four such sums are under way at once, and none waits for the additions of another.  With
two i at a time B is loaded half as often, too.

That is right where rounds that change places reach different elements: each array that is written
is reached by one index only, which either is the same in all rounds of the outer loop and another
in each of the inner one, or is another in each round of the outer loop, whatever the inner one
does; in each round of a third loop it must be another one.  (R. Allen and K. Kennedy, "Optimizing
Compilers for Modern Architectures", 2002, 8.4: unroll and jam.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING, cast

from rvm.emit.llvm.edges import FALLS, JUMPS, Edge
from rvm.emit.llvm.flow import Cycle
from rvm.emit.llvm.reading import touched
from rvm.emit.values import Unprintable
from rvm.expr import Const, Expr, Index, Place
from rvm.image import Code
from rvm.stmt import Alloc, Free, Update
from rvm.types import I64, Array
from rvm.verify.affine import affine

if TYPE_CHECKING:
    from rvm.emit.llvm.nests import Nests

MANY, FEW = 4, 2
"""How many rounds are joined: few where the body has several instructions, since all of their
values are under way at once, and of a third loop around the two."""
Axis = tuple[int, frozenset[tuple[object, int]]]
"""An index as a constant and the factors of what it depends on."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """A counting loop: `variable` += `step`, first or last thing in a round, until it is `end`."""

    cycle: Cycle
    variable: int
    step: int
    early: bool
    end: Expr


@dataclass(frozen=True, slots=True)
class Jam:
    """Two or three loops, outer ones first, each of which holds the next one and nothing else.

    Rounds are joined of all but the innermost.  `before` are the instructions that make the
    variables of the inner loops and their ends, `body` those of the innermost.
    """

    loops: tuple[Rounds, ...]
    before: tuple[int, ...]
    body: tuple[int, ...]

    @property
    def together(self) -> tuple[int, ...]:
        """How many rounds of each loop are joined."""
        two = (MANY if len(self.body) == 1 else FEW, 1)
        return two if len(self.loops) == 2 else (FEW, *two)


def jam(
    code: Code, loops: tuple[Rounds, ...], resolved: Callable[[Expr], Expr | None]
) -> Jam | None:
    """The jam of loops inside each other, if there is one and it pays.

    `resolved` gives an index over variables of loops and what does not change in the nest.
    """
    before: list[int] = []
    for outer, loop in pairwise(loops):
        made = _around(code, outer, loop)
        if made is None:
            return None
        before += made
    *_, outer, inner = loops
    step = inner.cycle.head + 1 if inner.early else inner.cycle.back - 1
    body = tuple(pc for pc in range(inner.cycle.head + 1, inner.cycle.back) if pc != step)
    variables = {loop.variable for loop in loops}
    scratch = {p.reg for pc in before for p in touched(code.stmts(pc)) if not p.path} - variables
    reached: dict[int, set[tuple[Axis, ...]]] = {}
    written: set[int] = set()
    for pc in body:
        match code.stmts(pc):
            case (Update(Place(reg, path)),) if path:
                written.add(reg)
            case _:
                return None
        for place in touched(code.stmts(pc)):
            if not isinstance(code.function.registers[place.reg].type, Array):
                if place.path or place.reg in scratch:
                    return None
                continue
            axes = _axes(place, resolved)
            if axes is None:
                return None
            reached.setdefault(place.reg, set()).add(axes)
    if not body or any(len(reached[reg]) != 1 for reg in written):
        return None
    changed = [axes for reg in written for axes in reached[reg]]
    p, q = outer.variable, inner.variable
    kept = any(_is_kept(axes, p, q) for found in reached.values() for axes in found)
    sums = any(not any(_factor(a, q) for a in axes) for axes in changed)
    if not (kept or sums) or not all(_is_apart(a, p, q) or _is_kept(a, p, q) for a in changed):
        return None
    if len(loops) == 3 and (
        len(body) > 1 or not all(_is_apart(axes, loops[0].variable, p, q) for axes in changed)
    ):
        return None
    return Jam(loops, tuple(before), body)


def _around(code: Code, outer: Rounds, inner: Rounds) -> tuple[int, ...] | None:
    """What makes the inner loop's variable, if the outer loop holds nothing else but its end."""
    head, back = outer.cycle.head + 1, outer.cycle.back
    guard = inner.cycle.head - 1
    before = range(head + outer.early, guard)
    behind = range(inner.cycle.back + 1, back - (not outer.early))
    if code.instrs[guard].op != "br" or code.instrs[guard].aux != behind.start:
        return None
    if any(head <= pc <= back for pc in code.traps):
        return None
    held: dict[int, Expr] = {}
    for pc in before:
        match code.stmts(pc):
            case (Alloc(Place(reg), value),) if value is not None:
                held[reg] = value
            case _:
                return None
    held[inner.variable] = inner.end
    for pc in behind[1:]:
        match code.stmts(pc):
            case (Free(Place(reg), value),) if held.pop(reg, None) == value:
                pass
            case _:
                return None
    return None if held else tuple(before)


def _axes(place: Place, resolved: Callable[[Expr], Expr | None]) -> tuple[Axis, ...] | None:
    match place.path:
        case (Index(items),):
            axes = [_axis(item, resolved) for item in items]
            return None if None in axes else tuple(a for a in axes if a is not None)
    return None


def _axis(item: object, resolved: Callable[[Expr], Expr | None]) -> Axis | None:
    if isinstance(item, Const):
        return int(item.value), frozenset()
    found = resolved(cast(Expr, item)) if getattr(item, "type", None) == I64 else None
    if found is None:
        return None
    form = affine(found)
    return form.constant, frozenset(form.atoms.items())


def _factor(axis: Axis, variable: int) -> int:
    return next(
        (k for atom, k in axis[1] if isinstance(atom, Place) and atom.reg == variable and k), 0
    )


def _is_apart(axes: Sequence[Axis], p: int, *within: int) -> bool:
    """Whether each round of the loop over `p` reaches elements of its own, whatever is within."""
    return any(_factor(a, p) and not any(_factor(a, q) for q in within) for a in axes)


def _is_kept(axes: Sequence[Axis], p: int, q: int) -> bool:
    """Whether each round of the loop over `p` reaches the same elements, one by one over `q`."""
    return not any(_factor(a, p) for a in axes) and any(_factor(a, q) for a in axes)


# ---------------------------------------------------------------- printing


@dataclass(frozen=True, slots=True)
class Level:
    """A loop that is being printed: its variable, the values it begins and ends with, and how many
    rounds of it are joined."""

    rounds: Rounds
    variable: str
    first: str
    end: str
    many: int


def print_jam(n: Nests, jam: Jam, rest: str, past: str) -> None:
    """The rounds that can be joined; goes on at `rest` if some are left, otherwise at `past`.

    Unprintable if an instruction may be trouble.
    """
    n.leaving(lambda: rest)
    for pc in jam.before:
        n.instruction(n.code.stmts(pc), n.code.clashes(pc))
    levels = []
    for rounds, many in zip(jam.loops, jam.together, strict=True):
        variable = n.scalars[rounds.variable][0]
        end = cast(str, n.value(rounds.end))
        levels.append(Level(rounds, variable, n.load("i64", variable), end, many))
    for level in levels[1:]:
        some = n.fresh("some")
        n.fork(n.compare("eq", "i64", level.first, level.end), rest, some)
        n.label(some)
    n.leaving(_none)
    outer = levels[0]
    ticks = n.op(f"mul i64 {_ticks(n, levels)}, {outer.many}")

    def behind() -> None:
        n.count(ticks)
        if n.kind.counts:
            _count_rounds(n, levels)

    done = n.fresh("done")
    _print_rounds(n, levels, (), jam.body, outer.many, done, behind)
    n.label(done)
    ended = n.fresh("ended") if n.kind.counts else past
    n.fork(n.compare("eq", "i64", n.load("i64", outer.variable), outer.end), ended, rest)
    if n.kind.counts:
        n.label(ended)
        on, out = _ways(levels)
        n.along(on, "-1")
        n.along(out)
        n.jump(past)


def _count_rounds(n: Nests, levels: Sequence[Level]) -> None:
    """Count the edges of rounds joined, as if each of them led on to the next round."""
    times = str(levels[0].many)
    n.along(_ways(levels)[0], times)
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
            n.along(edge, times)
        trips = _between(n, level.first, level.end, level.rounds.step)
        all_trips = n.op(f"mul i64 {trips}, {times}")
        n.along(again, n.op(f"sub i64 {all_trips}, {times}"))
        times = all_trips


def _ways(levels: Sequence[Level]) -> tuple[Edge, Edge]:
    """The edges back and out of the outermost of some loops, from the last piece of its round."""
    cycle = levels[0].rounds.cycle
    last = levels[1].rounds.cycle.back + 2 if len(levels) > 1 else cycle.head + 1
    return Edge(last, cycle.back, JUMPS, cycle.head + 1), Edge(
        last, cycle.back, FALLS, cycle.back + 1
    )


def _none() -> str:
    raise Unprintable


def _ticks(n: Nests, levels: Sequence[Level]) -> str:
    """The ticks of a round of the outermost of some loops."""
    cycle = levels[0].rounds.cycle
    length = cycle.back - cycle.head
    if len(levels) == 1:
        return str(length)
    inner = levels[1]
    within = inner.rounds.cycle
    trips = _between(n, inner.first, inner.end, inner.rounds.step)
    all_trips = n.op(f"mul i64 {trips}, {_ticks(n, levels[1:])}")
    return n.op(f"add i64 {all_trips}, {length - (within.back - within.head)}")


Joined = tuple[Level, str, int]
"""A loop around, the value of its variable, and how many rounds of it are under way."""


def _print_rounds(
    n: Nests,
    levels: Sequence[Level],
    around: tuple[Joined, ...],
    body: Sequence[int],
    many: int,
    done: str,
    behind: Callable[[], None],
) -> None:
    """So many rounds at a time of the outermost of some loops, while there are as many left."""
    level, *within = levels
    rounds = level.rounds
    joined, begin = n.fresh("joined"), n.fresh("begin")
    n.jump(joined)
    n.label(joined)
    at = n.load("i64", level.variable)
    left = _between(n, at, level.end, rounds.step)
    n.fork(n.compare("uge", "i64", left, str(many)), begin, done)
    n.label(begin)
    here = (*around, (level, at, many))
    if within:
        inner = within[0]
        n.store("i64", inner.first, inner.variable)
        for some in sorted({inner.many, 1}, reverse=True):
            out = n.fresh("out")
            _print_rounds(n, within, here, body, some, out, lambda: None)
            n.label(out)
    else:
        _print_body(n, here, body)
    n.store("i64", n.op(f"add nsw i64 {at}, {many * rounds.step}"), level.variable)
    behind()
    n.jump(joined)


def _print_body(n: Nests, around: Sequence[Joined], body: Sequence[int]) -> None:
    """The innermost loop's instructions for all rounds that are joined, the next loop's in a row.

    LLVM then sees what one round leaves to the next, and stores it once.
    """
    for offsets in product(*(range(many) for _, _, many in around)):
        for (level, at, _), offset in zip(around, offsets, strict=True):
            step, early = level.rounds.step, level.rounds.early
            n.store("i64", n.op(f"add nsw i64 {at}, {(offset + early) * step}"), level.variable)
        for pc in body:
            n.instruction(n.code.stmts(pc), n.code.clashes(pc))


def _between(n: Nests, first: str, end: str, step: int) -> str:
    """How many rounds there are from one value to another; never negative."""
    way = f"{end}, {first}" if step > 0 else f"{first}, {end}"
    distance = n.op(f"sub nsw i64 {way}")
    return distance if abs(step) == 1 else n.op(f"udiv exact i64 {distance}, {abs(step)}")
