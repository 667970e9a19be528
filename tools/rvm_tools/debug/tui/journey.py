"""The active journey for the screen: its progress, and samples on the way."""

from __future__ import annotations

from time import monotonic

from rvm.run.machine import Machine
from rvm_tools.debug.journeys import Onlooker
from rvm_tools.debug.session import Session
from rvm_tools.debug.tui.past import Past

_INTERVAL = 0.1
"""Seconds between samples of a run."""
CELLS = 20


class JourneyView(Onlooker):
    """Told of in the machine's thread, read by the screen."""

    def __init__(self, session: Session, past: Past) -> None:
        self._session = session
        self._past = past
        self._sampled = 0.0
        self._start = self.time = 0
        self._goal: int | None = None

    def sets_out(self, machine: Machine, goal: int | None) -> None:
        self._start, self.time, self._goal = machine.time, machine.time, goal

    def moves(self, machine: Machine) -> None:
        self.time = machine.time
        now = monotonic()
        if machine is self._session.machine and now - self._sampled > _INTERVAL:
            self._sampled = now
            self._past.sample(self._session)

    def bar(self) -> str:
        """The completed part of the journey, as a bar and in words."""
        if self._goal is None or self._goal == self._start:
            return "running"
        share = abs(self.time - self._start) / abs(self._goal - self._start)
        done = min(CELLS, round(CELLS * share))
        return f"{'━' * done}{'─' * (CELLS - done)} {100 * share:.0f}%"
