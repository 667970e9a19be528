"""The output of `rvm pebble` for a request, printed and written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain as joined
from math import inf
from time import perf_counter
from typing import Any

import rich_click as click

from rvm.faults import RvmError, UsageError
from rvm.pebble import Dag, DagPlan, Kind, Plan, actions_of, load
from rvm.pebble.drawing.diagrams import chart
from rvm.pebble.drawing.pictures import plot
from rvm_tools.cli import INTERRUPTED_EXIT
from rvm_tools.messages import end, errors_as_json
from rvm_tools.pebble import chains, graphs
from rvm_tools.pebble.report import (
    Rival,
    chain_json,
    chain_table,
    dag_json,
    dag_table,
    finite,
    number,
    rows_json,
)
from rvm_tools.pebble.request import BUDGETS, PebbleRequest, in_options, request_of
from rvm_tools.programs import unreadable, unwritable, written
from rvm_tools.runs import page_width
from rvm_tools.streams import json_text

_LINES = 24
"""The number of lines of a picture if there is no terminal."""
_INTERRUPTED = "the search was interrupted"


def answer(given: dict[str, Any]) -> None:
    """Carry out what the options request."""
    try:
        _Answer(request_of(given)).given()
    except RvmError as error:
        if not given["as_json"]:
            raise in_options(error) from None
        click.echo(json_text(errors_as_json(in_options(error))))
        end(error.exit_code)


class _Answer:
    """The parts of an answer, as text or as one object."""

    def __init__(self, request: PebbleRequest) -> None:
        self.request = request
        self.object: dict[str, Any] = {}
        self.parts: list[str] = []

    def given(self) -> None:
        """Make the plan, and print the requested output."""
        request = self.request
        plan: Plan | DagPlan | None
        if request.file is None or request.step is not None:
            plan = self._chain()
        elif request.kept:
            plan = self._kept(request.file)
        else:
            plan = self._graph()
        if plan is not None:
            self._outputs(plan)
        self._put_out(plan)
        if isinstance(plan, DagPlan) and _INTERRUPTED in plan.notes:
            end(INTERRUPTED_EXIT)

    # ------------------------------------------------------------ kinds of plans

    def _chain(self) -> Plan:
        request = self.request
        begin = perf_counter()
        plan = chains.planned(request)
        took = perf_counter() - begin
        self._described(chain_json(plan), plan.describe())
        if self._comparing():
            self._table(chains.compared(request, plan, took), chain_table)
        return plan

    def _kept(self, file: str) -> Plan | DagPlan:
        try:
            plan = load(file)
        except OSError as error:
            raise unreadable(file, error) from None
        described = chain_json(plan) if isinstance(plan, Plan) else dag_json(plan)
        self._described(described, plan.describe())
        if self.request.compare:
            self._compare_kept(plan)
        return plan

    def _compare_kept(self, plan: Plan | DagPlan) -> None:
        """The plan among others for the budget for which it was made."""
        if isinstance(plan, Plan):
            terms: dict[str, float] = {"pebbles": int(min(plan.rules.pebbles, plan.n))}
            if plan.units.price:
                terms["price"] = plan.units.price
            rows = chains.compared(replace(self.request, terms=terms), plan, None)
            self._table(rows, chain_table)
            return
        budget = {"pebbles": plan.budget} if plan.budget < inf else {"max_moves": plan.cost.cost}
        rows = graphs.compared(replace(self.request, terms=budget), plan.dag, plan, None)
        self._table(rows, dag_table)

    def _graph(self) -> DagPlan | None:
        request = self.request
        dag = graphs.graph_of(request)
        if not request.chosen(*BUDGETS):
            self._without_budget(dag)
            return None
        begin = perf_counter()
        plan = graphs.planned(request, dag)
        took = perf_counter() - begin
        self._described(dag_json(plan), plan.describe())
        if self._comparing() and _INTERRUPTED not in plan.notes:
            self._table(graphs.compared(request, dag, plan, took), dag_table)
        return plan

    def _without_budget(self, dag: Dag) -> None:
        if self.request.picture or self.request.actions or self.request.save or self.request.emit:
            raise UsageError("P001", "a plan needs a budget", hint="pebbles= or max_moves=")
        found = graphs.overview(dag)
        self.object |= {"kind": "graph", **dict(found)}
        width = max(len(word) for word, _ in found)
        self.parts.append("\n".join(f"{word:<{width}}  {text}" for word, text in found))
        if self.request.plot:
            self._ladder(dag)
        else:
            self.parts.append(
                "A plan needs a budget: --pebbles or --time; --plot shows a range of them."
            )

    def _ladder(self, dag: Dag) -> None:
        plans = graphs.ladder(self.request, dag)
        series = graphs.curve(plans)
        unit = "cost" if dag.costs is not None else "moves"
        self.object["curve"] = finite([dag_json(p) for p in plans])
        title = f"{len(dag):,} nodes: memory against time"
        self._drawn(
            None,
            lambda: plot(series, "pebbles", unit, page_width(), _lines_of_page()),
            lambda: chart(title, series, "pebbles", unit, dag.floor()),
        )

    # ------------------------------------------------------------ what else was asked for

    def _comparing(self) -> bool:
        """Whether other strategies are shown: if requested, or if nothing else is."""
        request = self.request
        if request.compare is not None:
            return request.compare
        named = request.terms.get("strategy") not in (None, "optimal", "best")
        return not (request.quiet or request.as_json or named or request.emit)

    def _outputs(self, plan: Plan | DagPlan) -> None:
        request = self.request
        if isinstance(plan, DagPlan) and request.plot:
            self._ladder(plan.dag)
        elif isinstance(plan, Plan) and request.plot:
            found = chains.curve(request, plan)
            self.object["curve"] = finite(dict(found.curves()))
            self._drawn(None, lambda: found.plot(page_width(), _lines_of_page()), found.svg)
        if request.picture:
            self._drawn("picture", lambda: plan.picture(page_width(), _lines_of_page()), plan.svg)
        if request.check or (request.kept and not request.quiet):
            self._checked(plan)
        if request.save is not None:
            try:
                plan.save(request.save)
            except OSError as error:
                raise unwritable(request.save, error) from None
            self._wrote("saved", request.save)
        if request.emit is not None:
            from rvm_tools.pebble.emission import emitted

            told = emitted(request, plan)
            self._wrote("emitted", request.emit, told)

    def _checked(self, plan: Plan | DagPlan) -> None:
        tally = plan.check()
        self.object["checked"] = True
        moves, peak = number(tally.moves), number(tally.peak)
        self.parts.append(f"played by the rules: {moves} moves, a peak of {peak}, as predicted")

    def _described(self, found: dict[str, Any], text: str) -> None:
        self.object |= found
        if not self.request.actions:
            first, *rest = text.split("\n")
            self.parts.append("\n".join([click.style(first, bold=True), *rest]))

    def _table(self, rows: list[Rival], table: Callable[[list[Rival]], list[str]]) -> None:
        self.object["strategies"] = rows_json(rows)
        if len(rows) == 1:
            return
        head, *lines = table(rows)
        self.parts.append("\n".join([click.style(head, bold=True), *lines]))

    def _drawn(self, key: str | None, text: Callable[[], str], svg: Callable[[], str]) -> None:
        """A picture: to the file that was named, else as text; with a key, in the object too."""
        out = self.request.out
        if out is None:
            if not self.request.as_json:
                self.parts.append(text())
            elif key is not None:
                self.object[key] = text().split("\n")
            return
        with written(out) as file:
            file.write(svg().encode())
        self._wrote("drawn", out)

    def _wrote(self, key: str, path: str, told: str = "") -> None:
        self.object[key] = path
        if not self.request.as_json:
            click.echo(f"{key}: {path}{told and f', {told}'}", err=True)

    # ------------------------------------------------------------ output

    def _put_out(self, plan: Plan | DagPlan | None) -> None:
        if not self.request.as_json:
            if self.parts:
                click.echo("\n\n".join(self.parts))
            if self.request.actions and plan is not None:
                _stream(f"{line}\n" for line in _lines(plan))
            return
        text = json_text(finite(self.object))
        if not self.request.actions or plan is None:
            click.echo(text)
            return
        # A schedule may be longer than memory: its object is put out piece by piece.
        click.echo(text[:-1] + ', "actions": [', nl=False)
        _stream(_commas(_listed(plan)))
        click.echo("]}")


def _lines_of_page() -> int | None:
    """The height of a picture; None for that of the terminal, if there is one."""
    return None if sys.stdout.isatty() else _LINES


def _lines(plan: Plan | DagPlan) -> Iterator[str]:
    """A schedule as text: an action a line."""
    if isinstance(plan, Plan):
        return map(repr, plan.actions())
    return (f"{'+' if placed else '-'}{plan.dag.name(node)}" for placed, node in plan.moves())


def _listed(plan: Plan | DagPlan) -> Iterator[str]:
    """A schedule as JSON: ["Advance", 0, 1] for an action, "+a" and "-a" for moves on a graph."""
    if isinstance(plan, DagPlan):
        return (json_text(line) for line in _lines(plan))
    names = [kind.name.capitalize() for kind in Kind]
    found = joined.from_iterable(actions_of(block) for block in plan.blocks())
    return (f'["{names[a.kind]}", {a.start}, {a.stop}]' for a in found)


def _commas(items: Iterable[str]) -> Iterator[str]:
    for k, item in enumerate(items):
        yield item if k == 0 else f", {item}"


def _stream(pieces: Iterable[str]) -> None:
    """Put out pieces of text, many at a time."""
    out = sys.stdout
    buffer: list[str] = []
    for piece in pieces:
        buffer.append(piece)
        if len(buffer) >= 4096:
            out.write("".join(buffer))
            buffer.clear()
    out.write("".join(buffer))
    out.flush()
