"""Bennett's schedules on a chain, k-ary, for any length.

A chain of n steps is cut into at most k pieces of ceil(n/k) steps.  Each is done in turn, the
recursion making and keeping its end only; then all but the last are undone in opposite order
(Bennett 1989, Levine and Sherman 1990).  k^j steps take (2k - 1)^j moves and j (k - 1) + 1 pebbles,
the input not counted.  With k = n this is Bennett's first construction (1973).

A visit keeps the ends of the outermost pieces, so that the result, its copy and the undoing cost
twice the visit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain
from math import isqrt
from typing import cast

from rvm.pebble.actions import Kind, at, reverse
from rvm.pebble.chains.knill import Line
from rvm.pebble.chains.reversible import ReversibleRules
from rvm.pebble.grammar import Item, Name, Schedule


class BennettRules:
    """The rules for a radix k.  Names are those of `rvm.pebble.chains.reversible`, with n only."""

    def __init__(self, radix: int) -> None:
        self.radix = radix
        self._rows = ReversibleRules(Line(1))

    def expand(self, name: Name) -> Sequence[Item]:
        """The items of a name."""
        kind, n, *_ = cast(tuple[str, int, int, int], name)
        if kind in ("up", "down") or n <= self.radix:
            return self._rows.expand((kind, n, n, 1))
        piece = -(-n // self.radix)
        starts = list(range(0, n, piece))
        last = n - starts.pop()
        first = "P" if kind in "PQ" else "F"
        ahead = [Item((first, piece, 0, 1), start) for start in starts]
        end = Item((kind, last, 0, 1), n - last)
        clear = [Item(("F", piece, 0, 1), start, back=kind == "F") for start in starts]
        match kind:
            case "F":
                return [*ahead, end, *reversed(clear)]
            case "G":
                return [*ahead, end]
            case "P":
                return [*clear, end, *reversed(ahead)]
            case _:
                return [end, *reversed(ahead)]


def bennett(n: int, radix: int, goal: str) -> Schedule:
    """Bennett's schedule of n steps with pieces of ceil(n/radix)."""
    rules, form = BennettRules(radix), ("bennett", radix)
    if goal in ("persist", "visit"):
        root_name = "F" if goal == "persist" else "G", n, 0, 1
        return Schedule(root_name, rules.expand, form=form)
    there = ("G", n, 0, 1)
    root = [Item(there), Item(at(Kind.COPY, n)), Item(there, back=True)]
    if goal == "gradient":
        back = [Item((kind, n - 1, 0, 1)) for kind in "GQ"] if n > 1 else []
        root = [*back, Item(reverse(1))]
    return Schedule("all", lambda name: root if name == "all" else rules.expand(name), form=form)


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


TRIED = 4096
"""The largest radix that is tried for the fewest pebbles."""
