"""`rvm run`: a function on given values, forwards, backwards, or there and back."""

from __future__ import annotations

from typing import Any

import rich_click as click

from rvm_tools.options import (
    OneOf,
    bits_option,
    engine_option,
    file_argument,
    function_option,
    run_options,
    values_argument,
)


@click.command("run")
@file_argument
@values_argument
@function_option
@click.option("--back", is_flag=True, help="Run backwards: the values are the results.")
@click.option(
    "--round-trip",
    is_flag=True,
    help="Run to the end and back again, and check that every bit is restored.",
)
@click.option("--error", is_flag=True, help="Estimate the error of each number.")
@engine_option
@run_options
@bits_option
@click.option(
    "--on-error",
    type=OneOf(["back", "stop"]),
    default="back",
    help="back (the default): print no values after an error; stop: print those at the "
    "failing instruction.",
)
@click.option(
    "--out",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Write the results as .npz, .json or .csv; with a NAME, one of them, also as .npy or "
    ".bin (its bytes), or to standard output (`-`).",
)
@click.option(
    "--explain-engine",
    is_flag=True,
    help="Run nothing; print which engine would run this, why, and what it would leave to another.",
)
@click.option(
    "--explain-vector",
    is_flag=True,
    help="Run nothing; print which loops the vector engine vectorises, and why it declines "
    "the others.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(explain_vector: bool, explain_engine: bool, **given: Any) -> None:
    """Run a function and print its parameters.

    A VALUE is a number (3, 1.5, 2+1j, true), [a, list], {field: value}, zeros(5), ones(2,3),
    range(10), text:hello, or @path to a .npy, .npz, .csv or .json file (@file.npz:name picks one
    of it); @raw:path has the bytes of any file, @- those of standard input.
    A bare @file.npz or @file.json gives all parameters by name.

    rvm run norm.rasm y=0 r=0 x=[1,2,3] --round-trip
    """
    if explain_vector:
        from rvm_tools import loop_verdicts

        loop_verdicts.explain_vector(given["file"], given["function"], given["as_json"])
        return
    if explain_engine:
        from rvm_tools import engine_choice

        asked = (given[k] for k in ("file", "function", "engine", "strict", "bits", "as_json"))
        engine_choice.explain_engine(*asked)
        return
    from rvm_tools.runs import RunRequest, run

    run(RunRequest(**given))
