"""What a stretch of a schedule costs: plain sums, and running levels with their highest points.

Tallies of two stretches add up to the tally of both, and the tally of a stretch undone follows from
its own.  So the cost of a schedule is known without playing it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from rvm.pebble.actions import Action, Kind


class Tally(NamedTuple):
    """Costs of a stretch.  `moves`, `held` and `peak` are in the units of its chain's weights."""

    actions: int = 0
    moves: float = 0
    """Steps done or undone, each with its cost: 1 unless steps have costs of their own."""
    erased: float = 0
    """States that were lost, each with its size: 1 unless states have sizes of their own."""
    reversals: int = 0
    copies: int = 0
    writes: int = 0
    reads: int = 0
    held: float = 0
    """The change of what pebbles hold, from the first to the last position."""
    peak: float = 0
    """The most that is held in any position, counted from the first one."""
    disk: int = 0
    disk_peak: int = 0

    def then(self, other: Tally) -> Tally:
        """The tally of this stretch followed by another."""
        a, b = self, other
        return Tally(
            a.actions + b.actions,
            a.moves + b.moves,
            a.erased + b.erased,
            a.reversals + b.reversals,
            a.copies + b.copies,
            a.writes + b.writes,
            a.reads + b.reads,
            a.held + b.held,
            max(a.peak, a.held + b.peak),
            a.disk + b.disk,
            max(a.disk_peak, a.disk + b.disk_peak),
        )

    def undone(self) -> Tally:
        """The tally of this stretch played backwards; it loses nothing and keeps off the disk."""
        return self._replace(held=-self.held, peak=self.peak - self.held)


class Weights(NamedTuple):
    """The costs of steps and the sizes of states of a chain, by node.  None: all are 1.

    `costs[i]` is that of step i, `sizes[i]` that of s_i; index 0 is not used.
    """

    costs: tuple[float, ...] | None = None
    sizes: tuple[float, ...] | None = None

    def steps(self, start: int, stop: int) -> float:
        """The cost of the steps from s_start to s_stop."""
        return stop - start if self.costs is None else sum(self.costs[start + 1 : stop + 1])

    def states(self, start: int, stop: int) -> float:
        """The size of s_start, ..., s_(stop-1) together."""
        return stop - start if self.sizes is None else sum(self.sizes[start:stop])


def priced(action: Action, weights: Weights) -> Tally:
    """The tally of one action."""
    kind, i, j = action
    size = weights.states
    match kind:
        case Kind.ADVANCE:
            new = size(j, j + 1)
            return Tally(1, weights.steps(i, j), erased=size(i + 1, j), held=new, peak=max(0, new))
        case Kind.UNADVANCE:
            return Tally(1, weights.steps(i, j), held=-size(j, j + 1))
        case Kind.SHIFT | Kind.UNSHIFT | Kind.OVERWRITE:
            change = size(j, j + 1) - size(i, i + 1)
            if kind == Kind.UNSHIFT:
                change = -change
            lost = size(i, j) if kind == Kind.OVERWRITE else 0
            return Tally(1, weights.steps(i, j), erased=lost, held=change, peak=max(0, change))
        case Kind.FREE:
            return Tally(1, erased=size(i, i + 1), held=-size(i, i + 1))
        case Kind.REVERSE:
            return Tally(1, reversals=j - i)
        case Kind.COPY:
            return Tally(1, copies=1)
        case Kind.SAVE:
            return Tally(1, writes=1, disk=1, disk_peak=1)
        case Kind.LOAD:
            return Tally(1, reads=1, held=size(i, i + 1), peak=size(i, i + 1))
        case _:
            return Tally(1, disk=-1)


def summed(parts: Iterable[Tally]) -> Tally:
    """The tally of stretches one after the other."""
    total = Tally()
    for part in parts:
        total = total.then(part)
    return total


Pricing = Callable[[Action], Tally]
