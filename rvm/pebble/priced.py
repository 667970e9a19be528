"""Schedules where erasing a state has a price: persist, visit, and the hybrid gradient.

The tables of `rvm.pebble.lattice` take n^2 time.  Longer chains are cut at multiples of a *grain* g
only, except within pieces of g steps or fewer, where every place is considered; what is left over,
n mod g steps, is at the end.  The schedule is then the best among those that are cut so.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import inf
from typing import cast

from rvm.pebble.actions import Kind, advance, at, overwrite, reverse, unadvance
from rvm.pebble.grammar import Item, Name, Schedule
from rvm.pebble.knill import line
from rvm.pebble.lattice import Lattice
from rvm.pebble.reversible import Reversible

HAIR, LONGEST = 2.0**-24, 10**6
TABLE = {"persist": "H", "visit": "V", "gradient": "J"}


class Priced:
    """Tables and rules for chains of n steps at one price; they grow with the pebbles."""

    def __init__(self, n: int, price: float, in_place: bool, grain: int) -> None:
        self.n, self.price, self.grain = n, price, grain
        self.line = line(n)
        self._rows = Reversible(self.line)
        short = n if grain == 1 else grain
        # A hair more, so that of equal costs the one with fewer erasures is taken.  All sums of
        # whole costs and hairs are exact.
        self.hair = HAIR if price < inf and price == int(price) and n <= LONGEST else 0.0
        price += self.hair
        fine = Lattice(self.line, price, in_place, 1, 1, short - 1)
        self.lattices = [fine]
        if grain > 1:
            blocks, rest = divmod(n, grain)
            coarse = Lattice(self.line, price, in_place, grain, grain, blocks - 1, fine)
            self.lattices.append(coarse)
            if rest:
                tail = Lattice(self.line, price, in_place, rest, grain, blocks, fine, coarse)
                self.lattices.append(tail)

    def cost(self, pebbles: int, goal: str) -> float:
        """Moves, and the price of each erased state; inf if there are too few pebbles."""
        whole = self.lattices[-1]
        whole.upto(pebbles)
        found = float(whole.cost[TABLE[goal]][pebbles][whole.count])
        return float(int(found)) if self.hair and found < inf else found

    def schedule(self, pebbles: int, goal: str) -> Schedule:
        """A schedule of that cost."""
        whole = len(self.lattices) - 1
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
        if k == 0:
            if own.leaf is not None:
                return [Item((kind, 0, own.base - 1, s))]
            return [Item(a) for a in self._single(kind)]
        n, m = own.length(k), int(own.choice[kind][s][k])
        if m == 0:
            return self._other(kind, where, k, s)
        left = 0 if own.left is self.lattices[0] else 1
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
        first = k - 1
        while first and own.choice["H"][s][first] == 0:
            first -= 1
        m = own.length(first)
        if m == 1:
            return [Item(advance(0, n))]
        return [Item(("H", where, first, s)), Item(overwrite(m, n))]


@lru_cache(maxsize=8)
def priced(n: int, price: float, in_place: bool, grain: int) -> Priced:
    """The tables, kept for the next plan."""
    return Priced(n, price, in_place, grain)


def grain_for(n: int, blocks: int) -> int:
    """The least grain for which neither the pieces nor the steps in one are more than `blocks`.

    With the second, n is at most blocks^2; beyond it the number of blocks grows.
    """
    grain = -(-n // blocks)
    return 1 if grain <= 1 else grain


def fewest(n: int, price: float, in_place: bool, goal: str) -> int:
    """The fewest pebbles with which there is a schedule at all."""
    if goal == "gradient":
        return fewest(n - 1, price, in_place, "visit") if n > 1 else 0
    if price < inf and in_place:
        return 1
    if price == inf:
        return n.bit_length() if goal == "visit" else (n - 1).bit_length() + 1
    return 1 if n == 1 else 2
