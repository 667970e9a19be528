"""Schedules where erasing a state has a price: persist, visit, and the hybrid gradient.

The tables of `lattice` take n^2 time. So only pieces of up to `blocks` steps are cut anywhere;
those of up to 4 times as many are cut at multiples of 4 steps, those of up to 16 times as many at
multiples of 16, and so on. The schedule is then the best among those that are cut so. A left part
is a multiple of the grain of its length; what is left over is at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import inf
from typing import cast

from rvm.pebble.actions import Kind, advance, at, overwrite, reverse, unadvance
from rvm.pebble.chains.knill import line
from rvm.pebble.chains.lattice import Lattice
from rvm.pebble.chains.reversible import ReversibleRules
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
        self.lattices = [Lattice(self.line, price, in_place, 1, 1, min(n, blocks) - 1)]
        self._lefts = [0]
        """For each lattice the number of that of its left parts."""
        self._finer = [0]
        self.grain, left, tail = 1, 0, 0
        while blocks * self.grain < n:
            self.grain *= COARSER
            unit = self.grain
            whole = min(n // unit, blocks)
            finer, finer_tail = left, tail
            left = self._add(
                Lattice(self.line, price, in_place, unit, unit, whole - 1, self.lattices[finer]),
                finer,
            )
            tail = left
            base = n % unit
            if base:
                count = (min(n, blocks * unit + base) - base) // unit
                tail = self._add(
                    Lattice(
                        self.line,
                        price,
                        in_place,
                        base,
                        unit,
                        count,
                        self.lattices[finer_tail],
                        self.lattices[left],
                    ),
                    finer_tail,
                    left,
                )
        self._whole = tail

    def _add(self, lattice: Lattice, finer: int, left: int | None = None) -> int:
        own = len(self.lattices)
        self.lattices.append(lattice)
        self._finer.append(finer)
        self._lefts.append(own if left is None else left)
        return own

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
        return Schedule(
            (TABLE[goal], whole, self.lattices[whole].count, pebbles),
            self.expand,
        )

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
        n, m = own.length(k), int(own.choice[kind][s][k])
        if m == 0:
            return self._other(kind, where, k, s)
        left = self._lefts[where]
        shift = m * own.unit
        rest = (kind, where, k - m)
        match kind:
            case "H":
                clear = [Item(at(Kind.FREE, shift))]
                if not self.price < self.line.persist(shift, s - 1):
                    clear = [Item(self._rows.name("F", shift, s - 1, 1), back=True)]
                return [Item(("H", left, m - 1, s)), Item((*rest, s - 1), shift), *clear]
            case "V":
                return [Item(("H", left, m - 1, s)), Item((*rest, s - 1), shift)]
            case "J":
                return [
                    Item(("H", left, m - 1, s)),
                    Item((*rest, s - 1), shift),
                    Item(("K", left, m - 1, s)),
                ]
        assert kind == "K" and n > shift
        return [
            Item(("H", left, m - 1, s - 1)),
            Item((*rest, s - 1), shift),
            Item(("K", left, m - 1, s)),
        ]

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


def fewest(n: int, price: float, in_place: bool, goal: str) -> int:
    """The fewest pebbles with which there is a schedule at all."""
    if goal == "gradient":
        return fewest(n - 1, price, in_place, "visit") if n > 1 else 0
    if price < inf and in_place:
        return 1
    if price == inf:
        return n.bit_length() if goal == "visit" else (n - 1).bit_length() + 1
    return 1 if n == 1 else 2
