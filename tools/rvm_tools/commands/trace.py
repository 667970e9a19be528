"""`rvm trace`: executed instructions, erased bits and costs of a run, by opcode, line, function."""

from __future__ import annotations

from typing import Any

import rich_click as click
from click.shell_completion import CompletionItem

from rvm_tools.options import (
    STEPS,
    OneOf,
    bits_option,
    engine_option,
    file_argument,
    function_option,
    run_options,
    values_argument,
)


def _models(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from rvm_tools.trace.energy import MODELS

    files = CompletionItem(incomplete, type="file")
    return [*(CompletionItem(n) for n in MODELS if n.startswith(incomplete)), files]


@click.command("trace")
@file_argument
@values_argument
@function_option
@click.option(
    "--by",
    type=OneOf(["opcode", "line", "function"]),
    default="line",
    help="The rows of a table: source lines (the default), opcodes or functions.",
)
@click.option(
    "--energy",
    default="landauer",
    metavar="MODEL",
    shell_complete=_models,
    help="landauer (the default), cmos, adiabatic or FILE.toml; `cmos:step=7e-11` sets a number.",
)
@click.option(
    "--from", "begin", type=STEPS, default=0, metavar="T", help="Count from this time on (0)."
)
@click.option(
    "--to", "end", type=STEPS, metavar="T", help="Count up to this time; by default to the end."
)
@click.option(
    "--format",
    "form",
    type=OneOf(["table", "json", "csv", "callgrind", "perfetto", "speedscope", "folded"]),
    default="table",
    help="A table (the default), data, or a file for another tool.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format=json.")
@click.option("--back", is_flag=True, help="Run backwards: the values are the results.")
@click.option(
    "--gradient",
    metavar="PLACE",
    help="Trace the gradient of this loss, including the forward run.",
)
@click.option(
    "--keep-stacks",
    is_flag=True,
    help="Count the final contents of stacks and of the strict log as results, not as erased.",
)
@engine_option
@run_options
@bits_option
@click.option(
    "--explain-engine",
    is_flag=True,
    help="Run nothing; print which engine would count this, why, and what it would leave to "
    "another.",
)
def command(as_json: bool, explain_engine: bool, **given: Any) -> None:
    """Count what a run executes, erases and costs.

    Values are written as for `rvm run`.  Tables show executed instructions, operations by class,
    checks, erased bits and energy; docs/energy.md says what they mean.

    rvm trace norm.rasm y=0 x=[1,2,3] --by opcode --energy cmos
    """
    if explain_engine:
        from rvm_tools import engine_choice

        engine_choice.explain_engine(
            given["file"],
            given["function"],
            given["engine"],
            given["strict"],
            given["bits"],
            as_json or given["form"] == "json",
        )
        return
    from rvm_tools.trace.formats import trace
    from rvm_tools.trace.run import TraceRequest

    if given["end"] is not None and given["end"] < given["begin"]:
        raise click.BadParameter("the window ends before it begins", param_hint="--to")
    if as_json:
        given["form"] = "json"
    trace(TraceRequest(**given))
