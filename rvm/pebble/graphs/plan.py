"""`plan_dag`: from a graph and a budget to the best schedule known, and how good it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rvm.faults import BudgetError, UsageError
from rvm.pebble.drawing.film import Film, check_drawable, dag_scene
from rvm.pebble.graphs.bounds import least_budget, least_moves
from rvm.pebble.graphs.dag import Dag
from rvm.pebble.graphs.exact import EASY, LIMIT, narrow, shortest, thriftiest
from rvm.pebble.graphs.floors import bennett_dag
from rvm.pebble.graphs.game import DagTally, check_dag, tally_dag
from rvm.pebble.graphs.heuristics import Candidate, Task, knill_chain, spent, squeezed, within
from rvm.pebble.graphs.search import Progress
from rvm.pebble.graphs.tree import fewest_on_tree
from rvm.pebble.plans import Shown

GRAPH = "graph"
"""The kind of a file that holds the plan of a graph."""
STRATEGIES = ("best", "bennett", "eager", "exact", "search")


class Move(NamedTuple):
    """A pebble put on a node, or taken off it."""

    placed: bool
    node: int


@dataclass(frozen=True, slots=True)
class DagPlan(Shown):
    """A schedule of a graph, its exact cost, and how far from the best it may be."""

    strategy: str
    dag: Dag = field(repr=False)
    schedule: tuple[int, ...] = field(repr=False)
    """v puts a pebble on node v, ~v takes it off."""
    cost: DagTally
    budget: float
    """The most that may be held; inf if moves are limited."""
    bound: int
    """No schedule within the budget costs less; or, if moves are limited, none holds less."""
    optimal: bool
    """Whether the bound is met, or the search was exhaustive."""
    notes: tuple[str, ...] = ()

    @property
    def gap(self) -> float:
        """By what part of the bound the cost may be above the optimum: 0 if it is optimal."""
        if self.optimal:
            return 0.0
        return (self.cost.cost if self.budget < inf else self.cost.peak) / self.bound - 1

    def moves(self) -> Iterator[Move]:
        """The moves of the schedule."""
        return (Move(m >= 0, m if m >= 0 else ~m) for m in self.schedule)

    def check(self) -> DagTally:
        """Play the schedule by the rules, within the budget."""
        return check_dag(self.dag, self.schedule, self.budget)

    def film(self) -> Film:
        dag, schedule = self.dag, self.schedule
        check_drawable(len(schedule))
        return Film(
            f"{len(dag):,} nodes by {self.strategy}, {self.cost.nodes:,} pebbles",
            0,
            len(dag) - 1,
            len(schedule),
            "move",
            dag.name,
            lambda: iter([dag_scene(schedule)]),
        )

    def stored(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        dag = self.dag
        header = {
            "kind": GRAPH,
            "strategy": self.strategy,
            "bound": self.bound,
            "names": dag.names,
            "budget": None if self.budget == inf else self.budget,
            "optimal": self.optimal,
            "notes": self.notes,
        }
        lists = {
            "preds": [u for preds in dag.preds for u in preds],
            "ends": np.cumsum([len(preds) for preds in dag.preds]),
            "outputs": dag.outputs,
            "schedule": self.schedule,
            "sizes": dag.sizes,
            "costs": dag.costs,
        }
        return header, {k: np.array(v, np.int64) for k, v in lists.items() if v is not None}

    def describe(self) -> str:
        """Some lines to read: cost, proof, and how it is counted."""
        dag, cost = self.dag, self.cost
        sized, priced = dag.sizes is not None, dag.costs is not None
        moved = "cost" if priced else "moves"
        times = f", {cost.cost / dag.floor():.3g} times each node once"
        budget = "" if self.budget == inf else f" (budget {self.budget:,.0f})"
        unit = moved if self.budget < inf else "held"
        least = f"{'no less' if priced or unit == 'held' else 'no fewer'} {unit}"
        proof = "optimal" if self.optimal else f"at most {self.gap:.1%} above the optimum"
        lines = [
            f"{len(dag):,} nodes, {len(dag.outputs):,} outputs by `{self.strategy}`",
            f"  moves     {cost.moves:,}{'' if priced else times}",
            *([f"  cost      {cost.cost:,}{times}"] if priced else []),
            f"  pebbles   {cost.nodes:,}{'' if sized else budget}",
            *([f"  held      {cost.peak:,}{budget}"] if sized else []),
            f"  proof     {proof}; {least} than {self.bound:,}",
            *(f"  note      {note}" for note in self.notes),
            "  counted   inputs are not counted; outputs are",
        ]
        return "\n".join(lines)


def plan_dag(
    dag: Dag,
    *,
    pebbles: float | None = None,
    max_moves: float | None = None,
    strategy: str = "best",
    time_limit: float | None = None,
    rounds: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> DagPlan:
    """The fewest moves within `pebbles`, or the fewest pebbles within `max_moves`.

    If nodes have sizes, `pebbles` are a sum of sizes; if they have costs, moves are a sum of costs.
    Strategies:

    | | |
    |---|---|
    | best | a floor if it will do, a chain's optimum, exhaustive up to 20 nodes, else search |
    | bennett, eager | each node once, undone at the end or early: the floors |
    | exact | the exhaustive search: up to 24 nodes |
    | search | simulated annealing of legal schedules, with exact windows |

    The search tries `rounds` changes, by default 60,000 and 100 a node; with `time_limit` and no
    rounds it goes on for so many seconds.  Time or Ctrl-C end it with the best so far, and a note
    tells so.  The same seed and rounds give the same plan, unless time or Ctrl-C ended it.
    `progress(fraction, moves, peak)` is called now and then.

    BudgetError P002 names the least budget known to do, and the least that can; UsageError P001
    a wrong argument, P006 a graph too large for `exact`.
    """
    if strategy not in STRATEGIES:
        raise _wrong(f"there is no strategy `{strategy}`", f"strategies: {', '.join(STRATEGIES)}")
    if (pebbles is None) == (max_moves is None):
        raise _wrong("a plan has one budget", "pebbles= or max_moves=")
    for name, value in (("pebbles", pebbles), ("max_moves", max_moves)):
        if value is not None and not value >= 0:
            raise _wrong(f"`{name}` is 0 or more", given=value)
    for name, limit in (("time_limit", time_limit), ("rounds", rounds)):
        if limit is not None and not limit > 0:
            raise _wrong(f"`{name}` is positive", given=limit)
    live = dag.live()
    part = dag if len(live) == len(dag) else dag.part(live)
    end = inf if time_limit is None else monotonic() + time_limit
    task = Task(
        part,
        rounds or 60_000 + 100 * len(live),
        seed,
        lambda: monotonic() >= end,
        progress,
        longer=time_limit is not None and rounds is None,
    )
    if pebbles is not None:
        name, found, bound, optimal = _fewest_moves(task, pebbles, strategy)
    else:
        assert max_moves is not None
        name, found, bound, optimal = _fewest_pebbles(task, max_moves, strategy)
    schedule = tuple(live[m] if m >= 0 else ~live[~m] for m in found.schedule)
    notes = found.notes
    if part is not dag:
        notes = (*notes, f"{len(dag) - len(live):,} nodes are needed for no output")
    budget = inf if pebbles is None else pebbles
    return DagPlan(name, dag, schedule, tally_dag(dag, schedule), budget, bound, optimal, notes)


Answer = tuple[str, Candidate, int, bool]
"""The strategy that gave it, the schedule, the bound, and whether it is optimal."""


def _fewest_moves(task: Task, budget: float, strategy: str) -> Answer:
    dag = task.dag
    least = _least(dag)
    bound = least_moves(dag, budget)
    exact = strategy == "exact" or (strategy == "best" and len(dag) <= EASY)
    if budget < least or bound == inf:
        raise _too_small(task, budget, least, exact)
    for name, schedule in (("bennett", bennett_dag), ("eager", task.eager)):
        if strategy not in (name, "best"):
            continue
        found = Candidate(schedule(dag))
        peak = tally_dag(dag, found.schedule).peak
        if peak <= budget:
            return name, found, int(bound), spent(dag, found.schedule) <= bound
        if strategy == name:
            raise BudgetError(
                "P002",
                f"`{name}` holds {peak:,} of the graph's nodes, and the budget is {budget:,.0f}",
                values={"budget": budget, "least": peak, "bound": least},
                hint=f'pebbles={peak}, or the strategy "best", which computes nodes again',
            )
    if strategy == "best" and dag.sizes is dag.costs is None and dag.is_chain():
        return "knill", Candidate(knill_chain(len(dag), budget)), int(bound), True
    budget = min(budget, sum(dag.size(v) for v in range(len(dag))))
    if exact:
        try:
            found_exactly = shortest(dag, budget, task.stop)
        except TimeoutError:
            if strategy == "exact":
                raise _late(task) from None
        else:
            if found_exactly is None:
                raise _too_small(task, budget, least, exact)
            return "exact", Candidate(found_exactly), spent(dag, found_exactly), True
    candidate = within(task, budget, bound)
    peak = tally_dag(dag, candidate.schedule).peak
    if peak > budget:
        try:
            known = None if candidate.notes else narrow(dag, budget, task.stop)
            least = least if candidate.notes else int(budget) + 1
        except TimeoutError:
            known = None
        if known is None:
            raise BudgetError(
                "P002",
                f"no schedule within {budget:,.0f} was found; one within {peak:,} was, and there "
                f"is none below {least:,}",
                values={"budget": budget, "least": peak, "bound": least},
                notes=candidate.notes,
                hint=f"pebbles={peak}, or more rounds and time",
            )
        if dag.costs is None:
            return "exact", Candidate(known), len(known), True
        candidate = within(task, budget, bound, known)
    return "search", candidate, int(bound), spent(dag, candidate.schedule) <= bound


def _fewest_pebbles(task: Task, max_moves: float, strategy: str) -> Answer:
    dag = task.dag
    floor = int(least_moves(dag))
    least = _least(dag)
    if max_moves < floor:
        raise BudgetError(
            "P002",
            f"{floor:,} {'is the least cost' if dag.costs else 'moves are the fewest'} "
            "with any number of pebbles, and the budget is "
            f"{max_moves:,.0f}",
            values={"budget": max_moves, "least": floor},
            hint=f"max_moves={floor}",
        )
    if strategy in ("bennett", "eager"):
        schedule = bennett_dag(dag) if strategy == "bennett" else task.eager(dag)
        peak = tally_dag(dag, schedule).peak
        return strategy, Candidate(schedule), least, peak <= least
    if strategy == "best" and dag.sizes is dag.costs is None and dag.is_chain():
        while least_moves(dag, least) > max_moves:
            least += 1
        return "knill", Candidate(knill_chain(len(dag), least)), least, True
    if strategy == "exact" or (strategy == "best" and len(dag) <= EASY):
        try:
            if len(dag) > LIMIT:
                shortest(dag, 0)
            schedule = thriftiest(dag, max_moves, task.stop)
        except TimeoutError:
            if strategy == "exact":
                raise _late(task) from None
        else:
            return "exact", Candidate(schedule), tally_dag(dag, schedule).peak, True
    candidate = squeezed(task, max_moves, least)
    peak = tally_dag(dag, candidate.schedule).peak
    while least < peak and least_moves(dag, least) > max_moves:
        least += 1
    return "search", candidate, least, peak <= least


def _least(dag: Dag) -> int:
    """A proven least budget: on trees without sizes, the very least."""
    if dag.sizes is None and dag.is_tree():
        return fewest_on_tree(dag)
    return least_budget(dag)


def _too_small(task: Task, budget: float, least: int, exact: bool) -> BudgetError:
    """The error for a budget below what is proved to be needed."""
    known = least
    if exact:
        known = tally_dag(task.dag, thriftiest(task.dag, stop=task.stop)).peak
        proved = f"{known:,} is the least"
    elif task.dag.sizes is None and task.dag.is_tree():
        proved = f"{known:,} is the least"
    else:
        known = tally_dag(task.dag, squeezed(task, inf, least).schedule).peak
        proved = f"{known:,} is the least known to suffice, and fewer than {least:,} never suffice"
    return BudgetError(
        "P002",
        f"no schedule keeps within {budget:,.0f}: {proved}",
        values={"budget": budget, "least": known, "bound": known if exact else least},
        hint=f"pebbles={known}",
    )


def _late(task: Task) -> UsageError:
    return UsageError(
        "P012",
        f"the exhaustive search of {len(task.dag)} nodes did not end within the time limit",
        hint='a longer one, or the strategy "search"',
    )


def _wrong(message: str, hint: str = "", **values: object) -> UsageError:
    return UsageError("P001", message, values=values, hint=hint)
