"""The reversible pebble game on a graph, and a player that checks any schedule against its rules.

A pebble is placed on a node, or removed from it, when every predecessor has one.  The board starts
empty and ends with pebbles on exactly the outputs.  A schedule is a sequence of integers: v places
a pebble on node v, ~v (which is -v-1) removes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from rvm.faults import ScheduleError
from rvm.pebble.graphs.dag import Dag


@dataclass(frozen=True, slots=True)
class DagTally:
    """The cost of a schedule: moves, the most nodes held at a time, and the most of their sizes.

    `cost` is the sum of what the moves cost, each by its node; without costs, their number.
    """

    moves: int
    nodes: int
    peak: int
    cost: int


class DagPlayer:
    """A position of the game: which nodes have pebbles, and what has been spent."""

    def __init__(self, dag: Dag, budget: float = inf) -> None:
        self.dag = dag
        self.budget = budget
        self.pebbles: set[int] = set()
        self.moves = self.held = self.peak = self.nodes = self.cost = 0

    def play(self, schedule: Iterable[int]) -> None:
        """Do these moves.  ScheduleError P003: one that the rules forbid."""
        for move in schedule:
            self.do(move)

    def do(self, move: int) -> None:
        """Do one move."""
        self.moves += 1
        v = move if move >= 0 else ~move
        if v >= len(self.dag):
            raise self._refusal(move, f"nodes are numbers from 0 to {len(self.dag) - 1}")
        for u in self.dag.preds[v]:
            if u not in self.pebbles:
                raise self._refusal(move, f"predecessor {self.dag.name(u)} has no pebble")
        self.cost += self.dag.cost(v)
        if move >= 0:
            if v in self.pebbles:
                raise self._refusal(move, "it has a pebble already")
            self.pebbles.add(v)
            self.held += self.dag.size(v)
            self.peak = max(self.peak, self.held)
            self.nodes = max(self.nodes, len(self.pebbles))
            if self.held > self.budget:
                raise self._refusal(move, f"the budget is {self.budget}")
        else:
            if v not in self.pebbles:
                raise self._refusal(move, "it has no pebble")
            self.pebbles.remove(v)
            self.held -= self.dag.size(v)

    def finish(self) -> DagTally:
        """The total cost. ScheduleError P004: the pebbles are not exactly on the outputs."""
        wanted = set(self.dag.outputs)
        if self.pebbles != wanted:
            name = self.dag.name
            raise ScheduleError(
                "P004",
                "the schedule ends without pebbles on exactly the outputs",
                values={
                    "missing": [name(v) for v in sorted(wanted - self.pebbles)[:20]],
                    "left over": [name(v) for v in sorted(self.pebbles - wanted)[:20]],
                },
            )
        return DagTally(self.moves, self.nodes, self.peak, self.cost)

    def _refusal(self, move: int, why: str) -> ScheduleError:
        v = move if move >= 0 else ~move
        doing = "a pebble on" if move >= 0 else "the pebble off"
        name = self.dag.name(v) if v < len(self.dag) else v
        return ScheduleError(
            "P003",
            f"move {self.moves}, {doing} node {name}, is against the rules: {why}",
            values={"move": self.moves, "node": v, "held": self.held},
        )


def check_dag(dag: Dag, schedule: Iterable[int], budget: float = inf) -> DagTally:
    """Play a schedule to its end by the rules, and count what it costs."""
    player = DagPlayer(dag, budget)
    player.play(schedule)
    return player.finish()


def tally_dag(dag: Dag, schedule: Iterable[int]) -> DagTally:
    """The cost of a schedule that is known to be legal."""
    held = peak = count = nodes = moves = cost = 0
    for moves, move in enumerate(schedule, 1):  # noqa: B007
        cost += dag.cost(move if move >= 0 else ~move)
        if move >= 0:
            held += dag.size(move)
            count += 1
            peak, nodes = max(peak, held), max(nodes, count)
        else:
            held -= dag.size(~move)
            count -= 1
    return DagTally(moves, nodes, peak, cost)


def inverse(schedule: Sequence[int]) -> list[int]:
    """The moves that undo a schedule."""
    return [~move for move in reversed(schedule)]


def signed(toggles: Iterable[int]) -> tuple[int, ...]:
    """A schedule from the nodes that its moves change: put on and taken off in turn."""
    pebbled: set[int] = set()
    out = []
    for v in toggles:
        out.append(~v if v in pebbled else v)
        pebbled ^= {v}
    return tuple(out)
