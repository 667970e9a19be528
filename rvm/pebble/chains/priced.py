"""Schedules where erasing a state has a price: persist, visit, and the hybrid gradient.

The tables of `lattice` take n^2 time.  So only pieces of up to `blocks` steps are cut anywhere;
those of up to 4 times as many are cut at multiples of 4 steps, those of up to 16 times as many at
multiples of 16, and so on.  The schedule is optimal under this restriction.  A left part is a
multiple of the grain of its length; the remainder is at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import cast

from rvm.pebble.actions import Kind, advance, at, overwrite, reverse, unadvance
from rvm.pebble.chains.family import CHECKED, Family, whole
from rvm.pebble.chains.knill import line
from rvm.pebble.chains.lattice import Lattice
from rvm.pebble.chains.reversible import Reversible, ReversibleRules
from rvm.pebble.chains.revolve import Revolve
from rvm.pebble.grammar import Item, Name, Schedule

HAIR = 2.0**-24
COARSER = 4
"""The ratio of one grain to the next."""
TABLE = {"persist": "H", "visit": "V", "gradient": "J"}


class PricedTables:
    """Tables and rules for chains of n steps at one price; they grow with the pebbles."""

    def __init__(self, n: int, price: float, in_place: bool, blocks: int) -> None:
        self.n, self.price = n, price
        self.line = line(n)
        self._rows = ReversibleRules(self.line)
        # A hair more, so that of equal costs the one with fewer erasures is taken.  Each erased
        # state was made by a move, so a cost below (1 + price) / HAIR has fewer than 1 / HAIR of
        # them, and their hairs are less than the least difference of whole costs.
        self.hair = HAIR if price < inf and price == int(price) else 0.0
        price += self.hair
        self.lattices: list[Lattice] = []
        self._finer: list[int] = []
        self._lefts: list[int] = []
        """For each lattice the number of the next finer one, and of that of its left parts."""

        def add(
            base: int, unit: int, count: int, finer: int | None = None, left: int | None = None
        ) -> int:
            known = (None if k is None else self.lattices[k] for k in (finer, left))
            made = Lattice(self.line, price, in_place, base, unit, count, *known)
            self.lattices.append(made)
            self._finer.append(finer or 0)
            self._lefts.append(len(self.lattices) - 1 if left is None else left)
            return len(self.lattices) - 1

        left = tail = add(1, 1, min(n, blocks) - 1)
        self.grain = 1
        while blocks * self.grain < n:
            self.grain = unit = self.grain * COARSER
            finer, finer_tail = left, tail
            left = tail = add(unit, unit, min(n // unit, blocks) - 1, finer)
            if base := n % unit:
                count = (min(n, blocks * unit + base) - base) // unit
                tail = add(base, unit, count, finer_tail, left)
        self._whole = tail

    def cost(self, pebbles: int, goal: str) -> float:
        """Moves, and the price of each erased state; inf if there are too few pebbles."""
        whole = self.lattices[self._whole]
        whole.upto(pebbles)
        found = float(whole.cost[TABLE[goal]][pebbles][whole.count])
        if not self.hair or found == inf:
            return found
        if found < (1 + self.price) / self.hair:
            return float(int(found))
        tally = self.schedule(pebbles, goal).tally()
        return tally.moves + self.price * tally.erased

    def schedule(self, pebbles: int, goal: str) -> Schedule:
        """A schedule of that cost."""
        whole = self._whole
        self.lattices[whole].upto(pebbles)
        return Schedule((TABLE[goal], whole, self.lattices[whole].count, pebbles), self.expand)

    def expand(self, name: Name) -> Sequence[Item]:
        """The items of a name: a table, a lattice, a length's index there, a number of pebbles."""
        kind, where, k, s = cast(tuple[str, int, int, int], name)
        if kind in ("F", "up"):
            return self._rows.expand(name)
        own = self.lattices[where]
        if own.finer is not None:
            known = range(own.finer.count + 1)[own.known]
            if k < len(known):
                return [Item((kind, self._finer[where], known[k], s))]
        elif k == 0:
            return [Item(a) for a in self._single(kind)]
        m = int(own.choice[kind][s][k])
        if m == 0:
            return self._other(kind, where, k, s)
        left, shift = self._lefts[where], m * own.unit
        makes = Item(("H", left, m - 1, s - (kind == "K")))
        goes_on = Item((kind, where, k - m, s - 1), shift)
        if kind in "JK":
            return [makes, goes_on, Item(("K", left, m - 1, s))]
        if kind == "V":
            return [makes, goes_on]
        clear = Item(at(Kind.FREE, shift))
        if not self.price < self.line.persist(shift, s - 1):
            clear = Item(self._rows.name("F", shift, s - 1, 1), back=True)
        return [makes, goes_on, clear]

    def _single(self, kind: str) -> list[object]:
        match kind:
            case "H" | "V":
                return [advance(0, 1)]
            case "J":
                return [reverse(1)]
        away = at(Kind.FREE, 1) if self.price < 1 else unadvance(0, 1)
        return [away, reverse(1)]

    def _other(self, kind: str, where: int, k: int, s: int) -> list[Item]:
        """The terms without a split: steps in place for H and V, erasing the end for K."""
        own = self.lattices[where]
        n = own.length(k)
        if kind == "K":
            return [Item(at(Kind.FREE, n)), Item(("J", where, k, s))]
        first, least = k - 1, 0
        if own.finer is not None:
            least = len(range(own.finer.count + 1)[own.known]) - 1
        while first > least and own.choice["H"][s][first] == 0:
            first -= 1
        m = own.length(first)
        if m == 1:
            return [Item(advance(0, n))]
        return [Item(("H", where, first, s)), Item(overwrite(m, n))]


@lru_cache(maxsize=8)
def priced(n: int, price: float, in_place: bool, blocks: int) -> PricedTables:
    """The tables, kept for the next plan."""
    return PricedTables(n, price, in_place, blocks)


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

    def _tables(self) -> PricedTables:
        return priced(self.n, self.price, self.overwrite, self.blocks)

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
                f"multiples of {COARSER}, ..., {self._tables().grain:,} steps"
            )
            other = self._best(budget)[1]
            if other is not None:
                out.append(f"at this price and budget `{other.name}` is cheaper, and is taken")
        return tuple(out)
