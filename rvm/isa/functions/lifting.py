"""The parts of rotations of integers and fixed-point numbers; see `rvm.numbers.lifting`.

Here u is the angle t less the half turns that bring it within a quarter turn.
"""

from __future__ import annotations

from rvm.expr import Expr
from rvm.isa.functions.formulas import Partials, const, enter, fn, select
from rvm.isa.rows import Row
from rvm.isa.rules import FACTOR, by_factor, conditional, elementwise, of_angle
from rvm.numbers.lifting import factor_code
from rvm.types import BOOL


def _codes(part: int) -> dict[str, Row]:
    return {"f64": factor_code(part, None), "fixed": lambda t: factor_code(part, t.frac)}


def _tangent_slope(t: Expr) -> Partials:
    square = fn("square", fn("f64", fn("lift_tan", t)))
    return ((square + const(1, t)) * const(0.5, t),)


def _sine_slope(t: Expr) -> Partials:
    square = fn("square", fn("f64", fn("lift_tan", t)))
    return ((const(1, t) - square) / (const(1, t) + square),)


enter(
    "checked_add x y",
    elementwise("signed"),
    "x + y, which must fit",
    cost="ADDS",
    partials=lambda x, y: (const(1, x), const(1, y)),
    partial="exact",
)
enter(
    "checked_sub x y",
    elementwise("signed"),
    "x - y, which must fit",
    cost="ADDS",
    partials=lambda x, y: (const(1, x), const(-1, y)),
    partial="exact",
)
enter(
    "turned x c",
    conditional,
    "-x if c, which must fit, else x",
    cost="ADDS",
    partials=lambda x, c: (select(c, -1, 1, x), None),
    partial="exact",
)
enter(
    "shear x k",
    by_factor,
    "x * k for a factor k within -1 and 1, rounded to nearest, ties to even",
    cost="MULTS",
    partials=lambda x, k: (k, x),
    partial="exact",
    underflows=True,
)
enter(
    "lift_odd x",
    of_angle(BOOL),
    "whether an odd number of half turns is nearest to x",
    code=_codes(2),
    partial="any",
)
enter(
    "lift_tan t",
    of_angle(FACTOR),
    "tan(u / 2), correctly rounded, where u is t less its half turns",
    partials=_tangent_slope,
    code=_codes(0),
    partial="any",
)
enter(
    "lift_sin t",
    of_angle(FACTOR),
    "sin u, correctly rounded, where u is t less its half turns",
    partials=_sine_slope,
    code=_codes(1),
    partial="any",
)
