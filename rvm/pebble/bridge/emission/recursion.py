"""Reversible schedules of equal steps as one recursive function: the optimal one, and Bennett's.

A schedule of n steps is [make m; from there, n - m steps; unmake m], so only n differs from call to
call, and the slice of s slots of an array of states, the *pool*.

    persist(pool, x, ..., n)     the state n steps after x, into the last slot of the pool
    mirrored(pool, x, ..., n)    into the first one

The result goes to one end of the slice, the state m to the other, which is the end of the slices of
the calls that make and unmake m.  So every free slot is used, and s states are enough.

    ending(pool, y, x, ..., n)   adds the state n steps after x to y

makes m, goes on, and unmakes m.  It adds to any value of y, by a copy of the state; Bennett's
recursion computes the state in y, which must be zero.  A *rule* determines m: the optimal one is
looked up in a table where there is no closed form for it, and Bennett's makes several pieces of m
steps, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import NamedTuple, Protocol

from rvm.expr import Expr, Index, Place
from rvm.expr import Span as Slice
from rvm.faults import UsageError
from rvm.isa import apply, place
from rvm.pebble.bridge.emission.body import BOTH, TABLE, integer, minus, plus
from rvm.pebble.bridge.emission.code import POOL, State, StepWriter, copied
from rvm.pebble.bridge.emission.step import Step
from rvm.pebble.bridge.emission.tables import WORD_BITS, entry, fill_functions
from rvm.pebble.chains import bennett
from rvm.pebble.chains.knill import Line, line
from rvm.program import Function, Span
from rvm.transform.duals import unique

LONGEST = 1 << 24
"""The most steps of an `iterate` that is not Bennett's."""
CHAIN = 1 << 40
"""The most steps of one that is: as many as a chain has."""
MOST = 128
"""The largest number of states used if only the run knows the length."""
SAMPLES = 24
"""The number of splits tabulated for a number of states; others are interpolated."""


class Rule(Protocol):
    """Where a stretch is cut: after m steps, or after several pieces of m steps."""

    def sign(self, w: Stretch) -> tuple[Place, ...]:
        """Parameters for the data of the rule."""

    def choose(self, w: Stretch, row: Callable[[], None], cut: Callable[[], None]) -> None:
        """A row if there is no need to cut; else a cut, with the length of a piece in m."""

    def pieces(self, w: Stretch) -> Expr | None:
        """The number of pieces before the rest; None: one."""


class Pieces:
    """Bennett's rule: at most `radix` pieces of equal length."""

    def __init__(self, radix: int) -> None:
        self.radix = radix

    def sign(self, w: Stretch) -> tuple[Place, ...]:
        return ()

    def choose(self, w: Stretch, row: Callable[[], None], cut: Callable[[], None]) -> None:
        size = apply("//", plus(w.n, self.radix - 1), integer(self.radix))
        w.holding({w.m: size}, lambda: w.branch(apply("==", w.m, integer(1)), row, cut))

    def pieces(self, w: Stretch) -> Expr:
        return apply("//", minus(w.n, 1), w.m)

    def slots(self, steps: Expr) -> Expr:
        """States that are enough for as many steps: j (radix - 1) + 1 for radix^j."""
        most: Expr = integer(1)
        power = 1
        while power < CHAIN:
            longer = apply("i64", apply(">", steps, integer(power)))
            most = plus(most, apply("*", longer, integer(self.radix - 1)))
            power *= self.radix
        return apply("min", steps, most)


class Split(NamedTuple):
    """A split of n steps with s states after m; those of lengths between two lie on a line."""

    s: int
    n: int
    m: int


class Splits:
    """The rule of the optimum.  Its table: for each s where its splits begin, then n and m of each.

    n and m share an integer if they fit; else all m come after all n.
    """

    def __init__(self, splits: Sequence[Split], visits: bool, base: int, tabled: bool) -> None:
        self.visits, self.base, self.tabled = visits, base, tabled
        """Whether these are splits of visits; where they begin in the table, if there is one."""
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

    def sign(self, w: Stretch) -> tuple[Place, ...]:
        return (w.add_table(),) if self.tabled else ()

    def pieces(self, w: Stretch) -> None:
        return None

    def choose(self, w: Stretch, row: Callable[[], None], cut: Callable[[], None]) -> None:
        def with_split() -> None:
            w.put("alloc", w.m)
            self._add(w, "add")
            cut()
            self._add(w, "sub")
            w.put("free", w.m)

        w.branch(apply("<=", w.n, w.s), row, with_split)

    def _add(self, w: Stretch, op: str) -> None:
        """Add the best split to m, or subtract it; with many states there are closed forms."""
        n, s = w.n, w.s
        less = minus(s, 0 if self.visits else 1)
        most = plus(s, apply("//", apply("*", less, minus(less, 1)), integer(2)))
        least = apply("min", less, plus(minus(n, s), 1))

        def in_closed_form() -> None:
            w.put(op, w.m, least)

        def searched() -> None:
            (table,) = w.known
            found = {w.at: self.found(table, n, s)}
            w.holding(found, lambda: w.put(op, w.m, self.split(table, w.at, n)))

        if self.values:
            w.branch(apply("<=", n, most), in_closed_form, searched)
        else:
            in_closed_form()


class Stretch(StepWriter):
    """The function of n steps from x, in a pool that is lent; `s` is the size of that."""

    def __init__(self, step: Step, names: Names, rule: Rule, with_y: bool = False) -> None:
        super().__init__(step, with_y=with_y, slots=1)
        self.names, self.rule = names, rule
        self.known = rule.sign(self)
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

    def ends(self, mirrored: bool) -> Callable[[Expr], Expr]:
        """The slots of the states at the ends of pieces: from the first slot on, or back."""
        return lambda k: minus(self.s, k) if mirrored else minus(k, 1)

    def front(self, op: str, symbol: str, mirrored: bool, kept: int = 0) -> None:
        """The states at the ends of pieces, while `kept` slots at the other end are in use."""
        last, one = self.rule.pieces(self), integer(1)

        def piece(held: Expr | None, x: State, done: Expr | int) -> None:
            own = self.arguments(None, x, self.numbered(done), None)
            slots: tuple[Expr, Expr]
            if mirrored:
                slots = integer(kept), self.s if held is None else minus(self.s, held)
            else:
                end = minus(self.s, kept) if kept else self.s
                slots = (integer(0) if held is None else held), end
            self.put(op, *self.slots_between(*slots), *own, *self.known, self.m, symbol=symbol)

        def others() -> None:
            held = minus(self.k, 1)
            piece(held, self.pool.at(self.ends(mirrored)(held)), apply("*", held, self.m))

        if op == "uncall" and last is not None:
            self.over(self.k, last, one, -1, others)
        piece(None, self.x, 0)
        if op == "call" and last is not None:
            self.over(self.k, integer(2), plus(last, 1), 1, others)

    def rest(self, symbol: str, mirrored: bool) -> None:
        """The steps after the last of these states."""
        pieces = self.rule.pieces(self)
        last: Expr = integer(1)
        done: Expr = self.m
        if pieces is not None:
            last, done = pieces, apply("*", pieces, self.m)
        slots = (integer(0), minus(self.s, last)) if mirrored else (last, self.s)
        x = self.pool.at(self.ends(mirrored)(last))
        own = self.arguments(self.y, x, self.numbered(done), None)
        left = minus(self.n, done)
        self.put("call", *self.slots_between(*slots), *own, *self.known, left, symbol=symbol)


class Names(NamedTuple):
    """The functions of a schedule."""

    persist: str
    mirrored: str
    ending: str
    fill: str


def _persist(w: Stretch, mirrored: bool) -> StepWriter:
    """The result goes to the last slot, the state at the split to the first; or the opposite."""
    one, less = integer(1), minus(w.s, 1)

    def slot(k: Expr) -> Expr:
        # The result of a row has the same slot as any other.
        return minus(w.n, k) if mirrored else plus(minus(less, w.n), k)

    def row() -> None:
        w.row("call", slot, w.n)
        w.branch(apply(">", w.n, one), lambda: w.row("uncall", slot, minus(w.n, 1)))

    def cut() -> None:
        own, other = (w.names.mirrored, w.names.persist)[:: 1 if mirrored else -1]
        w.front("call", other, mirrored)
        w.rest(own, mirrored)
        w.front("uncall", other, mirrored, 1)

    w.rule.choose(w, row, cut)
    return w


def _ending(w: Stretch, erase: bool) -> StepWriter:
    """The state at the split is in the first slot; the last state is added to y, or made there."""
    one, less = integer(1), minus(w.n, 1)

    def slot(k: Expr) -> Expr:
        return minus(k, 1)

    def row() -> None:
        if erase:
            w.row("call", slot, w.n)
            copied(w, w.y, w.pool.at(slot(w.n)))
            w.row("uncall", slot, w.n)
        else:
            w.branch(apply("==", w.n, one), lambda: last(w.x), onto_last)

    def last(x: State) -> None:
        w.put("call", *w.arguments(w.y, x, w.numbered(less), None), symbol=w.step.function.name)

    def onto_last() -> None:
        w.row("call", slot, less)
        last(w.pool.at(slot(less)))
        w.row("uncall", slot, less)

    def cut() -> None:
        w.front("call", w.names.mirrored, False)
        w.rest(w.names.ending, False)
        w.front("uncall", w.names.mirrored, False)

    w.rule.choose(w, row, cut)
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


def recursion(
    step: Step,
    n: int | None,
    form: tuple[str, int],
    goal: str,
    name: str,
    span: Span | None,
    taken: Collection[str] = (),
) -> list[Function]:
    """The functions of a schedule that is one recursion, see `Schedule.form`, the outermost first.

    The goal is persist or erase.  The outermost has the step's parameters, and one for the number
    of steps if n is None.  UsageError P001: no radix.
    """
    visits, (kind, s) = goal == "erase", form
    ends = visits or kind == "bennett"
    used = {*taken, name}
    names = Names(*(unique(f"{name}.{part}", used) for part in Names._fields))
    values: list[int] = []
    if kind == "bennett":
        if s < 2:
            raise UsageError("P001", "a radix is 2 or more", values={"radix": s})
        pieces, most = Pieces(s), CHAIN
        rules: tuple[Rule, Rule] = pieces, pieces
        fixed = None if n is None else bennett.price(n, s, goal)[1] - (not visits)
    else:
        fixed = max(1, min(s, MOST if n is None else n))
        rules, values, most = _splits(n, fixed, visits)

    def whole(w: StepWriter, count: Expr) -> None:
        slots = minus(pieces.slots(count), int(not visits)) if fixed is None else integer(fixed)
        w.pool = w.fresh_state(POOL, slots)
        pool = w.places(w.pool)
        w.each("alloc", w.pool)
        own = w.arguments(w.y if ends else None, w.x, w.number, None)

        def play(*table: Place) -> None:
            root = names.ending if ends else names.persist
            w.put("call", *pool, *own, *table, count, symbol=root)

        if values:
            w.filled(len(values), names.fill, play)
        else:
            play()
        if not ends:
            assert w.y is not None
            w.each("swap", w.y, w.pool.at(minus(slots, 1)))
        for leaf in reversed(pool):
            w.put("free", leaf)

    budget = f"radix {s}" if kind == "bennett" else f"{s} pebble{'s' * (s != 1)}"
    made = [_counted(step, n, most, budget, whole).function(name, span)]
    for own, mirrored in ((names.persist, False), (names.mirrored, True)):
        made.append(_persist(Stretch(step, names, rules[0]), mirrored).function(own, span))
    if ends:
        w = Stretch(step, names, rules[1], with_y=True)
        made.append(_ending(w, visits).function(names.ending, span))
    return [*made, *(fill_functions(names.fill, values, span, used) if values else [])]


def _splits(n: int | None, s: int, visits: bool) -> tuple[tuple[Splits, Splits], list[int], int]:
    """The rules of the optimum, to persist and to visit; their table; the most steps they take."""
    if n is None:
        most = min(LONGEST, 2**s - 1 if visits else 2 ** (s - 1))
        found = sampled_splits(most, s, False), sampled_splits(most, s, True) if visits else []
    else:
        most, found = n, splits_of(line(n), n, s, visits)
    tabled = any(found)
    persist = Splits(found[0], False, 0, tabled)
    visit = Splits(found[1], True, len(persist.values), tabled)
    return (persist, visit), [*persist.values, *visit.values], most


def _counted(
    step: Step, n: int | None, most: int, budget: str, whole: Callable[[StepWriter, Expr], None]
) -> StepWriter:
    """The outermost function, of n steps, or of so many as a parameter says, up to `most`.

    `budget` sets this limit; `whole` writes the code for one step or more; none adds x to y.
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
    limit = f"with {budget} it can be done 0 to {most:,} times"
    text = f"`{step.function.name}` is to be done {{}} times; {limit}"
    w.put("assert", sound, steps, aux=BOTH, symbol=text)
    w.branch(apply(">", steps, integer(0)), lambda: whole(w, steps), lambda: copied(w, w.y, w.x))
    return w
