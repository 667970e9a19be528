"""Simulated annealing over legal schedules of a graph: fewest moves within a budget.

The objective is moves + weight * excess, where the excess sums the pebbles beyond the budget over
all positions.  If moves have costs, these are counted, in units of the average cost of a node.  The
temperature falls and the weight rises, in several rounds; each round but the first starts from the
best schedule so far.  Finally windows are optimised exactly, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp
from random import Random

from rvm.pebble.graphs.board import Board, Change
from rvm.pebble.graphs.dag import Dag
from rvm.pebble.graphs.exact import Stop, never

TURNS = 3
HOT, COLD = 4.0, 0.3
"""Temperatures, in moves."""
LIGHT, HEAVY = 0.3, 3.0
"""Weights of the excess, in moves for each pebble beyond the budget and position."""
WIDTH = 8
FINAL_WIDTH = 10
"""Nodes of a window that is made exact."""
PASSES = 3
"""The number of passes over the windows of the best schedule, while that helps."""

Progress = Callable[[float, int, int], object]
"""Is told the fraction done, the least cost within the budget so far (0: none), its peak."""


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search."""

    toggles: tuple[int, ...] | None
    """The cheapest schedule within the budget; None if there was nothing within it."""
    least: int
    """The lowest peak that was seen."""
    thrifty: tuple[int, ...]
    """The schedule with that peak."""
    ended: str
    """Why it ended: rounds, time or interrupt; or `optimal`, when the bound was met."""


class Search:
    """An annealing run.  The same seed and rounds give the same result."""

    def __init__(
        self,
        dag: Dag,
        start: tuple[int, ...],
        budget: float,
        seed: int = 0,
        bound: float = 0,
        stop: Stop = never,
        progress: Progress | None = None,
    ) -> None:
        self.dag = dag
        self.budget = int(budget)
        self.random = Random(seed)
        self.bound = bound
        self.stop = stop
        self.progress = progress
        self.board = Board(dag, start, self.budget)
        self.best: tuple[int, ...] | None = None
        self.best_cost = 0
        self.unit = sum(dag.cost(v) for v in range(len(dag))) / len(dag)
        """The average cost of a move over the nodes."""
        self.least, self.thrifty = self.board.peak(), start
        self.done = 0
        self.pressure = 1
        """Multiplies the weight; it grows while nothing within the budget is found."""
        self._note()

    def run(self, rounds: int) -> Found:
        """Try a number of changes.  Ctrl-C ends it with what was found."""
        if self.best is not None and self.best_cost <= self.bound:
            return Found(self.best, self.least, self.thrifty, "optimal")
        ended = "rounds"
        try:
            for turn in range(TURNS):
                ended = self._turn(turn, rounds // TURNS, rounds)
                if ended != "rounds":
                    break
            if ended == "rounds":
                ended = self._windows()
        except KeyboardInterrupt:
            ended = "interrupt"
        return Found(self.best, self.least, self.thrifty, ended)

    def _turn(self, turn: int, count: int, rounds: int) -> str:
        if self.best is not None:
            self.board = Board(self.dag, self.best, self.budget)
        elif turn:
            self.pressure *= 4
        hot = HOT if self.best is None else HOT / 2**turn
        for k in range(count):
            self.done += 1
            if k % 256 == 0:
                if self.stop():
                    return "time"
                if self.progress is not None and k % 1024 == 0:
                    self.progress(self.done / rounds, self.best_cost, self.least)
                part = k / count
                temperature = hot * (COLD / hot) ** part
                weight = self.pressure * LIGHT * (HEAVY / LIGHT) ** part
            change = self._proposal()
            if change is None:
                continue
            worse = change.moves / self.unit + weight * change.excess
            if worse <= 0 or self.random.random() < exp(-worse / temperature):
                self.board.do(change)
                better = change.moves / self.unit + change.excess < 0
                if not self.board.excess and better:
                    self._note()
                    if self.best is not None and self.best_cost <= self.bound:
                        return "optimal"
        self._lowest()
        return "rounds"

    def _proposal(self) -> Change | None:
        board, random = self.board, self.random
        length = len(board)
        p = int(random.random() * length)
        kind = random.random()
        if kind < 0.4:
            if board.excess:
                for _ in range(6):
                    if board.held[p] > self.budget:
                        break
                    p = int(random.random() * length)
            for _ in range(16):
                v = int(random.random() * len(self.dag))
                if board.pebbled(v, p):
                    return board.drop(p, v)
            return None
        if kind < 0.65:
            return board.keep(p)
        if kind < 0.995:
            far = 1.0 if random.random() < 0.5 else random.random()
            return board.slide(p, random.random() < 0.5, far)
        return board.window(p, WIDTH)

    def _windows(self) -> str:
        """Exact windows over the best schedule, as long as a pass finds something."""
        if self.best is None:
            return "rounds"
        self.board = Board(self.dag, self.best, self.budget)
        for _ in range(PASSES):
            improved = False
            p = 0
            while p < len(self.board):
                if self.stop():
                    return "time"
                change = self.board.window(p, FINAL_WIDTH)
                if change is not None and change.moves < 0:
                    self.board.do(change)
                    improved = True
                p += FINAL_WIDTH // 2
            self._note()
            if not improved:
                break
        return "rounds"

    def _note(self) -> None:
        board = self.board
        if not board.excess and (self.best is None or board.cost < self.best_cost):
            self.best, self.best_cost = board.schedule(), board.cost
            self._lowest()

    def _lowest(self) -> None:
        peak = self.board.peak()
        if peak < self.least:
            self.least, self.thrifty = peak, self.board.schedule()
