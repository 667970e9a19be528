"""The fewest pebbles on trees: 1 + the edge-rank number, and a schedule that needs no more.

An edge ranking assigns numbers 1, 2, ... to edges such that between two edges of the same number
there is always one with a larger number.  If every node of a rooted tree is used once, its minimum
number of pebbles is one more than the smallest possible maximum of such a ranking (Komarath, Sarma
and Sawlani 2016, arXiv 1604.05510).

From a node, an edge below is *visible* if there is no larger number on the path to it.  Visible
numbers differ.  The ranking of a subtree is optimal if its visible numbers, as a bit mask, are the
smallest number (de la Torre, Greenlaw and Schaeffer 1995); masks here have bit r for rank r.
"""

from __future__ import annotations

from collections.abc import Sequence

from rvm.faults import UsageError
from rvm.pebble.graphs.dag import Dag
from rvm.pebble.graphs.game import inverse


def edge_ranks(dag: Dag) -> list[int]:
    """For each node the rank of the edge to its user, 0 for the root.  P001: it is not a tree."""
    if not dag.is_tree():
        raise UsageError("P001", "the graph is not a tree: one output, each other node used once")
    ranks = [0] * len(dag)
    visible: list[int] = []
    for preds in dag.preds:
        mask, chosen = best_ranks([visible[u] for u in preds])
        visible.append(mask)
        for u, rank in zip(preds, chosen, strict=True):
            ranks[u] = rank
    return ranks


def fewest_on_tree(dag: Dag) -> int:
    """The fewest pebbles of a tree."""
    return 1 + max(edge_ranks(dag))


def best_ranks(below: Sequence[int]) -> tuple[int, list[int]]:
    """From the visible masks of subtrees: the best mask above them, and the ranks of the edges."""
    if not below:
        return 0, []
    allowed = (1 << (max(below).bit_length() + len(below) + 1)) - 2
    chosen = assigned(below, allowed)
    assert chosen is not None, "a rank of its own above all others for each edge will do"
    for rank in range(allowed.bit_length() - 1, 0, -1):
        fewer = assigned(below, allowed & ~(1 << rank))
        if fewer is not None:
            allowed, chosen = allowed & ~(1 << rank), fewer
    return allowed, chosen


def assigned(below: Sequence[int], allowed: int) -> list[int] | None:
    """Ranks of the edges above subtrees so that only allowed ranks are visible; None if none do.

    From the top: a rank that is free is given to the edge over the subtree whose remaining visible
    ranks are the largest number.  That is never worse: what another would have saved, it saves.
    """
    ranks = [0] * len(below)
    for rank in range(max(allowed.bit_length(), max(below).bit_length()) - 1, 0, -1):
        open_ = [k for k, r in enumerate(ranks) if not r]
        showing = [k for k in open_ if below[k] >> rank & 1]
        if len(showing) > 1 or (showing and not allowed >> rank & 1):
            return None
        if not showing and open_ and allowed >> rank & 1:
            ranks[max(open_, key=lambda k: below[k] & ((1 << rank) - 1))] = rank
    return ranks if all(ranks) else None


def tree_moves(dag: Dag) -> int:
    """The moves of `tree_schedule`, without making it."""
    return sum(map(len, _pieces(dag, edge_ranks(dag), count=True)))


def tree_schedule(dag: Dag) -> tuple[int, ...]:
    """A schedule of a tree with the fewest pebbles.

    The edge of the largest rank parts the tree: its lower part is pebbled to its root, the upper
    one with that root held, then the lower one is undone.  Both have smaller ranks.
    """
    return tuple(_pieces(dag, edge_ranks(dag), count=False)[0])


def _pieces(dag: Dag, ranks: Sequence[int], count: bool) -> list[Sequence[int]]:
    """The schedule; or with `count`, a range of its length."""
    # By rising ranks, pieces grow together: each is known by its root, and is played when both
    # of its parts are.  A node's piece is found by following edges that are joined already.
    plays: dict[int, Sequence[int]] = {}
    for v in range(len(dag)):
        plays[v] = range(1) if count else [v]
    above = list(range(len(dag)))
    user = [users[0] if users else v for v, users in enumerate(dag.users)]

    def root(v: int) -> int:
        while above[v] != v:
            above[v] = above[above[v]]
            v = above[v]
        return v

    inner = [v for v in range(len(dag)) if ranks[v]]
    for v in sorted(inner, key=lambda w: ranks[w]):
        upper = root(user[v])
        lower, rest = plays.pop(v), plays[upper]
        if count:
            plays[upper] = range(2 * len(lower) + len(rest))
        else:
            plays[upper] = [*lower, *rest, *inverse(lower)]
        above[v] = upper
    return list(plays.values())
