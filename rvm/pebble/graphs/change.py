"""Small changes of a legal schedule that keep it legal, as data, and what can make them.

A change replaces a stretch of a schedule by another between the same two positions, so that nothing
outside of it has to be looked at.

    drop    a node that rests for a while is undone and computed again, or later, or undone earlier
    keep    a node that is undone and computed again stays; what was held for that alone goes
    slide   a move goes to another time, past moves that have nothing to do with it
    window  a stretch about few nodes becomes a shortest one (exhaustive search)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Change:
    """A new stretch in place of the moves from `low` up to `high`, and what that changes.

    `nodes`, `marks` and `held` are lists or arrays with an item for each move of the stretch: the
    node, what the schedule keeps beside it, and what is held after the move.
    """

    low: int
    high: int
    nodes: Any
    marks: Any
    held: Any
    moves: int
    """The moves that are added, each with its cost."""
    excess: int
    """The excess that is added."""


class Changing(Protocol):
    """A schedule under change.  Position p is before move p; the last is after all moves."""

    excess: int
    """What is held beyond the budget, summed over all positions."""
    cost: int
    """What the moves cost."""

    def __len__(self) -> int: ...

    def schedule(self) -> tuple[int, ...]:
        """The nodes that the moves change."""
        ...

    def peak(self) -> int:
        """The most that is held."""
        ...

    def load(self, p: int) -> int:
        """What is held at a position."""
        ...

    def pebbled(self, v: int, p: int) -> bool:
        """Whether a node has a pebble at a position."""
        ...

    def do(self, change: Change) -> None:
        """Make a change that was proposed since the last one was made."""
        ...

    def drop(self, p: int, v: int) -> Change | None:
        """Node v, which has a pebble at position p, is without it around there."""
        ...

    def keep(self, p: int) -> Change | None:
        """The move at p and the next of the same node fall away, and what only they needed."""
        ...

    def slide(self, p: int, later: bool, far: float) -> Change | None:
        """The move at p goes past others: `far` of the way, from 0 to 1, that is open to it."""
        ...

    def window(self, p: int, width: int) -> Change | None:
        """A shortest stretch in place of that from p on which is about `width` nodes."""
        ...
