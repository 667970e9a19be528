"""Combinations of searches: within a budget, or down to ever fewer pebbles."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from random import Random

from rvm.pebble.actions import Kind
from rvm.pebble.chains.reversible import reversible
from rvm.pebble.graphs.dag import Dag
from rvm.pebble.graphs.exact import Stop
from rvm.pebble.graphs.floors import best_eager
from rvm.pebble.graphs.game import signed, tally_dag
from rvm.pebble.graphs.search import Found, Progress, Search
from rvm.pebble.graphs.tree import tree_moves, tree_schedule

LONG = 200_000
"""Schedules of trees with more moves are not starting points."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A legal schedule, and notes on how it was found."""

    schedule: tuple[int, ...]
    notes: tuple[str, ...] = ()


def knill_chain(n: int, budget: float) -> tuple[int, ...]:
    """The optimal schedule of a chain; the budget is enough."""
    moves = []
    for kind, i, j in reversible(n, int(min(n, budget)), "persist").actions():
        moves += [j - 1] if kind == Kind.ADVANCE else [~(j - 1)]
        assert j == i + 1
    return tuple(moves)


@dataclass(frozen=True, slots=True)
class Task:
    """A live graph, and how long to search."""

    dag: Dag
    rounds: int
    seed: int
    stop: Stop
    progress: Progress | None
    longer: bool = False
    """Whether to go on, with ever more rounds, until `stop` says so."""

    def eager(self, dag: Dag) -> tuple[int, ...]:
        """The eager schedule with the lowest peak over some orders."""
        return best_eager(dag, Random(self.seed))

    def search(
        self, start: tuple[int, ...], budget: float, bound: float, doublings: int = 0
    ) -> Found:
        """A search from a schedule, with twice the rounds for each doubling."""
        seed = self.seed + doublings
        run = Search(self.dag, start, budget, seed, bound, self.stop, self.progress)
        return run.run(self.rounds << doublings)


def spent(dag: Dag, moves: tuple[int, ...]) -> int:
    """The cost of moves; they may be given by the nodes that they change."""
    return sum(dag.cost(m if m >= 0 else ~m) for m in moves)


def toggles(schedule: tuple[int, ...]) -> tuple[int, ...]:
    """The nodes that moves change."""
    return tuple(m if m >= 0 else ~m for m in schedule)


def within(
    task: Task, budget: float, bound: float, known: tuple[int, ...] | None = None
) -> Candidate:
    """The least cost within a budget, or else the lowest peak that was found.

    `known` is a schedule to begin with.
    """
    start = toggles(task.eager(task.dag) if known is None else known)
    found = task.search(start, budget, bound)
    result = found
    while result.toggles is None and result.ended == "rounds":
        # Go down in smaller steps, each from the lowest schedule so far.
        middle = max(budget, found.least - max(1, (found.least - budget) // 2))
        step = task.search(found.thrifty, middle, 0)
        result = task.search(step.thrifty, budget, bound)
        if min(step.least, result.least) >= found.least:
            break
        found = min(step, result, key=lambda f: f.least)
    if result.toggles is None and (tree := _tree(task, budget)):
        if result.ended != "rounds":
            return Candidate(tree, _notes(result))
        result = task.search(toggles(tree), budget, bound)
    if result.toggles is None:
        lowest = min(found, result, key=lambda f: f.least)
        return Candidate(signed(lowest.thrifty), _notes(result))
    doublings = 0
    while task.longer and result.ended == "rounds" and result.toggles is not None:
        doublings += 1
        result = task.search(result.toggles, budget, bound, doublings)
    assert result.toggles is not None, "a search keeps what it started from"
    return Candidate(signed(result.toggles), _notes(result))


def squeezed(task: Task, max_moves: float, least: int) -> Candidate:
    """The lowest peak with at most so much cost, found by halving what is above the bound."""
    best = task.eager(task.dag)
    notes: tuple[str, ...] = ()
    peak = tally_dag(task.dag, best).peak
    low = least
    start = toggles(best)
    while low < peak:
        budget = (low + peak) // 2
        found = task.search(start, budget, max_moves)
        if found.toggles is not None and spent(task.dag, found.toggles) <= max_moves:
            best = signed(found.toggles)
            start = found.toggles
            peak = tally_dag(task.dag, best).peak
        else:
            low = budget + 1
        if found.ended not in ("rounds", "optimal"):
            notes = _notes(found)
            break
    tree = _tree(task, inf)
    if tree and spent(task.dag, tree) <= max_moves and tally_dag(task.dag, tree).peak < peak:
        return Candidate(tree, notes)
    return Candidate(best, notes)


def _tree(task: Task, budget: float) -> tuple[int, ...] | None:
    """The thrifty schedule of a tree, if the graph is one and it is not too long."""
    dag = task.dag
    if not dag.is_tree() or tree_moves(dag) > LONG:
        return None
    schedule = tree_schedule(dag)
    return schedule if tally_dag(dag, schedule).peak <= budget else None


def _notes(found: Found) -> tuple[str, ...]:
    if found.ended == "time":
        return ("the time limit ended the search",)
    if found.ended == "interrupt":
        return ("the search was interrupted",)
    return ()
