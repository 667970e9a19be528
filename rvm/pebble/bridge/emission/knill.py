"""The optimal reversible schedule as one recursive function, with its splits as constants.

A schedule of n steps with s states is [make m; from there, n - m steps with s - 1; unmake m], so
that what differs from call to call is n, and a slice of s slots of an array of states, the *pool*.

    persist(pool, x, ..., table, n)     the state n steps after x, into the last slot of the pool
    mirrored(pool, x, ..., table, n)    into the first one

The result goes to one end of the slice, the state m to the other, which is where the calls that
make m and unmake it have theirs.  So each slot that is free is used, and s states are enough.

    erase(pool, y, x, ..., table, n)    adds the state n steps after x to y, whatever that holds

makes m, goes on, and unmakes m.  Where there is no closed form for m it is found in a table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import NamedTuple

from rvm.expr import Expr, Index, Place
from rvm.expr import Span as Slice
from rvm.isa import apply, place
from rvm.pebble.bridge.emission.body import BOTH, TABLE, integer, minus, plus
from rvm.pebble.bridge.emission.code import POOL, State, StepWriter, copied
from rvm.pebble.bridge.emission.step import Step
from rvm.pebble.bridge.emission.tables import WORD_BITS, entry, fill_functions
from rvm.pebble.chains.knill import Line, line
from rvm.program import Function, Span
from rvm.transform.duals import unique

LONGEST = 1 << 24
"""The most steps of an `iterate` that is not Bennett's."""
MOST = 128
"""The most states that are used if only the run knows the length."""
SAMPLES = 24
"""For such lengths, the splits that are given for a number of states; others lie between."""


class Split(NamedTuple):
    """A split of n steps with s states after m; those of lengths between two lie on a line."""

    s: int
    n: int
    m: int


class Splits:
    """A table of splits: for each s where those for it begin, then n and m of each.

    n and m share an integer if they fit; else all m come after all n.
    """

    def __init__(self, splits: Sequence[Split], visits: bool, base: int = 0) -> None:
        self.visits, self.base = visits, base
        """Whether these are splits of visits, and where in the whole table they begin."""
        self.values: list[int] = []
        if not splits:
            return
        ordered = sorted(splits)
        levels = [split.s for split in ordered]
        first = levels[-1] + 2
        starts = [base + first + sum(level < s for level in levels) for s in range(first)]
        self.bits = max(split.m for split in ordered).bit_length()
        if self.bits + max(split.n for split in ordered).bit_length() > WORD_BITS:
            self.bits = 0
        self.apart = 0 if self.bits else len(ordered)
        rows = [split.n << self.bits | (split.m if self.bits else 0) for split in ordered]
        self.values = [*starts, *rows, *(split.m for split in ordered if not self.bits)]

    def found(self, table: Place, n: Expr, s: Expr) -> Expr:
        """The number of the last row for s that is not longer than n."""
        first, end = (entry(table, plus(s, self.base + k)) for k in range(2))
        rows = place(table.reg, TABLE, (Index((Slice(first, end),)),))
        most = apply("<<", plus(n, 1), integer(self.bits))
        return plus(first, minus(apply("sum", apply("i64", apply("<", rows, most))), 1))

    def split(self, table: Place, at: Expr, n: Expr) -> Expr:
        """m for n steps, which row `at` is the nearest to."""

        def n_of(at: Expr) -> Expr:
            return apply(">>", entry(table, at), integer(self.bits))

        def m_of(at: Expr) -> Expr:
            if not self.bits:
                return entry(table, plus(at, self.apart))
            return apply("&", entry(table, at), integer((1 << self.bits) - 1))

        # An exact table is asked for its own lengths only; the row after the last counts nothing.
        after = apply("min", plus(at, 1), integer(self.last))
        run = apply("max", minus(n_of(after), n_of(at)), integer(1))
        rise = apply("*", minus(n, n_of(at)), minus(m_of(after), m_of(at)))
        return plus(m_of(at), apply("//", rise, run))

    @property
    def last(self) -> int:
        """The number of the last row."""
        return self.base + len(self.values) - 1 - self.apart


class _Stretch(StepWriter):
    """The function of n steps from x, in a pool that is lent; `s` is the size of that."""

    def __init__(
        self, step: Step, names: Names, splits: Splits, tabled: bool, with_y: bool = False
    ) -> None:
        super().__init__(step, with_y=with_y, slots=1)
        self.names, self.splits = names, splits
        self.table: tuple[Place, ...] = (self.add_table(),) if tabled else ()
        (self.n,) = self.add_integers("n")
        self.k, self.m, self.at = (self.local(name) for name in ("k", "m", "at"))
        self.s = apply("dim", self.whole(self.pool.regs[0]), integer(0))

    def step_to(self, op: str, at: Expr, of: Expr | None, done: Expr | int) -> None:
        """A step from a slot, or from x, to another."""
        x = self.x if of is None else self.pool.at(of)
        self.step_into(op, self.pool.at(at), x, self.numbered(done))

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
        self.put(op, *self.slots_between(*slots), *own, *self.table, n, symbol=symbol)

    def with_split(self, body: Callable[[], None]) -> None:
        """The body with the best split in m."""
        self.put("alloc", self.m)
        self._split("add")
        body()
        self._split("sub")
        self.put("free", self.m)

    def _split(self, op: str) -> None:
        """Add the best split to m, or take it away: with many states there are closed forms."""
        n, s, splits = self.n, self.s, self.splits
        less = minus(s, 0 if splits.visits else 1)
        most = plus(s, apply("//", apply("*", less, minus(less, 1)), integer(2)))
        least = apply("min", less, plus(minus(n, s), 1))

        def in_closed_form() -> None:
            self.put(op, self.m, least)

        def searched() -> None:
            found = {self.at: splits.found(self.table[0], n, s)}
            self.holding(found, lambda: self._add_found(op))

        if splits.values:
            self.branch(apply("<=", n, most), in_closed_form, searched)
        else:
            in_closed_form()

    def _add_found(self, op: str) -> None:
        self.put(op, self.m, self.splits.split(self.table[0], self.at, self.n))


class Names(NamedTuple):
    """The functions of a schedule."""

    persist: str
    mirrored: str
    erase: str
    fill: str


def _persist(w: _Stretch, mirrored: bool) -> StepWriter:
    """The result goes to the last slot, the state at the split to the first; or the opposite."""
    zero, one, less = integer(0), integer(1), minus(w.s, 1)
    all_slots, lower, upper = (zero, w.s), (zero, less), (one, w.s)

    def slot(k: Expr) -> Expr:
        # The result of a row has the same slot as any other.
        return minus(w.n, k) if mirrored else plus(minus(less, w.n), k)

    def row() -> None:
        w.row("call", slot, w.n)
        w.branch(apply(">", w.n, one), lambda: w.row("uncall", slot, minus(w.n, 1)))

    def cut() -> None:
        own, other = (w.names.mirrored, w.names.persist)[:: 1 if mirrored else -1]
        middle, rest, left = (less, lower, upper) if mirrored else (zero, upper, lower)
        w.play("call", other, all_slots, w.x, w.m, 0)
        w.play("call", own, rest, w.pool.at(middle), minus(w.n, w.m), w.m)
        w.play("uncall", other, left, w.x, w.m, 0)

    w.branch(apply("<=", w.n, w.s), row, lambda: w.with_split(cut))
    return w


def _erase(w: _Stretch) -> StepWriter:
    """The state at the split is in the first slot; the last state is added to y."""
    zero, one = integer(0), integer(1)

    def slot(k: Expr) -> Expr:
        return minus(k, 1)

    def row() -> None:
        w.row("call", slot, w.n)
        copied(w, w.y, w.pool.at(slot(w.n)))
        w.row("uncall", slot, w.n)

    def cut() -> None:
        w.play("call", w.names.mirrored, (zero, w.s), w.x, w.m, 0)
        w.play("call", w.names.erase, (one, w.s), w.pool.at(zero), minus(w.n, w.m), w.m)
        w.play("uncall", w.names.mirrored, (zero, w.s), w.x, w.m, 0)

    w.branch(apply("<=", w.n, w.s), row, lambda: w.with_split(cut))
    return w


# ---------------------------------------------------------------- splits


def _closed(n: int, s: int, visits: bool) -> bool:
    less = s if visits else s - 1
    return n <= s + less * (less - 1) // 2


def splits_of(table: Line, n: int, s: int, visits: bool) -> tuple[list[Split], list[Split]]:
    """The splits that persist and visit need for n steps, where there is no closed form."""
    found: tuple[list[Split], list[Split]] = [], []
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
            found[visits].append(Split(s, n, m))
        stack += [(m, s, False), (n - m, s - 1, visits)]
        if not visits:
            stack.append((m, s - 1, False))
    return found


@cache
def sampled_splits(most: int, s: int, visits: bool) -> list[Split]:
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
        out += [Split(level, n, split(n, level)) for n in lengths]
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
    names = Names(*(unique(f"{name}.{part}", used) for part in Names._fields))
    if n is None:
        most = min(LONGEST, 2**s - 1 if visits else 2 ** (s - 1))
        found = sampled_splits(most, s, False), sampled_splits(most, s, True) if visits else []
    else:
        most, found = n, splits_of(line(n), n, s, visits)
    persist = Splits(found[0], False)
    visit = Splits(found[1], True, len(persist.values))
    values = [*persist.values, *visit.values]

    def whole(w: StepWriter, count: Expr) -> None:
        w.pool = w.fresh_state(POOL, s)
        pool = w.places(w.pool)
        w.each("alloc", w.pool)
        own = w.arguments(w.y if visits else None, w.x, w.number, None)

        def play(*table: Place) -> None:
            root = names.erase if visits else names.persist
            w.put("call", *pool, *own, *table, count, symbol=root)

        if values:
            w.filled(len(values), names.fill, play)
        else:
            play()
        if not visits:
            assert w.y is not None
            w.each("swap", w.y, w.pool.at(integer(s - 1)))
        for leaf in reversed(pool):
            w.put("free", leaf)

    made = [counted(step, n, most, whole).function(name, span)]
    for own, mirrored in ((names.persist, False), (names.mirrored, True)):
        w = _Stretch(step, names, persist, bool(values))
        made.append(_persist(w, mirrored).function(own, span))
    if visits:
        w = _Stretch(step, names, visit, bool(values), with_y=True)
        made.append(_erase(w).function(names.erase, span))
    return [*made, *(fill_functions(names.fill, values, span, used) if values else [])]


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
