"""Journeys of a session: which way, how far, what to stop for; and how they ended."""

from __future__ import annotations

from dataclasses import dataclass, field

from rvm.faults import RvmError
from rvm_tools.debug.stops import Event, Watchpoint


@dataclass(slots=True)
class Journey:
    """One way to go: how far, and what to stop for besides breakpoints and watchpoints."""

    direction: int
    ticks: int | None = None
    lines: bool = False
    """Stop wherever a line begins."""
    over: bool = False
    """Stop where a line begins, in the frames that there are now."""
    out: bool = False
    """Stop where the innermost frame has returned (or, going back, before it was called)."""
    quiet: bool = False
    """Stop for no breakpoint and print nothing."""
    watch: Watchpoint | None = None
    """Stop for this place's changes only."""


@dataclass(slots=True)
class Arrival:
    """How a journey ended."""

    reason: str
    events: list[Event] = field(default_factory=list)
    error: RvmError | None = None
