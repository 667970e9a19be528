"""The cost of a part of a schedule: plain sums, and running levels with their maxima.

The tallies of two consecutive parts add up to that of both, and the tally of an undone part follows
from its own.  So the cost of a schedule is known without playing it.
"""

from __future__ import annotations

from typing import NamedTuple

from rvm.pebble.actions import Action, Kind, effect


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
    """The change in the amount held by pebbles, from the first to the last position."""
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
    _, taken, made, lost = effect(*action)
    old, new = (0 if v is None else weights.states(v, v + 1) for v in (taken, made))
    return Tally(
        1,
        weights.steps(i, j) if kind <= Kind.OVERWRITE else 0,
        weights.states(*lost),
        reversals=j - i if kind == Kind.REVERSE else 0,
        copies=int(kind == Kind.COPY),
        writes=int(kind == Kind.SAVE),
        reads=int(kind == Kind.LOAD),
        held=new - old,
        peak=max(0, new - old),
        disk=(kind == Kind.SAVE) - (kind == Kind.DROP),
        disk_peak=int(kind == Kind.SAVE),
    )
