"""The function that interprets the table of a schedule.

    play(pool, x, ..., table, first, last, node, base, origin, way)

executes the rows from `first` up to `last` of a table (see `table`).  Their node 0 is `node`, whose
state is in the slot `base`, or x if that is -1; their slot k is `origin + way * k` of the pool.  A
row that calls others makes the function call, or uncall, itself.

A state that is uncomputed leaves its slot zero; one that is erased is exchanged for a zero and
dropped, which erases its bits.  The adjoint of a step is computed by the step's adjoint function,
which undoes the step while it propagates the adjoint: if the schedule undoes that step anyway, both
are one call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rvm.expr import Expr, Place
from rvm.faults import InputError
from rvm.isa import apply
from rvm.pebble.bridge.emission.body import integer, minus, plus
from rvm.pebble.bridge.emission.code import State, StepWriter, copied
from rvm.pebble.bridge.emission.step import Step
from rvm.pebble.bridge.emission.table import Op, Row, Table
from rvm.pebble.bridge.emission.tables import Packing

INTEGERS = ("first", "last", "node", "base", "origin", "way")


class Symbols(NamedTuple):
    """The functions that play a table, and the adjoints of steps: by their names."""

    play: str
    fill: str
    adjoint: str = ""
    adjoint_in_place: str = ""


def packed(table: Table) -> Packing:
    """A table as integers.  `first` and `count` of a row are those of a callee's rows."""
    return Packing([_fields(row, table) for body in table.bodies for row in body.rows])


def _fields(row: Row, table: Table) -> dict[str, int]:
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


class PlayWriter(StepWriter):
    """The function `play` for the operations of a table."""

    def __init__(
        self, step: Step, symbols: Symbols, table: Table, packing: Packing, with_y: bool
    ) -> None:
        super().__init__(step, with_y=with_y, sweeps=bool(symbols.adjoint), slots=1)
        self.symbols, self.packing = symbols, packing
        self.table = self.add_table()
        first, last, self.node, self.base, self.origin, self.way = self.add_integers(*INTEGERS)
        self.row, self.time, self.op, self.at, self.to, self.of = (
            self.local(name) for name in ("row", "time", "op", "at", "to", "of")
        )
        rows = [row for body in table.bodies for row in body.rows]
        self.repeats = any(row.times > 1 for row in rows if row.callee < 0)
        self.used = {row.op for row in rows}
        self.loop(self.row, first, last, 1, self._play_row)

    def _field(self, name: str) -> Expr:
        return self.packing.field(self.table, self.row, name)

    def _direction(self, name: str) -> Expr:
        """1, or -1 if a field is 1."""
        return apply("-", integer(1), apply("*", self._field(name), integer(2)))

    def _play_row(self) -> None:
        calls = [op for op in (Op.CALL, Op.UNCALL) if op in self.used]
        others = [op for op in Op if op in self.used and op not in calls]

        def called() -> None:
            does = {Op.CALL: "call", Op.UNCALL: "uncall"}
            self.holding(
                self._read(True, False),
                lambda: self._chosen(calls, lambda op: self._call(does[op])),
            )

        def done() -> None:
            self.holding(
                self._read(self.number is not None, self.repeats),
                lambda: self._chosen(others, self._do),
            )

        def often() -> None:
            if self.repeats:
                self.loop(self.time, integer(0), self._field("first"), 1, done)
            else:
                done()

        def play() -> None:
            if calls:
                self.branch(apply("<=", self.op, integer(Op.UNCALL)), called, often)
            else:
                often()

        self.holding({self.op: self._field("op")}, play)

    def _read(self, numbered: bool, repeated: bool) -> dict[Place, Expr]:
        """The row's slots, and the number of its step if that is wanted; after `time` repeats."""
        source, target = self._field("source"), self._field("target")
        at = plus(self.node, self._field("node"))
        if repeated:
            past = apply("*", self.time, minus(self._field("slide"), 1))
            source, target = plus(source, past), plus(target, past)
            at = plus(at, apply("*", self.time, self._direction("back")))
        slot = plus(self.origin, apply("*", self.way, minus(source, 1)))
        of = apply("select", apply("==", source, integer(0)), self.base, slot)
        to = plus(self.origin, apply("*", self.way, target))
        return {self.of: of, self.to: to, **({self.at: at} if numbered else {})}

    def _chosen(self, ops: Sequence[Op], does: Callable[[Op], None]) -> None:
        """The row's operation, one of these, in ascending order."""
        if len(ops) == 1:
            does(ops[0])
            return
        half = len(ops) // 2
        less = apply("<", self.op, integer(ops[half]))
        self.branch(
            less, lambda: self._chosen(ops[:half], does), lambda: self._chosen(ops[half:], does)
        )

    # ------------------------------------------------------------ operations

    def _do(self, op: Op) -> None:
        target = self.pool.at(self.to)
        match op:
            case Op.TURN:
                self._turn("call", target)
            case Op.UNTURN:
                self._turn("uncall", target)
            case Op.OVERWRITE:
                self._spared(target, lambda spare: self._step("call", spare, target))
            case Op.ERASE:
                self._spared(target, lambda spare: None)
            case Op.ADJOINT_IN_PLACE:
                args = self.arguments(None, target, self.numbered(self.at), self.bars.__getitem__)
                self.put("call", *args, symbol=self.symbols.adjoint_in_place)
            case Op.REVERSE_ERASE:
                self._move(op, self.pool.at(self.of), target)
            case _:
                self.branch(
                    apply("<", self.of, integer(0)),
                    lambda: self._move(op, self.x, target),
                    lambda: self._move(op, self.pool.at(self.of), target),
                )

    def _move(self, op: Op, x: State, y: State) -> None:
        """An operation that reads x and changes y."""
        match op:
            case Op.COPY:
                copied(self, self.y, x)
            case Op.STEP:
                self._step("call", y, x)
            case Op.UNSTEP:
                self._step("uncall", y, x)
            case Op.ADJOINT:
                self._adjoint(y, x)
            case _:
                self._step("call", y, x)
                self._adjoint(y, x)
                if op == Op.REVERSE_ERASE:
                    self._spared(x, lambda spare: None)

    def _step(self, op: str, y: State, x: State) -> None:
        """The step, done or undone."""
        self.step_into(op, y, x, self.numbered(self.at))

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

    def _call(self, op: str) -> None:
        first = self._field("first")
        last = apply("+", first, self._field("count"))
        way = apply("*", self.way, self._direction("flip"))
        numbers = (first, last, self.at, self.of, self.to, way)
        self.play(op, self, self.table, numbers, self.symbols.play)

    @staticmethod
    def play(op: str, w: StepWriter, table: Place, numbers: tuple[Expr, ...], symbol: str) -> None:
        """In the function `w`, a call of the player."""
        bars = w.bars.__getitem__ if w.sweeps else None
        own = w.arguments(w.y, w.x, w.number, bars)
        w.put(op, *w.places(w.pool), *own, table, *numbers, symbol=symbol)

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
    if sweeps:
        w.begin_sweep()
    w.each("alloc", w.pool)
    numbers = tuple(map(integer, (0, len(table.bodies[0].rows), 0, -1, 0, 1)))
    y, w.y = w.y, w.y if goal == "erase" else None
    w.filled(
        len(packing.values),
        symbols.fill,
        lambda own: PlayWriter.play("call", w, own, numbers, symbols.play),
    )
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
