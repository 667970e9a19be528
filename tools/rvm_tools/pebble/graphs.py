"""`rvm pebble FILE`: a graph from a circuit or a function, planned and compared."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any

from rvm.faults import RvmError, UsageError
from rvm.host.bar import LateBar
from rvm.pebble import Dag, DagPlan, dag_of, parse_bench, plan_dag
from rvm.pebble.graphs.bounds import least_budget
from rvm.pebble.graphs.exact import EASY
from rvm.pebble.graphs.search import Progress
from rvm_tools.pebble.report import Rival
from rvm_tools.pebble.request import SEARCH, PebbleRequest
from rvm_tools.programs import load_program, pick_function, read_text

_POINTS = 8
"""About how many budgets a curve has, each of which takes a search."""


def graph_of(request: PebbleRequest) -> Dag:
    """The graph in a file, with the requested costs and sizes."""
    assert request.file is not None
    if Path(request.file).suffix == ".bench":
        dag = parse_bench(read_text(request.file), request.file)
    else:
        program, function = pick_function(load_program(request.file), request.function)
        dag = dag_of(program, function.name)
    for field in ("sizes", "costs"):
        given = request.terms.get(field)
        if given is not None:
            dag = replace(dag, **{field: _by_node(dag, given, field)})
    return dag


def _by_node(dag: Dag, given: Any, field: str) -> tuple[Any, ...]:
    """Numbers for all nodes; if they are given by names, 1 for those that are not named."""
    if isinstance(given, Mapping):
        names = {dag.name(v) for v in range(len(dag))}
        for name in given:
            if name not in names:
                raise UsageError("P001", f"the graph has no node `{name}`, which has {field}")
        return tuple(given.get(dag.name(v), 1) for v in range(len(dag)))
    return tuple(given)


def planned(request: PebbleRequest, dag: Dag, **other: Any) -> DagPlan:
    """The requested plan, with a bar on a terminal during the search.

    Ctrl-C ends the search with the best plan so far, whose notes say so.
    """
    terms = {**request.chosen("pebbles", "max_moves", "strategy", *SEARCH), **other}
    memory = request.terms.get("memory")
    terms = {k: v for k, v in terms.items() if v is not None}
    if memory is not None and not {"pebbles", "max_moves"} & set(other):
        if dag.sizes is None:
            raise UsageError(
                "P001",
                "a budget of bytes needs the sizes of nodes",
                hint="--sizes, or --pebbles for a number of nodes",
            )
        terms["pebbles"] = memory
    with _bar(terms.get("time_limit")) as progress:
        return plan_dag(dag, **terms, progress=progress)


def compared(request: PebbleRequest, dag: Dag, own: DagPlan, took: float | None) -> list[Rival]:
    """The plan beside lower bounds, and beside the optimum if that takes only seconds."""
    rows = []
    names = ["bennett", "eager", *(["exact"] if len(dag.live()) <= EASY else [])]
    for name in names:
        if name == own.strategy:
            continue
        begin = perf_counter()
        try:
            # The floors have no budget here: they show what there is to save.
            floor = {"pebbles": None, "max_moves": inf}
            found = planned(request, dag, strategy=name, **(floor if name != "exact" else {}))
        except RvmError as error:
            rows.append(Rival(name, None, perf_counter() - begin, error))
        else:
            rows.append(Rival(name, found, perf_counter() - begin))
    return [*rows, Rival(own.strategy, own, took, own=True)]


def ladder(request: PebbleRequest, dag: Dag) -> list[DagPlan]:
    """Plans for budgets from the least known to that of the floors, by rising budgets."""
    without = dict.fromkeys(("pebbles", "max_moves"))
    top = planned(request, dag, **{**without, "max_moves": dag.floor(), "strategy": "best"})
    least = planned(request, dag, **{**without, "max_moves": inf, "strategy": "best"})
    low, high = least.cost.peak, top.cost.peak
    budgets = sorted({round(low + (high - low) * k / (_POINTS - 1)) for k in range(1, _POINTS - 1)})
    found = [least, top]
    for budget in budgets:
        if low < budget < high:
            found.append(planned(request, dag, **{**without, "pebbles": budget}))
    return sorted(found, key=lambda p: p.cost.peak)


def overview(dag: Dag) -> list[tuple[str, str]]:
    """The properties of a graph, without a budget."""
    floors = [plan_dag(dag, max_moves=inf, strategy=name) for name in ("bennett", "eager")]
    live = len(dag.live())
    nodes = f"{len(dag):,}, {len(dag.outputs):,} outputs, {dag.depth():,} deep"
    if live < len(dag):
        nodes += f"; {len(dag) - live:,} are needed for no output"
    return [
        ("nodes", nodes),
        ("cost" if dag.costs else "moves", f"{dag.floor():,} at least"),
        ("pebbles", f"{least_budget(dag.part(dag.live())):,} at least"),
        *((p.strategy, f"{p.cost.moves:,} moves with {p.cost.peak:,} pebbles") for p in floors),
    ]


def curve(plans: Sequence[DagPlan]) -> list[tuple[str, list[tuple[float, float]]]]:
    """The best known cost by the amount held, and its proven bound."""
    best = [(float(p.cost.peak), float(p.cost.cost)) for p in plans]
    bound = [(float(p.cost.peak), float(p.bound)) for p in plans if p.budget < inf]
    return [("best known", best), ("proven bound", bound)] if bound else [("best known", best)]


# ---------------------------------------------------------------- progress


@contextmanager
def _bar(limit: float | None) -> Iterator[Progress | None]:
    """A bar on standard error, if that is a terminal and the search turns out to be long."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(limit)
    try:
        yield bar
    finally:
        bar.close()


class _Bar(LateBar):
    """The progress of a search."""

    def __init__(self, limit: float | None) -> None:
        super().__init__("searching", 1.0)
        self.limit = limit

    def __call__(self, fraction: float, moves: int, peak: int) -> None:
        done = self.passed / self.limit if self.limit else fraction
        best = f"{moves:,} moves so far" if moves else f"{peak:,} pebbles so far"
        self.show(min(done, 1.0), f"{best}; Ctrl-C takes it")
