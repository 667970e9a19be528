"""Families of schedules for chains of equal steps: reversible ones, and those that may erase."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from rvm.faults import UsageError
from rvm.pebble.chains import bennett as radices
from rvm.pebble.chains import limited as limits
from rvm.pebble.chains import priced as prices
from rvm.pebble.chains import reversible as chains
from rvm.pebble.chains import revolve as treeverse
from rvm.pebble.chains.knill import INFEASIBLE, fewest_to_persist, fewest_to_visit
from rvm.pebble.families.base import CHECKED, Family, whole
from rvm.pebble.grammar import Schedule


@dataclass
class Reversible(Family):
    """The optimum of the reversible game; the gradient is a visit and its undoing."""

    n: int
    goal: str
    unit: int = 1
    in_place: frozenset[int] = frozenset()

    @property
    def name(self) -> str:  # type: ignore[override]
        return "reversible" if self.goal == "gradient" else "knill"

    def fewest(self) -> int:
        steps = self.n - (self.goal == "gradient")
        count = -(-steps // self.unit)
        return fewest_to_persist(count) if self.goal == "persist" else fewest_to_visit(count)

    def total(self, budget: float) -> float:
        moves = chains.moves(self.n, whole(budget, self.n), self.goal, self.unit)
        return inf if moves >= INFEASIBLE else moves

    def schedule(self, budget: float) -> Schedule:
        return chains.reversible(self.n, whole(budget, self.n), self.goal, self.unit)

    def proof(self, budget: float) -> str:
        bound = ""
        if self.goal == "gradient":
            bound = "; 2 G(n-1, S) is a lower bound for any adjoint sweep without erasing"
        return f"optimal by Knill's recursion{bound}"

    def notes(self, budget: float) -> tuple[str, ...]:
        if self.unit == 1:
            return ()
        return (f"{self.unit - 1} of {self.unit} steps are done in place: pieces of {self.unit}",)


@dataclass
class Bennett(Family):
    """Bennett's recursion, with a radix that is given or the best one."""

    n: int
    goal: str
    radix: int | None = None
    name = "bennett"

    def fewest(self) -> int:
        radixes = [self.radix] if self.radix else range(2, min(self.n, radices.TRIED) + 1)
        return min(
            (radices.price(self.n, k, self.goal)[1] for k in radixes),
            default=radices.price(self.n, 2, self.goal)[1],
        )

    def _radix(self, budget: float) -> int | None:
        return self.radix or radices.best_radix(self.n, budget, self.goal)

    def total(self, budget: float) -> float:
        radix = self._radix(budget)
        if radix is None:
            return inf
        moves, pebbles = radices.price(self.n, radix, self.goal)
        return moves if pebbles <= budget else inf

    def schedule(self, budget: float) -> Schedule:
        return radices.bennett(self.n, self._radix(budget) or 2, self.goal)

    def proof(self, budget: float) -> str:
        which = "the radix given" if self.radix else "the best radix for the budget"
        return f"Bennett's recursion with {which}; the optimum is that of `knill`"

    def notes(self, budget: float) -> tuple[str, ...]:
        return (f"radix {self._radix(budget)}: pieces of ceil(n/{self._radix(budget)}) steps",)


@dataclass
class Limited(Family):
    """A number of erasures, and no more."""

    n: int
    goal: str
    allowed: int
    name = "limited"

    def __post_init__(self) -> None:
        values = self.n * self.n.bit_length() * (self.allowed + 1)
        if values * 4 > limits.WORK:
            raise UsageError(
                "P006",
                f"an exact table for n = {self.n} and {self.allowed} erasures is too large",
                hint="give erasures a price instead: price=...",
            )
        self.erasures = self.allowed

    def _tables(self) -> limits.LimitedTables:
        return limits.limited(self.n, min(self.allowed, self.n))

    def fewest(self) -> int:
        return limits.fewest(self.n, min(self.allowed, self.n), self.goal)

    def total(self, budget: float) -> float:
        return self._tables().moves(self.n, whole(budget, self.n), self.goal)

    def schedule(self, budget: float) -> Schedule:
        return self._tables().schedule(whole(budget, self.n), self.goal)

    def proof(self, budget: float) -> str:
        return f"optimal by the recursion with an erasure budget, {CHECKED}"


@dataclass
class Priced(Family):
    """Erasing at a price; of a gradient, everything between Revolve and the reversible sweep."""

    n: int
    goal: str
    price: float
    overwrite: bool = True
    blocks: int = 1000

    def __post_init__(self) -> None:
        self.erasures = inf if self.price < inf else 0

    @property
    def name(self) -> str:  # type: ignore[override]
        return "hybrid" if self.goal == "gradient" else "priced"

    def _tables(self) -> prices.PricedTables:
        return prices.priced(self.n, self.price, self.overwrite, self.blocks)

    def fewest(self) -> int:
        return prices.fewest(self.n, self.price, self.overwrite, self.goal)

    def floor(self) -> float:
        # Each step is done once; all but a kept result are undone or erased, whichever is cheaper.
        away = min(1.0, self.price)
        if self.goal == "visit":
            return self.n
        return (self.n - 1) * (1 + away) + (self.goal == "persist")

    def _ends(self) -> list[Family]:
        """The two ends of the range, which have closed forms and beat a coarse lattice at times."""
        found: list[Family] = [Reversible(self.n, self.goal)]
        if self.goal == "gradient" and self.overwrite and self.price < inf:
            found.append(Revolve(self.n, self.price))
        return found

    def _best(self, budget: float) -> tuple[float, Family | None]:
        s = whole(budget, self.n)
        own: tuple[float, Family | None] = (self._tables().cost(s, self.goal), None)
        if self.n > self.blocks:
            own = min([own, *((f.total(s), f) for f in self._ends())], key=lambda pair: pair[0])
        return own

    def total(self, budget: float) -> float:
        return self._best(budget)[0]

    def schedule(self, budget: float) -> Schedule:
        other = self._best(budget)[1]
        if other is not None:
            return other.schedule(budget)
        return self._tables().schedule(whole(budget, self.n), self.goal)

    def proof(self, budget: float) -> str:
        if self.n <= self.blocks:
            return f"optimal by the recursions H, V, J, K, {CHECKED}"
        return "best known: optimal among schedules that cut long pieces at round numbers only"

    def notes(self, budget: float) -> tuple[str, ...]:
        where = "in place, or into fresh memory" if self.overwrite else "into fresh memory only"
        out = [f"an erased state costs {self.price:g} moves; steps go {where}"]
        if self.n > self.blocks:
            out.append(
                f"blocks: pieces of up to {self.blocks:,} steps are cut anywhere, longer ones at "
                f"multiples of {prices.COARSER}, ..., {self._tables().grain:,} steps"
            )
            other = self._best(budget)[1]
            if other is not None:
                out.append(f"at this price and budget `{other.name}` is cheaper, and is taken")
        return tuple(out)


@dataclass
class Revolve(Family):
    """Revolve: erasing costs nothing."""

    n: int
    price: float = 0
    goal: str = "gradient"
    name = "revolve"
    erasures: float = inf

    def fewest(self) -> int:
        return min(self.n - 1, 1)

    def total(self, budget: float) -> float:
        steps = treeverse.forwards(self.n, whole(budget, self.n))
        return inf if steps >= INFEASIBLE else steps * (1 + self.price)

    def schedule(self, budget: float) -> Schedule:
        return treeverse.revolve(self.n, whole(budget, self.n))

    def proof(self, budget: float) -> str:
        return "optimal where erasing is free, by the closed form of Griewank and Walther"
