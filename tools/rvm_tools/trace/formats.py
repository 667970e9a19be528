"""The formats of a trace, and the command `rvm trace`, which writes one of them."""

from __future__ import annotations

import rich_click as click

from rvm.faults import Fault
from rvm_tools.messages import end, errors_as_json, show_error
from rvm_tools.streams import json_text
from rvm_tools.trace import data, profiles, table
from rvm_tools.trace.run import Trace, TraceRequest, traced


def written(trace: Trace, form: str, by: str) -> str:
    """A trace as text in one of the formats of `rvm trace`; `by` chooses the rows of a table."""
    match form:
        case "table":
            return table.written(trace, by)
        case "json":
            return data.as_json(trace)
        case "csv":
            return data.as_csv(trace, by)
        case "callgrind":
            return profiles.callgrind(trace)
        case "perfetto":
            return profiles.perfetto(trace)
        case "speedscope":
            return profiles.speedscope(trace)
        case "folded":
            return profiles.folded(trace)
        case _:
            raise ValueError(f"there is no format {form!r}")


def trace(request: TraceRequest) -> None:
    """Trace, and print; errors are raised, in JSON printed as an object."""
    try:
        found = traced(request)
    except Fault as error:
        if request.form != "json":
            raise
        click.echo(json_text(errors_as_json(error)))
        end(error.exit_code)
    click.echo(written(found, request.form, request.by))
    if found.interrupted is not None:
        show_error(found.interrupted)
        end(found.interrupted.exit_code)
