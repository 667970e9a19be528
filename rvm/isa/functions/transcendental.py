"""Exponentials, logarithms, trigonometric and hyperbolic functions.

Of real numbers they are texts over leaf operations (`rvm.numbers.elementary`), of complex ones
texts over those (`rvm.numbers.complex_functions`, `rvm.numbers.elementary.parts`); of fixed-point
numbers they are correctly rounded (`rvm.numbers.fixedpoint_functions`).
"""

from __future__ import annotations

import math
from importlib import import_module
from types import ModuleType

from rvm.expr import Const, Expr
from rvm.isa.functions.complexes import by_body
from rvm.isa.functions.formulas import Partials, const, enter, fn, is_complex
from rvm.isa.rules import elementwise, logarithm, of
from rvm.leaf.trace import apply
from rvm.numbers.code import Codes, moved
from rvm.numbers.complex_functions import by_parts
from rvm.types import C128, F64, LOG64


def written(name: str) -> Codes:
    """The code on complex numbers by the body of this name in `rvm.numbers.elementary.parts`."""
    return by_body(name, by_parts(lambda z: getattr(_parts(), name)(z)))


def _parts() -> ModuleType:
    return import_module("rvm.numbers.elementary.parts")


def _tan(x: Expr) -> Partials:
    # A complex cosine may overflow.
    secant = fn("sech", _turned(x)) if is_complex(x) else const(1, x) / fn("cos", x)
    return (fn("square", secant),)


def _atan(x: Expr) -> Partials:
    # As a square, since 1 + x^2 would overflow, or its square in the next derivative.
    root = fn("leg", _turned(x)) if is_complex(x) else fn("hypot", x, const(1, x))
    return (fn("square", const(1, x) / root),)


def _leg(x: Expr) -> Partials:
    if not is_complex(x):
        return (-(x / fn("leg", x)),)
    # Far away x / leg(x) is near i or -i, and its derivatives would cancel: there leg(x) is
    # -i x leg(1 / x), or below the real axis i x leg(1 / x), at a zero with a sign on its side.
    far, one, y = fn(">", fn("abs2", x), 4.0), const(1, x), fn("imag", x)
    below = fn("|", fn("<", y, 0.0), fn("<", 1.0 / y, 0.0))
    near = fn("select", far, one / fn("select", far, x, one), x)
    side = fn("select", below, const(-1j, x), const(1j, x))
    return (-(fn("select", far, side, x) / fn("leg", near)),)


def _turned(z: Expr) -> Expr:
    # A product by i would have NaN from infinite parts.
    return fn("complex", -fn("imag", z), fn("real", z))


def _bell(x: Expr) -> Expr:
    """exp(-x * x), which is 0 from 28 on: beyond, derivatives of the square might be infinite."""
    near = fn("max", fn("min", x, const(64, x)), const(-64, x))
    return fn("exp", -fn("square", near))


def _below(x: Expr) -> Expr:
    """The distance of an argument of `lgamma` from the whole number below, 0 at poles."""
    return x - fn("floor", x)


def _atan2(y: Expr, x: Expr) -> Partials:
    h = fn("hypot", y, x)
    return (fn("versor", x, y) / h, -fn("versor", y, x) / h)


enter(
    "exp x",
    elementwise("field"),
    "e to the power x",
    partials=lambda x: (fn("exp", x),),
    partial="exact",
    underflows=True,
)
enter(
    "log x",
    logarithm,
    "the natural logarithm; of a log64 the f64 that it holds",
    partials=lambda x: (const(1, x) / x,),
    partial="exact",
    cuts="complex",
)
enter(
    "log2 x",
    elementwise("field"),
    "the logarithm to the base 2",
    partials=lambda x: (const(1 / math.log(2), x) / x,),
    pole=lambda x: x,
    code=written("log2"),
    partial="exact",
    cuts="complex",
)
enter(
    "expm1 x",
    elementwise("field"),
    "e**x - 1, exact to the last digits near 0",
    partials=lambda x: (fn("exp", x),),
    partial="exact",
)
enter(
    "log1p x",
    elementwise("field"),
    "log(1 + x), exact to the last digits near 0",
    partials=lambda x: (const(1, x) / (const(1, x) + x),),
    code=written("log1p"),
    partial="exact",
    cuts="complex",
)
enter("sin x", elementwise("field"), "the sine of x radians", partials=lambda x: (fn("cos", x),))
enter("cos x", elementwise("field"), "the cosine of x radians", partials=lambda x: (-fn("sin", x),))
enter(
    "cis x",
    of(F64, result=C128),
    "cos x + i sin x",
    partials=lambda x: (fn("cis", x) * Const(1j),),
    code=by_body("cis", lambda x: apply("complex", *_parts().cis(x)), "f64"),
)
enter("tan x", elementwise("field"), "the tangent of x radians", partials=_tan)
enter(
    "leg x",
    elementwise("field"),
    "sqrt(1 - x * x), without cancellation near 1 and -1",
    partials=_leg,
    partial="exact",
    cuts="complex",
)
enter(
    "asin x",
    elementwise("field"),
    "the arc sine, in [-pi/2, pi/2]",
    partials=lambda x: (const(1, x) / fn("leg", x),),
    partial="exact",
    cuts="complex",
)
enter(
    "acos x",
    elementwise("field"),
    "the arc cosine, in [0, pi]",
    partials=lambda x: (const(-1, x) / fn("leg", x),),
    partial="exact",
    cuts="complex",
)
enter(
    "atan x",
    elementwise("field"),
    "the arc tangent, in [-pi/2, pi/2]",
    partials=_atan,
    cuts="complex",
)
enter(
    "atan2 y x",
    elementwise("real"),
    "the angle of the point (x, y), given as atan2(y, x)",
    partials=_atan2,
    pole=lambda y, x: fn("hypot", y, x),
    underflows=True,
    cuts="real",
)
enter(
    "sinh x",
    elementwise("field"),
    "the hyperbolic sine",
    partials=lambda x: (fn("cosh", x),),
    partial="exact",
)
enter(
    "cosh x",
    elementwise("field"),
    "the hyperbolic cosine",
    partials=lambda x: (fn("sinh", x),),
    partial="exact",
)
enter(
    "tanh x",
    elementwise("field"),
    "the hyperbolic tangent",
    partials=lambda x: (fn("square", fn("sech", x)),),
)
enter(
    "exp2 x",
    elementwise("real"),
    "2 to the power x",
    partials=lambda x: (fn("exp2", x) * const(math.log(2), x),),
    partial="exact",
    underflows=True,
)
enter(
    "log10 x",
    elementwise("real"),
    "the logarithm to the base 10",
    partials=lambda x: (const(1 / math.log(10), x) / x,),
    pole=lambda x: x,
    partial="exact",
)
enter(
    "cbrt x",
    elementwise("real"),
    "the cube root, of negative numbers too",
    partials=lambda x: (const(1, x) / (const(3, x) * fn("square", fn("cbrt", x))),),
)
enter(
    "asinh x",
    elementwise("real"),
    "the inverse of the hyperbolic sine",
    partials=lambda x: (const(1, x) / fn("hypot", x, const(1, x)),),
)
enter(
    "acosh x",
    elementwise("real"),
    "the inverse of the hyperbolic cosine, not negative",
    partials=lambda x: (const(1, x) / (fn("sqrt", x - const(1, x)) * fn("sqrt", x + const(1, x))),),
    partial="exact",
)
enter(
    "atanh x",
    elementwise("real"),
    "the inverse of the hyperbolic tangent",
    # The derivatives of (1 - x)(1 + x) would cancel near 0.
    partials=lambda x: (fn("square", const(1, x) / fn("leg", x)),),
    partial="exact",
)
enter(
    "sigmoid x",
    elementwise("real"),
    "1 / (1 + exp(-x)), the logistic function",
    # The derivatives of sigmoid(x) sigmoid(-x) would cancel near 0.
    partials=lambda x: (fn("square", const(0.5, x) * fn("sech", const(0.5, x) * x)),),
    underflows=True,
)
enter(
    "softplus x",
    elementwise("real"),
    "log(1 + exp(x)), which does not overflow",
    partials=lambda x: (fn("sigmoid", x),),
    underflows=True,
)
enter(
    "erf x",
    elementwise("real"),
    "the error function",
    partials=lambda x: (const(2 / math.sqrt(math.pi), x) * _bell(x),),
)
enter(
    "erfc x",
    elementwise("real"),
    "1 - erf(x), exact to the last digits where it is small",
    partials=lambda x: (const(-2 / math.sqrt(math.pi), x) * _bell(x),),
    underflows=True,
)
enter(
    "lgamma x",
    elementwise("real"),
    "the logarithm of the absolute value of the gamma function; inf at its poles",
    partials=lambda x: (fn("digamma", x),),
    pole=_below,
    partial="exact",
    cancels=True,
)
enter(
    "digamma x",
    elementwise("real"),
    "the derivative of `lgamma`",
    partials=lambda x: (fn("polygamma", 1, x),),
    pole=_below,
    partial="exact",
    cancels=True,
)
enter(
    "polygamma n x",
    elementwise("real"),
    "the n-th derivative of `digamma` at x, for a whole number n from 0 to 12; NaN for others",
    partials=lambda n, x: (None, fn("polygamma", n + const(1, n), x)),
    pole=lambda n, x: _below(x),
    partial="exact",
    cancels=True,
    underflows=True,
)
enter(
    "sech x",
    elementwise("field"),
    "the hyperbolic secant, 1 / cosh x",
    partials=lambda x: (-(fn("sech", x) * fn("tanh", x)),),
    underflows=True,
)
enter(
    "exp_log64 x",
    of(F64, result=LOG64),
    "e to the power x as a log64, which holds x itself",
    cost="MOVES",
    code={"f64": moved},
    exact=True,
)
