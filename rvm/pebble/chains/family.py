"""Families of schedules: the schedules of one strategy for one chain, by pebbles.

A family knows the smallest number of pebbles that it needs, the cost of a schedule before it is
made, and its optimality or bounds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import count
from math import inf

from rvm.faults import UsageError
from rvm.pebble.grammar import Schedule
from rvm.pebble.tally import Weights

CHECKED = "known from exhaustive search of small chains"


class Family(ABC):
    """Schedules of one strategy for one chain and goal."""

    name: str
    n: int
    goal: str
    erasures: float = 0
    """The number of states that its rules allow to be lost."""
    disk: float = 0
    in_place: frozenset[int] = frozenset()
    weights: Weights = Weights()

    def fewest(self) -> float:
        """The least budget for which there is a schedule."""
        return next(s for s in count() if self.total(s) < inf)

    def most(self) -> float:
        """A budget beyond which more does not help."""
        return self.n

    @abstractmethod
    def total(self, budget: float) -> float:
        """The cost in moves, prices included; inf if the budget is too small."""

    def floor(self) -> float:
        """The cost with any number of pebbles at least."""
        return self.total(self.most())

    @abstractmethod
    def schedule(self, budget: float) -> Schedule:
        """The schedule for a feasible budget."""

    @abstractmethod
    def proof(self, budget: float) -> str:
        """The proof of its cost."""

    def notes(self, budget: float) -> tuple[str, ...]:
        """Further notes."""
        return ()


def whole(budget: float, n: int) -> int:
    """A budget of pebbles as a number, not more than there are nodes."""
    return int(min(max(budget, 0), n))


def too_large(what: str, hint: str) -> UsageError:
    """P006: an exact table that is too large."""
    return UsageError("P006", f"an exact table for {what} is too large", hint=hint)
