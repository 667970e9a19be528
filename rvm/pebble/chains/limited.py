"""Schedules that may erase a number of states, and no more.

With S pebbles, the input not counted, and e erasures, each of any pebble and without a move,

    F(n, S, e) = min over m, e' of F(m, S, e') + min( F(n-m, S-1, e-e') + F(m, S-1, 0),
                                                      F(n-m, S-1, e-e'-1) )
    G(n, S, e) = min over m, e' of F(m, S, e') + G(n-m, S-1, e-e')

The second term of F erases the pebble on m instead of removing it by moves.  The evidence that this
is optimal is exhaustive search of small chains (every n <= 12, with all S and e).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import cast

import numpy as np
from numpy.typing import NDArray

from rvm.pebble.actions import Kind, advance, at
from rvm.pebble.chains.family import CHECKED, Family, too_large, whole
from rvm.pebble.chains.knill import INFEASIBLE, line
from rvm.pebble.chains.reversible import ReversibleRules
from rvm.pebble.grammar import Item, Name, Schedule

WORK = 2_000_000
"""The most values (n times S times e) that are tabulated."""


class LimitedTables:
    """Tables for chains up to n steps and some erasures; they grow with the pebbles."""

    def __init__(self, n: int, erasures: int) -> None:
        self.n, self.erasures = n, erasures
        self.line = line(n)
        self._rows = ReversibleRules(self.line)
        shape = (erasures + 1, n + 1)
        none = np.full(shape, inf)
        self.cost: dict[str, list[NDArray[np.float64]]] = {"F": [none], "G": [none]}
        blank = np.zeros((3, *shape), dtype=np.int32)
        self.choice: dict[str, list[NDArray[np.int32]]] = {"F": [blank], "G": [blank]}

    def upto(self, pebbles: int) -> None:
        """Make sure that the tables for all S <= pebbles are there."""
        while len(self.cost["F"]) <= pebbles:
            self._add(len(self.cost["F"]))

    def _add(self, s: int) -> None:
        count, n = self.erasures + 1, self.n
        exact = [self.line.persist(m, s - 1) for m in range(1, n + 1)]
        undo = np.array([inf, *(inf if v >= INFEASIBLE else float(v) for v in exact)])
        rows = {kind: np.full((count, n + 1), inf) for kind in "FG"}
        picks = {kind: np.zeros((3, count, n + 1), dtype=np.int32) for kind in "FG"}
        own = rows["F"]
        for kind in "FG":
            rows[kind][:, 1] = 1
        for k in range(2, n + 1):
            for kind in "FG":
                below = self.cost[kind][s - 1]
                for e in range(count):
                    # Row e' of both sums: e' erasures left of m, the rest right of it.
                    right = below[e::-1, k - 1 : 0 : -1]
                    sums = own[: e + 1, 1:k] + right
                    if kind == "F":
                        sums = sums + undo[1:k]
                    best = int(sums.argmin())
                    value, used = sums.flat[best], 0
                    if kind == "F" and e:
                        erasing = own[:e, 1:k] + below[e - 1 :: -1, k - 1 : 0 : -1]
                        other = int(erasing.argmin())
                        if erasing.flat[other] < value:
                            value, used, best = erasing.flat[other], 1, other
                    rows[kind][e, k] = value
                    left, m = divmod(best, k - 1)
                    picks[kind][:, e, k] = m + 1, left, used
        for kind in "FG":
            self.cost[kind].append(rows[kind])
            self.choice[kind].append(picks[kind])

    def moves(self, n: int, pebbles: int, goal: str) -> float:
        """The fewest moves, or inf."""
        self.upto(pebbles)
        return float(self.cost["F" if goal == "persist" else "G"][pebbles][self.erasures, n])

    def schedule(self, pebbles: int, goal: str) -> Schedule:
        """A schedule with the fewest moves."""
        self.upto(pebbles)
        kind = "F" if goal == "persist" else "G"
        return Schedule(("limited", kind, self.n, pebbles, self.erasures), self.expand)

    def expand(self, name: Name) -> Sequence[Item]:
        """The items of a name: a table, n, S and e."""
        parts = cast(tuple[str, ...], name)
        if parts[0] != "limited":
            return self._rows.expand(name)
        kind, n, s, e = cast(tuple[str, int, int, int], parts[1:])
        if n == 1:
            return [Item(advance(0, 1))]
        m, left, used = (int(v) for v in self.choice[kind][s][:, e, n])
        out = [
            Item(("limited", "F", m, s, left)),
            Item(("limited", kind, n - m, s - 1, e - left - used), m),
        ]
        if kind == "F":
            clear = Item(self._rows.name("F", m, s - 1, 1), back=True)
            out.append(Item(at(Kind.FREE, m)) if used else clear)
        return out


@lru_cache(maxsize=8)
def limited(n: int, erasures: int) -> LimitedTables:
    """The tables, kept for the next plan."""
    return LimitedTables(n, erasures)


@dataclass
class Limited(Family):
    """A number of erasures, and no more."""

    n: int
    goal: str
    allowed: int
    name = "limited"

    def __post_init__(self) -> None:
        if self.n * self.n.bit_length() * (self.allowed + 1) * 4 > WORK:
            raise too_large(
                f"n = {self.n} and {self.allowed} erasures",
                "give erasures a price instead: price=...",
            )
        self.erasures = self.allowed

    def _tables(self) -> LimitedTables:
        return limited(self.n, min(self.allowed, self.n))

    def total(self, budget: float) -> float:
        return self._tables().moves(self.n, whole(budget, self.n), self.goal)

    def schedule(self, budget: float) -> Schedule:
        return self._tables().schedule(whole(budget, self.n), self.goal)

    def proof(self, budget: float) -> str:
        return f"optimal by the recursion with an erasure budget, {CHECKED}"
