"""Rounds of a loop joined: the loop inside it then runs once for several of them.

    for k, for j: C[i, j] += A[i, k] * B[k, j]

goes through row i of C for each k.  Joined, it does so for four k at a time, and for each j adds
what they give, one after the other: each element has the same numbers added in the same order.  So
no bit differs, while C is loaded and stored a quarter as often.  Where the inner loop adds to one
element, four such sums are under way at once, and none waits for the additions of another.

That is right where rounds that change places reach different elements: each array that is written
is reached by one index only, which either is the same in all rounds of the outer loop and another
in each of the inner one, or is another in each round of the outer loop, whatever the inner one
does.  (R. Allen and K. Kennedy, "Optimizing Compilers for Modern Architectures", 2002, 8.4: unroll
and jam.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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

MOST, LEAST = 4, 2
"""How many rounds are joined: fewer where the body has several instructions, since all of their
values are under way at once."""
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
    """An outer loop whose rounds can be joined, and the inner loop that is all it holds.

    `before` are the instructions that make the inner loop's variable and its end, `body` those of
    the inner loop.
    """

    outer: Rounds
    inner: Rounds
    before: tuple[int, ...]
    body: tuple[int, ...]

    @property
    def together(self) -> int:
        """How many rounds are joined."""
        return MOST if len(self.body) == 1 else LEAST


def jam(
    code: Code, outer: Rounds, inner: Rounds, resolved: Callable[[Expr], Expr | None]
) -> Jam | None:
    """The jam of a loop and one inside it, if there is one and it pays.

    `resolved` gives an index over variables of loops and what does not change in the nest.
    """
    before = _around(code, outer, inner)
    if before is None:
        return None
    step = inner.cycle.head + 1 if inner.early else inner.cycle.back - 1
    body = tuple(pc for pc in range(inner.cycle.head + 1, inner.cycle.back) if pc != step)
    made = {p.reg for pc in before for p in touched(code.stmts(pc)) if not p.path}
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
                if place.path or (place.reg in made and place.reg != inner.variable):
                    return None
                continue
            axes = _axes(place, resolved)
            if axes is None:
                return None
            reached.setdefault(place.reg, set()).add(axes)
    p, q = outer.variable, inner.variable
    if not all(len(reached[reg]) == 1 for reg in written):
        return None
    if not all(_is_free(axes, p, q) for reg in written for axes in reached[reg]):
        return None
    kept = any(_is_kept(axes, p, q) for found in reached.values() for axes in found)
    sums = any(not any(_factor(a, q) for a in axes) for reg in written for axes in reached[reg])
    return Jam(outer, inner, before, body) if body and (kept or sums) else None


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


def _is_free(axes: Sequence[Axis], p: int, q: int) -> bool:
    """Whether rounds of the loops over `p` and `q` that change places reach different elements."""
    if any(_factor(a, p) and not _factor(a, q) for a in axes):
        return True
    return _is_kept(axes, p, q)


def _is_kept(axes: Sequence[Axis], p: int, q: int) -> bool:
    """Whether each round of the loop over `p` reaches the same elements, one by one over `q`."""
    return not any(_factor(a, p) for a in axes) and any(_factor(a, q) for a in axes)


# ---------------------------------------------------------------- printing


def print_jam(n: Nests, jam: Jam, rest: str, past: str) -> None:
    """The rounds that can be joined; goes on at `rest` if some are left, otherwise at `past`.

    Unprintable if an instruction may be trouble.
    """
    outer, inner, many = jam.outer, jam.inner, jam.together
    over, under = n.scalars[outer.variable][0], n.scalars[inner.variable][0]
    n.leaving(lambda: rest)
    for pc in jam.before:
        n.instruction(n.code.stmts(pc), n.code.clashes(pc))
    end, last = cast(str, n.value(outer.end)), cast(str, n.value(inner.end))
    first = n.load("i64", under)
    some, joined, within, behind = (n.fresh(s) for s in ("some", "joined", "within", "behind"))
    n.fork(n.compare("eq", "i64", first, last), rest, some)
    n.label(some)
    each = outer.cycle.back - outer.cycle.head - (inner.cycle.back - inner.cycle.head)
    trips = _between(n, first, last, inner.step)
    ticks = n.op(f"mul i64 {trips}, {many * (inner.cycle.back - inner.cycle.head)}")
    ticks = n.op(f"add i64 {ticks}, {many * each}")
    enough = n.compare("uge", "i64", _left(n, over, end, outer), str(many))
    n.fork(enough, joined, rest)
    n.label(joined)
    at = n.load("i64", over)
    n.store("i64", first, under)
    n.jump(within)
    n.label(within)
    n.leaving(_none)
    if inner.early:
        _step(n, under, inner.step)
    for k in range(many):
        n.store("i64", n.op(f"add nsw i64 {at}, {(k + outer.early) * outer.step}"), over)
        for pc in jam.body:
            n.instruction(n.code.stmts(pc), n.code.clashes(pc))
    if not inner.early:
        _step(n, under, inner.step)
    n.fork(n.compare("ne", "i64", n.load("i64", under), last), within, behind)
    n.label(behind)
    n.store("i64", n.op(f"add nsw i64 {at}, {many * outer.step}"), over)
    n.count(ticks)
    if n.kind.counts:
        _count_rounds(n, jam, trips)
    done = n.fresh("done")
    enough = n.compare("uge", "i64", _left(n, over, end, outer), str(many))
    n.fork(enough, joined, done)
    n.label(done)
    ended = n.fresh("ended") if n.kind.counts else past
    n.fork(n.compare("eq", "i64", n.load("i64", over), end), ended, rest)
    if n.kind.counts:
        n.label(ended)
        on, out = _ways(outer.cycle, inner.cycle.back + 2)
        n.along(on, "-1")
        n.along(out)
        n.jump(past)


def _count_rounds(n: Nests, jam: Jam, trips: str) -> None:
    """Count the edges of rounds joined, as if each of them led on to the next round."""
    outer, inner, many = jam.outer.cycle, jam.inner.cycle, jam.together
    guard, behind = inner.head - 1, inner.back + 2
    again, out = _ways(inner, inner.head + 1)
    more = n.op(f"sub i64 {trips}, 1")
    n.along(again, n.op(f"mul i64 {more}, {many}"))
    for edge in (
        Edge(outer.head + 1, guard, FALLS, inner.head),
        Edge(inner.head, inner.head + 1, FALLS, inner.head + 1),
        out,
        Edge(inner.back + 1, behind, FALLS, behind),
        _ways(outer, behind)[0],
    ):
        n.along(edge, str(many))


def _ways(cycle: Cycle, last: int) -> tuple[Edge, Edge]:
    """The edges back and out of the loop from the last piece of its round."""
    back = cycle.back
    return Edge(last, back, JUMPS, cycle.head + 1), Edge(last, back, FALLS, back + 1)


def _none() -> str:
    raise Unprintable


def _step(n: Nests, variable: str, step: int) -> None:
    n.store("i64", n.op(f"add nsw i64 {n.load('i64', variable)}, {step}"), variable)


def _left(n: Nests, variable: str, end: str, rounds: Rounds) -> str:
    """How many rounds are left; never negative."""
    return _between(n, n.load("i64", variable), end, rounds.step)


def _between(n: Nests, first: str, end: str, step: int) -> str:
    way = f"{end}, {first}" if step > 0 else f"{first}, {end}"
    distance = n.op(f"sub nsw i64 {way}")
    return distance if abs(step) == 1 else n.op(f"udiv exact i64 {distance}, {abs(step)}")
