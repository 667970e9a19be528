"""The reversible game on a chain: parts that are cut in two, and the optimum (see `knill`).

Names begin with a kind, followed by the parameters of the part:

    F   put a pebble on the end, and no other
    G   reach the end, leaving pebbles where they are
    P   take the pebble of F away, with adjoints on the way
    Q   undo G, with adjoints on the way

For the optimum the parameters are n S last: n pieces of `unit` steps, the last one of `last`, and S
pebbles.  A piece is one step into fresh memory, followed by steps that can be done and undone in
place: for a plain chain `unit` is 1.  The last piece is entered and left only once, so its length
is free.  `up n last` and `down n last` are F's and G's pieces one after the other.

The adjoint of step r is computed as soon as s_(r-1) is available on the way back.  In a visit nodes
get their first pebbles in increasing order, so on the way back they lose their last ones in
decreasing order: each adjoint finds its state, and the gradient needs no moves besides the visit
and its undoing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple, cast

from rvm.pebble.actions import Action, Kind, at, composite, reverse, unadvance
from rvm.pebble.chains.family import Family, whole
from rvm.pebble.chains.knill import INFEASIBLE, Line, fewest_to_persist, fewest_to_visit, line
from rvm.pebble.grammar import Item, Name, Schedule
from rvm.pebble.tally import Tally

REMEMBERED = 1 << 14
"""The number of names whose items are remembered: enough for those in use at a time."""
GOALS = ("persist", "visit", "erase", "gradient")


class Cut(NamedTuple):
    """A stretch cut in two: its left part, what is left of the right one, and where that begins."""

    left: tuple[Hashable, ...]
    right: tuple[Hashable, ...]
    shift: int
    clear: tuple[Hashable, ...]
    """The left part again, with the pebbles available when it is undone."""


def halves(kind: str, cut: Cut) -> Sequence[Item]:
    """The items of a name of some kind for a stretch that is cut."""
    left = Item(("P" if kind in "PQ" else "F", *cut.left))
    right = Item((kind, *cut.right), cut.shift)
    clear = ("F", *cut.clear)
    match kind:
        case "F":
            return left, right, Item(clear, back=True)
        case "G":
            return left, right
        case "P":
            return Item(clear), right, left
        case _:
            return right, left


def rooted(
    expand: Callable[[Name], Sequence[Item]],
    there: tuple[Hashable, ...],
    n: int,
    goal: str,
    **known: Any,
) -> Schedule:
    """The schedule for a goal of n steps from the names of a stretch; `known`: see `Schedule`."""
    visit = ("G", *there)
    match goal:
        case "persist":
            root = [Item(("F", *there))]
        case "visit":
            root = [Item(visit)]
        case "erase":
            root = [Item(visit), Item(at(Kind.COPY, n)), Item(visit, back=True)]
        case _:
            sweep = [Item(visit), Item(("Q", *there))] if n > 1 else []
            root = [*sweep, Item(reverse(1))]
    return Schedule("all", lambda name: root if name == "all" else expand(name), **known)


class ReversibleRules:
    """The optimal rules for one chain: `expand` gives the items of a name."""

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
        whole, end = (1 if length == 1 else 2 for length in (self.unit, last))
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
        """The number of pebbles that a visit leaves."""
        held = 0
        while n > pebbles:
            n, pebbles, held = n - self.table.visit_split(n, pebbles), pebbles - 1, held + 1
        return held + n

    def _expand(self, name: Name) -> Sequence[Item]:
        kind, n, s, last = cast(tuple[str, int, int, int], name)
        if kind in ("up", "down"):
            return self._row(kind, n, last)
        if n <= s:
            row = Item(("up" if kind in "FG" else "down", n, 0, last))
            others = [Item(("up", n - 1, 0, self.unit), back=kind == "F")] if n > 1 else []
            return {"F": [row, *others], "P": [*others, row]}.get(kind, [row])
        m = (self.table.persist_split if kind in "FP" else self.table.visit_split)(n, s)
        left, clear = ((m, min(m, k), self.unit) for k in (s, s - 1))
        right = n - m, min(n - m, s - 1), last
        return halves(kind, Cut(left, right, m * self.unit, clear))

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
    """The number of pieces of `unit` steps in n steps, and the length of the last one."""
    count = -(-n // unit)
    return count, n - (count - 1) * unit


def reversible(n: int, pebbles: int, goal: str, unit: int = 1) -> Schedule:
    """The optimal schedule of n steps; the budget must be feasible."""
    steps = n - (goal == "gradient")
    count, last = pieces(steps, unit)
    rules = ReversibleRules(line(count), unit)
    there = count, min(count, pebbles), last
    kinds = {"persist": "F", "visit": "G", "erase": "GG", "gradient": "GQ"}[goal]
    actions = sum(rules.size((kind, *there)) for kind in kinds if steps) + (len(kinds) > 1)
    held = 1 if goal == "persist" else rules.left(count, pebbles) if goal == "visit" else 0
    total = Tally(
        actions,
        moves(n, pebbles, goal, unit),
        reversals=n if goal == "gradient" else 0,
        copies=int(goal == "erase"),
        held=held,
        # All pebbles are in use at some time: each up to one for each piece lowers the cost.
        peak=there[1],
    )
    return rooted(
        rules.expand,
        there,
        n,
        goal,
        sizes=lambda name: actions if name == "all" else rules.size(name),
        total=total,
        form=("knill", pebbles) if unit == 1 else None,
    )


def moves(n: int, pebbles: int, goal: str, unit: int = 1) -> int:
    """The cost of `reversible`, from the tables alone; `knill.INFEASIBLE` or more: impossible."""
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


@dataclass
class Reversible(Family):
    """The optimum of the reversible game; the gradient is a visit and its undoing."""

    n: int
    goal: str
    unit: int = 1
    in_place: frozenset[int] = frozenset()

    @property
    def name(self) -> str:  # type: ignore[override]
        return "reversible" if self.goal == "gradient" else "knill"

    def fewest(self) -> int:
        count = -(-(self.n - (self.goal == "gradient")) // self.unit)
        return fewest_to_persist(count) if self.goal == "persist" else fewest_to_visit(count)

    def total(self, budget: float) -> float:
        found = moves(self.n, whole(budget, self.n), self.goal, self.unit)
        return inf if found >= INFEASIBLE else found

    def schedule(self, budget: float) -> Schedule:
        return reversible(self.n, whole(budget, self.n), self.goal, self.unit)

    def proof(self, budget: float) -> str:
        bound = ""
        if self.goal == "gradient":
            bound = "; 2 G(n-1, S) is a lower bound for any adjoint sweep without erasing"
        return f"optimal by Knill's recursion{bound}"

    def notes(self, budget: float) -> tuple[str, ...]:
        if self.unit == 1:
            return ()
        return (f"{self.unit - 1} of {self.unit} steps are done in place: pieces of {self.unit}",)
