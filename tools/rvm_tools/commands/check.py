"""`rvm check`: all checks of a program that need no knowledge of its purpose."""

from __future__ import annotations

from typing import Any

import rich_click as click

from rvm_tools.options import STEPS, bits_option, file_argument, function_option, values_argument


@click.command("check")
@file_argument
@values_argument
@function_option
@click.option(
    "--engine", "engines", multiple=True, metavar="NAME", help="Only this engine; by default all."
)
@click.option("--strict", is_flag=True, help="Run strictly, and report the residue log's size.")
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    metavar="X",
    help="How far floats may be from where they were, in parts of themselves.",
)
@click.option(
    "--runs",
    type=click.IntRange(min=0),
    default=4,
    metavar="N",
    help="Runs on generated inputs for a function without `;! run` lines (4).",
)
@click.option("--seed", type=int, default=0, metavar="N", help="What generated inputs begin from.")
@click.option(
    "--max-steps",
    type=STEPS,
    default=20_000,
    metavar="N",
    help="Where a run on generated inputs turns back (20000).",
)
@bits_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(**given: Any) -> None:
    """Check a program: statically, then forwards and backwards.

    Every `;! run` line is run on every engine to the end, compared with what it expects, and run
    back to the start.  Functions without such lines get generated inputs; with NAME=VALUE, one
    function is run on the given ones instead.
    """
    from rvm_tools.checks import CheckRequest, check

    check(CheckRequest(**given))
