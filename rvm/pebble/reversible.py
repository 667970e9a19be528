"""Schedules of the reversible game on a chain: optimal ones (see `rvm.pebble.knill`).

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
from typing import cast

from rvm.pebble.actions import Action, Kind, at, composite, reverse, unadvance
from rvm.pebble.grammar import Item, Name, Schedule
from rvm.pebble.knill import Line, line

GOALS = ("persist", "visit", "erase", "gradient")


class Reversible:
    """The rules for one chain: `expand` gives the items of a name."""

    def __init__(self, table: Line, unit: int = 1) -> None:
        self.table = table
        self.unit = unit

    def name(self, kind: str, n: int, pebbles: int, last: int) -> Name:
        """A name; when there is a pebble for each piece, their number does not matter."""
        return kind, n, min(n, pebbles), last

    def expand(self, name: Name) -> Sequence[Item]:
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
    count, last = pieces(n, unit)
    rules = Reversible(line(count), unit)
    match goal:
        case "persist" | "visit":
            return Schedule(
                rules.name("F" if goal == "persist" else "G", count, pebbles, last), rules.expand
            )
        case "erase":
            there = rules.name("G", count, pebbles, last)
            root: list[Item] = [Item(there), Item(at(Kind.COPY, n)), Item(there, back=True)]
        case _:
            root = []
            if n > 1:
                count, last = pieces(n - 1, unit)
                root += [Item(rules.name(kind, count, pebbles, last)) for kind in "GQ"]
            root.append(Item(reverse(1)))
    return Schedule("all", lambda name: root if name == "all" else rules.expand(name))


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
