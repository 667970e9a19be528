"""Stretches of a schedule as code: each action is some calls of the step, each name a call.

A state that is computed away leaves its slot zero; one that is erased is exchanged for a zero and
dropped, which erases its bits.  The adjoint of a step is taken by the step's adjoint function,
which undoes the step while it passes the adjoint back: where the schedule undoes that step anyway,
both are one call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rvm.expr import Expr
from rvm.faults import InputError
from rvm.pebble.actions import Action, Kind
from rvm.pebble.bridge.emission.code import Affine, State, StepWriter, copied
from rvm.pebble.bridge.emission.layout import Face, Layout, Life, Pebble, effect_of
from rvm.pebble.bridge.emission.score import Play, Repetition
from rvm.pebble.bridge.emission.slots import Seats, fuses
from rvm.pebble.bridge.emission.step import Step
from rvm.pebble.grammar import Name
from rvm.transform.gradient import BAR

SPARE = "spare"


class Symbols(NamedTuple):
    """The functions that may be called: by names of the schedule, and adjoints of the step."""

    of: Callable[[Name, bool], str]
    """By a name, and whether it is the mirrored one."""
    face: Callable[[Name], Face]
    need: Callable[[Name], int]
    adjoint: str = ""
    adjoint_in_place: str = ""


class StretchWriter:
    """One function's growing code, and where its pebbles are."""

    def __init__(
        self,
        step: Step,
        layout: Layout,
        seats: Seats,
        symbols: Symbols,
        writer: StepWriter,
        mirrored: bool = False,
    ) -> None:
        self.step = step
        self.layout = layout
        self.seats = seats
        self.symbols = symbols
        self.writer = writer
        self.mirrored = mirrored
        self.live: dict[int, Pebble] = {}
        self.rows: list[Pebble] = []
        self.free = 0
        """The first slot that is free in this part."""

    def play(self) -> None:
        """Write the whole stretch."""
        for pebble in self.layout.start:
            self._settle(pebble)
        for k, (part, life) in enumerate(zip(self.layout.parts, self.layout.lives, strict=True)):
            self.free = self.seats.free[k]
            for pebble in life.made:
                self._settle(pebble)
            if isinstance(part, Play):
                self._call(part, self.seats.near[k])
            else:
                self._run(part)
            self._leave(life)

    # ------------------------------------------------------------ pebbles

    def _settle(self, pebble: Pebble) -> None:
        if len(pebble.nodes) > 1:
            self.rows.append(pebble)
        else:
            self.live[pebble.nodes[0]] = pebble

    def _leave(self, life: Life) -> None:
        """Forget what a part has taken, and move what it has moved."""
        for pebble in life.taken:
            if len(pebble.nodes) > 1:
                self.rows.remove(pebble)
            else:
                del self.live[self._node(pebble)]
        for pebble, stop in life.moved:
            self.live[stop] = self.live.pop(self._node(pebble))

    def _node(self, pebble: Pebble) -> int:
        return next(v for v, p in self.live.items() if p is pebble)

    def _find(self, node: int) -> Pebble:
        found = self.live.get(node)
        return found or next(p for p in self.rows if node in p.nodes)

    def _state(self, line: Affine) -> State:
        """The state on a node, or on those that a loop comes to."""
        pebble = self._find(line.start)
        w, nodes = self.writer, pebble.nodes
        if nodes == range(1):
            return w.x
        if pebble.outer:
            return self.result()
        first = self.seats.first[pebble]
        if len(nodes) == 1:
            return self._slot(Affine(first))
        at = (line.start - nodes[0]) // nodes.step
        return self._slot(Affine(first + at, line.slope // nodes.step))

    def _slot(self, line: Affine) -> State:
        """The state in a slot."""
        if self.mirrored:
            line = Affine(self.seats.need - 1 - line.start, -line.slope)
        return self.writer.pool.at(self.writer.at(line))

    def result(self) -> State:
        """Where what is made for the caller is."""
        if self.seats.spared:
            assert self.writer.y is not None
            return self.writer.y
        return self._slot(Affine(self.seats.need - 1))

    # ------------------------------------------------------------ parts

    def _call(self, part: Play, near: bool) -> None:
        w, all_slots = self.writer, self.seats.need
        face, need = self.symbols.face(part.name), self.symbols.need(part.name)
        base = part.shift + face.base
        first = self.free if near else all_slots - need
        if self.mirrored:
            first = all_slots - need - first
        lent = w.slots_of(first, need) if need else []
        args = w.arguments(
            None,
            self._state(Affine(base)),
            w.numbered(base),
            w.bars.__getitem__ if face.sweeps else None,
        )
        mirrored = face.node is not None and near != self.mirrored
        op = "uncall" if part.back else "call"
        w.put(op, *lent, *args, symbol=self.symbols.of(part.name, mirrored))

    def _run(self, run: Repetition) -> None:
        """A run, in loops whose states do not change their arrays on the way."""
        placed = effect_of(run.body).placed
        nodes = {v for _, *pair in placed for v in pair if v is not None}
        k = 0
        while k < run.count:
            first = run.first + k * run.stride
            length = run.count - k
            for v in nodes:
                if length > 1:
                    length = min(length, self._stays(first + v, run.stride))
            self._stretch(placed, first, run.stride, length)
            k += length

    def _stays(self, node: int, stride: int) -> int:
        """For how many rounds a node that moves by `stride` is in one array."""
        nodes = self._find(node).nodes
        if len(nodes) == 1 or stride % nodes.step:
            return 1
        end = nodes[-1] if stride > 0 else nodes[0]
        return abs(end - node) // abs(stride) + 1

    def _stretch(
        self,
        placed: tuple[tuple[Action, int | None, int | None], ...],
        first: int,
        stride: int,
        count: int,
    ) -> None:
        line = Affine(first, stride if count > 1 else 0)

        def body() -> None:
            skip = False
            for k, (action, source, changed) in enumerate(placed):
                if skip:
                    skip = False
                    continue
                after = placed[k + 1][0] if k + 1 < len(placed) else None
                skip = fuses(action, after)
                self._action(action, source, changed, line, skip)

        if count > 1:
            self.writer.repeat(count, body)
        else:
            body()

    def _action(
        self, a: Action, source: int | None, changed: int | None, line: Affine, fused: bool
    ) -> None:
        w = self.writer
        src = None if source is None else self._state(line.moved(source))
        dst = None if changed is None else self._state(line.moved(changed))
        at = w.at(line.moved(a.start))
        steps = a.stop - a.start
        match a.kind:
            case Kind.ADVANCE:
                assert src is not None and dst is not None
                self._step("call", dst, src, at)
                self._overwrite(dst, at, 1, steps)
            case Kind.UNADVANCE:
                assert src is not None and dst is not None
                if fused:
                    self._adjoint(dst, src, at)
                else:
                    self._step("uncall", dst, src, at)
            case Kind.SHIFT | Kind.UNSHIFT:
                assert dst is not None
                if fused:
                    self._adjoint_in_place(dst, at)
                else:
                    self._turn(dst, at, steps, back=a.kind == Kind.UNSHIFT)
            case Kind.OVERWRITE:
                assert dst is not None
                self._overwrite(dst, at, 0, steps)
            case Kind.FREE:
                assert dst is not None
                self._erase(dst)
            case Kind.REVERSE:
                assert src is not None
                self._reverse(src, at)
            case _:
                assert a.kind == Kind.COPY and src is not None
                copied(w, w.y, src)

    # ------------------------------------------------------------ steps

    def _step(self, op: str, y: State, x: State, *number: Expr | int) -> None:
        w = self.writer
        args = w.arguments(y, x, w.numbered(*number), None)
        w.put(op, *args, symbol=self.step.function.name)

    def _turn(self, state: State, at: Expr, steps: int, back: bool) -> None:
        """Steps in place; going back, the last of them first."""
        turn = self.step.in_place
        if turn is None:
            raise InputError(
                "P020",
                "the plan has steps in place, and no function does them",
                hint='in_place="turn", the name of a function that does a step in place',
            )
        w, op = self.writer, "uncall" if back else "call"

        def one(*offset: Expr | int) -> None:
            args = w.arguments(None, state, w.numbered(at, *offset), None)
            w.put(op, *args, symbol=turn.name)

        if steps == 1:
            one()
        elif back:
            w.repeat(steps, lambda: one(w.at(Affine(steps - 1, -1))))
        else:
            w.repeat(steps, lambda: one(w.at(Affine(0, 1))))

    def _overwrite(self, state: State, at: Expr, first: int, stop: int) -> None:
        """Steps first + 1, ..., stop from a node on, each in the place of the state before."""
        w = self.writer

        def one(offset: Expr | int) -> None:
            spare = w.fresh_state(SPARE)
            w.each("fresh", spare)
            self._step("call", spare, state, at, offset)
            w.each("swap", state, spare)
            w.each("drop", spare)
            w.release(SPARE, spare)

        if stop - first == 1:
            one(first)
        elif stop > first:
            w.repeat(stop - first, lambda: one(w.at(Affine(first, 1))))

    def _erase(self, state: State) -> None:
        w = self.writer
        spare = w.fresh_state(SPARE)
        w.each("fresh", spare)
        w.each("swap", spare, state)
        w.each("drop", spare)
        w.release(SPARE, spare)

    # ------------------------------------------------------------ adjoints

    def _reverse(self, x: State, at: Expr) -> None:
        """The adjoint of a step whose next state is not there: it is computed for that."""
        after = self._slot(Affine(self.free))
        self._step("call", after, x, at)
        self._adjoint(after, x, at)

    def _adjoint(self, y: State, x: State, at: Expr) -> None:
        """Undo a step, and take the adjoint of y back to x."""
        w = self.writer
        own, spare = w.running(), w.fresh_bar()
        w.each("fresh", spare)
        before = dict(zip((k for k in self.step.x if k in w.bars), spare.regs, strict=True))
        args = w.arguments(y, x, w.numbered(at), None)
        args += w.places(own)
        args += [w.whole(before.get(k, reg)) for k, reg in w.bars.items()]
        w.put("call", *args, symbol=self.symbols.adjoint)
        w.each("swap", own, spare)
        w.each("drop", spare)
        w.release(BAR, spare)

    def _adjoint_in_place(self, x: State, at: Expr) -> None:
        """Undo a step in place, and its adjoint with it."""
        w = self.writer
        args = w.arguments(None, x, w.numbered(at), w.bars.__getitem__)
        w.put("call", *args, symbol=self.symbols.adjoint_in_place)
