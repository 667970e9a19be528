"""Programs made from others, and the comparison of gradients with finite differences."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Any

from rvm.host.signals import asked
from rvm.library.handle import FunctionHandle, Inputs, Library
from rvm.program import AnyProgram, program_of
from rvm.run.doors import UNCHANGED
from rvm.transform import gradient as differentiate
from rvm.transform import invert as inverse
from rvm.transform import tangent as tangents

if TYPE_CHECKING:
    from rvm.derive.differences import GradCheck


@asked
def invert(program: AnyProgram) -> Library:
    """The program in which every function is the inverse of the function of that name."""
    return Library(inverse(program_of(program)))


@asked
def gradient(
    program: AnyProgram, function: str | None = None, *, loss: str | None = None
) -> Library:
    """The program that computes the gradient of a function; see `rvm.transform.gradient`."""
    return Library(differentiate(program_of(program), function, loss=loss))


@asked
def tangent(program: AnyProgram, function: str | None = None) -> Library:
    """The program that computes tangents of a function; see `rvm.transform.tangent`."""
    return Library(tangents(program_of(program), function))


@partial(asked, hint=UNCHANGED)
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
    """Compare `f.grad` with finite differences of the loss, extrapolated to step zero.

    Inputs are given by name, or in the mapping `given` where a name is an option here.  Every real
    number among them is varied: both parts of a complex number, the logarithm of a `log64`,
    elements of stacks and of arrays (`most` of each, evenly spread).  Central differences are taken
    with a `step`, relative to the number's size (absolute below 1; at least eight units of a
    `fixed` number), and with its successive halves, and extrapolated; the entry with the smallest
    error estimate is the quotient.  A number differs only if it is off by more than this estimate
    and by more than `tolerance`, which is relative to the larger of the two and has a default for
    the coarsest number type.  A difference raises no error: see `GradCheck`.  Where the function
    fails near the point, the quotient is NaN and the row's note says why; where it fails however
    little the number is moved, up or down, there is nothing to compare, and the number does not
    count as different.
    """
    from rvm.derive.differences import compared

    target, values = f.target_of(given, inputs)
    return compared(target, values, loss, wrt, step, tolerance, most)
