"""What a screen remembers of the stops so far: registers at the last one, samples, hits, calls.

That is for the eye alone, and bounded: the machine is still taken back by undoing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from rvm.machine import Machine
from rvm.state import Frame
from rvm_tools.debug.looking import kept
from rvm_tools.debug.session import Session

KEPT_FRAMES = 16
"""The innermost frames whose registers are kept to mark what changes."""
MAX_SAMPLES = 2048
INTERVAL = 0.1
"""Seconds between samples of a run."""
MAX_VISITED = 1000


@dataclass(slots=True)
class Before:
    """Positions and registers of the innermost frames as they were at a stop."""

    frames: list[tuple[Frame, int, list[Any]]] = field(default_factory=list)

    @classmethod
    def of(cls, session: Session) -> Before:
        inner = session.frames[-KEPT_FRAMES:]
        return cls([(frame, frame.pc, kept(frame.regs)) for frame in inner])

    def registers(self, frame: Frame) -> list[Any] | None:
        """A frame's registers then; None if it was not there."""
        return next((regs for known, _, regs in self.frames if known is frame), None)

    def moved(self, frame: Frame) -> bool:
        """Whether a frame is new, or stood elsewhere; never before the first stop."""
        if not self.frames:
            return False
        return next((pc != frame.pc for known, pc, _ in self.frames if known is frame), True)


@dataclass(frozen=True, slots=True)
class Sample:
    """Bits erased and bytes live at a time."""

    bits: int
    bytes: int


@dataclass(slots=True)
class Past:
    """Where the session has been."""

    before: Before = field(default_factory=Before)
    """The stop before the present one, which changes are marked against."""
    now: Before = field(default_factory=Before)
    samples: dict[int, Sample] = field(default_factory=dict)
    hits: dict[int, None] = field(default_factory=dict)
    """Times at which a breakpoint or watchpoint has stopped."""
    calls: dict[int, None] = field(default_factory=dict)
    """Times at which a stop was in another depth of calls than the stop before."""
    farthest: int = 0
    """The latest time that the machine was seen at."""
    _depth: int = 1
    _edit: int | None = None

    def sample(self, session: Session) -> None:
        """Note the counters of now; in the thread that the machine runs in."""
        account, time = session.machine.state.account, session.time
        self.farthest = max(self.farthest, time)
        self.samples[time] = Sample(account.erased_bits, account.live_bytes)
        if len(self.samples) > MAX_SAMPLES:
            self.samples = {t: self.samples[t] for t in sorted(self.samples)[::2]}

    def sample_within(self, session: Session) -> None:
        """Sample a long run too: now and then, where engines ask whether to go on."""
        machine, check, last = session.machine, session._travel.check, monotonic()

        def progress(running: Machine) -> None:
            nonlocal last
            if monotonic() - last > INTERVAL:
                last = monotonic()
                self.sample(session)
            check(running)

        machine.on_progress = progress

    def survey(self, fresh: Session, times: Sequence[int]) -> None:
        """Sample a session that is at its start at times, until one can't be reached."""
        for time in sorted(times):
            fresh.goto(time, note=False)
            if fresh.time != time:
                return
            self.sample(fresh)

    def arrive(self, session: Session, moved: bool) -> None:
        """Note a stop; `moved`: a journey led there."""
        if session.diverged != self._edit:
            self._edit = session.diverged
            self._forget(session.time)
        self.sample(session)
        if not moved:
            return
        self.before, self.now = self.now, Before.of(session)
        depth = len(session.frames)
        if depth != self._depth:
            self._note(self.calls, session.time)
        self._depth = depth
        if session.stop.reason in ("breakpoint", "watchpoint"):
            self._note(self.hits, session.time)

    def _forget(self, time: int) -> None:
        """The run is another one since an edit: what was seen of the old one is gone."""
        self.samples.clear()
        self.hits.clear()
        self.calls.clear()
        self.farthest = time

    @staticmethod
    def _note(times: dict[int, None], time: int) -> None:
        times[time] = None
        while len(times) > MAX_VISITED:
            del times[next(iter(times))]

    def extent(self, session: Session) -> int:
        """The time at the right end of the timeline: the run's end, as far as it is known."""
        if session.length is not None:
            return session.length
        return max(self.farthest, session.time, 1)


def again(session: Session) -> Session:
    """Another session on the same run, at its start; it is silent and knows no stops.

    The session itself stays where it is: a run that erases could not be taken back and forth.
    """
    return Session(
        session.program,
        session.function,
        session.inputs,
        session.options,
        undo=session.undo,
        say=lambda line: None,
    )
