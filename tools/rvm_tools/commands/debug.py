"""`rvm debug`: a function under a debugger that runs in both directions."""

from __future__ import annotations

from typing import Any

import rich_click as click

from rvm_tools.options import (
    engine_option,
    file_argument,
    function_option,
    run_options,
    values_argument,
)


@click.command("debug")
@file_argument
@values_argument
@function_option
@click.option("--back", is_flag=True, help="Debug the inverse: the values are the results.")
@click.option(
    "--gradient",
    metavar="LOSS",
    help="Debug the gradient of this place of the results, with adjoints beside values.",
)
@click.option(
    "-x",
    "--script",
    "scripts",
    multiple=True,
    type=click.Path(),
    metavar="SCRIPT",
    help="Commands to begin with, one a line; may be given several times.",
)
@click.option("--batch", is_flag=True, help="Plain text, no prompt: scripts, or standard input.")
@click.option("--json", "as_json", is_flag=True, help="Like --batch, but print one JSON object.")
@click.option("--tui", is_flag=True, help="On a full screen (needs the extra `tui`).")
@click.option(
    "--energy",
    metavar="MODEL",
    default="landauer",
    help="The energy model: landauer (the default), cmos, adiabatic or FILE.toml.",
)
@click.option(
    "--keyframes",
    type=click.IntRange(min=1),
    default=256,
    show_default=True,
    metavar="MB",
    help="The memory limit for states of the past, which are kept where rounding loses bits.",
)
@engine_option
@run_options
def command(**given: Any) -> None:
    """Step, run and search a function forwards and backwards.

    Values are written as for `rvm run`.  At the prompt `help` lists the commands; steps and
    searches have an opposite: s and rs, c and rc, last and next.

    rvm debug sort.rasm x=[3,1,2] p=[0,0,0]
    """
    from rvm_tools.debug.front import DebugRequest, debug

    debug(DebugRequest(**given))
