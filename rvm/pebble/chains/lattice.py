"""Minimal costs if a state may be erased at a price, for lengths on a lattice.

With S pebbles, the input not counted, and the price xi of an erased state in moves:

    H(n, S) = min( min_m H(m, S) + H(n-m, S-1) + min(xi, F(m, S-1)),  H(n-1, S) + 1 + xi )
    V(n, S) = min( min_m H(m, S) + V(n-m, S-1),                      H(n-1, S) + 1 + xi )
    J(n, S) = min_m H(m, S) + J(n-m, S-1) + K(m, S),                 J(1, S) = 0
    K(n, S) = min( xi + J(n, S),  min_p H(p, S-1) + K(n-p, S-1) + K(p, S) ),   K(1, S) = min(1, xi)

H persists, V visits, J sweeps n adjoints from a base that is kept, and K sweeps them if the only
other pebble is at the end of its steps; F is that of the reversible game.  The second terms of H
and V are a step in place, if that is allowed. xi = inf gives F, G and 2 G(n-1, S); xi = 0 with
steps in place gives Revolve.  The evidence that these are optimal is exhaustive search of small
chains.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from rvm.pebble.chains.knill import INFEASIBLE, Line

Row = NDArray[np.float64]
TABLES = "HVJK"


def infeasible(n: int) -> Row:
    """A row of n costs that cannot be paid."""
    return np.full(n, inf)


class Lattice:
    """Costs of the lengths base + k unit, k = 0 .. count, for S = 0, 1, 2, ...

    Left parts have lengths unit, 2 unit, ...: they are those of `left`, which is this lattice
    itself if base = unit.  Lengths that `finer` has, too, are taken from there; without it base is
    a single step.  `cost[table][S][k]` is a cost, `choice[table][S][k]` the m in units, 0 for the
    other term.
    """

    def __init__(
        self,
        table: Line,
        price: float,
        in_place: bool,
        base: int,
        unit: int,
        count: int,
        finer: Lattice | None = None,
        left: Lattice | None = None,
    ) -> None:
        self.table, self.price, self.in_place = table, price, in_place
        self.base, self.unit, self.count = base, unit, count
        self.finer, self.left = finer, left or self
        self.known = slice(0, 0)
        """The indices of `finer` that are the first ones here."""
        if finer is not None:
            known = min((finer.length(finer.count) - base) // unit, count) + 1
            first = (base - finer.base) // finer.unit
            ratio = unit // finer.unit
            self.known = slice(first, first + (known - 1) * ratio + 1, ratio)
        none = infeasible(count + 1)
        alone = none.copy()
        if base == 1:
            alone[0] = 0  # one step from its base needs no pebble
        self.cost: dict[str, list[Row]] = {"H": [none], "V": [none], "J": [alone], "K": [none]}
        self.choice: dict[str, list[NDArray[np.int32]]] = {
            t: [np.zeros(count + 1, dtype=np.int32)] for t in TABLES
        }

    def length(self, k: int) -> int:
        """The number of steps at index k."""
        return self.base + k * self.unit

    def upto(self, pebbles: int) -> None:
        """Make sure that the costs for all S <= pebbles are there."""
        if self.finer is not None:
            self.finer.upto(pebbles)
        if self.left is not self:
            self.left.upto(pebbles)
        while len(self.cost["H"]) <= pebbles:
            self._add(len(self.cost["H"]))

    def clearing(self, s: int) -> Row:
        """min(xi, F(m, s)) of left parts of 1, 2, ... units: what it takes to be rid of node m."""
        count = self.left.count + 1
        values = [self.table.persist((m + 1) * self.unit, s) for m in range(count)]
        exact = np.array([inf if v >= INFEASIBLE else float(v) for v in values])
        least: Row = np.minimum(self.price, exact)
        return least

    def _add(self, s: int) -> None:
        n = self.count + 1
        h, v, j, k = (infeasible(n) for _ in TABLES)
        choices = [np.zeros(n, dtype=np.int32) for _ in TABLES]
        first = 1
        if self.finer is None:
            h[0], v[0], j[0], k[0] = 1, 1, 0, min(1, self.price)
        else:
            for table, row in zip(TABLES, (h, v, j, k), strict=True):
                found = self.finer.cost[table][s][self.known]
                first = len(found)
                row[:first] = found
        own = self.left is self
        before = {t: self.cost[t][s - 1][::-1] for t in TABLES}
        left_h = h if own else self.left.cost["H"][s]
        left_k = k if own else self.left.cost["K"][s]
        less_h = (self.cost if own else self.left.cost)["H"][s - 1]
        clear = self.clearing(s - 1)
        size = len(left_h)
        cleared, swept, held = left_h + clear[:size], left_h + left_k, less_h[:size] + left_k
        step = self.unit * (1 + self.price) if self.in_place else inf
        if own:
            cleared[:first] = h[:first] + clear[:first]
            swept[:first] = h[:first] + k[:first]
            held[:first] = less_h[:first] + k[:first]
        for i in range(first, n):
            if own:
                cleared[i - 1] = h[i - 1] + clear[i - 1]
                swept[i - 1] = h[i - 1] + k[i - 1]
                held[i - 1] = less_h[i - 1] + k[i - 1]
            tail = n - i
            terms = (h, cleared, h[i - 1] + step), (v, left_h, h[i - 1] + step), (j, swept, inf)
            for which, (row, parts, other) in enumerate(terms):
                sums = parts[:i] + before[TABLES[which]][tail:]
                best = int(sums.argmin())
                if other < sums[best]:
                    row[i] = other
                else:
                    row[i], choices[which][i] = sums[best], best + 1
            sums = held[:i] + before["K"][tail:]
            best = int(sums.argmin())
            if self.price + j[i] < sums[best]:
                k[i] = self.price + j[i]
            else:
                k[i], choices[3][i] = sums[best], best + 1
        for t, row, choice in zip(TABLES, (h, v, j, k), choices, strict=True):
            self.cost[t].append(row)
            self.choice[t].append(choice)
