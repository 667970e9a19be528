"""The functions that play the table of a schedule.

    play(pool, x, ..., table, first, last, node, base, origin, way)

plays the rows from `first` up to `last` of a table (see `table`).  Their node 0 is `node`, whose
state is in the slot `base`, or x if that is -1; their slot k is `origin + way * k` of the pool.  A
row that calls others makes the function call, or uncall, itself.

A state that is uncomputed leaves its slot zero; one that is erased is exchanged for a zero and
dropped, which erases its bits.  The adjoint of a step is taken by the step's adjoint function,
which undoes the step while it passes the adjoint back: where the schedule undoes that step anyway,
both are one call.

    move(lower, upper, x, ..., op, at, low, rising)

does what reads one slot and changes another, each of a slice of its own: so it is known that they
are apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rvm.expr import Expr, Index, Place
from rvm.faults import InputError
from rvm.isa import apply, place
from rvm.pebble.bridge.emission.body import Body, integer, minus, plus
from rvm.pebble.bridge.emission.code import State, StepWriter, copied
from rvm.pebble.bridge.emission.step import Step
from rvm.pebble.bridge.emission.table import Op, Row, Table
from rvm.program import Function, Param, Register, Span
from rvm.types import I64, Array

TABLE = Array(I64, 1)
WORD_BITS = 62
MOVES = (Op.STEP, Op.UNSTEP, Op.ADJOINT, Op.REVERSE, Op.REVERSE_ERASE)
"""The operations on two states."""
INTEGERS = ("first", "last", "node", "base", "origin", "way")


class Symbols(NamedTuple):
    """The functions that play a table: by their names."""

    play: str
    move: str
    fill: str
    adjoint: str = ""
    adjoint_in_place: str = ""


class Packing:
    """A table as integers: each row has so many, with fields of as many bits as they need."""

    def __init__(self, table: Table) -> None:
        rows = [_fields(row, table) for body in table.bodies for row in body.rows]
        self.places: dict[str, tuple[int, int, int]] = {}
        """For each field the integer that it is in, its first bit there, and a mask."""
        word = used = 0
        for name in rows[0]:
            bits = max(row[name] for row in rows).bit_length()
            if used + bits > WORD_BITS:
                word, used = word + 1, 0
            self.places[name] = word, used, (1 << bits) - 1
            used += bits
        self.words = word + 1
        """The integers of a row."""
        self.values = [0] * (self.words * len(rows))
        for k, row in enumerate(rows):
            for name, (word, shift, _) in self.places.items():
                self.values[k * self.words + word] |= row[name] << shift


def _fields(row: Row, table: Table) -> dict[str, int]:
    """The fields of a row: numbers from 0 on.  `first` and `count` are those of a callee's rows."""
    first, count = row.times, 0
    if row.callee >= 0:
        callee = table.bodies[row.callee]
        first, count = callee.position, len(callee.rows)
    return {
        "op": int(row.op),
        "back": int(row.by < 0),
        "slide": row.slide + 1,
        "flip": int(row.flip),
        "source": row.source,
        "target": row.target,
        "node": row.node,
        "first": first,
        "count": count,
    }


def fill_function(name: str, values: list[int], span: Span | None) -> Function:
    """Makes a table of zeros the table with these integers."""
    w = Body()
    w.registers.append(Register("table", TABLE, (None,)))
    w.params.append(Param("table", 0))
    for k, value in enumerate(values):
        if value:
            w.put("xor", place(0, TABLE, (Index((integer(k),)),)), integer(value))
    return w.function(name, span)


class Moves(StepWriter):
    """A function that does the operation `op` of a row; `at` is the number of its step."""

    symbols: Symbols
    op: Place
    at: Place

    def chosen(self, ops: Sequence[Op], does: Callable[[Op], None]) -> None:
        """What the row's operation does, which is one of these."""
        op, *others = ops
        if not others:
            does(op)
        else:
            is_op = apply("==", self.op, integer(op))
            self.branch(is_op, lambda: does(op), lambda: self.chosen(others, does))

    def step_on(self, op: str, y: State, x: State) -> None:
        """The step, done or undone."""
        args = self.arguments(y, x, self.numbered(self.at), None)
        self.put(op, *args, symbol=self.step.function.name)

    def spared(self, state: State, body: Callable[[State], None]) -> None:
        """The state becomes what the body makes of zeros, and is dropped."""
        spare = self.fresh_state("spare")
        self.each("fresh", spare)
        body(spare)
        self.each("swap", state, spare)
        self.each("drop", spare)

    def move(self, op: Op, x: State, y: State) -> None:
        """An operation that reads x and changes y."""
        match op:
            case Op.STEP:
                self.step_on("call", y, x)
            case Op.UNSTEP:
                self.step_on("uncall", y, x)
            case Op.ADJOINT:
                self._adjoint(y, x)
            case _:
                self.step_on("call", y, x)
                self._adjoint(y, x)
                if op == Op.REVERSE_ERASE:
                    self.spared(x, lambda spare: None)

    def _adjoint(self, y: State, x: State) -> None:
        """Undo a step, and take the adjoint of y back to x."""
        own, spare = self.running(), self.fresh_bar()
        self.each("fresh", spare)
        before = dict(zip((k for k in self.step.x if k in self.bars), spare.regs, strict=True))
        args = self.arguments(y, x, self.numbered(self.at), None)
        args += self.places(own)
        args += [self.whole(before.get(k, reg)) for k, reg in self.bars.items()]
        self.put("call", *args, symbol=self.symbols.adjoint)
        self.each("swap", own, spare)
        self.each("drop", spare)


class Mover(Moves):
    """The function `move`: an operation on two slots, the lower of them `low` in its own slice.

    The upper slot is the first of the other slice.  `rising` is 1 if that is changed, else 0.
    """

    def __init__(self, step: Step, symbols: Symbols, ops: Sequence[Op]) -> None:
        super().__init__(
            step, with_y=False, sweeps=bool(symbols.adjoint), slots=1, pools=("lower", "upper")
        )
        self.symbols = symbols
        self.op, self.at, low, rising = self.add_integers("op", "at", "low", "rising")
        lower, upper = self.pools[0].at(low), self.pools[1].at(integer(0))

        def between(x: State, y: State) -> Callable[[], None]:
            return lambda: self.chosen(ops, lambda op: self.move(op, x, y))

        self.branch(apply("==", rising, integer(1)), between(lower, upper), between(upper, lower))


class Player(Moves):
    """The function `play` for the operations of a table."""

    def __init__(
        self, step: Step, symbols: Symbols, table: Table, packing: Packing, with_y: bool
    ) -> None:
        super().__init__(step, with_y=with_y, sweeps=bool(symbols.adjoint), slots=1)
        self.symbols, self.packing = symbols, packing
        self.table = len(self.registers)
        self.registers.append(Register("table", TABLE, (None,)))
        self.params.append(Param("table", self.table))
        first, last, self.node, self.base, self.origin, self.way = self.add_integers(*INTEGERS)
        self.row, self.time, self.op, self.at, self.to, self.of = (
            self.local(name) for name in ("row", "time", "op", "at", "to", "of")
        )
        rows = [row for body in table.bodies for row in body.rows]
        self.repeats = any(row.times > 1 for row in rows if row.callee < 0)
        self.used = {row.op for row in rows}
        self.loop(self.row, first, last, 1, self._play_row)

    def _field(self, name: str) -> Expr:
        word, shift, mask = self.packing.places[name]
        index = plus(apply("*", self.row, integer(self.packing.words)), word)
        value: Expr = place(self.table, TABLE, (Index((index,)),))
        if shift:
            value = apply(">>", value, integer(shift))
        return apply("&", value, integer(mask))

    def _direction(self, name: str) -> Expr:
        """1, or -1 if a field is 1."""
        return apply("-", integer(1), apply("*", self._field(name), integer(2)))

    def _holding(self, values: dict[Place, Expr], body: Callable[[], None]) -> None:
        """The body, with registers that hold values which it does not change."""
        for reg, value in values.items():
            self.put("alloc", reg, value)
        body()
        for reg, value in reversed(values.items()):
            self.put("free", reg, value)

    def _play_row(self) -> None:
        source, target = self._field("source"), self._field("target")
        at = plus(self.node, self._field("node"))
        if self.repeats:
            past = apply("*", self.time, minus(self._field("slide"), 1))
            source, target = plus(source, past), plus(target, past)
            at = plus(at, apply("*", self.time, self._direction("back")))
        slot = plus(self.origin, apply("*", self.way, minus(source, 1)))
        of = apply("select", apply("==", source, integer(0)), self.base, slot)
        to = plus(self.origin, apply("*", self.way, target))
        calls = [op for op in (Op.CALL, Op.UNCALL) if op in self.used]
        moves = [op for op in MOVES if op in self.used]
        others = [op for op in Op if op in self.used and op not in (*calls, *moves)]

        def repeated(ops: Sequence[Op], does: Callable[[Op], None], often: bool) -> None:
            def once() -> None:
                self._holding(
                    {self.at: at, self.of: of, self.to: to}, lambda: self.chosen(ops, does)
                )

            if often:
                self.loop(self.time, integer(0), self._field("first"), 1, once)
            elif self.repeats:
                self._holding({self.time: integer(0)}, once)
            else:
                once()

        def called() -> None:
            repeated(calls, lambda op: self._call("call" if op == Op.CALL else "uncall"), False)

        def done() -> None:
            repeated([*others, *moves[:1]], self._do, self.repeats)

        def play() -> None:
            if calls:
                self.branch(apply("<=", self.op, integer(Op.UNCALL)), called, done)
            else:
                done()

        self._holding({self.op: self._field("op")}, play)

    def _do(self, op: Op) -> None:
        target = self.pool.at(self.to)
        match op:
            case Op.TURN:
                self._turn("call", target)
            case Op.UNTURN:
                self._turn("uncall", target)
            case Op.OVERWRITE:
                self.spared(target, lambda spare: self.step_on("call", spare, target))
            case Op.ERASE:
                self.spared(target, lambda spare: None)
            case Op.ADJOINT_IN_PLACE:
                args = self.arguments(None, target, self.numbered(self.at), self.bars.__getitem__)
                self.put("call", *args, symbol=self.symbols.adjoint_in_place)
            case Op.COPY:
                self._copy()
            case _:
                self._on_two()

    def _copy(self) -> None:
        self.branch(
            apply("<", self.of, integer(0)),
            lambda: copied(self, self.y, self.x),
            lambda: copied(self, self.y, self.pool.at(self.of)),
        )

    def _on_two(self) -> None:
        """An operation on two states: from x, or by `move`."""
        moves = [op for op in MOVES if op in self.used]
        target = self.pool.at(self.to)

        def by_move(low: Place, high: Place, rising: int) -> None:
            slices = [*self.slots_between(integer(0), high), *self.slots_between(high, None)]
            bars = self.bars.__getitem__ if self.sweeps else None
            own = self.arguments(None, self.x, self.number, bars)
            numbers = (self.op, self.at, low, integer(rising))
            self.put("call", *slices, *own, *numbers, symbol=self.symbols.move)

        self.branch(
            apply("<", self.of, integer(0)),
            lambda: self.chosen(
                [op for op in moves if op != Op.REVERSE_ERASE],
                lambda op: self.move(op, self.x, target),
            ),
            lambda: self.branch(
                apply("<", self.of, self.to),
                lambda: by_move(self.of, self.to, 1),
                lambda: by_move(self.to, self.of, 0),
            ),
        )

    def _call(self, op: str) -> None:
        first = self._field("first")
        last = apply("+", first, self._field("count"))
        way = apply("*", self.way, self._direction("flip"))
        numbers = (first, last, self.at, self.of, self.to, way)
        self.play(op, self, self.table, numbers, self.symbols.play)

    @staticmethod
    def play(op: str, w: StepWriter, table: int, numbers: tuple[Expr, ...], symbol: str) -> None:
        """In the function `w`, a call of the player."""
        bars = w.bars.__getitem__ if w.sweeps else None
        own = w.arguments(w.y, w.x, w.number, bars)
        args = (*w.places(w.pool), *own, place(table, TABLE), *numbers)
        w.put(op, *args, symbol=symbol)

    def _turn(self, op: str, state: State) -> None:
        turn = self.step.in_place
        if turn is None:
            raise InputError(
                "P020",
                "the plan has steps in place, and no function does them",
                hint='in_place="turn", the name of a function that does a step in place',
            )
        args = self.arguments(None, state, self.numbered(self.at), None)
        self.put(op, *args, symbol=turn.name)


def whole(
    step: Step, table: Table, packing: Packing, symbols: Symbols, goal: str, back: str
) -> StepWriter:
    """The outermost function: it makes pool and table, and has results where callers want them.

    `back` says why it cannot be run back, if it cannot.
    """
    sweeps = goal == "gradient"
    w = StepWriter(step, with_y=not sweeps, sweeps=sweeps, slots=table.slots, whole=True)
    reg = len(w.registers)
    length = integer(len(packing.values))
    w.registers.append(Register(w.fresh_name("table"), TABLE, (length,)))
    own = place(reg, TABLE)
    if sweeps:
        w.begin_sweep()
    w.each("alloc", w.pool)
    w.put("alloc", own)
    w.put("call", own, symbol=symbols.fill)
    rows = len(table.bodies[0].rows)
    numbers = tuple(map(integer, (0, rows, 0, -1, 0, 1)))
    y, w.y = w.y, w.y if goal == "erase" else None
    Player.play("call", w, reg, numbers, symbols.play)
    w.put("uncall", own, symbol=symbols.fill)
    w.put("free", own)
    if goal == "persist":
        assert y is not None
        w.each("swap", y, w.pool.at(integer(table.result)))
    for leaf in reversed(w.places(w.pool)):
        w.put("free", leaf)
    if sweeps:
        w.end_sweep()
    if back:
        w.refuse_back(back)
    return w
