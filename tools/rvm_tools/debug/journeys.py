"""Journeys of a session: direction, length, and stops; onlookers; outcomes."""

from __future__ import annotations

from dataclasses import dataclass, field

from rvm.faults import Fault, UsageError
from rvm.run.machine import Machine
from rvm_tools.debug.stops import StopEvent, Watchpoint


@dataclass(slots=True)
class Journey:
    """A journey: its direction and length, and what to stop for besides breakpoints."""

    direction: int
    ticks: int | None = None
    lines: bool = False
    """Stop wherever a line begins."""
    over: bool = False
    """Stop where a line begins, in the present frames."""
    out: bool = False
    """Stop where the innermost frame has returned (or, going back, before it was called)."""
    quiet: bool = False
    """Stop for no breakpoint and print nothing."""
    watch: Watchpoint | None = None
    """Stop for this place's changes only."""


@dataclass(slots=True)
class Arrival:
    """The outcome of a journey."""

    reason: str
    events: list[StopEvent] = field(default_factory=list)
    error: Fault | None = None


_MAX_VISITED = 1000
"""The number of visited places that are remembered."""


@dataclass(frozen=True, slots=True)
class Visited:
    """The times that were visited, and at which of them the session is, as a browser keeps them."""

    times: tuple[int, ...] = (0,)
    place: int = 0

    def arrived(self, time: int) -> Visited:
        """The places with a new present time; later ones are discarded."""
        if self.times[self.place] == time:
            return self
        times = (*self.times[: self.place + 1], time)[-_MAX_VISITED:]
        return Visited(times, len(times) - 1)

    def moved(self, places: int) -> Visited:
        """The places at an earlier (negative) or later one; UsageError U033 if there is none."""
        target = self.place + places
        if not 0 <= target < len(self.times):
            way = "earlier" if places < 0 else "later"
            raise UsageError("U033", f"there is no {way} place that was visited")
        return Visited(self.times, target)


class Onlooker:
    """Receives the progress of journeys, in their thread; this base class ignores it.

    A command may make several journeys.
    """

    def begins(self, command: str) -> None:
        """A command begins."""

    def sets_out(self, machine: Machine, goal: int | None) -> None:
        """A journey begins; `goal` is the latest time at which it can end, None if not known."""

    def moves(self, machine: Machine) -> None:
        """The machine has moved; called about every twentieth of a second, or more often."""

    def says(self) -> None:
        """Something other than the program's output is about to be shown."""

    def ends(self) -> None:
        """The command is over."""
