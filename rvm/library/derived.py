"""Programs made from others, and gradients held against differences, for callers."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from rvm.library.handle import FunctionHandle, Inputs, Library
from rvm.program import AnyProgram, program_of
from rvm.transform import gradient as differentiate
from rvm.transform import invert as inverse
from rvm.transform import tangent as tangents

if TYPE_CHECKING:
    from rvm.derive.differences import GradCheck


def invert(program: AnyProgram) -> Library:
    """The program whose every function undoes the function of that name."""
    return Library(inverse(program_of(program)))


def gradient(
    program: AnyProgram, function: str | None = None, *, loss: str | None = None
) -> Library:
    """The program that differentiates a function; see `rvm.transform.gradient`."""
    return Library(differentiate(program_of(program), function, loss=loss))


def tangent(program: AnyProgram, function: str | None = None) -> Library:
    """The program that carries tangents along; see `rvm.transform.tangent`."""
    return Library(tangents(program_of(program), function))


def check_grad(
    f: FunctionHandle,
    given: Inputs | None = None,
    /,
    *,
    loss: str,
    wrt: Collection[str] | None = None,
    step: float | None = None,
    tolerance: float | None = None,
    most: int = 200,
    **inputs: Any,
) -> GradCheck:
    """Compare `f.grad` with differences of the loss, extrapolated to steps of zero.

    Inputs go by name, or in the mapping `given`, for names that are taken here.  Every real number
    among them is moved: both parts of a complex one, the logarithm of a `log64`, elements of stacks
    and of arrays (`most` of each, spread evenly).  Central differences are taken with a `step`, a
    part of a number's size or as it is below 1, and with halves of it, and extrapolated; what is
    best by its own error estimate is the quotient, and counts as different beyond that only.
    `tolerance`, in parts of the larger of the two, goes by the coarsest numbers.  Nothing is raised
    for a difference: see `GradCheck`.  Where the function fails near the point, the quotient is
    NaN and the row's note says why.
    """
    from rvm.derive.differences import compared

    target, values = f.target_of(given, inputs)
    return compared(target, values, loss, wrt, step, tolerance, most)
