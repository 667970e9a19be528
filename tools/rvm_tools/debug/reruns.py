"""Runs again from keyframes: the state at an earlier time, and the log of what rounding lost
on the way to one."""

from __future__ import annotations

from collections.abc import Callable

from rvm.engines import engine
from rvm.engines.reference import Reference
from rvm.numbers.residue import Residue
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
