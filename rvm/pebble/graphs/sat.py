"""Parallel schedules of a graph with the fewest steps, by a SAT solver (the extra `sat`).

In one step any set of nodes may change whose predecessors have pebbles before and after it.  For K
steps there is a variable p[v, k] for each node and position (Meuli, Soeken, Roetteler, Bjorner and
De Micheli 2019, arXiv 1904.02121):

    p[v, k] != p[v, k+1]  implies  p[u, k] and p[u, k+1]     for each predecessor u of v
    at most S of p[., k];  p[., 0] = 0;  p[., K] = exactly the outputs

K is increased one by one from a lower bound, so the first K for which there is a solution is the
minimum.  Then the number of moves in these K steps is reduced, as long as time allows.  Each step
is emitted with its removals first, so that the peak is kept when a schedule is played move by move.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Timer
from time import monotonic
from typing import Any

from rvm.faults import BudgetError, UsageError
from rvm.pebble.graphs.bounds import least_budget, longest_path
from rvm.pebble.graphs.dag import Dag
from rvm.pebble.graphs.exact import EASY, shortest, thriftiest
from rvm.pebble.graphs.game import DagTally, check_dag, tally_dag


@dataclass(frozen=True, slots=True)
class ParallelPlan:
    """A schedule with the fewest steps for this number of pebbles."""

    dag: Dag
    pebbles: int
    steps: tuple[tuple[int, ...], ...]
    """The moves of each step: v puts a pebble on node v, ~v takes it off."""
    fewest_moves: bool
    """Whether no schedule with so few steps has fewer moves."""

    def schedule(self) -> tuple[int, ...]:
        """The moves, one after the other."""
        return tuple(move for step in self.steps for move in step)

    def check(self) -> DagTally:
        """Play it by the rules, move by move, and hold each step to its own.

        ScheduleError P003, P004: it breaks them.
        """
        return check_dag(self.dag, self.schedule(), self.pebbles)


def fewest_steps(dag: Dag, pebbles: int, time_limit: float = 60.0) -> ParallelPlan:
    """A schedule with the fewest parallel steps for a number of pebbles.  Nodes have no sizes.

    Whether the budget is enough at all is found out first for up to 20 nodes; with more, what ends
    the growth of K is `time_limit`, in seconds.  BudgetError P002: too few pebbles for any
    schedule; UsageError P011: python-sat is not installed; P012: the time limit came first; P001:
    nodes have sizes.
    """
    if dag.sizes is not None:
        raise UsageError("P001", "parallel steps are planned for nodes without sizes")
    live = dag.live()
    part = dag.part(live)
    _feasible(part, pebbles)
    end = monotonic() + time_limit
    path = longest_path(part, set(range(len(part))))
    steps = 2 * len(path) - (path[-1] in part.outputs)
    while True:
        encoding = Encoding(part, pebbles, steps)
        found = encoding.solve(end)
        if found is None:
            raise UsageError(
                "P012",
                f"the time limit of {time_limit:g} s came before a schedule; none has fewer than "
                f"{steps} steps",
                values={"least": steps},
                hint="a longer one, or `plan_dag`, which minimises moves",
            )
        if found:
            break
        steps += 1
    masks, fewest = encoding.with_fewer_moves(end)
    numbered = tuple(
        tuple(live[m] if m >= 0 else ~live[~m] for m in _moves(masks[k], masks[k + 1]))
        for k in range(steps)
    )
    return ParallelPlan(dag, pebbles, numbered, fewest)


def _feasible(dag: Dag, pebbles: int) -> None:
    """Refuse what is known not to be: then K would grow for ever."""
    least = least_budget(dag)
    if pebbles >= least and (len(dag) > EASY or shortest(dag, pebbles) is not None):
        return
    known = f"fewer than {least} never suffice"
    if len(dag) <= EASY:
        least = tally_dag(dag, thriftiest(dag)).peak
        known = f"{least} is the least"
    raise BudgetError(
        "P002",
        f"no schedule keeps within {pebbles}: {known}",
        values={"budget": pebbles, "least": least},
        hint=f"pebbles={least}",
    )


def _moves(before: set[int], after: set[int]) -> Iterator[int]:
    yield from (~v for v in sorted(before - after))
    yield from sorted(after - before)


class Encoding:
    """The clauses for K steps in a solver, and what it last found."""

    def __init__(self, dag: Dag, pebbles: int, steps: int) -> None:
        card, solvers = _library()
        self.dag = dag
        self.steps = steps
        n = len(dag)
        self.top = n * (steps + 1)
        self.solver = solvers.Glucose4()
        self.toggles: list[int] = []
        self.model: list[set[int]] = []
        self.card = card
        outputs = set(dag.outputs)
        for v in range(n):
            self.solver.add_clause([-self.at(v, 0)])
            last = self.at(v, steps)
            self.solver.add_clause([last if v in outputs else -last])
        for k in range(1, steps + 1):
            self._at_most([self.at(v, k) for v in range(n)], pebbles)
        for k in range(steps):
            for v, preds in enumerate(dag.preds):
                a, b = self.at(v, k), self.at(v, k + 1)
                self.top += 1
                toggle = self.top
                self.toggles.append(toggle)
                self.solver.append_formula([[-a, b, toggle], [a, -b, toggle]])
                for u in preds:
                    for there in (self.at(u, k), self.at(u, k + 1)):
                        self.solver.add_clause([-toggle, there])

    def at(self, v: int, k: int) -> int:
        """The variable: node v has a pebble after k steps."""
        return k * len(self.dag) + v + 1

    def _at_most(self, variables: list[int], bound: int) -> None:
        if bound < len(variables):
            clauses = self.card.CardEnc.atmost(
                variables, bound, top_id=self.top, encoding=self.card.EncType.seqcounter
            )
            self.top = max(self.top, clauses.nv)
            self.solver.append_formula(clauses.clauses)

    def solve(self, end: float, assumptions: list[int] | None = None) -> bool | None:
        """Whether there is a schedule; None if the time ended first."""
        left = end - monotonic()
        if left <= 0:
            return None
        # An interrupt before the solver has started would be lost.
        timer = Timer(max(0.05, left), self.solver.interrupt)
        timer.start()
        try:
            found: bool | None = self.solver.solve_limited(
                assumptions=assumptions or [], expect_interrupt=True
            )
        finally:
            timer.cancel()
            timer.join()
            self.solver.clear_interrupt()
        if found:
            true = {x for x in self.solver.get_model() if x > 0}
            nodes = range(len(self.dag))
            self.model = [
                {v for v in nodes if self.at(v, k) in true} for k in range(self.steps + 1)
            ]
        return found

    def with_fewer_moves(self, end: float) -> tuple[list[set[int]], bool]:
        """The positions with the fewest moves found, and whether there are no fewer."""
        floor = 2 * len(self.dag) - len(self.dag.outputs)
        moves = self._count()
        if moves == floor:
            return self.model, True
        bounds = self.card.ITotalizer(self.toggles, ubound=moves, top_id=self.top)
        self.solver.append_formula(bounds.cnf.clauses)
        while moves > floor:
            fewer = self.solve(end, [-bounds.rhs[moves - 1]])
            if not fewer:
                return self.model, fewer is not None
            moves = self._count()
        return self.model, True

    def _count(self) -> int:
        return sum(len(self.model[k] ^ self.model[k + 1]) for k in range(self.steps))


def _library() -> tuple[Any, Any]:
    """The parts of python-sat.  UsageError P011 if it is not there."""
    try:
        from pysat import card, solvers
    except ImportError as error:
        raise UsageError(
            "P011", "the library python-sat is not installed", hint='pip install "rvm[sat]"'
        ) from error
    return card, solvers
