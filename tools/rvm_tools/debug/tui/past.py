"""A screen's memory of the stops so far: registers at the last one, samples, hits, calls.

It is bounded, and only for display; going back does not use it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rvm.state import Frame
from rvm_tools.debug.costs import tallies
from rvm_tools.debug.session import Session
from rvm_tools.debug.texts import kept
from rvm_tools.trace.account import Tally
from rvm_tools.trace.energy import Model

_KEPT_FRAMES = 16
"""The number of innermost frames whose registers are kept to mark changes."""
MAX_SAMPLES = 2048
_MAX_VISITED = 1000


@dataclass(slots=True)
class Before:
    """Positions and registers of the innermost frames as they were at a stop."""

    frames: list[tuple[Frame, int, list[Any]]] = field(default_factory=list)

    @classmethod
    def of(cls, session: Session) -> Before:
        inner = session.frames[-_KEPT_FRAMES:]
        return cls([(frame, frame.pc, kept(frame.regs)) for frame in inner])

    def registers(self, frame: Frame) -> list[Any] | None:
        """A frame's registers then; None if it was not there."""
        return next((regs for known, _, regs in self.frames if known is frame), None)

    def moved(self, frame: Frame) -> bool:
        """Whether a frame is new, or has moved; never before the first stop."""
        if not self.frames:
            return False
        return next((pc != frame.pc for known, pc, _ in self.frames if known is frame), True)


@dataclass(frozen=True, slots=True)
class Sample:
    """The known costs up to a time: live bytes, erased bits.

    `tally` has all costs of the run up to there, if they were counted.
    """

    bytes: int
    bits: int
    tally: Tally | None = None

    def joules(self, model: Model) -> float | None:
        """The energy up to there by a model; None if the model needs more data."""
        if self.tally is not None:
            return model.energy(self.tally)
        if model.ops or model.step:
            return None
        return model.energy(Tally(erased=Counter(here=self.bits)))


@dataclass(slots=True)
class Past:
    """The session's history."""

    before: Before = field(default_factory=Before)
    """The stop before the present one, which changes are marked against."""
    now: Before = field(default_factory=Before)
    samples: dict[int, Sample] = field(default_factory=dict)
    hits: dict[int, None] = field(default_factory=dict)
    """Times at which a breakpoint or watchpoint has stopped."""
    calls: dict[int, None] = field(default_factory=dict)
    """Times at which a stop was at another call depth than the previous one."""
    farthest: int = 0
    """The latest time that the machine was seen at."""
    _depth: int = 1
    _edit: int | None = None

    def sample(self, session: Session) -> None:
        """Note the counters of now; in the thread that the machine runs in."""
        account, time = session.machine.state.account, session.time
        self.farthest = max(self.farthest, time)
        known = self.samples.get(time)
        if known is None or known.tally is None:
            self.samples[time] = Sample(account.live_bytes, session.erased)
        if len(self.samples) > MAX_SAMPLES:
            self.samples = {t: self.samples[t] for t in sorted(self.samples)[::2]}

    def survey(self, fresh: Session, times: Iterable[int]) -> None:
        """Count a session that is at its start up to ascending times, while they can be reached."""
        for time, tally in tallies(fresh, times):
            held = fresh.machine.state.account.live_bytes
            self.farthest = max(self.farthest, time)
            self.samples[time] = Sample(held, tally.erased_bits, tally)

    def surveyed(self, times: Iterable[int]) -> bool:
        """Whether all these times have been counted."""
        none = Sample(0, 0)
        return all(self.samples.get(t, none).tally is not None for t in times)

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
        """The run is another one since an edit: discard observations of the old one."""
        self.samples.clear()
        self.hits.clear()
        self.calls.clear()
        self.farthest = time

    @staticmethod
    def _note(times: dict[int, None], time: int) -> None:
        times[time] = None
        while len(times) > _MAX_VISITED:
            del times[next(iter(times))]

    def extent(self, session: Session) -> int:
        """The time at the right end of the timeline: the run's end, as far as it is known."""
        if session.length is not None:
            return session.length
        return max(self.farthest, session.time, 1)
