"""Schedules of the reversible game on a chain: optimal ones (see `rvm.pebble.chains.knill`).

Names, on the chain from some node on, with n pieces of `unit` steps, the last one of `last`:

    F n S last   put a pebble on the end, and no other
    G n S last   reach the end, leaving pebbles where they are
    P n S last   take the pebble of F away, with adjoints on the way
    Q n S last   undo G, with adjoints on the way
    up n last, down n last      the same for F's and G's pieces one after the other

A piece is one step into fresh memory, followed by steps that can be done and undone in place: for
a plain chain `unit` is 1.  The last piece is entered and left only once, so its length is free.

The adjoint of step r is taken as soon as s_(r-1) is there on the way back.  In a visit nodes get
their first pebbles in increasing order, so that on the way back their last ones go in decreasing
order: each adjoint finds its state, and the gradient costs no move beyond visit and undoing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

from rvm.pebble.actions import Action, Kind, at, composite, reverse, unadvance
from rvm.pebble.chains.knill import Line, line
from rvm.pebble.grammar import Item, Name, Schedule
from rvm.pebble.tally import Tally

REMEMBERED = 1 << 14
"""How many names' items are remembered: enough for all of those in use at a time."""
GOALS = ("persist", "visit", "erase", "gradient")


class ReversibleRules:
    """The rules for one chain: `expand` gives the items of a name."""

    def __init__(self, table: Line, unit: int = 1) -> None:
        self.table = table
        self.unit = unit
        self.expand = lru_cache(REMEMBERED)(self._expand)

    def name(self, kind: str, n: int, pebbles: int, last: int) -> Name:
        """A name; when there is a pebble for each piece, their number does not matter."""
        return kind, n, min(n, pebbles), last

    def size(self, name: Name) -> int:
        """The number of actions of a name."""
        kind, n, s, last = cast(tuple[str, int, int, int], name)

        def piece(length: int) -> int:
            return 1 if length == 1 else 2

        whole, end = piece(self.unit), piece(last)
        match kind:
            case "up" | "down":
                played = n
            case "F" | "P":
                played = self.table.persist(n, s)
            case _:
                played = self.table.visit(n, s)
        actions = (played - 1) * whole + end
        if kind in ("P", "Q", "down"):
            # Each piece is left once with its adjoints: two actions for each of its steps.
            actions += (n - 1) * (2 * self.unit - whole) + 2 * last - end
        return actions

    def left(self, n: int, pebbles: int) -> int:
        """How many pebbles a visit leaves."""
        held = 0
        while n > pebbles:
            n, pebbles, held = n - self.table.visit_split(n, pebbles), pebbles - 1, held + 1
        return held + n

    def _expand(self, name: Name) -> Sequence[Item]:
        """The items of a name."""
        kind, n, s, last = cast(tuple[str, int, int, int], name)
        match kind:
            case "up" | "down":
                return self._row(kind, n, last)
            case "F" if n <= s:
                return [Item(("up", n, 0, last)), *self._up(n - 1, back=True)]
            case "G" if n <= s:
                return [Item(("up", n, 0, last))]
            case "P" if n <= s:
                return [*self._up(n - 1, back=False), Item(("down", n, 0, last))]
            case "Q" if n <= s:
                return [Item(("down", n, 0, last))]
        split = self.table.persist_split if kind in "FP" else self.table.visit_split
        m = split(n, s)
        shift = m * self.unit
        left = self.name("P" if kind in "PQ" else "F", m, s, self.unit)
        right = self.name(kind, n - m, s - 1, last)
        clear = self.name("F", m, s - 1, self.unit)
        match kind:
            case "F":
                return Item(left), Item(right, shift), Item(clear, back=True)
            case "G":
                return Item(left), Item(right, shift)
            case "P":
                return Item(clear), Item(right, shift), Item(left)
            case _:
                return Item(right, shift), Item(left)

    def _up(self, n: int, back: bool) -> list[Item]:
        return [Item(("up", n, 0, self.unit), back=back)] if n else []

    def _row(self, kind: str, n: int, last: int) -> list[Item]:
        if n > 1:
            half = 1 << ((n - 1).bit_length() - 1)
            first = Item((kind, half, 0, self.unit))
            second = Item((kind, n - half, 0, last), half * self.unit)
            return [first, second] if kind == "up" else [second, first]
        return [Item(a) for a in (composite(0, last) if kind == "up" else descent(0, last))]


def descent(start: int, stop: int) -> list[Action]:
    """Undo a piece, with the adjoints of steps stop+1 ... start+2, each when its state is there."""
    out: list[Action] = []
    for node in range(stop, start + 1, -1):
        out += [reverse(node + 1), Action(Kind.UNSHIFT, node - 1, node)]
    return [*out, reverse(start + 2), unadvance(start, start + 1)]


def pieces(n: int, unit: int) -> tuple[int, int]:
    """How many pieces of `unit` steps n steps are, and the length of the last of them."""
    count = -(-n // unit)
    return count, n - (count - 1) * unit


def reversible(n: int, pebbles: int, goal: str, unit: int = 1) -> Schedule:
    """The optimal schedule of n steps; the budget must be feasible."""
    steps = n - (goal == "gradient")
    count, last = pieces(steps, unit)
    rules = ReversibleRules(line(count), unit)
    there = rules.name("F" if goal == "persist" else "G", count, pebbles, last)
    root: tuple[Item, ...] = (Item(there),)
    if goal == "erase":
        root = Item(there), Item(at(Kind.COPY, n)), Item(there, back=True)
    elif goal == "gradient":
        back = rules.name("Q", count, pebbles, last)
        root = (Item(there), Item(back), Item(reverse(1))) if steps else (Item(reverse(1)),)
    kinds = {"erase": "GG", "gradient": "GQ" if steps else ""}
    names = [rules.name(kind, count, pebbles, last) for kind in kinds.get(goal, "")] or [there]
    actions = sum(rules.size(name) for name in names if steps) + (goal in kinds)
    # All pebbles are in use at some time: each up to one for each piece makes the cost lower.
    peak = min(count, pebbles)
    held = 1 if goal == "persist" else rules.left(count, pebbles) if goal == "visit" else 0
    total = Tally(
        actions,
        moves(n, pebbles, goal, unit),
        reversals=n if goal == "gradient" else 0,
        copies=int(goal == "erase"),
        held=held,
        peak=peak,
    )
    return Schedule(
        "all",
        lambda name: root if name == "all" else rules.expand(name),
        sizes=lambda name: actions if name == "all" else rules.size(name),
        total=total,
        form=("knill", pebbles) if unit == 1 else None,
    )


def moves(n: int, pebbles: int, goal: str, unit: int = 1) -> int:
    """What `reversible` costs, from the tables alone; `knill.INFEASIBLE` or more: it cannot be."""
    if goal == "gradient":
        n -= 1
    if n == 0:
        return 0
    count, last = pieces(n, unit)
    table = line(count)
    # The last piece is done once; undone, too, where everything is undone.
    correction = last - unit
    if goal == "persist":
        return table.persist(count, pebbles) * unit + correction
    return (table.visit(count, pebbles) * unit + correction) * (1 if goal == "visit" else 2)
