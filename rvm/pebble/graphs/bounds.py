"""Lower bounds for schedules of a graph: on moves, and on pebbles.

In these graphs some output depends on every node.

Each node that is not an output is computed and undone, and each output is computed: 2n - outputs
moves.  The moves of a schedule on the nodes of a path are a schedule of a chain: the optimum of
that chain with the same pebbles (Knill) bounds their number, and the bounds of disjoint paths add
up.  If moves have costs, the moves beyond two per node (one per output) cost at least as much as
the cheapest node of the path.
"""

from __future__ import annotations

from math import inf

from rvm.pebble.chains.knill import INFEASIBLE, fewest_to_persist, fewest_to_visit, line
from rvm.pebble.graphs.dag import Dag


def least_moves(dag: Dag, budget: float = inf) -> float:
    """A lower bound on the cost of moves within a budget; inf if it is too small for some path."""
    total: float = dag.floor()
    outputs = set(dag.outputs)
    smallest = min(dag.size(v) for v in range(len(dag)))
    if budget >= len(dag) * smallest:
        return total
    pebbles = int(budget // smallest)
    free = set(range(len(dag)))
    while len(path := longest_path(dag, free)) > pebbles:
        n = len(path)
        if pebbles < 1:
            return inf
        ends = path[-1] in outputs
        table = line(n)
        most = table.persist(n, pebbles) if ends else 2 * table.visit(n, pebbles)
        if most >= INFEASIBLE:
            return inf
        beyond = most - (2 * n - 1 if ends else 2 * n)
        total += beyond * min(dag.cost(v) for v in path)
        free.difference_update(path)
    return total


def least_budget(dag: Dag) -> int:
    """A lower bound on the pebbles, or the sizes, that are held at some moment."""
    outputs = set(dag.outputs)
    best = sum(dag.size(v) for v in outputs)
    for v, preds in enumerate(dag.preds):
        best = max(best, dag.size(v) + sum(dag.size(u) for u in preds))
    inner = [v for v in range(len(dag)) if v not in outputs]
    if inner:
        # When the last inner pebble goes, all outputs are there that need some inner node.
        late = {v for v in outputs if not outputs.issuperset(dag.preds[v])}
        last = min(
            dag.size(v) + sum(dag.size(u) for u in dag.preds[v] if u not in late) for v in inner
        )
        best = max(best, last + sum(dag.size(v) for v in late))
    path = longest_path(dag, set(range(len(dag))))
    smallest = min(dag.size(v) for v in path)
    fewest = fewest_to_persist if path[-1] in outputs else fewest_to_visit
    return max(best, smallest * fewest(len(path)))


def longest_path(dag: Dag, free: set[int]) -> list[int]:
    """A longest path of these nodes on which only the last may be an output."""
    outputs = set(dag.outputs)
    length: dict[int, int] = {}
    before: dict[int, int] = {}
    for v in sorted(free):
        length[v] = 1
        for u in dag.preds[v]:
            if u in free and u not in outputs and length[u] >= length[v]:
                length[v] = length[u] + 1
                before[v] = u
    if not length:
        return []
    v = max(length, key=lambda w: (length[w], w))
    path = [v]
    while v in before:
        v = before[v]
        path.append(v)
    return path[::-1]
