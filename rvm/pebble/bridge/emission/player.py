"""The function that plays the table of a schedule, and the functions around it.

    play(pool, x, ..., table, first, last, node, base, origin, way)

plays the rows from `first` up to `last` of a table (see `table`).  Their node 0 is `node`, whose
state is in the slot `base`, or x if that is -1; their slot k is `origin + way * k` of the pool.  A
row that calls others makes the function call, or uncall, itself.

A state that is computed away leaves its slot zero; one that is erased is exchanged for a zero and
dropped, which erases its bits.  The adjoint of a step is taken by the step's adjoint function,
which undoes the step while it passes the adjoint back: where the schedule undoes that step anyway,
both are one call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rvm.expr import Expr, Index, Place
from rvm.faults import InputError
from rvm.isa import apply, place
from rvm.pebble.bridge.emission.body import Body, integer, minus, plus
from rvm.pebble.bridge.emission.code import State, StepWriter, copied
from rvm.pebble.bridge.emission.step import Step
from rvm.pebble.bridge.emission.table import Op, Table
from rvm.program import Function, Param, Register, Span
from rvm.types import I64, Array

TABLE = Array(I64, 1)
WORDS = 3
"""The integers of a row: op, directions and slots; the node; how often, or the callee's rows."""
BY, SLIDE, FLIP, SOURCE, TARGET = 4, 5, 7, 8, 35
"""Where the fields of the first integer begin, beside the operation."""
SLOT_BITS = 27
END = 31
"""Where the end of a callee's rows begins in the last integer."""
INTEGERS = ("first", "last", "node", "base", "origin", "way")


class Symbols(NamedTuple):
    """The functions that play a table: by their names."""

    play: str
    fill: str
    adjoint: str = ""
    adjoint_in_place: str = ""


def words(table: Table) -> list[int]:
    """The integers of a table."""
    out = []
    for row in (row for body in table.bodies for row in body.rows):
        first = row.op | (row.by < 0) << BY | (row.slide + 1) << SLIDE | row.flip << FLIP
        last = row.times
        if row.callee >= 0:
            callee = table.bodies[row.callee]
            last = callee.position | (callee.position + len(callee.rows)) << END
        out += [first | row.source << SOURCE | row.target << TARGET, row.node, last]
    return out


def fill_function(name: str, values: list[int], span: Span | None) -> Function:
    """Makes a table of zeros the table with these integers."""
    w = Body()
    w.registers.append(Register("table", TABLE, (None,)))
    w.params.append(Param("table", 0))
    for k, value in enumerate(values):
        if value:
            w.put("xor", place(0, TABLE, (Index((integer(k),)),)), integer(value))
    return w.function(name, span)


class Player(StepWriter):
    """The function `play` for the operations of a table."""

    def __init__(self, step: Step, symbols: Symbols, table: Table, with_y: bool) -> None:
        rows = [row for body in table.bodies for row in body.rows]
        super().__init__(step, with_y=with_y, sweeps=bool(symbols.adjoint), slots=1)
        self.symbols = symbols
        self.table = len(self.registers)
        self.registers.append(Register("table", TABLE, (None,)))
        self.params.append(Param("table", self.table))
        self.first, self.last, self.node, self.base, self.origin, self.way = self.add_integers(
            *INTEGERS
        )
        self.row, self.time, self.op, self.at, self.to, self.of = (
            self.local(name) for name in ("row", "time", "op", "at", "to", "of")
        )
        self.rows = rows
        self.loop(self.row, self.first, self.last, 1, self._play_row)

    def _word(self, k: int) -> Expr:
        index = plus(apply("*", self.row, integer(WORDS)), k)
        return place(self.table, TABLE, (Index((index,)),))

    def _field(self, shift: int, bits: int) -> Expr:
        word = apply(">>", self._word(0), integer(shift)) if shift else self._word(0)
        return apply("&", word, integer((1 << bits) - 1))

    def _holding(self, values: dict[Place, Expr], body: Callable[[], None]) -> None:
        """The body, with registers that hold values which it does not change."""
        for reg, value in values.items():
            self.put("alloc", reg, value)
        body()
        for reg, value in reversed(values.items()):
            self.put("free", reg, value)

    def _play_row(self) -> None:
        times = max((row.times for row in self.rows if row.callee < 0), default=1)
        slide = minus(self._field(SLIDE, 2), 1)
        past = apply("*", self.time, slide)
        source, target = self._field(SOURCE, SLOT_BITS), self._field(TARGET, SLOT_BITS)
        by = apply("-", integer(1), apply("*", self._field(BY, 1), integer(2)))
        at = plus(self.node, self._word(1))
        if times > 1:
            at = plus(at, apply("*", self.time, by))
            source, target = plus(source, past), plus(target, past)
        slot = plus(self.origin, apply("*", self.way, minus(source, 1)))
        of = apply("select", apply("==", source, integer(0)), self.base, slot)
        to = plus(self.origin, apply("*", self.way, target))
        held = {self.at: at, self.of: of, self.to: to}
        calls = (Op.CALL, Op.UNCALL)
        used = {row.op for row in self.rows}
        plain = [op for op in Op if op in used and op not in calls]

        def once() -> None:
            self._holding(held, lambda: self._chosen(plain))

        def call() -> None:
            self._holding(held, lambda: self._chosen([op for op in calls if op in used]))

        def repeated() -> None:
            if times > 1:
                self.loop(self.time, integer(0), self._word(2), 1, once)
            else:
                once()

        def play() -> None:
            if not used.isdisjoint(calls):
                self.branch(apply("<=", self.op, integer(Op.UNCALL)), call_at_zero, repeated)
            else:
                repeated()

        def call_at_zero() -> None:
            if times > 1:
                self.put("alloc", self.time)
            call()
            if times > 1:
                self.put("free", self.time)

        self._holding({self.op: self._field(0, 4)}, play)

    def _chosen(self, ops: list[Op]) -> None:
        """What the row's operation, one of these, does."""
        op, *others = ops
        if not others:
            self._do(op)
        else:
            is_op = apply("==", self.op, integer(op))
            self.branch(is_op, lambda: self._do(op), lambda: self._chosen(others))

    def _from(self, body: Callable[[State], None]) -> None:
        """The body for the state that is read: x, or that in a slot."""
        self.branch(
            apply("<", self.of, integer(0)),
            lambda: body(self.x),
            lambda: body(self.pool.at(self.of)),
        )

    def _do(self, op: Op) -> None:
        target = self.pool.at(self.to)
        match op:
            case Op.CALL:
                self._call("call")
            case Op.UNCALL:
                self._call("uncall")
            case Op.STEP:
                self._from(lambda x: self._step("call", target, x))
            case Op.UNSTEP:
                self._from(lambda x: self._step("uncall", target, x))
            case Op.TURN:
                self._turn("call", target)
            case Op.UNTURN:
                self._turn("uncall", target)
            case Op.OVERWRITE:
                self._spared(target, lambda spare: self._step("call", spare, target))
            case Op.ERASE:
                self._spared(target, lambda spare: None)
            case Op.REVERSE | Op.REVERSE_ERASE:

                def reverse(x: State) -> None:
                    self._step("call", target, x)
                    self._adjoint(target, x)

                self._from(reverse)
                if op == Op.REVERSE_ERASE:
                    self._spared(self.pool.at(self.of), lambda spare: None)
            case Op.ADJOINT:
                self._from(lambda x: self._adjoint(target, x))
            case Op.ADJOINT_IN_PLACE:
                args = self.arguments(None, target, self.numbered(self.at), self.bars.__getitem__)
                self.put("call", *args, symbol=self.symbols.adjoint_in_place)
            case Op.COPY:
                self._from(lambda x: copied(self, self.y, x))

    # ------------------------------------------------------------ what rows do

    def _call(self, op: str) -> None:
        callee = self._word(2)
        first = apply("&", callee, integer((1 << END) - 1))
        last = apply(">>", callee, integer(END))
        flip = apply("-", integer(1), apply("*", self._field(FLIP, 1), integer(2)))
        way = apply("*", self.way, flip)
        numbers = (first, last, self.at, self.of, self.to, way)
        self.play(op, self, self.table, numbers, self.symbols.play)

    @staticmethod
    def play(op: str, w: StepWriter, table: int, numbers: tuple[Expr, ...], symbol: str) -> None:
        """In the function `w`, a call of the player."""
        bars = w.bars.__getitem__ if w.sweeps else None
        own = w.arguments(w.y, w.x, w.number, bars)
        args = (*w.places(w.pool), *own, place(table, TABLE), *numbers)
        w.put(op, *args, symbol=symbol)

    def _step(self, op: str, y: State, x: State) -> None:
        args = self.arguments(y, x, self.numbered(self.at), None)
        self.put(op, *args, symbol=self.step.function.name)

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

    def _spared(self, state: State, body: Callable[[State], None]) -> None:
        """The state becomes what the body makes of zeros, and is dropped."""
        spare = self.fresh_state("spare")
        self.each("fresh", spare)
        body(spare)
        self.each("swap", state, spare)
        self.each("drop", spare)

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


def whole(
    step: Step, table: Table, symbols: Symbols, goal: str, name: str, erases: bool
) -> StepWriter:
    """The outermost function: it makes pool and table, and has results where callers want them."""
    sweeps = goal == "gradient"
    w = StepWriter(step, with_y=not sweeps, sweeps=sweeps, slots=table.slots, whole=True)
    values = words(table)
    reg = len(w.registers)
    w.registers.append(Register(w.fresh_name("table"), TABLE, (integer(len(values)),)))
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
        w.each("swap", y, w.pool.at(integer(table.slots - 1)))
    for leaf in reversed(w.places(w.pool)):
        w.put("free", leaf)
    if sweeps:
        w.end_sweep()
    if sweeps or erases:
        w.refuse_back(f"`{name}` erases what it needs no more: it cannot be run back")
    return w
