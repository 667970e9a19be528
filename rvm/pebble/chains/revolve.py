"""Treeverse and Revolve: adjoints of a chain that may erase states, in closed form.

A step overwrites its state, and erasing a state is free.  With c states in memory, including the
moving one but not the input, the fewest steps for the adjoint of n steps are (Griewank 1992;
Griewank and Walther 2000)

    t(n, c) = min over m of m + t(n-m, c-1) + t(m, c) = r n - beta(c+1, r-1)
    beta(c, r) = C(c + r, c),   beta(c, r-1) < n <= beta(c, r)

The papers count the input as one of c, and do not count the moving state: the number is the same.
Each of the n steps is done once more with its adjoint; these are not included in t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, inf
from typing import cast

from rvm.pebble.actions import Kind, advance, at, overwrite, reverse
from rvm.pebble.chains.family import Family, whole
from rvm.pebble.chains.knill import INFEASIBLE
from rvm.pebble.grammar import Item, Name, Schedule


def beta(slots: int, repetitions: int) -> int:
    """The longest chain that c slots differentiate doing no step more than r times."""
    return comb(slots + repetitions, slots) if repetitions >= 0 else 0


def repetitions(n: int, slots: int) -> int:
    """The least r with n <= beta(c, r); c >= 1."""
    low, high = 0, 1
    while beta(slots, high) < n:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if beta(slots, middle) >= n:
            high = middle
        else:
            low = middle + 1
    return low


def forwards(n: int, slots: int) -> int:
    """t(n, c): the fewest steps, besides those done with their adjoints."""
    if n <= 1:
        return 0
    if slots < 1:
        return INFEASIBLE
    r = repetitions(n, slots)
    return r * n - beta(slots + 1, r - 1)


def split(n: int, slots: int) -> int:
    """A best m: as many steps as c slots do with r - 1 repetitions, if the rest allows it.

    Then nearly all pieces are full, of beta(c', r') steps, and few have to be told apart.
    """
    r = repetitions(n, slots)
    return max(1, min(beta(slots, r - 1), n - beta(slots - 1, r - 1)))


class RevolveRules:
    """The rules: `R n c` sweeps n steps back from the state on its base, which stays."""

    def expand(self, name: Name) -> Sequence[Item]:
        """The items of a name."""
        kind, n, c = cast(tuple[str, int, int], name)
        if kind in ("up", "wipe"):
            return row(kind, n)
        if n <= c + 1:
            rows = [Item(("up", n - 1, 0)), Item(("wipe", n - 1, 0))] if n > 1 else []
            return [*rows, Item(reverse(1))]
        m = split(n, c)
        return staying(m, self.name(n - m, c - 1), self.name(m, c))

    def name(self, n: int, slots: int) -> Name:
        """A name; with a slot for each state their number does not matter."""
        return "R", n, min(n, slots)


def staying(m: int, after: Name, before: Name) -> list[Item]:
    """A state stays while what comes after s_m is swept, and then what comes before."""
    return [Item(advance(0, m)), Item(after, m), Item(at(Kind.FREE, m)), Item(before)]


def read_again(m: int, after: Name, before: Name) -> list[Item]:
    """A state that is on disk makes room for s_m meanwhile, and is read again."""
    gone = [Item(at(Kind.FREE, m)), Item(at(Kind.LOAD, 0))]
    return [Item(overwrite(0, m)), Item(after, m), *gone, Item(before)]


def row(kind: str, n: int) -> Sequence[Item]:
    """`up`: n states one after the other; `wipe`: back, with the adjoint of the step after each."""
    if n == 1:
        if kind == "up":
            return [Item(advance(0, 1))]
        return [Item(reverse(2)), Item(at(Kind.FREE, 1))]
    half = 1 << ((n - 1).bit_length() - 1)
    first, second = Item((kind, half, 0)), Item((kind, n - half, 0), half)
    return [first, second] if kind == "up" else [second, first]


def revolve(n: int, slots: int) -> Schedule:
    """The adjoint sweep over n steps with c states in memory."""
    rules = RevolveRules()
    return Schedule(rules.name(n, slots), rules.expand)


@dataclass
class Revolve(Family):
    """Revolve: erasing costs nothing."""

    n: int
    price: float = 0
    goal: str = "gradient"
    name = "revolve"
    erasures: float = inf

    def total(self, budget: float) -> float:
        steps = forwards(self.n, whole(budget, self.n))
        return inf if steps >= INFEASIBLE else steps * (1 + self.price)

    def schedule(self, budget: float) -> Schedule:
        return revolve(self.n, whole(budget, self.n))

    def proof(self, budget: float) -> str:
        return "optimal where erasing is free, by the closed form of Griewank and Walther"
