"""`rvm grad`: a function's gradient, its Hessian, and the program that computes them."""

from __future__ import annotations

from typing import Any

import rich_click as click

from rvm_tools.options import (
    bits_option,
    engine_option,
    file_argument,
    function_option,
    run_options,
    values_argument,
)


@click.command("grad")
@file_argument
@values_argument
@function_option
@click.option(
    "--loss", metavar="PLACE", help="The result to differentiate: a real place, such as y or x[2]."
)
@click.option(
    "--wrt",
    metavar="NAMES",
    help="Differentiate only with respect to these parameters, such as x,y.",
)
@click.option("--hessian", is_flag=True, help="Also print the second derivatives.")
@click.option(
    "--check",
    is_flag=True,
    help="Compare with central differences; exit with code 1 if they differ.",
)
@click.option("--error", is_flag=True, help="Estimate the error of each number.")
@click.option("--cost", is_flag=True, help="Print what the runs forwards and back cost, by class.")
@click.option("--back", is_flag=True, help="Differentiate the inverse: the values are the results.")
@click.option("--emit", is_flag=True, help="Print the gradient program instead of running it.")
@engine_option
@run_options
@bits_option
@click.option(
    "--out",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Write the derivatives as .npz or .csv; with a NAME, those with respect to it, also "
    "as .npy or .bin.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(**given: Any) -> None:
    """Differentiate a function at given values, which are written as for `rvm run`.

    The table has dLOSS/dx for every parameter x that carries an adjoint; a complex one is
    dL/dRe + i dL/dIm, that of a log64 is with respect to its logarithm.

    rvm grad norm.rasm y=0 x=[1,2,3] --loss y --check
    """
    from rvm_tools.gradients import GradientRequest, differentiate

    differentiate(GradientRequest(**given))
