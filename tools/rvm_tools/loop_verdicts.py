"""The output of `rvm run --explain-vector`: a verdict on every loop that a run may reach."""

from __future__ import annotations

import json
from collections.abc import Sequence

import rich_click as click

from rvm.engines.vector.explain import Verdict, explain
from rvm.image import image_of
from rvm.program import Program
from rvm_tools.programs import load_program, pick_function

_MAX_LOOP = 40
"""The most characters that are shown of a loop's head."""


def explain_vector(file: str, function: str | None, as_json: bool) -> None:
    """Print which loops are vectorised, and the reasons for declining the others."""
    program = load_program(file)
    program, picked = pick_function(program, function)
    name = picked.name
    verdicts = explain(program, image_of(program).reachable(name))
    if as_json:
        click.echo(json.dumps({"loops": [_object(program, v) for v in verdicts]}))
        return
    if not verdicts:
        click.echo("no loops")
        return
    for line in _table(program, verdicts):
        click.echo(line)


def _table(program: Program, verdicts: Sequence[Verdict]) -> list[str]:
    """A line a loop, under the name of its function."""
    heads = [_head(program, v) for v in verdicts]
    wide = max(map(len, heads))
    out: list[str] = []
    mapped: list[str] = []
    function = ""
    for verdict, head in zip(verdicts, heads, strict=True):
        if verdict.function != function:
            function = verdict.function
            out.append(f"{function}:")
        line, way = verdict.span.line, verdict.direction
        out.append(f"  {line:>4}  {head:<{wide}}  {way:<9}  {verdict}")
        named = function.partition(".map")[0]
        if named != function and not verdict.vectorised and named not in mapped:
            mapped.append(named)
    if mapped:
        calls = (name if name.isidentifier() else f'lib["{name}"]' for name in mapped)
        names = ", ".join(f"`{call}.map(…)`" for call in calls)
        out += [
            "",
            f"Elements that `map` takes one by one are done together by {names} from Python.",
        ]
    return out


def _head(program: Program, verdict: Verdict) -> str:
    """The source text of a loop's first line, cut short if it is long."""
    sources = program.sources
    if not 0 <= verdict.span.source < len(sources):
        return "loop"
    text = (sources[verdict.span.source].line(verdict.span.line) or "").split(";")[0].strip()
    return text if len(text) <= _MAX_LOOP else text[: _MAX_LOOP - 1] + "…"


def _object(program: Program, verdict: Verdict) -> dict[str, object]:
    return {
        "function": verdict.function,
        "line": verdict.span.line,
        "loop": _head(program, verdict),
        "direction": verdict.direction,
        "vectorised": verdict.vectorised,
        "reason": verdict.reason,
    }
