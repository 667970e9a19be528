"""Reversible schedules of chains whose steps differ in cost and whose states differ in size.

For a budget B, with the cost c_j of step j and the size w_j of s_j,

    F(i, j, B) = min over m of F(i, m, B) + F(m, j, B - w_m) + F(i, m, B - w_j)
    G(i, j, B) = min over m of F(i, m, B) + G(m, j, B - w_m)
    F(j-1, j, B) = G(j-1, j, B) = c_j if w_j <= B

is the least cost of going from node i, which is there, to j: F leaves a pebble on j only.  With
equal sizes this is the optimum, as far as exhaustive search goes; with unequal ones it is rarely
missed, by a few tens of percent at most.  Budgets are whole numbers of units here.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import cast

import numpy as np
from numpy.typing import NDArray

from rvm.pebble.actions import Kind, at, composite, reverse
from rvm.pebble.chains.reversible import descent
from rvm.pebble.grammar import Item, Name, Schedule
from rvm.pebble.tally import Weights

VALUES = 12_000_000
"""The most values, (B + 1) (pieces + 1)^2, that are tabulated; 20 bytes each."""

Values = NDArray[np.float64]


class Intervals:
    """Tables for one chain and all budgets up to B.

    Piece p goes from node `ends[p-1]` to `ends[p]` with cost `costs[p]` and, at its end, a state of
    `sizes[p]` units; index 0 of these is not used.
    """

    def __init__(
        self, ends: Sequence[int], costs: Sequence[float], sizes: Sequence[int], budget: int
    ) -> None:
        self.ends, self.costs, self.sizes = tuple(ends), tuple(costs), tuple(sizes)
        self.budget = budget
        self.count = len(ends) - 1
        shape = (budget + 1, self.count + 1, self.count + 1)
        self.cost: Values = np.full(shape, inf)
        self.split = np.zeros(shape, dtype=np.int32)
        self.after = np.full(shape, inf)
        """[b, m, j]: F(m, j, b - w_m)."""
        for j in range(1, self.count + 1):
            self._file(j - 1, j, np.full(budget + 1, self.costs[j]), sizes[j])
        for length in range(2, self.count + 1):
            for i in range(self.count - length + 1):
                self._fill(i, i + length)
        self.visits = np.full((budget + 1, self.count + 1), inf)
        """[b, i]: G(i, the end, b)."""
        self.visit_split = np.zeros((budget + 1, self.count + 1), dtype=np.int32)
        self._fill_visits()

    def _file(self, i: int, j: int, values: Values, least: int) -> None:
        self.cost[least:, i, j] = values[least:]
        w = self.sizes[i] if i else 0
        if w <= self.budget:
            self.after[w:, i, j] = self.cost[: self.budget + 1 - w, i, j]

    def _fill(self, i: int, j: int) -> None:
        left = self.cost[:, i, i + 1 : j]
        sums = left + self.after[:, i + 1 : j, j]
        w = self.sizes[j]
        if w > self.budget:
            return
        sums[:w] = inf
        sums[w:] += left[: self.budget + 1 - w]
        best = sums.argmin(axis=1)
        self.split[:, i, j] = best + i + 1
        self._file(i, j, sums[np.arange(self.budget + 1), best], 0)

    def _fill_visits(self) -> None:
        end = self.count
        shifted = np.full((self.budget + 1, end + 1), inf)
        for i in range(end - 1, -1, -1):
            direct = np.full(self.budget + 1, inf)
            if i == end - 1:
                direct[self.sizes[end] :] = self.costs[end]
            else:
                sums = self.cost[:, i, i + 1 : end] + shifted[:, i + 1 : end]
                best = sums.argmin(axis=1)
                direct = sums[np.arange(self.budget + 1), best]
                self.visit_split[:, i] = best + i + 1
            self.visits[:, i] = direct
            w = self.sizes[i] if i else 0
            if w <= self.budget:
                shifted[w:, i] = direct[: self.budget + 1 - w]

    def value(self, budget: int, goal: str) -> float:
        """The least cost of the whole chain; of a gradient, its end is to be visited and undone."""
        if goal == "persist":
            return float(self.cost[budget, 0, self.count])
        return float(self.visits[budget, 0]) * (1 if goal == "visit" else 2)

    def least_budget(self, goal: str) -> int | None:
        """The least budget that is feasible, if there is one among those tabulated."""
        row = self.cost[:, 0, self.count] if goal == "persist" else self.visits[:, 0]
        found = np.flatnonzero(row < inf)
        return int(found[0]) if len(found) else None

    # ------------------------------------------------------------ the schedule

    def schedule(self, budget: int, goal: str, weights: Weights) -> Schedule:
        """A schedule of that cost; of a gradient of one more step than the chain has."""
        end = self.count
        there: Name = ("G", 0, end, budget)
        match goal:
            case "persist":
                return Schedule(("F", 0, end, budget), self.expand, weights)
            case "visit":
                return Schedule(there, self.expand, weights)
            case "erase":
                root = [Item(there), Item(at(Kind.COPY, self.ends[end])), Item(there, back=True)]
            case _:
                root = [Item(there), Item(("Q", 0, end, budget)), Item(reverse(1))]
        return Schedule("all", lambda name: root if name == "all" else self.expand(name), weights)

    def expand(self, name: Name) -> Sequence[Item]:
        """The items of a name: a kind as in `rvm.pebble.chains.reversible`, two ends, a budget."""
        kind, i, j, b = cast(tuple[str, int, int, int], name)
        if j == i + 1:
            ends = self.ends[i], self.ends[j]
            return [Item(a) for a in (composite(*ends) if kind in "FG" else descent(*ends))]
        table = self.split[b, i, j] if kind in "FP" else self.visit_split[b, i]
        m = int(table)
        left = Item(("P" if kind in "PQ" else "F", i, m, b))
        right = Item((kind, m, j, b - self.sizes[m]))
        clear: Name = ("F", i, m, b - self.sizes[j])
        match kind:
            case "F":
                return left, right, Item(clear, back=True)
            case "G":
                return left, right
            case "P":
                return Item(clear), right, left
            case _:
                return right, left
