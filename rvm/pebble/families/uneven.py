"""The family of reversible schedules for chains that are not uniform.

Steps may differ in cost, states in size, and some steps may be done and undone in place.  Such a
step needs no pebble of its own: a step into fresh memory and the steps in place after it are one
*piece* of the chain, and pieces are what is pebbled.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from math import gcd, inf

from rvm.faults import UsageError
from rvm.pebble.actions import reverse
from rvm.pebble.chains import exact, uneven
from rvm.pebble.chains.knill import fewest_to_persist, fewest_to_visit
from rvm.pebble.families.base import CHECKED, Family
from rvm.pebble.grammar import Schedule
from rvm.pebble.tally import Weights

LEVELS = 256
"""The most units that a budget of bytes is counted in."""


def ends_of(n: int, in_place: frozenset[int]) -> list[int]:
    """The nodes where pieces of n steps end, after a 0."""
    inner = [step - 1 for step in range(2, n + 1) if step not in in_place]
    return [0, *inner, n] if n else [0]


class Uneven(Family):
    """Interval recursion, or exact search for short chains with states of unequal size.

    A budget counts pebbles, or bytes if states have sizes.
    """

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
        self._last: uneven.Intervals | None = None
        self._paths: dict[float, list[int] | None] = {}

    @property
    def name(self) -> str:  # type: ignore[override]
        return "uneven"

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
        """How many bytes are one unit: a budget has at most LEVELS of them."""
        if self._equal:
            return self._gcd
        exactly = budget // self._gcd
        return self._gcd if exactly <= LEVELS else int(-(-budget // LEVELS))

    def _tables(self, budget: float) -> uneven.Intervals:
        budget = min(budget, self.most())
        unit = self._unit(budget)
        units = int(budget // unit)
        last = self._last
        sizes = [-(-size // unit) for size in self.sizes]
        if last is None or list(last.sizes) != sizes or last.budget < units:
            if (units + 1) * (self.count + 1) ** 2 > uneven.VALUES:
                raise UsageError(
                    "P006",
                    f"tables for {self.count} pieces and {units} units of budget are too large",
                    values={"pieces": self.count, "units": units, "most": uneven.VALUES},
                    hint="join steps that are always done together, or plan parts of the chain",
                )
            last = self._last = uneven.Intervals(self.ends, self.costs, sizes, units)
        return last

    def _searched(self, budget: float) -> bool:
        """Whether the exact search is used: where the recursion may miss, and it is quick."""
        if self._equal or self.count > exact.LONGEST:
            return False
        return exact.positions(self.sizes, budget) <= exact.POSITIONS

    def _path(self, budget: float) -> list[int] | None:
        if budget not in self._paths:
            keep = self.goal == "persist"
            self._paths[budget] = exact.shortest(self.costs, self.sizes, budget, keep)
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
        if self.count <= exact.LONGEST and self._searched(found):
            keep = self.goal == "persist"
            return exact.narrowest(self.sizes, found, keep) or found
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
            return Schedule.of(exact.played(path, self.ends, self.goal), self.weights)
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
