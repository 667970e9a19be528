"""Adjoints of long chains with a disk: Revolve's schedule, with states in memory and on disk.

Revolve's states in memory form a stack.  With c places in total, including that of the moving
state, a place is the depth in this stack: a piece with c - k places left uses place k.  How often
each place is written and read follows from the schedule, and the places used least go to disk
(Stumm and Walther 2009).  The number of steps is the same as with all c places in memory; the total
of steps, writes and reads need not be minimal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import inf
from typing import cast

from rvm.pebble.actions import Kind, advance, at, overwrite, reverse
from rvm.pebble.chains.disk import Staged
from rvm.pebble.chains.family import whole
from rvm.pebble.chains.revolve import read_again, split, staying
from rvm.pebble.grammar import Item, Name, Schedule


class MultistageRules:
    """The rules for n steps, S states in memory (S >= 1) and D on disk.

    Names are C n c and W n c: from a state that stays in memory, and from one on disk that is in
    memory, too; c places are left.
    """

    def __init__(self, n: int, pebbles: int, disk: int, write: float, read: float) -> None:
        self.n = n
        self.places = min(pebbles + disk, max(n - 1, 1))
        uses = self.uses()
        spare = max(0, self.places - pebbles)
        cost = {k: write * stored + read * loaded for k, (stored, loaded) in uses.items()}
        # The last place is that of the state that moves on: it is in memory anyway.
        by_cost = sorted(range(self.places - 1), key=lambda k: (cost.get(k, 0), -k))
        self.on_disk = frozenset(by_cost[:spare])

    def uses(self) -> dict[int, tuple[int, int]]:
        """For each place how often a state is put there, and how often it is gone back to."""
        counted: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        counted[self.places][self.n] = 1
        out: dict[int, tuple[int, int]] = {}
        for c in range(self.places, 0, -1):
            row, stored, loaded = counted[c], 0, 0
            todo = sorted(row, reverse=True)
            while todo:
                n = todo.pop(0)
                times = row[n]
                if n == 1:
                    continue
                m = split(n, c)
                loaded += times
                # The state before the last step of a piece goes on to its adjoint at once.
                stored += times if n - m > 1 else 0
                if m not in row:
                    todo.append(m)
                    todo.sort(reverse=True)
                row[m] += times
                counted[c - 1][n - m] += times
            place = self.places - c
            out[place] = stored, out.get(place, (0, 0))[1]
            if place:
                out[place - 1] = out[place - 1][0], loaded
        return out

    def schedule(self) -> Schedule:
        """The schedule."""
        return Schedule(("C", self.n, self.places), self.expand)

    def expand(self, name: Name) -> Sequence[Item]:
        """The items of a name."""
        kind, n, c = cast(tuple[str, int, int], name)
        if n == 1:
            last = [Item(reverse(1))]
            return last if kind == "C" else [Item(at(Kind.DROP, 0)), *last, Item(at(Kind.FREE, 0))]
        m = split(n, c)
        before = kind, m, c
        if n - m > 1 and self.places - c in self.on_disk:
            goes = overwrite(0, m) if kind == "W" else advance(0, m)
            saved = [Item(at(Kind.SAVE, m)), Item(("W", n - m, c - 1), m)]
            again = [Item(at(Kind.LOAD, 0))] if kind == "W" else []
            return [Item(goes), *saved, *again, Item(before)]
        return (read_again if kind == "W" else staying)(m, ("C", n - m, c - 1), before)


class Multistage(Staged):
    """Revolve's steps, with the places used least on disk."""

    name = "multistage"

    def total(self, budget: float) -> float:
        if budget < min(self.n - 1, 1):
            return inf
        done = self.schedule(budget).tally()
        return done.moves + self.write * done.writes + self.read * done.reads

    def schedule(self, budget: float) -> Schedule:
        on_disk = int(min(self.places, self.n))
        pebbles = whole(budget, self.n)
        return MultistageRules(self.n, pebbles, on_disk, self.write, self.read).schedule()

    def proof(self, budget: float) -> str:
        return (
            "the fewest steps that all places together allow, by the closed form of Revolve; "
            "steps, writes and reads together: best known"
        )
