"""Runs again from keyframes: the state at an earlier time, the log of what rounding lost on the
way to one, and the beginnings of calls."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

from rvm.engines import engine
from rvm.engines.reference import Reference
from rvm.engines.trapping import due
from rvm.image import Code, image_of
from rvm.image.traps import Traps
from rvm.numbers.residue import Residue
from rvm.probes import Armory, Trap, arm, disarm
from rvm.probes.armed import Bindings
from rvm.run.machine import Machine
from rvm.state import State
from rvm_tools.debug.keyframes import FINE, FINEST, Keyframe, Keyframes

_SHARES = 64
"""The number of parts into which a stretch is divided when it is refined."""
_Look = Callable[[Machine], object]
"""A callback of a running machine, which may raise `Interrupted`."""


class Reruns:
    """Machines beside a session's own, on states of its past.

    `onward` runs such a machine forwards by a number of ticks; `sets_out` is called for each before
    it runs, with the time it is to reach; `look` is their callback while they run.
    """

    def __init__(
        self,
        machine: Machine,
        past: Keyframes,
        onward: Callable[[Machine, int], None],
        sets_out: Callable[[Machine, int], None],
        look: _Look,
    ) -> None:
        self._machine, self._past = machine, past
        self._onward, self._sets_out, self._look = onward, sets_out, look

    def on(self, state: State, look: _Look | None = None) -> Machine:
        """A machine on a state, separate from the session's own."""
        made = Machine.__new__(Machine)
        made.__dict__.update(self._machine.__dict__)
        made.state, made._own = state, None
        made.use(engine(self._machine.options.engine))
        made.on_progress = look or self._look
        return made

    def at(self, time: int, look: _Look | None = None) -> Machine:
        """A machine as the run was at a time."""
        begin, make = self._past.before(time, strictly=False)
        scratch = self.on(make(), look)
        if begin < time:
            self._sets_out(scratch, time)
        while scratch.time < time:
            self._onward(scratch, min(max(FINE, (time - begin) // _SHARES), time - scratch.time))
            if scratch.time < time:
                self._past.refine(scratch.state)
        return scratch

    def logged(
        self, time: int, passed: Callable[[int, Callable[[], State]], bool]
    ) -> tuple[int, State] | None:
        """The state at a time with a log of bits lost since an earlier one, and that earlier time.

        `passed` is offered earlier states (their time and what makes them): whether the session
        has gone there at once, so that nothing else is to be done; then None.
        """
        past = self._past
        begin, make = past.before(time)
        while (span := time - begin) > FINE:
            if passed(begin, make):
                return None
            past.only(begin, time)
            scratch = self.on(make())
            self._sets_out(scratch, time)
            for _ in range(begin, time - 1, step := max(FINE, span // _SHARES)):
                self._onward(scratch, min(step, time - 1 - scratch.time))
                past.refine(scratch.state)
            found, make = past.before(time)
            if found == begin:
                break
            begin = found
        if passed(begin, make):
            return None
        scratch = self.on(make())
        self._sets_out(scratch, time)
        self._onward(scratch, max(0, time - FINE - begin))
        logged = self.on(Keyframe(scratch.state).state())
        # Not from the run with a log: that erases no bits.
        while scratch.time < time:
            past.refine(scratch.state)
            self._onward(scratch, min(FINEST, time - scratch.time))
        floor = logged.time
        logged.state.residue = Residue()
        logged.use(Reference())
        self._onward(logged, time - floor)
        return floor, logged.state

    def born(self, depth: int, time: int) -> int:
        """The time from which the call was active whose frame is at a depth at a later time."""
        if not depth:
            return 0
        # Back from one state that is kept to another, as long as the call is active there.
        while self._is_active(depth, begin := self._past.before(time)[0], time):
            time = begin
        call = self.at(time).state.frames[depth - 1].pc
        scratch = self.at(max(begin, self.born(depth - 1, time)))
        # Of the calls of that instruction it is the last one before.
        while self._comes_to(scratch, time, depth - 1, call):
            scratch.tick()
            born = scratch.time
        return born

    def _is_active(self, depth: int, begin: int, end: int) -> bool:
        """Whether there is a call at a depth that is active from one time to another."""
        scratch = self.at(begin)
        frames = scratch.state.frames
        if len(frames) <= depth:
            return False
        return not self._comes_to(scratch, end, depth - 1, frames[depth - 1].pc + 1)

    def _comes_to(self, scratch: Machine, end: int, depth: int, pc: int) -> bool:
        """Run to where the frame at a depth is at a position, at most to an end."""
        arm(scratch.state, Armory(image_of(scratch.program), _at), {}, {depth: pc})
        try:
            while scratch.time < end and not due(scratch.state):
                self._onward(scratch, end - scratch.time)
            return bool(due(scratch.state))
        finally:
            disarm(scratch.state)


def _at(code: Code, bindings: Bindings, extra: Hashable) -> Mapping[int, Traps]:
    return {extra: (Trap("here"),)} if isinstance(extra, int) else {}
