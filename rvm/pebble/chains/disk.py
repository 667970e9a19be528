"""Adjoints of a chain that may erase states, with two levels of memory: pebbles and a disk.

A state is written to disk at the price w and read at the price r, both in steps.  With k places in
memory, and room for d states on disk,

    A(n, k, d)   sweeps n steps back from a state in memory, which takes one of the k places,
    B(n, k, d)   does so from a state in memory that is on disk, too, besides the d;

both end with that state in memory, and no others.  With the optimal m for each term,

    A0(n, k, d) = m + A(n-m, k-1, d) + A(m, k, d)           it stays while the rest is swept
    A(n, k, d)  = min( A0(n, k, d),  w + B0(n, k, d-1) )    ... or is written to disk first
    B0(n, k, d) = m + A(n-m, k, d) + r + B(m, k, d)         it is overwritten, and read again
    B(n, k, d)  = min( B0(n, k, d),  A0(n, k, d+1) )        ... or leaves the disk first

and all are 0 for n = 1, with k > 0.  With unlimited d, one row suffices for all d.  S pebbles are k
= S besides the input that stays in memory; if the input is only on disk, its place is free, so k =
S + 1.  This is the problem of Disk-Revolve (Aupy, Herrmann, Hovland, Robert 2016) and of H-Revolve
(Herrmann and Pallez 2020).  The evidence that the recursions are optimal is exhaustive search of
small chains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import cast

import numpy as np
from numpy.typing import NDArray

from rvm.pebble.actions import Kind, at, reverse
from rvm.pebble.chains.family import CHECKED, Family, too_large, whole
from rvm.pebble.chains.revolve import read_again, staying
from rvm.pebble.grammar import Item, Name, Schedule

WORK = 400_000_000
"""The most sums (n squared, times k, times d) that are made."""

Rows = NDArray[np.float64]


class Level:
    """The tables of one number of places: rows by d, columns by n."""

    def __init__(self, rooms: int, n: int, feasible: bool) -> None:
        self.memory: Rows = np.full((rooms, n + 1), inf)
        """A."""
        self.both: Rows = np.full((rooms, n + 1), inf)
        """B."""
        if feasible:
            self.memory[:, 1] = self.both[:, 1] = 0


class DiskTables:
    """Tables for chains of up to n steps; d may be inf.  They grow with the places."""

    def __init__(
        self, n: int, disk: float, write: float, read: float, keep_input: bool = False
    ) -> None:
        self.n, self.write, self.read = n, write, read
        self.keep_input = keep_input
        self.unlimited = disk == inf
        self.rooms = 1 if self.unlimited else int(disk) + 1
        """The number of rows of d."""
        self.steps = np.arange(n + 1, dtype=np.float64)
        self.levels = [Level(self.rooms, n, False)]
        self._kept: dict[int, Rows] = {}

    def upto(self, places: int) -> None:
        """Make sure that the tables for all k <= places are there."""
        while len(self.levels) <= places:
            self._add()

    def _add(self) -> None:
        own, fewer = Level(self.rooms, self.n, True), self.levels[-1].memory
        self.levels.append(own)
        # The cost of each m with its remainder, filled in as it becomes known.
        stays, reads = np.full((2, self.rooms, self.n + 1), inf)
        stays[:, 1], reads[:, 1] = 1, 1 + self.read
        for n in range(2, self.n + 1):
            memory = (stays[:, 1:n] + fewer[:, n - 1 : 0 : -1]).min(axis=1)
            both = (reads[:, 1:n] + own.memory[:, n - 1 : 0 : -1]).min(axis=1)
            # To disk, there is one place less there, and one more off the disk.
            if self.unlimited:
                writes, leaves = both, memory
            else:
                writes, leaves = np.append(inf, both[:-1]), np.append(memory[1:], inf)
            own.memory[:, n] = np.minimum(memory, self.write + writes)
            own.both[:, n] = np.minimum(both, leaves)
            stays[:, n] = n + own.memory[:, n]
            reads[:, n] = n + self.read + own.both[:, n]

    def _from_input(self, pebbles: int) -> Rows:
        """Costs by n from an input that stays in memory, and takes no place."""
        if pebbles not in self._kept:
            self.upto(pebbles)
            cost = np.full(self.n + 1, inf)
            cost[1] = 0
            for n in range(2, self.n + 1):
                cost[n] = self._split(n, cost, self.levels[pebbles].memory[-1])[0]
            self._kept[pebbles] = cost
        return self._kept[pebbles]

    def _split(self, n: int, left: Rows, right: Rows) -> tuple[float, int]:
        """The least m + left(m) + right(n - m), and that m."""
        sums = self.steps[1:n] + left[1:n] + right[n - 1 : 0 : -1]
        m = int(sums.argmin())
        return float(sums[m]), m + 1

    def cost(self, pebbles: int) -> float:
        """Steps, writes and reads of n steps, or inf."""
        if self.keep_input:
            return float(self._from_input(pebbles)[self.n])
        self.upto(pebbles + 1)
        return float(self.levels[pebbles + 1].memory[-1, self.n])

    def schedule(self, pebbles: int) -> Schedule:
        """A schedule of that cost."""
        self.cost(pebbles)
        kind, places = ("input", pebbles) if self.keep_input else ("A", pebbles + 1)
        return Schedule((kind, self.n, places, self.rooms - 1), self.expand)

    def expand(self, name: Name) -> Sequence[Item]:
        """The items of a name: A, B, or the input that stays, with n, k and the row of d."""
        kind, n, k, d = cast(tuple[str, int, int, int], name)
        drop = [Item(at(Kind.DROP, 0))] if kind == "B" else []
        if n == 1:
            return [*drop, Item(reverse(1))]
        if kind == "input":
            m = self._split(n, self._from_input(k), self.levels[k].memory[-1])[1]
            return staying(m, ("A", n - m, k, d), (kind, m, k, d))
        more, less = (d, d) if self.unlimited else (d + 1, d - 1)
        if kind == "B":
            if self._in_memory(n, k, more)[0] > self.levels[k].both[d, n]:
                return self._on_disk(n, k, d)
            d = more
        cost, m = self._in_memory(n, k, d)
        if kind == "A" and cost > self.levels[k].memory[d, n]:
            return [Item(at(Kind.SAVE, 0)), *self._on_disk(n, k, less)]
        return [*drop, *staying(m, ("A", n - m, k - 1, d), ("A", m, k, d))]

    def _in_memory(self, n: int, k: int, d: int) -> tuple[float, int]:
        """A0, and its m."""
        if d >= self.rooms:
            return inf, 0
        return self._split(n, self.levels[k].memory[d], self.levels[k - 1].memory[d])

    def _on_disk(self, n: int, k: int, d: int) -> list[Item]:
        """The items of B0."""
        _, m = self._split(n, self.levels[k].both[d], self.levels[k].memory[d])
        return read_again(m, ("A", n - m, k, d), ("B", m, k, d))


@lru_cache(maxsize=8)
def disk_tables(n: int, disk: float, write: float, read: float, keep_input: bool) -> DiskTables:
    """The tables, kept for the next plan."""
    return DiskTables(n, disk, write, read, keep_input)


@dataclass
class Staged(Family):
    """Schedules with a disk: places for states there, and the prices of a write and a read."""

    n: int
    places: float
    write: float
    read: float
    keep_input: bool = False
    goal: str = "gradient"
    erasures: float = inf

    def __post_init__(self) -> None:
        self.disk = self.places

    def floor(self) -> float:
        return self.n - 1

    def notes(self, budget: float) -> tuple[str, ...]:
        return (f"a write to disk costs {self.write:g} moves, a read {self.read:g}",)


class Disk(Staged):
    """The optimum with a disk, by tables."""

    name = "disk"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.places >= self.n:
            self.places = inf
        rows = 1 if self.places == inf else self.places + 1
        if self.n * self.n * rows > WORK:
            raise too_large(
                f"n = {self.n} and {self.places} states on disk",
                'say strategy="multistage", which has no tables',
            )

    def _tables(self) -> DiskTables:
        return disk_tables(self.n, self.places, self.write, self.read, self.keep_input)

    def total(self, budget: float) -> float:
        return self._tables().cost(whole(budget, self.n))

    def schedule(self, budget: float) -> Schedule:
        return self._tables().schedule(whole(budget, self.n))

    def proof(self, budget: float) -> str:
        return f"optimal by the recursions for two levels of memory, {CHECKED}"

    def notes(self, budget: float) -> tuple[str, ...]:
        stays = "stays in memory" if self.keep_input else "makes room in memory while it is on disk"
        return (*super().notes(budget), f"the input {stays}")
