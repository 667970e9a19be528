"""Schedules for graphs that compute each node once: Bennett's, and with eager cleanup.

Both need 2n - outputs moves, the minimum.  Bennett's schedule computes everything, then undoes
everything that is not an output: n pebbles.  Eager cleanup (Parent, Roetteler and Svore 2015)
undoes a node as soon as every node computed from it is an output or undone itself; the number of
its pebbles depends on the order in which nodes are computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from rvm.pebble.graphs.dag import Dag
from rvm.pebble.graphs.game import tally_dag


def bennett_dag(dag: Dag) -> tuple[int, ...]:
    """Everything is computed, then undone in reverse, outputs aside."""
    live, outputs = dag.live(), set(dag.outputs)
    return (*live, *(~v for v in reversed(live) if v not in outputs))


def eager_dag(dag: Dag, order: Sequence[int] | None = None) -> tuple[int, ...]:
    """Live nodes computed in an order, by default that of their numbers, and undone early."""
    live = dag.live()
    alive, outputs = set(live), set(dag.outputs)
    waiting = {v: sum(w in alive for w in dag.users[v]) for v in live}
    out: list[int] = []
    for v in live if order is None else order:
        out.append(v)
        finished = [v] if v in outputs else []
        while finished:
            w = finished.pop()
            for u in dag.preds[w]:
                waiting[u] -= 1
                if not waiting[u] and u not in outputs:
                    out.append(~u)
                    finished.append(u)
    return tuple(out)


def orders(dag: Dag, random: Random, count: int) -> Iterator[list[int]]:
    """Topological orders of the live nodes: by numbers, then depth first, ever more at random."""
    yield dag.live()
    cones = _cones(dag)
    for k in range(count):
        keys = {v: (0.0 if k < 2 else random.random() * (k / count)) for v in range(len(dag))}
        scale = max(cones) or 1
        rank = {v: keys[v] - (1 if k % 2 else -1) * cones[v] / scale for v in range(len(dag))}
        yield depth_first(dag, rank, sorted(dag.outputs, key=lambda v: rank[v]))


def depth_first(dag: Dag, rank: dict[int, float], roots: Sequence[int]) -> list[int]:
    """The live nodes in postorder from the roots, predecessors of small rank first."""
    out: list[int] = []
    done: set[int] = set()
    for root in roots:
        stack = [root]
        while stack:
            v = stack[-1]
            missing = [u for u in dag.preds[v] if u not in done]
            if v in done or not missing:
                if v not in done:
                    out.append(v)
                    done.add(v)
                stack.pop()
            else:
                stack += sorted(missing, key=lambda u: rank[u], reverse=True)
    return out


def best_eager(dag: Dag, random: Random, count: int = 64) -> tuple[int, ...]:
    """The eager schedule with the lowest peak over some orders."""
    found = (eager_dag(dag, order) for order in orders(dag, random, count))
    return min(found, key=lambda schedule: tally_dag(dag, schedule).peak)


def _cones(dag: Dag) -> list[int]:
    """The number of nodes below each node, itself included."""
    masks: list[int] = []
    for v, preds in enumerate(dag.preds):
        mask = 1 << v
        for u in preds:
            mask |= masks[u]
        masks.append(mask)
    return [mask.bit_count() for mask in masks]
