"""Bennett's schedules on a chain, k-ary, for any length.

A chain of n steps is cut into at most k pieces of ceil(n/k) steps.  The pieces are computed in
turn, each recursively, so that only its end is kept; then all but the last are undone in the
opposite order (Bennett 1989, Levine and Sherman 1990). k^j steps take (2k - 1)^j moves and j (k -
1) + 1 pebbles, the input not counted.  With k = n this is Bennett's first construction (1973).

A visit keeps the ends of the outermost pieces, so that the result, its copy and the undoing cost
twice the visit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from math import inf, isqrt
from typing import cast

from rvm.pebble.chains.family import Family
from rvm.pebble.chains.knill import Line
from rvm.pebble.chains.reversible import Cut, ReversibleRules, halves, rooted
from rvm.pebble.grammar import Item, Name, Schedule

TRIED = 4096
"""The largest radix that is tried for the fewest pebbles."""


def bennett(n: int, radix: int, goal: str) -> Schedule:
    """Bennett's schedule of n steps with pieces of ceil(n/radix).

    Names are those of `rvm.pebble.chains.reversible`: a kind, n, and the length of pieces.
    """
    rows = ReversibleRules(Line(1))

    def stretch(n: int, piece: int = 0) -> tuple[int, int]:
        return (n, piece) if n > piece > 0 else (n, -(-n // radix))

    def expand(name: Name) -> Sequence[Item]:
        kind, n, piece, *_ = cast(tuple[str, int, int], name)
        if kind in ("up", "down") or piece == 1:
            return rows.expand((kind, n, n, 1))
        first = stretch(piece)
        return halves(kind, Cut(first, stretch(n - piece, piece), piece, first))

    there = stretch(n - (goal == "gradient"))
    return rooted(expand, there, n, goal, form=("bennett", radix))


def price(n: int, radix: int, goal: str) -> tuple[int, int]:
    """Moves and pebbles of `bennett`, without making it."""

    @cache
    def cost(n: int, keep: bool) -> tuple[int, int]:
        if n <= 1:
            return n, n
        piece = -(-n // radix)
        count = -(-n // piece) - 1
        moves, pebbles = cost(piece, True)
        last_moves, last_pebbles = cost(n - count * piece, keep)
        if keep:
            return 2 * count * moves + last_moves, count + max(pebbles, last_pebbles)
        return count * moves + last_moves, max(count - 1 + pebbles, count + last_pebbles)

    if goal == "gradient":
        n -= 1
    moves, pebbles = cost(n, goal == "persist")
    return (moves if goal in ("persist", "visit") else 2 * moves), pebbles


def best_radix(n: int, pebbles: float, goal: str) -> int | None:
    """The k with the fewest moves within a budget of pebbles; None if there is none.

    k pieces need k - 1 pebbles at least.  Beyond the root of n, all k that give pieces of the same
    length give the same schedule, so that about 2 sqrt(n) of them have to be tried.
    """
    if n <= 2:
        return 2 if price(n, 2, goal)[1] <= pebbles else None
    found = None
    root = isqrt(n) + 1
    rest = (-(-n // piece) for piece in range(-(-n // (root + 1)), 0, -1))
    for radix in chain(range(2, min(root, n) + 1), rest):
        if radix - 1 > pebbles:
            break
        moves, peak = price(n, radix, goal)
        if peak <= pebbles and (found is None or moves < found[0]):
            found = moves, radix
    return found[1] if found else None


@dataclass
class Bennett(Family):
    """Bennett's recursion, with a radix that is given or the best one."""

    n: int
    goal: str
    radix: int | None = None
    name = "bennett"

    def fewest(self) -> int:
        radixes = [self.radix] if self.radix else range(2, max(min(self.n, TRIED), 2) + 1)
        return min(price(self.n, k, self.goal)[1] for k in radixes)

    def _radix(self, budget: float) -> int | None:
        return self.radix or best_radix(self.n, budget, self.goal)

    def total(self, budget: float) -> float:
        radix = self._radix(budget)
        if radix is None:
            return inf
        moves, pebbles = price(self.n, radix, self.goal)
        return moves if pebbles <= budget else inf

    def schedule(self, budget: float) -> Schedule:
        return bennett(self.n, self._radix(budget) or 2, self.goal)

    def proof(self, budget: float) -> str:
        which = "the radix given" if self.radix else "the best radix for the budget"
        return f"Bennett's recursion with {which}; the optimum is that of `knill`"

    def notes(self, budget: float) -> tuple[str, ...]:
        radix = self._radix(budget)
        return (f"radix {radix}: pieces of ceil(n/{radix}) steps",)
