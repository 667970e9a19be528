"""Adjoints of a chain that may forget, with two levels of memory: pebbles and a disk.

A state is written to disk at the price w and read at the price r, both in steps.  With S states in
memory, the one that moves on included and the input not counted, and room for D on disk,

    C(n, S, D)   sweeps n steps back from a state in memory that stays,
    W(n, S, D)   does so from a state on disk that is in memory, too, and ends with neither;

    R(n, S, D) = min( C(n, S-1, D),  w + W(n, S, D-1) )
    C(n, S, D) = min over m of m + R(n-m, S, D) + C(m, S, D)
    W(n, S, D) = min( C(n, S-1, D+1),  min over m of m + R(n-m, S, D) + r + W(m, S, D) )

and C(1, ., .) = W(1, ., .) = 0.  R continues on the right of m, and chooses where m is held.  With
unlimited D there is one row of D.  This is the problem of Disk-Revolve (Aupy, Herrmann, Hovland,
Robert 2016) and of H-Revolve (Herrmann and Pallez 2020), with the input in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import inf
from typing import cast

import numpy as np
from numpy.typing import NDArray

from rvm.pebble.actions import Kind, advance, at, overwrite, reverse
from rvm.pebble.grammar import Item, Name, Schedule

WORK = 400_000_000
"""The most sums (n squared, times S, times D) that are made."""

Row = NDArray[np.float64]
Pick = NDArray[np.int32]


class Disk:
    """Tables for chains of up to n steps; D may be inf.  They grow with the pebbles."""

    def __init__(self, n: int, disk: float, write: float, read: float) -> None:
        self.n, self.write, self.read = n, write, read
        self.unlimited = disk == inf
        self.rooms = 1 if self.unlimited else int(disk) + 1
        """How many rows of D there are."""
        alone = np.full(n + 1, inf)
        alone[1] = 0
        none = np.full(n + 1, inf)
        self.stay: list[list[Row]] = [[alone] * self.rooms]
        self.leave: list[list[Row]] = [[none] * self.rooms]
        blank = np.zeros(n + 1, dtype=np.int32)
        self.stay_split: list[list[Pick]] = [[blank] * self.rooms]
        self.leave_split: list[list[Pick]] = [[blank] * self.rooms]

    def less(self, room: int) -> int:
        """The row of D - 1, or -1."""
        return 0 if self.unlimited else room - 1

    def upto(self, pebbles: int) -> None:
        """Make sure that the tables for all S <= pebbles are there."""
        while len(self.stay) <= pebbles:
            s = len(self.stay)
            for table in (self.stay, self.leave, self.stay_split, self.leave_split):
                table.append([])
            for room in range(self.rooms):
                self._add(s, room)

    def _add(self, s: int, room: int) -> None:
        n = self.n
        stay, leave = np.full(n + 1, inf), np.full(n + 1, inf)
        stay_split, leave_split = (np.zeros(n + 1, dtype=np.int32) for _ in range(2))
        in_memory = self.stay[s - 1][room]
        less = self.less(room)
        saved = leave if self.unlimited else (self.leave[s][less] if less >= 0 else None)
        more = room if self.unlimited else room + 1
        held = self.stay[s - 1][more] if more < self.rooms else None
        steps = np.arange(n + 1, dtype=np.float64)
        right = np.full(n + 1, inf)
        via_stay, via_leave = np.full(n + 1, inf), np.full(n + 1, inf)
        for k in range(1, n + 1):
            if k == 1:
                stay[1] = leave[1] = 0
            else:
                sums = via_stay[1:k] + right[k - 1 : 0 : -1]
                m = int(sums.argmin())
                stay[k], stay_split[k] = sums[m], m + 1
                sums = via_leave[1:k] + right[k - 1 : 0 : -1]
                m = int(sums.argmin())
                leave[k], leave_split[k] = sums[m], m + 1
                if held is not None and held[k] <= leave[k]:
                    leave[k], leave_split[k] = held[k], 0
            right[k] = in_memory[k]
            if saved is not None and self.write + saved[k] < right[k]:
                right[k] = self.write + saved[k]
            via_stay[k] = steps[k] + stay[k]
            via_leave[k] = steps[k] + self.read + leave[k]
        self.stay[s].append(stay)
        self.leave[s].append(leave)
        self.stay_split[s].append(stay_split)
        self.leave_split[s].append(leave_split)

    def saves(self, n: int, s: int, room: int) -> bool:
        """Whether the base of the next n steps goes to disk rather than into memory."""
        less = self.less(room)
        return less >= 0 and bool(self.write + self.leave[s][less][n] < self.stay[s - 1][room][n])

    def cost(self, pebbles: int) -> float:
        """Steps, writes and reads of n steps, or inf."""
        self.upto(pebbles)
        return float(self.stay[pebbles][-1][self.n])

    def schedule(self, pebbles: int) -> Schedule:
        """A schedule of that cost."""
        self.upto(pebbles)
        return Schedule(("C", self.n, pebbles, self.rooms - 1), self.expand)

    def expand(self, name: Name) -> Sequence[Item]:
        """The items of a name: C or W, n, S and the row of D."""
        kind, n, s, room = cast(tuple[str, int, int, int], name)
        if kind == "C":
            if n == 1:
                return [Item(reverse(1))]
            m = int(self.stay_split[s][room][n])
            return [Item(advance(0, m)), *self._right(n - m, s, room, m), Item(("C", m, s, room))]
        if n == 1:
            return [Item(at(Kind.DROP, 0)), Item(reverse(1)), Item(at(Kind.FREE, 0))]
        m = int(self.leave_split[s][room][n])
        if m == 0:
            more = room if self.unlimited else room + 1
            return [
                Item(at(Kind.DROP, 0)),
                Item(("C", n, s - 1, more)),
                Item(at(Kind.FREE, 0)),
            ]
        return [
            Item(overwrite(0, m)),
            *self._right(n - m, s, room, m),
            Item(at(Kind.LOAD, 0)),
            Item(("W", m, s, room)),
        ]

    def _right(self, n: int, s: int, room: int, m: int) -> list[Item]:
        if self.saves(n, s, room):
            return [Item(at(Kind.SAVE, m)), Item(("W", n, s, self.less(room)), m)]
        return [Item(("C", n, s - 1, room), m), Item(at(Kind.FREE, m))]


@lru_cache(maxsize=8)
def disk_tables(n: int, disk: float, write: float, read: float) -> Disk:
    """The tables, kept for the next plan."""
    return Disk(n, disk, write, read)
