"""Arithmetic and what comes near it: sums, products, powers, roots, rounding, extremes.

Choices at the edges: the derivative of `abs` and of `relu` at 0 is 0; of equal arguments `max`
passes the derivative to the first and `min` to the second, so that min(a, b) + max(a, b) has that
of a + b everywhere; that of `sqrt` at 0 is inf; that of `x ** y` by x is 0 where y is 0, and by y
it is 0 where x <= 0 (there is none, or its limit is 0); that of `hypot` at the origin is 0. `sign`,
`floor` and `//` are constant in between and carry none; nor does any function of integers.
"""

from __future__ import annotations

import math
import operator
from functools import partial

from rvm.expr import Const, Expr
from rvm.isa.functions.formulas import (
    Partials,
    const,
    elem,
    enter,
    equal,
    exact_power,
    fn,
    is_complex,
    safe_divisor,
    select,
)
from rvm.isa.rules import arithmetic, elementwise, modulus, power
from rvm.leaf import trace as leaf
from rvm.leaf.trace import Node
from rvm.numbers.code import moved

LEAST, MOST = 0.5, 144
"""Between these exponents k, k x ** (k - 1) is too large for a float only if x ** k is, too."""


def _one(x: Expr) -> Expr:
    return const(1, x)


def _power(x: Expr, y: Expr) -> Partials:
    t, base = elem(y), elem(x)
    if base is not None and base.is_float and isinstance(y, Const) and y.value == -1:
        return (-fn("square", x**y), None)
    if t is not None and t.is_integer:
        if base is None or base.is_integer:
            return (None, None)
        return (fn(str(base), y) * _lowered(x, y), None)
    if is_complex(x) or is_complex(y):
        x = x if is_complex(x) else fn("c128", x)
        by_y = x**y * fn("log", safe_divisor(x))
        return (y * _lowered(x, y), select(fn("==", x, 0j), fn("c128", 0.0), by_y, y))
    lowered = _lowered(x, y)
    if isinstance(y, Const):
        return (y * lowered, None)
    is_positive = x > const(0, x)
    # The derivative by y is 0 elsewhere, and so is that of the factor y.
    factor = select(is_positive, y, fn("detach", y), y)
    by_x = fn("scaled", factor, lowered, x)
    return (by_x, x**y * fn("log", select(is_positive, x, 1, x)))


def _power_pole(x: Expr, y: Expr) -> Expr | None:
    """The base of a real power; None where derivatives are too large only if the value is, too."""
    return None if isinstance(y, Const) and LEAST <= y.value < MOST else x


def _lowered(x: Expr, y: Expr) -> Expr:
    """x ** (y - 1), and 1 for 0 ** -1: there the factor y makes it 0, and leaves no 0 * inf.

    What stands for the guard is the base: its derivatives are right for all other numbers.
    """
    nowhere = fn("&", equal(x, 0), equal(y, 0))
    base = x if isinstance(y, Const) and y.value else select(nowhere, 1, x, x)
    return base ** (y - const(1, y))


def _scaled(x: Node, y: Node, z: Node) -> Node:
    nothing = (leaf.equal(x, 0.0) | leaf.equal(y, 0.0)) & leaf.unequal(z, 0.0)
    return leaf.select(nothing, 0.0, x * y)


def _versor(x: Expr, y: Expr) -> Partials:
    along, across = fn("versor", x, y), fn("versor", y, x)
    h = safe_divisor(fn("hypot", x, y))
    return (across * (across / h), -(along * across / h))


def _chosen(op: str, a: Expr, b: Expr) -> Partials:
    first = fn(op, a, b)
    return (select(first, 1, 0, a), select(first, 0, 1, a))


enter(
    "identity x",
    elementwise("any"),
    "x itself",
    cost="MOVES",
    partials=lambda x: (_one(x),),
    code={"*": moved},
    moves=True,
)
enter(
    "detach x",
    elementwise("any"),
    "x itself, as a constant in derivatives: it carries no adjoint and no tangent",
    cost="MOVES",
    partials=lambda x: (None,),
    code={"*": moved},
    exact=True,
)
enter(
    "neg x",
    elementwise("value"),
    "-x; of a log64 the reciprocal, whose logarithm is the negative",
    cost="ADDS",
    symbol="-",
    partials=lambda x: (const(-1, x),),
    exact=True,
    exactly=operator.neg,
)
enter(
    "+ x y",
    arithmetic("value"),
    "x + y",
    cost="ADDS",
    partials=lambda x, y: (_one(x), _one(y)),
    in_place=("+",),
    binds=9,
    exactly=operator.add,
)
enter(
    "- x y",
    arithmetic("value"),
    "x - y",
    cost="ADDS",
    partials=lambda x, y: (_one(x), const(-1, y)),
    in_place=("neg", "+"),
    binds=9,
    exactly=operator.sub,
)
enter(
    "* x y",
    arithmetic("value"),
    "x * y",
    cost="MULTS",
    partials=lambda x, y: (y, x),
    underflows=True,
    in_place=("*",),
    binds=10,
    exactly=operator.mul,
)
enter(
    "scaled x y z",
    elementwise("real"),
    "x * y, or 0 where one of them is 0 and z is not; a factor of derivatives that is infinite "
    "there is only too large for a number",
    cost="MULTS",
    partials=lambda x, y, z: (y, x, None),
    pole=lambda x, y, z: z,
    body=_scaled,
    underflows=True,
)
enter(
    "/ x y",
    arithmetic("analytic"),
    "x / y",
    cost="MULTS",
    partials=lambda x, y: (const(1, y) / y, -(x / y) / y),
    divides=True,
    partial="exact",
    underflows=True,
    binds=10,
    exactly=operator.truediv,
)
enter(
    "// x y",
    elementwise("scale"),
    "the quotient, rounded to minus infinity",
    cost="MULTS",
    steps=True,
    divides=True,
    partial="exact",
    binds=10,
    exactly=operator.floordiv,
)
enter(
    "% x y",
    elementwise("scale"),
    "x - x // y * y, of the sign of y",
    cost="MULTS",
    partials=lambda x, y: (_one(x), -fn("//", x, y)),
    divides=True,
    partial="exact",
    binds=10,
    exactly=operator.mod,
)
enter(
    "** x y",
    power,
    "x to the power y",
    partials=_power,
    pole=_power_pole,
    partial="exact",
    underflows=True,
    binds=12,
    exactly=exact_power,
    cuts="complex",
)
enter(
    "abs x",
    modulus("value"),
    "the absolute value or modulus",
    cost="ADDS",
    partials=lambda x: (fn("sign", x),),
    vjp=lambda g, z: (g * (z / safe_divisor(fn("abs", z))),),
    exact=True,
    exactly=abs,
    cuts="complex",
)
enter("sign x", elementwise("scale"), "-1, 0 or 1", cost="ADDS", steps=True)
enter(
    "sqrt x",
    elementwise("analytic"),
    "the square root",
    partials=lambda x: (const(0.5, x) / fn("sqrt", x),),
    body=partial(leaf.apply, "sqrt"),
    partial="exact",
    cuts="complex",
)
enter(
    "square x",
    elementwise("value"),
    "x * x",
    cost="MULTS",
    partials=lambda x: (const(2, x) * x,),
    underflows=True,
)
enter(
    "hypot x y",
    elementwise("real"),
    "the length of (x, y), without overflow in between",
    partials=lambda x, y: (fn("versor", x, y), fn("versor", y, x)),
)
enter(
    "versor x y",
    elementwise("real"),
    "x / hypot(x, y), of tiny and huge numbers too; 0 at the origin",
    partials=_versor,
    pole=lambda x, y: fn("hypot", x, y),
    underflows=True,
    cuts="real",
)
enter(
    "min a b",
    elementwise("ordered"),
    "the lesser of two, the first of equals; NaN if one is NaN",
    cost="ADDS",
    partials=lambda a, b: _chosen("<", a, b),
    exact=True,
    exactly=min,
)
enter(
    "max a b",
    elementwise("ordered"),
    "the greater of two, the first of equals; NaN if one is NaN",
    cost="ADDS",
    partials=lambda a, b: _chosen(">=", a, b),
    exact=True,
    exactly=max,
)
enter(
    "relu x",
    elementwise("scale"),
    "x where it is positive, else 0",
    cost="ADDS",
    partials=lambda x: (select(x > const(0, x), 1, 0, x),),
)
enter(
    "floor x",
    elementwise("real"),
    "the greatest whole number that is not greater",
    cost="ADDS",
    steps=True,
    exactly=math.floor,
)
