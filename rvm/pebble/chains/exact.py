"""Exact search on short chains: Dijkstra's algorithm over all sets of pebbles.

A position is a bit mask of pebbled pieces.  It is used where the interval recursion may miss the
optimum, that is for states of unequal size.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from rvm.pebble.actions import Action, Kind, at, composite, reverse, undone
from rvm.pebble.chains.reversible import descent

LONGEST = 20
"""The most pieces that are searched."""
POSITIONS = 200_000
"""The most positions that are searched."""


def positions(sizes: Sequence[float], budget: float) -> int:
    """How many sets of the pieces' ends keep within the budget; `sizes[0]` is not used."""
    held = np.zeros(1)
    for size in sizes[1:]:
        held = np.concatenate([held, held + size])
        held = held[held <= budget]
    return len(held)


def shortest(
    costs: Sequence[float], sizes: Sequence[float], budget: float, persist: bool
) -> list[int] | None:
    """The pieces in the order in which their pebbles are put on or taken off; None: infeasible.

    A piece's number is 1, 2, ...; index 0 of costs and sizes is not used.
    """
    count = len(costs) - 1
    goal = 1 << count
    before: dict[int, tuple[int, int]] = {}
    spent: dict[int, float] = {0: 0}
    held: dict[int, float] = {0: 0}
    queue: list[tuple[float, int]] = [(0, 0)]
    done: set[int] = set()
    while queue:
        cost, mask = heapq.heappop(queue)
        if mask in done:
            continue
        done.add(mask)
        if mask == goal or (mask & goal and not persist):
            return _path(before, mask)
        there = mask | 1
        for piece in range(1, count + 1):
            if not there >> (piece - 1) & 1:
                continue
            new = mask ^ 1 << piece
            total = cost + costs[piece]
            if new in done or spent.get(new, total) < total:
                continue
            if new not in held:
                size = held[mask] + (sizes[piece] if new > mask else -sizes[piece])
                held[new] = size
            if held[new] > budget or spent.get(new) == total:
                continue
            spent[new] = total
            before[new] = mask, piece
            heapq.heappush(queue, (total, new))
    return None


def narrowest(sizes: Sequence[float], budget: float, persist: bool) -> float | None:
    """The least budget, not above this one, with which the goal is reached at all."""
    count = len(sizes) - 1
    goal = 1 << count
    queue: list[tuple[float, int, float]] = [(0, 0, 0)]
    done: set[int] = set()
    while queue:
        most, mask, held = heapq.heappop(queue)
        if mask in done:
            continue
        done.add(mask)
        if mask == goal or (mask & goal and not persist):
            return most
        for piece in range(1, count + 1):
            new = mask ^ 1 << piece
            if (mask | 1) >> (piece - 1) & 1 and new not in done:
                size = held + (sizes[piece] if new > mask else -sizes[piece])
                if size <= budget:
                    heapq.heappush(queue, (max(most, size), new, size))
    return None


def _path(before: dict[int, tuple[int, int]], mask: int) -> list[int]:
    out = []
    while mask:
        mask, piece = before[mask]
        out.append(piece)
    return out[::-1]


def played(path: Sequence[int], ends: Sequence[int], goal: str) -> list[Action]:
    """The actions of a path, which visits the end, or persists there, for each goal."""
    there: list[Action] = []
    back: list[tuple[Action, ...]] = []
    seen: set[int] = set()
    pebbled: set[int] = set()
    for piece in path:
        span = ends[piece - 1], ends[piece]
        forwards = composite(*span)
        if piece in pebbled:
            pebbled.remove(piece)
            there += undone(forwards)
            back.append(forwards)
        else:
            pebbled.add(piece)
            there += forwards
            # The first pebble on a piece is the last to go: that is when its adjoints are due.
            first = piece not in seen and goal == "gradient"
            back.append(tuple(descent(*span) if first else undone(forwards)))
            seen.add(piece)
    if goal in ("persist", "visit"):
        return there
    middle = [at(Kind.COPY, ends[-1])] if goal == "erase" else []
    end = [reverse(1)] if goal == "gradient" else []
    return [*there, *middle, *(a for part in reversed(back) for a in part), *end]
