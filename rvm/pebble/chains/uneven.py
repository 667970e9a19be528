"""Reversible schedules of chains whose steps differ in cost and whose states differ in size.

Some steps may be done and undone in place.  Such a step needs no pebble of its own: a step into
fresh memory and the steps in place after it are one *piece* of the chain, and pebbles are placed on
pieces.  For a budget B, with the cost c_j of piece j and the size w_j of its last state,

    F(i, j, B) = min over m of F(i, m, B) + F(m, j, B - w_m) + F(i, m, B - w_j)
    G(i, j, B) = min over m of F(i, m, B) + G(m, j, B - w_m)
    F(j-1, j, B) = G(j-1, j, B) = c_j if w_j <= B

is the minimal cost of going from node i, which has a pebble, to j: F leaves a pebble on j only.
With equal sizes this is the optimum, as far as exhaustive search goes.  With unequal ones it rarely
misses it, by a few tens of percent at most; there, short chains are searched exhaustively.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from math import gcd, inf
from typing import cast

import numpy as np
from numpy.typing import NDArray

from rvm.faults import UsageError
from rvm.pebble.actions import Action, Kind, at, composite, reverse, undone
from rvm.pebble.chains.family import CHECKED, Family
from rvm.pebble.chains.knill import fewest_to_persist, fewest_to_visit
from rvm.pebble.chains.reversible import Cut, descent, halves, rooted
from rvm.pebble.grammar import Item, Name, Schedule
from rvm.pebble.graphs.exact import cheapest
from rvm.pebble.tally import Weights

VALUES = 12_000_000
"""The most values, (B + 1) (pieces + 1)^2, that are tabulated; 20 bytes each."""
LEVELS = 256
"""The most units that a budget of bytes is counted in."""
LONGEST = 20
"""The most pieces that are searched exhaustively."""
POSITIONS = 200_000
"""The most sets of pieces that are searched."""

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
        end = self.ends[self.count]
        n = end + (goal == "gradient")
        return rooted(self.expand, (0, self.count, budget), n, goal, weights=weights)

    def expand(self, name: Name) -> Sequence[Item]:
        """The items of a name: a kind as in `rvm.pebble.chains.reversible`, two ends, a budget."""
        kind, i, j, b = cast(tuple[str, int, int, int], name)
        if j == i + 1:
            ends = self.ends[i], self.ends[j]
            return [Item(a) for a in (composite(*ends) if kind in "FG" else descent(*ends))]
        m = int(self.split[b, i, j] if kind in "FP" else self.visit_split[b, i])
        after, clear = b - self.sizes[m], b - self.sizes[j]
        return halves(kind, Cut((i, m, b), (m, j, after), 0, (i, m, clear)))


# ---------------------------------------------------------------- short chains


def positions(sizes: Sequence[float], budget: float) -> int:
    """The number of sets of the pieces' ends within the budget; `sizes[0]` is not used."""
    held = np.zeros(1)
    for size in sizes[1:]:
        held = np.concatenate([held, held + size])
        held = held[held <= budget]
    return len(held)


def shortest(
    costs: Sequence[float], sizes: Sequence[float], budget: float, persist: bool
) -> list[int] | None:
    """The pieces in the order in which their pebbles are put on or taken off; None: infeasible.

    A piece's number is 1, 2, ...; index 0 of costs and sizes is not used.
    """
    found = _searched(sizes, budget, persist, costs)
    return None if found is None else [v + 1 for v in found[1]]


def narrowest(sizes: Sequence[float], budget: float, persist: bool) -> float | None:
    """The least budget, not above this one, with which the goal is reached at all."""
    found = _searched(sizes, budget, persist, None)
    return None if found is None else found[0]


def _searched(
    sizes: Sequence[float], budget: float, persist: bool, costs: Sequence[float] | None
) -> tuple[float, list[int]] | None:
    """A way to the end of the chain: the cheapest, or the one that holds the least."""
    count = len(sizes) - 1
    goal = 1 << count - 1
    return cheapest(
        [1 << v - 1 if v else 0 for v in range(count)],
        sizes[1:],
        0,
        goal.__eq__ if persist else lambda mask: mask >= goal,
        budget,
        (lambda most, v, held: max(most, held))
        if costs is None
        else (lambda spent, v, held: spent + costs[v + 1]),
    )


def played(path: Sequence[int], ends: Sequence[int], goal: str) -> list[Action]:
    """The actions of a path, which visits the end, or persists there, for each goal."""
    there: list[Action] = []
    back: list[tuple[Action, ...]] = []
    seen: set[int] = set()
    pebbled: set[int] = set()
    for piece in path:
        span = ends[piece - 1], ends[piece]
        forwards = composite(*span)
        if piece in pebbled:
            pebbled.remove(piece)
            there += undone(forwards)
            back.append(forwards)
        else:
            pebbled.add(piece)
            there += forwards
            # The first pebble on a piece is the last to go: that is when its adjoints are due.
            first = piece not in seen and goal == "gradient"
            back.append(tuple(descent(*span) if first else undone(forwards)))
            seen.add(piece)
    if goal in ("persist", "visit"):
        return there
    middle = [at(Kind.COPY, ends[-1])] if goal == "erase" else []
    end = [reverse(1)] if goal == "gradient" else []
    return [*there, *middle, *(a for part in reversed(back) for a in part), *end]


# ---------------------------------------------------------------- the family


def ends_of(n: int, in_place: frozenset[int]) -> list[int]:
    """The nodes where pieces of n steps end, after a 0."""
    inner = [step - 1 for step in range(2, n + 1) if step not in in_place]
    return [0, *inner, n] if n else [0]


class Uneven(Family):
    """Interval recursion, or exact search for short chains with states of unequal size.

    A budget counts pebbles, or bytes if states have sizes.
    """

    name = "uneven"

    def __init__(
        self,
        n: int,
        goal: str,
        costs: Sequence[float] | None = None,
        sizes: Sequence[int] | None = None,
        in_place: frozenset[int] = frozenset(),
    ) -> None:
        self.n, self.goal, self.in_place = n, goal, in_place
        self.weights = Weights(
            (0, *costs) if costs is not None else None, (0, *sizes) if sizes is not None else None
        )
        steps = n - (goal == "gradient")
        self.ends = ends_of(steps, in_place)
        self.count = len(self.ends) - 1
        spans = list(pairwise(self.ends))
        self.costs = [0.0, *(self.weights.steps(i, j) for i, j in spans)]
        own = self.weights.sizes
        self.sizes = [0, *(1 if own is None else int(own[j]) for _, j in spans)]
        self._last: Intervals | None = None
        self._paths: dict[float, list[int] | None] = {}

    @cached_property
    def _equal(self) -> bool:
        return len(set(self.sizes[1:])) <= 1

    @cached_property
    def _gcd(self) -> int:
        return gcd(*self.sizes[1:]) if self.count else 1

    def most(self) -> float:
        return sum(self.sizes)

    def floor(self) -> float:
        # With a pebble for each piece everything is done once, and all that has to is undone once.
        once = sum(self.costs)
        if self.goal == "visit":
            return once
        return 2 * once - (self.costs[-1] if self.goal == "persist" else 0)

    def _unit(self, budget: float) -> int:
        """The bytes of one unit: a budget has at most LEVELS of them."""
        if self._equal:
            return self._gcd
        exactly = budget // self._gcd
        return self._gcd if exactly <= LEVELS else int(-(-budget // LEVELS))

    def _tables(self, budget: float) -> Intervals:
        budget = min(budget, self.most())
        unit = self._unit(budget)
        units = int(budget // unit)
        last = self._last
        sizes = [-(-size // unit) for size in self.sizes]
        if last is None or list(last.sizes) != sizes or last.budget < units:
            if (units + 1) * (self.count + 1) ** 2 > VALUES:
                raise UsageError(
                    "P006",
                    f"tables for {self.count} pieces and {units} units of budget are too large",
                    values={"pieces": self.count, "units": units, "most": VALUES},
                    hint="join steps that are always done together, or plan parts of the chain",
                )
            last = self._last = Intervals(self.ends, self.costs, sizes, units)
        return last

    def _searched(self, budget: float) -> bool:
        """Whether the exact search is used: where the recursion may miss, and it is quick."""
        if self._equal or self.count > LONGEST:
            return False
        return positions(self.sizes, budget) <= POSITIONS

    def _path(self, budget: float) -> list[int] | None:
        if budget not in self._paths:
            keep = self.goal == "persist"
            self._paths[budget] = shortest(self.costs, self.sizes, budget, keep)
        return self._paths[budget]

    def fewest(self) -> float:
        if not self.count:
            return 0
        if self._equal:
            least = fewest_to_persist if self.goal == "persist" else fewest_to_visit
            return least(self.count) * self.sizes[1]
        budget = float(max(self.sizes))
        while self._tables(budget).least_budget(self.goal) is None:
            budget = min(2 * budget, self.most())
        tables = self._tables(budget)
        found = (tables.least_budget(self.goal) or 0) * self._unit(budget)
        if self.count <= LONGEST and self._searched(found):
            keep = self.goal == "persist"
            return narrowest(self.sizes, found, keep) or found
        return found

    def total(self, budget: float) -> float:
        if not self.count:
            return 0
        if budget < 0:
            return inf
        if self._searched(budget):
            path = self._path(budget)
            twice = 1 if self.goal in ("persist", "visit") else 2
            return inf if path is None else twice * sum(self.costs[piece] for piece in path)
        tables = self._tables(budget)
        return tables.value(self._units(budget), self.goal)

    def _units(self, budget: float) -> int:
        budget = min(budget, self.most())
        return int(budget // self._unit(budget))

    def schedule(self, budget: float) -> Schedule:
        if not self.count:
            return Schedule.of([reverse(1)], self.weights)
        if self._searched(budget):
            path = self._path(budget) or []
            return Schedule.of(played(path, self.ends, self.goal), self.weights)
        return self._tables(budget).schedule(self._units(budget), self.goal, self.weights)

    def proof(self, budget: float) -> str:
        if self.count and self._searched(budget):
            return f"optimal by exact search over sets of {self.count} pebbles"
        if self._equal:
            return f"optimal by the interval recursion, {CHECKED}"
        return (
            "best known: the interval recursion, which with states of unequal size misses the "
            "optimum now and then"
        )

    def notes(self, budget: float) -> tuple[str, ...]:
        out = []
        if self.in_place:
            out.append(f"{len(self.in_place)} steps are done in place: {self.count} pieces")
        if self.count and not self._equal and not self._searched(budget):
            unit = self._unit(min(budget, self.most()))
            if unit != self._gcd:
                out.append(f"sizes are rounded up to multiples of {unit}")
        return tuple(out)
