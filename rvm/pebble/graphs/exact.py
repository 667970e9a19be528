"""The optimum on small graphs: a search over the sets of nodes that have pebbles.

A position is a bit mask with bit v for node v.  Every move is its own inverse, so the cost from the
empty board is a distance.  A level of masks is an interval of distances as long as the smallest
cost of a move (Dial's buckets for Dijkstra's algorithm): no move leads from a mask of a level to
another of the same level, so a level that is reached is final.  The moves of a node are made for a
whole level at once.  Memory is 8 bytes for each of the 2^n masks, 4 if each move costs 1, and some
levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from rvm.faults import UsageError
from rvm.pebble.graphs.bounds import least_budget
from rvm.pebble.graphs.dag import Dag
from rvm.pebble.graphs.game import signed, tally_dag

LIMIT = 24
"""The most nodes that are searched exhaustively."""
UNREACHED = tuple(np.iinfo(kind).max // 2 for kind in (np.int64, np.int32))
"""The distance of what is not reached: if moves have costs, and if not."""
NARROW = 62
"""The most nodes of which a mask is a number of NumPy's."""
POSITIONS = 8_000_000
"""The most masks that are held, 8 bytes each, where not all have a place."""
EASY = 20
"""Up to this many nodes, that takes a second or two at most."""

Masks = npt.NDArray[np.int64]
Stop = Callable[[], bool]


def never() -> bool:
    """A search that is not limited in time."""
    return False


def shortest(dag: Dag, budget: float, stop: Stop = never) -> tuple[int, ...] | None:
    """A schedule with the least cost within a budget; None if there is none.

    TimeoutError if `stop` says so; UsageError P006 with more than 24 nodes.
    """
    n = len(dag)
    if n > LIMIT:
        raise UsageError(
            "P006",
            f"the exhaustive search takes {LIMIT} nodes at most, and the graph has {n}",
            hint='the strategy "search" takes any number',
        )
    need = [sum(1 << u for u in preds) for preds in dag.preds]
    goal = sum(1 << v for v in dag.outputs)
    costs, even = [dag.cost(v) for v in range(n)], dag.costs is None
    least = min(costs)
    distance: npt.NDArray[Any] = np.full(1 << n, UNREACHED[even], np.int32 if even else np.int64)
    distance[0] = 0
    levels: dict[int, list[tuple[Masks, Masks]]] = {0: [(np.zeros(1, np.int64),) * 2]}
    numbers = [0]
    while numbers:
        number = heappop(numbers)
        if distance[goal] // least <= number:
            break
        if stop():
            raise TimeoutError
        level, held = map(np.concatenate, zip(*levels.pop(number), strict=True))
        if not even:
            # A mask that was reached for less has been in a level before.
            level, at = np.unique(level, return_index=True)
            final = distance[level] // least == number
            level, held = level[final], held[at][final]
        for v in range(n):
            bit, size = 1 << v, dag.size(v)
            able = (level & need[v]) == need[v]
            before = level[able]
            after = before ^ bit
            spent: Any = number + 1 if even else distance[before] + costs[v]
            heavy = held[able] + np.where(after & bit, size, -size)
            better = (spent < distance[after]) & (heavy <= budget)
            after, heavy = after[better], heavy[better]
            if not len(after):
                continue
            distance[after] = spent = spent if even else spent[better]
            for later in [number + 1] if even else np.unique(spent // least).tolist():
                if later not in levels:
                    levels[later] = []
                    heappush(numbers, later)
                here = slice(None) if even else spent // least == later
                levels[later].append((after[here], heavy[here]))
    if distance[goal] == UNREACHED[even]:
        return None
    return signed(_backwards(goal, need, distance, costs))


def _backwards(
    goal: int, need: list[int], distance: npt.NDArray[np.signedinteger], costs: Sequence[int]
) -> list[int]:
    """The nodes changed on a cheapest way to the goal, found from its end."""
    mask, out = goal, []
    while mask:
        spent = distance[mask]
        for v, needed in enumerate(need):
            if mask & needed == needed and distance[mask ^ 1 << v] == spent - costs[v]:
                out.append(v)
                mask ^= 1 << v
                break
    return out[::-1]


def narrow(dag: Dag, budget: float, stop: Stop = never) -> tuple[int, ...] | None:
    """The same as `shortest` for up to 62 nodes whose moves have no costs, from both ends at once.

    Only the masks that are reached are held.  No move leads from a level to that level, nor further
    back than to the one before it, so that what was reached before is told from these two.

    TimeoutError if `stop` says so, or if there are too many masks.
    """
    if len(dag) > NARROW:
        raise TimeoutError
    ends = _Front(dag, budget, 0), _Front(dag, budget, sum(1 << v for v in dag.outputs))
    if ends[1].held[0] > budget:
        return None
    while not (meeting := np.intersect1d(ends[0].levels[-1], ends[1].levels[-1])).size:
        side = min(ends, key=lambda front: len(front.levels[-1]))
        if not len(side.levels[-1]):
            return None
        if stop() or sum(front.total for front in ends) > POSITIONS:
            raise TimeoutError
        side.advance()
    there, back = (front.path(int(meeting[0])) for front in ends)
    return signed([*reversed(there), *back])


class _Front:
    """The masks at each distance from one mask, as sorted arrays."""

    def __init__(self, dag: Dag, budget: float, mask: int) -> None:
        self.dag, self.budget = dag, budget
        self.need = [sum(1 << u for u in preds) for preds in dag.preds]
        self.levels: list[npt.NDArray[np.int64]] = [np.zeros(0, np.int64), np.array([mask])]
        self.held = np.array([sum(dag.size(v) for v in range(len(dag)) if mask >> v & 1)])
        self.total = 1

    def advance(self) -> None:
        """One level more."""
        masks, weights = [], []
        for v, need in enumerate(self.need):
            able = (self.levels[-1] & need) == need
            after, size = self.levels[-1][able] ^ 1 << v, self.dag.size(v)
            heavy = self.held[able] + np.where(after >> v & 1, size, -size)
            masks.append(after[heavy <= self.budget])
            weights.append(heavy[heavy <= self.budget])
        level, at = np.unique(np.concatenate(masks), return_index=True)
        fresh = ~np.isin(level, self.levels[-2], assume_unique=True)
        self.levels.append(level[fresh])
        self.held = np.concatenate(weights)[at][fresh]
        self.total += len(self.held)

    def path(self, mask: int) -> list[int]:
        """The nodes changed on a way from a mask of the last level back to the first one."""
        out: list[int] = []
        for before in self.levels[-2:0:-1]:
            v = next(
                v
                for v, need in enumerate(self.need)
                if mask & need == need and mask ^ 1 << v in before
            )
            out.append(v)
            mask ^= 1 << v
        return out


def thriftiest(dag: Dag, max_moves: float = inf, stop: Stop = never) -> tuple[int, ...]:
    """A schedule with the least budget among those of so much cost; of these, one of the least.

    `max_moves` is at least `dag.floor()`, which a budget for all nodes allows.
    """
    budget = least_budget(dag)
    while True:
        found = shortest(dag, budget, stop)
        if found is not None and tally_dag(dag, found).cost <= max_moves:
            return found
        budget += 1


def connected(
    need: list[int],
    sizes: list[int],
    start: int,
    goal: int,
    budget: float,
    costs: list[int] | None = None,
) -> list[int] | None:
    """The nodes changed on a cheapest way from one mask to another, for a dozen of nodes.

    `need[v]` is the mask of v's predecessors, `budget` what these nodes may hold together.
    """
    if start == goal:
        return []
    if costs is not None:
        found = cheapest(
            need, sizes, start, goal.__eq__, budget, lambda spent, v, held: spent + costs[v]
        )
        return None if found is None else found[1]
    weights = {start: sum(s for v, s in enumerate(sizes) if start >> v & 1)}
    came: dict[int, int] = {start: -1}
    level = [start]
    moves = [(v, 1 << v, needed) for v, needed in enumerate(need)]
    while level:
        following = []
        for mask in level:
            weight = weights[mask]
            for v, bit, needed in moves:
                after = mask ^ bit
                if mask & needed != needed or after in came:
                    continue
                heavy = weight + sizes[v] if after & bit else weight - sizes[v]
                if heavy > budget:
                    continue
                came[after] = v
                if after == goal:
                    return _path(after, came)
                weights[after] = heavy
                following.append(after)
        level = following
    return None


def cheapest(
    need: Sequence[int],
    sizes: Sequence[float],
    start: int,
    reached: Callable[[int], bool],
    budget: float,
    spending: Callable[[float, int, float], float],
) -> tuple[float, list[int]] | None:
    """The cost of a cheapest way to a mask that is `reached`, and the nodes changed on it.

    Dijkstra's algorithm over masks.  `spending` gives what has been spent after a move, from what
    was before, the node, and what is held then; it never falls.  None: no way within the budget.
    """
    weights = {start: sum(s for v, s in enumerate(sizes) if start >> v & 1)}
    came: dict[int, int] = {start: -1}
    least: dict[int, float] = {start: 0}
    queue: list[tuple[float, int]] = [(0, start)]
    while queue:
        spent, mask = heappop(queue)
        if reached(mask):
            return spent, _path(mask, came)
        if spent > least[mask]:
            continue
        for v, needed in enumerate(need):
            if mask & needed != needed:
                continue
            after = mask ^ 1 << v
            heavy = weights[mask] + (sizes[v] if after >> v & 1 else -sizes[v])
            if heavy <= budget and (more := spending(spent, v, heavy)) < least.get(after, inf):
                least[after], came[after], weights[after] = more, v, heavy
                heappush(queue, (more, after))
    return None


def _path(mask: int, came: dict[int, int]) -> list[int]:
    out = []
    while (v := came[mask]) >= 0:
        out.append(v)
        mask ^= 1 << v
    return out[::-1]
