"""Exhaustive search of the games on small chains, written from their rules only.

A position is (pebbles, disk, adjoint, erased): two bit masks with bit i for node i, the node at
which the adjoint stands, and how many states have been lost.  It shares no code with rvm.pebble.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from math import inf

Position = tuple[int, int, int, int]


def least(
    n: int,
    pebbles: float,
    goal: str,
    *,
    price: float = inf,
    erasures: float | None = None,
    overwriting: bool = False,
    in_place: frozenset[int] = frozenset(),
    costs: Sequence[float] | None = None,
    sizes: Sequence[float] | None = None,
    disk: int = 0,
    write: float = 0,
    read: float = 0,
    keep_input: bool = True,
) -> float:
    """The least cost of a game, or inf.

    A state may be lost at a price, or a number of times for nothing (`erasures`).  `costs[i-1]`
    and `sizes[i-1]` are those of step i and s_i.  The input's own place is not counted; unless
    `keep_input`, it may be used while the input is on disk.
    """

    def cost(i: int) -> float:
        return 1 if costs is None else costs[i - 1]

    def size(mask: int) -> float:
        if sizes is None:
            return mask.bit_count() - 1
        return sum(w for k, w in enumerate(sizes, 1) if mask >> k & 1)

    def lost(erased: int) -> tuple[float, int] | None:
        """What it costs to lose a state, and the new count."""
        if erasures is None:
            return None if price == inf else (price, 0)
        return (0, erased + 1) if erased < erasures else None

    def neighbours(p: Position) -> Iterator[tuple[float, Position]]:
        mask, files, adjoint, erased = p
        loss = lost(erased)
        spare = bool(files & 1) and not keep_input
        if not keep_input:
            if mask & 1 and not files & 1 and files.bit_count() < disk:
                yield write, (mask, files | 1, adjoint, erased)
            if files & 1:
                yield (
                    (0, (mask, files ^ 1, adjoint, erased))
                    if mask & 1
                    else (
                        read,
                        (mask | 1, files, adjoint, erased),
                    )
                )
                if mask & 1 and loss:
                    yield loss[0], (mask ^ 1, files, adjoint, loss[1])
        for i in range(1, n + 1):
            bit, below = 1 << i, 1 << (i - 1)
            if mask & below:
                yield cost(i), (mask ^ bit, files, adjoint, erased)
            if mask & below and (i > 1 or spare) and not mask & bit:
                moved = mask ^ bit ^ below
                if i > 1 and i in in_place:
                    yield cost(i), (moved, files, adjoint, erased)
                if overwriting and loss:
                    yield cost(i) + loss[0], (moved, files, adjoint, loss[1])
            if mask & bit:
                if i > 1 and i in in_place and not mask & below:
                    yield cost(i), (mask ^ bit ^ below, files, adjoint, erased)
                if loss:
                    yield loss[0], (mask ^ bit, files, adjoint, loss[1])
                if not files & bit and files.bit_count() < disk:
                    yield write, (mask, files | bit, adjoint, erased)
            elif files & bit:
                yield read, (mask | bit, files, adjoint, erased)
            if files & bit:
                yield 0, (mask, files ^ bit, adjoint, erased)
        if goal == "gradient" and adjoint and mask >> (adjoint - 1) & 1:
            yield 0, (mask, files, adjoint - 1, erased)

    start = (1, 0, n, 0)
    if goal in ("erase", "gradient"):
        done: Callable[[Position], bool] = lambda p: p[0] == 1 and not p[1] and p[2] == 0  # noqa: E731
    elif goal == "persist":
        done = lambda p: p[0] == (1 << n) | 1 and not p[1]  # noqa: E731
    else:
        done = lambda p: bool(p[0] >> n & 1)  # noqa: E731
    if goal == "erase":
        raise ValueError("twice a visit, by definition of the game")
    best: dict[Position, float] = {start: 0}
    queue: list[tuple[float, Position]] = [(0, start)]
    while queue:
        spent, position = heapq.heappop(queue)
        if spent > best[position]:
            continue
        if done(position):
            return spent
        for more, after in neighbours(position):
            if size(after[0]) <= pebbles and spent + more < best.get(after, inf):
                best[after] = spent + more
                heapq.heappush(queue, (spent + more, after))
    return inf


def erase_all(n: int, pebbles: int) -> float:
    """The least moves from nothing to nothing with node n pebbled on the way, by breadth first."""
    start = (0, False)
    seen, frontier, moves = {start}, [start], 0
    while frontier:
        after = []
        for mask, reached in frontier:
            if reached and not mask:
                return moves
            for i in range(1, n + 1):
                if (mask | 1) >> (i - 1) & 1:
                    new = mask ^ 1 << i
                    state = (new, reached or bool(new >> n & 1))
                    if new.bit_count() <= pebbles and state not in seen:
                        seen.add(state)
                        after.append(state)
        frontier, moves = after, moves + 1
    return inf
