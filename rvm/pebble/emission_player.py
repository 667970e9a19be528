"""Stretches of a schedule as code: each action is some calls of the step, each name a call.

A state that is computed away is zero again, and freed; one that is erased is dropped, which erases
its bits.  The adjoint of a step is taken by the step's adjoint function, which undoes the step
while it passes the adjoint back: where the schedule undoes that step anyway, both are one call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rvm.expr import Expr
from rvm.faults import InputError
from rvm.pebble.actions import Action, Kind
from rvm.pebble.emission_code import Line, State, Writer, copied
from rvm.pebble.emission_layout import Face, Layout, Life, Pebble, effect_of
from rvm.pebble.emission_score import Play, Run
from rvm.pebble.emission_step import Step
from rvm.pebble.grammar import Name
from rvm.transform.gradient import BAR

ROW = "row"
STATE = "s"


class Symbols(NamedTuple):
    """The functions that may be called: by names of the schedule, and adjoints of the step."""

    of: Callable[[Name], str]
    face: Callable[[Name], Face]
    adjoint: str = ""
    adjoint_in_place: str = ""


class Player:
    """One function's growing code, and where its pebbles are."""

    def __init__(self, step: Step, layout: Layout, symbols: Symbols, writer: Writer) -> None:
        self.step = step
        self.layout = layout
        self.symbols = symbols
        self.writer = writer
        self.where: dict[Pebble, State] = {}
        self.live: dict[int, Pebble] = {}
        self.rows: list[Pebble] = []
        self.dropped: set[Pebble] = set()

    def play(self) -> None:
        """Write the whole stretch."""
        for pebble in self.layout.start:
            self._settle(pebble)
        for part, life in zip(self.layout.parts, self.layout.lives, strict=True):
            for pebble in life.made:
                self._settle(pebble)
            if isinstance(part, Play):
                self._call(part)
            else:
                self._run(part)
            self._leave(life)

    # ------------------------------------------------------------ pebbles

    def _settle(self, pebble: Pebble) -> None:
        """Give a pebble its registers."""
        w = self.writer
        if pebble.nodes == range(1):
            self.where[pebble] = w.x
        elif pebble.outer:
            assert w.y is not None
            self.where[pebble] = w.y
        else:
            count = len(pebble.nodes)
            row = count > 1
            state = w.fresh_state(ROW if row else STATE, count if row else 0)
            self.where[pebble] = state
            w.each("alloc", state)
        if len(pebble.nodes) > 1:
            self.rows.append(pebble)
        else:
            self.live[pebble.nodes[0]] = pebble

    def _leave(self, life: Life) -> None:
        """Free what a part has taken, and move what it has moved."""
        w = self.writer
        for pebble in life.taken:
            if len(pebble.nodes) > 1:
                self.rows.remove(pebble)
            else:
                gone = next(v for v, p in self.live.items() if p is pebble)
                del self.live[gone]
            if pebble.outer:
                continue
            state, count = self.where[pebble], len(pebble.nodes)
            row = count > 1
            if pebble not in self.dropped:
                for leaf in reversed(w.places(state)):
                    w.put("free", leaf)
            w.release(ROW if row else STATE, state, count if row else 0)
        for pebble, stop in life.moved:
            gone = next(v for v, p in self.live.items() if p is pebble)
            self.live[stop] = self.live.pop(gone)

    def _find(self, node: int) -> Pebble:
        found = self.live.get(node)
        return found or next(p for p in self.rows if node in p.nodes)

    def _state(self, line: Line) -> State:
        """The state on a node, or on those that a loop comes to."""
        pebble = self._find(line.start)
        state, nodes = self.where[pebble], pebble.nodes
        if len(nodes) == 1:
            return state
        index = Line((line.start - nodes[0]) // nodes.step, line.slope // nodes.step)
        return state.at(self.writer.at(index))

    # ------------------------------------------------------------ parts

    def _call(self, part: Play) -> None:
        w = self.writer
        face = self.symbols.face(part.name)
        y = None if face.node is None else self._state(Line(part.shift + face.node))
        args = w.arguments(
            y,
            self._state(Line(part.shift)),
            w.numbered(part.shift),
            w.bars.__getitem__ if face.sweeps else None,
        )
        op = "uncall" if part.back else "call"
        w.put(op, *args, symbol=self.symbols.of(part.name))

    def _run(self, run: Run) -> None:
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
        line = Line(first, stride if count > 1 else 0)

        def body() -> None:
            skip = False
            for k, (action, source, changed) in enumerate(placed):
                if skip:
                    skip = False
                    continue
                after = placed[k + 1][0] if k + 1 < len(placed) else None
                skip = self._fuses(action, after)
                self._action(action, source, changed, line, skip)

        if count > 1:
            self.writer.repeat(count, body)
        else:
            body()

    def _fuses(self, action: Action, after: Action | None) -> bool:
        """Whether a step is undone and then its adjoint taken: the adjoint function does both."""
        if after is None or after != (Kind.REVERSE, action.stop - 1, action.stop):
            return False
        return action.kind in (Kind.UNADVANCE, Kind.UNSHIFT) and action.stop == action.start + 1

    def _action(
        self, a: Action, source: int | None, changed: int | None, line: Line, fused: bool
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
                assert dst is not None and changed is not None
                self._erase(dst, self._find(line.start + changed))
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
            w.repeat(steps, lambda: one(w.at(Line(steps - 1, -1))))
        else:
            w.repeat(steps, lambda: one(w.at(Line(0, 1))))

    def _overwrite(self, state: State, at: Expr, first: int, stop: int) -> None:
        """Steps first + 1, ..., stop from a node on, each in the place of the state before."""
        w = self.writer

        def one(offset: Expr | int) -> None:
            spare = w.fresh_state(STATE)
            w.each("fresh", spare)
            self._step("call", spare, state, at, offset)
            w.each("swap", state, spare)
            w.each("drop", spare)
            w.release(STATE, spare)

        if stop - first == 1:
            one(first)
        elif stop > first:
            w.repeat(stop - first, lambda: one(w.at(Line(first, 1))))

    def _erase(self, state: State, pebble: Pebble) -> None:
        w = self.writer
        if not pebble.outer and len(pebble.nodes) == 1:
            w.each("drop", state)
            self.dropped.add(pebble)
            return
        spare = w.fresh_state(STATE)
        w.each("fresh", spare)
        w.each("swap", spare, state)
        w.each("drop", spare)
        w.release(STATE, spare)

    # ------------------------------------------------------------ adjoints

    def _reverse(self, x: State, at: Expr) -> None:
        """The adjoint of a step whose next state is not there: it is computed for that."""
        w = self.writer
        spare = w.fresh_state(STATE)
        w.each("alloc", spare)
        self._step("call", spare, x, at)
        self._adjoint(spare, x, at)
        for leaf in reversed(w.places(spare)):
            w.put("free", leaf)
        w.release(STATE, spare)

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
