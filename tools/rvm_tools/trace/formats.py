"""The formats of a trace; which one is written by which module."""

from __future__ import annotations

from rvm_tools.trace import data, profiles, table
from rvm_tools.trace.run import Trace


def written(trace: Trace, form: str, by: str) -> str:
    """A trace as text in one of `tracing.FORMATS`; `by` chooses the rows of a table."""
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
