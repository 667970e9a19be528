"""The optimal reversible schedule as one recursive function, with its splits as constants.

A schedule of n steps with s states is [make m; from there, n - m steps with s - 1; unmake m], so
that what differs from call to call is n, and a slice of s slots of an array of states, the *pool*.

    persist(pool, x, ..., n)        the state n steps after x, into the last slot of the pool
    mirrored(pool, x, ..., n)       into the first one
    split(m, n, s)                  the best m, found by comparisons

The result goes to one end of the slice, the state m to the other, which is where the calls that
make m and unmake it have theirs.  So each slot that is free is used, and s states are enough.

    erase(pool, y, x, ..., n)       adds the state n steps after x to y, whatever that holds

makes m, goes on, and unmakes m.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import NamedTuple

from rvm.expr import Expr
from rvm.isa import apply
from rvm.pebble.bridge.emission.body import BOTH, Body, integer, minus, plus
from rvm.pebble.bridge.emission.code import POOL, State, StepWriter, copied
from rvm.pebble.bridge.emission.step import Step
from rvm.pebble.chains.knill import Line, line
from rvm.program import Function, Span
from rvm.transform.duals import unique

LEVEL = 1 << 41
"""Splits are found by n + s LEVEL; no chain is as long."""
LONGEST = 1 << 24
"""The most steps of an `iterate` that is not Bennett's."""
MOST = 128
"""The most states that are used if only the run knows the length."""
SAMPLES = 24
"""For such lengths, the splits that are given for a number of states; others lie between."""


class Names(NamedTuple):
    """The functions of a schedule."""

    persist: str
    mirrored: str
    split: str
    erase: str
    visit_split: str


class _Stretch(StepWriter):
    """The function of n steps from x, in a pool that is lent; `s` is the size of that."""

    def __init__(self, step: Step, names: Names, with_y: bool = False) -> None:
        super().__init__(step, with_y=with_y, slots=1)
        self.names = names
        (self.n,) = self.add_integers("n")
        self.k, self.m = self.local("k"), self.local("m")
        self.s = apply("dim", self.whole(self.pool.regs[0]), integer(0))

    def step_to(self, op: str, at: Expr, of: Expr | None, done: Expr | int) -> None:
        """A step from a slot, or from x, to another."""
        x = self.x if of is None else self.pool.at(of)
        args = self.arguments(self.pool.at(at), x, self.numbered(done), None)
        self.put(op, *args, symbol=self.step.function.name)

    def row(self, op: str, slot: Callable[[Expr], Expr], last: Expr) -> None:
        """The states after 1 to `last` steps, each in its slot; or undone."""
        k, one, two = self.k, integer(1), integer(2)

        def step() -> None:
            self.step_to(op, slot(k), slot(minus(k, 1)), minus(k, 1))

        if op == "uncall":
            self.over(k, last, one, -1, step)
        self.step_to(op, slot(one), None, 0)
        if op == "call":
            self.over(k, two, plus(last, 1), 1, step)

    def play(
        self, op: str, symbol: str, slots: tuple[Expr, Expr], x: State, n: Expr, done: Expr | int
    ) -> None:
        """A call of a function like this, with a slice of the pool."""
        y = self.y if symbol == self.names.erase else None
        own = self.arguments(y, x, self.numbered(done), None)
        self.put(op, *self.slots_between(*slots), *own, n, symbol=symbol)

    def with_split(self, symbol: str, body: Callable[[], None]) -> None:
        """The body with the best split in m."""
        self.put("alloc", self.m)
        self.put("call", self.m, self.n, self.s, symbol=symbol)
        body()
        self.put("uncall", self.m, self.n, self.s, symbol=symbol)
        self.put("free", self.m)


def _persist(step: Step, names: Names, mirrored: bool) -> StepWriter:
    """The result goes to the last slot, the state at the split to the first; or the opposite."""
    w = _Stretch(step, names)
    zero, one, less = integer(0), integer(1), minus(w.s, 1)
    all_slots, lower, upper = (zero, w.s), (zero, less), (one, w.s)

    def slot(k: Expr) -> Expr:
        # The result of a row has the same slot as any other.
        return minus(w.n, k) if mirrored else plus(minus(less, w.n), k)

    def row() -> None:
        w.row("call", slot, w.n)
        w.branch(apply(">", w.n, one), lambda: w.row("uncall", slot, minus(w.n, 1)))

    def cut() -> None:
        own, other = (names.mirrored, names.persist)[:: 1 if mirrored else -1]
        middle, rest, left = (less, lower, upper) if mirrored else (zero, upper, lower)
        w.play("call", other, all_slots, w.x, w.m, 0)
        w.play("call", own, rest, w.pool.at(middle), minus(w.n, w.m), w.m)
        w.play("uncall", other, left, w.x, w.m, 0)

    w.branch(apply("<=", w.n, w.s), row, lambda: w.with_split(names.split, cut))
    return w


def _erase(step: Step, names: Names) -> StepWriter:
    """The state at the split is in the first slot; the last state is added to y."""
    w = _Stretch(step, names, with_y=True)
    zero, one = integer(0), integer(1)

    def slot(k: Expr) -> Expr:
        return minus(k, 1)

    def row() -> None:
        w.row("call", slot, w.n)
        copied(w, w.y, w.pool.at(slot(w.n)))
        w.row("uncall", slot, w.n)

    def cut() -> None:
        w.play("call", names.mirrored, (zero, w.s), w.x, w.m, 0)
        w.play("call", names.erase, (one, w.s), w.pool.at(zero), minus(w.n, w.m), w.m)
        w.play("uncall", names.mirrored, (zero, w.s), w.x, w.m, 0)

    w.branch(apply("<=", w.n, w.s), row, lambda: w.with_split(names.visit_split, cut))
    return w


# ---------------------------------------------------------------- splits


def _split(name: str, entries: Sequence[Entry], visits: bool, span: Span | None) -> Function:
    """m += the best split of n steps with s states, found by comparisons."""
    w = Body()
    m, n, s = w.add_integers("m", "n", "s")
    key = w.local("key")

    def found(low: int, high: int) -> None:
        if high - low > 1:
            middle = (low + high) // 2
            w.branch(
                apply("<", key, integer(entries[middle].key)),
                lambda: found(low, middle),
                lambda: found(middle, high),
            )
            return
        at, split, run, rise = entries[low]
        w.put("add", m, integer(split))
        if rise:
            past = minus(key, at)
            w.put("add", m, apply("//", apply("*", past, integer(rise)), integer(run)))

    def searched() -> None:
        w.put("alloc", key, plus(n, apply("*", s, integer(LEVEL))))
        found(0, len(entries))
        w.put("free", key, plus(n, apply("*", s, integer(LEVEL))))

    def in_closed_form() -> None:
        w.put("add", m, least)

    # With many states, there are closed forms.
    less = minus(s, 0 if visits else 1)
    most = plus(s, apply("//", apply("*", less, minus(less, 1)), integer(2)))
    least = apply("min", less, plus(minus(n, s), 1))
    if entries:
        w.branch(apply("<=", n, most), in_closed_form, searched)
    else:
        in_closed_form()
    return w.function(name, span)


class Entry(NamedTuple):
    """A split of n + s LEVEL = key; up to the next key it rises by `rise` in `run` steps."""

    key: int
    split: int
    run: int = 1
    rise: int = 0


def _closed(n: int, s: int, visits: bool) -> bool:
    less = s if visits else s - 1
    return n <= s + less * (less - 1) // 2


def splits_of(table: Line, n: int, s: int, visits: bool) -> tuple[list[Entry], list[Entry]]:
    """The splits that persist and visit need for n steps, where there is no closed form."""
    found: tuple[dict[int, int], dict[int, int]] = {}, {}
    stack, seen = [(n, s, visits)], set()
    while stack:
        top = stack.pop()
        n, s, visits = top
        if n <= s or top in seen:
            continue
        seen.add(top)
        split = table.visit_split if visits else table.persist_split
        m = split(n, s)
        if not _closed(n, s, visits):
            found[visits][n + s * LEVEL] = m
        stack += [(m, s, False), (n - m, s - 1, visits)]
        if not visits:
            stack.append((m, s - 1, False))
    persist, visit = ([Entry(*pair) for pair in sorted(part.items())] for part in found)
    return persist, visit


@cache
def sampled_splits(most: int, s: int, visits: bool) -> list[Entry]:
    """Splits for all lengths up to `most` and up to s states: those between lie on lines."""
    table = line(most)
    split = table.visit_split if visits else table.persist_split
    out = []
    for level in range(2, s + 1):
        end = min(most, 2**level - 1 if visits else 2 ** (level - 1))
        less = level if visits else level - 1
        first = level + less * (less - 1) // 2
        if first >= end:
            continue
        ratio = (end / first) ** (1 / SAMPLES)
        lengths = sorted({first, end, *(round(first * ratio**k) for k in range(SAMPLES))})
        for a, b in zip(lengths, [*lengths[1:], end + 1], strict=True):
            here = split(a, level)
            rise = split(b, level) - here if b <= end else 0
            out.append(Entry(a + level * LEVEL, here, b - a, rise))
    return out


# ---------------------------------------------------------------- the whole


def knill_functions(
    step: Step,
    n: int | None,
    s: int,
    goal: str,
    name: str,
    span: Span | None,
    taken: Collection[str] = (),
) -> list[Function]:
    """The functions of n steps with s states, of the goal persist or erase, the outermost first.

    That one has the step's parameters, and one for the number of steps if n is None.
    """
    visits = goal == "erase"
    s = max(1, min(s, MOST if n is None else n))
    used = {*taken, name}
    parts = ("persist", "mirrored", "split", "erase", "visit_split")
    names = Names(*(unique(f"{name}.{part}", used) for part in parts))
    if n is None:
        most = min(LONGEST, 2**s - 1 if visits else 2 ** (s - 1))
        splits = sampled_splits(most, s, False), sampled_splits(most, s, True) if visits else []
    else:
        most, splits = n, splits_of(line(n), n, s, visits)

    def whole(w: StepWriter, count: Expr) -> None:
        w.pool = w.fresh_state(POOL, s)
        pool = w.places(w.pool)
        w.each("alloc", w.pool)
        own = w.arguments(w.y if visits else None, w.x, w.number, None)
        w.put("call", *pool, *own, count, symbol=names.erase if visits else names.persist)
        if not visits:
            assert w.y is not None
            w.each("swap", w.y, w.pool.at(integer(s - 1)))
        for leaf in reversed(pool):
            w.put("free", leaf)

    found = [
        counted(step, n, most, whole).function(name, span),
        *(
            _persist(step, names, mirrored).function(own, span)
            for own, mirrored in ((names.persist, False), (names.mirrored, True))
        ),
        _split(names.split, splits[0], False, span),
    ]
    if visits:
        found.append(_erase(step, names).function(names.erase, span))
        found.append(_split(names.visit_split, splits[1], True, span))
    return found


def counted(
    step: Step, n: int | None, most: int, whole: Callable[[StepWriter, Expr], None]
) -> StepWriter:
    """The outermost function, of n steps, or of so many as a parameter says, up to `most`.

    `whole` writes the code for one step or more; none adds x to y.
    """
    w = StepWriter(step)
    if n is not None:
        if n:
            whole(w, integer(n))
        else:
            copied(w, w.y, w.x)
        return w
    (steps,) = w.add_integers("steps")
    sound = apply("and", apply(">=", steps, integer(0)), apply("<=", steps, integer(most)))
    text = f"`{step.function.name}` is done 0 to {most:,} times, not so often:"
    w.put("assert", sound, steps, aux=BOTH, symbol=text)
    w.branch(apply(">", steps, integer(0)), lambda: whole(w, steps), lambda: copied(w, w.y, w.x))
    return w
