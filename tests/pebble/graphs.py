"""Graphs for tests, and an exhaustive search of the game that shares no code with rvm.pebble."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import combinations, product

from rvm.pebble.graphs.dag import Dag


def all_graphs(n: int) -> Iterator[Dag]:
    """Every graph of n nodes in topological order; the outputs are the nodes that nothing uses."""
    subsets = [[c for k in range(v + 1) for c in combinations(range(v), k)] for v in range(n)]
    for preds in product(*subsets):
        used = {u for us in preds for u in us}
        yield Dag(preds, tuple(v for v in range(n) if v not in used))


def least_moves(dag: Dag, budget: int) -> int | None:
    """The fewest moves, by breadth first over sets of nodes."""
    start: frozenset[int] = frozenset()
    goal = frozenset(dag.outputs)
    seen, level, moves = {start}, [start], 0
    while level:
        if goal in level:
            return moves
        following = []
        for held in level:
            for v, preds in enumerate(dag.preds):
                after = held ^ {v}
                if (
                    held.issuperset(preds)
                    and after not in seen
                    and sum(dag.size(u) for u in after) <= budget
                ):
                    seen.add(after)
                    following.append(after)
        level, moves = following, moves + 1
    return None


def least_cost(dag: Dag, budget: int) -> int | None:
    """The least sum of what moves cost, by Dijkstra's algorithm over sets of nodes."""
    best: dict[frozenset[int], int] = {frozenset(): 0}
    queue: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    while queue:
        spent, nodes = heapq.heappop(queue)
        held = frozenset(nodes)
        if spent > best[held]:
            continue
        if held == set(dag.outputs):
            return spent
        for v, preds in enumerate(dag.preds):
            after, more = held ^ {v}, spent + (dag.costs or [1] * len(dag))[v]
            small = sum(dag.size(u) for u in after) <= budget
            if held.issuperset(preds) and small and more < best.get(after, more + 1):
                best[after] = more
                heapq.heappush(queue, (more, tuple(sorted(after))))
    return None


def least_budget(dag: Dag) -> int:
    """The smallest budget with which the game can be won."""
    return next(s for s in range(1, 1 << 20) if least_moves(dag, s) is not None)


def adder(n: int) -> str:
    """A ripple-carry adder of two n-bit numbers as .bench text."""
    lines = [f"INPUT({x}{k})" for x in "ab" for k in range(n)] + ["INPUT(c0)"]
    lines += [f"OUTPUT(s{k})" for k in range(n)] + [f"OUTPUT(c{n})"]
    for k in range(n):
        lines += [
            f"x{k} = XOR(a{k}, b{k})",
            f"s{k} = XOR(x{k}, c{k})",
            f"g{k} = AND(a{k}, b{k})",
            f"p{k} = AND(x{k}, c{k})",
            f"c{k + 1} = OR(g{k}, p{k})",
        ]
    return "\n".join(lines)
