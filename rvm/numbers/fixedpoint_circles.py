"""Functions of fixed-point numbers that belong to the circle, and roots, in pairs of floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from rvm.leaf import Node
from rvm.leaf.trace import called, equal, fabs
from rvm.numbers.elementary import text
from rvm.numbers.elementary.arcs import angle
from rvm.numbers.elementary.circles import FAR, near
from rvm.numbers.elementary.pairs import (
    Pair,
    chosen,
    exactly,
    exactly_of,
    like,
    negative,
    one,
    over,
    paired,
    plus,
    polynomial,
    product,
    quick_sum,
    scaled,
    size_of,
    times,
)
from rvm.numbers.elementary.roots import root_of
from rvm.numbers.elementary.tables import PI_PAIR
from rvm.numbers.fixedpoint_values import ROOT, Value, constants, root_from

# ------------------------------------------------------------------------- circles

TERMS = 10
"""The number of terms of a Taylor series within pi/4."""


def _series(square: Node, first: int) -> Node:
    """1/first! - x**2/(first + 2)! + …, from the square of x."""
    signs = (1.0 if k % 2 == 0 else -1.0 for k in range(TERMS))
    return polynomial([s / math.factorial(first + 2 * k) for k, s in enumerate(signs)], square)


def circle(x: Pair) -> tuple[Node, Pair, Pair]:
    """The quarter turns in x, and sine and cosine of the remainder, to some 2**-64."""
    quarters, r = near(x[0])
    a = plus(quick_sum(*r), exactly_of(x[1]))
    square = times(a, a)
    fourth, s = times(square, square), square[0]
    # What is left out of pairs is below 2**-12.
    cosine = plus(scaled(square, -0.5), times(fourth, constants(Fraction(1, 24))))
    sine = plus(constants(Fraction(-1, 6)), times(square, constants(Fraction(1, 120))))
    sine = times(times(square, a), plus(sine, exactly_of(-(fourth[0] * _series(s, 7)))))
    cosine = plus(cosine, exactly_of(-(fourth[0] * s * _series(s, 6))))
    return quarters, plus(a, sine), plus(one(), cosine)


SIN = 2.0**-61


def _near(x: Pair) -> tuple[Pair, Node]:
    """An angle that is within the reduction, and where it is not."""
    bad = ~(fabs(x[0]) <= FAR)
    return chosen(bad, exactly(0.0), x), bad


def _turned(x: Pair, more: int) -> Value:
    x, bad = _near(x)
    quarters, s, c = circle(x)
    quarters = quarters + more
    found = chosen(equal(quarters & 1, 1), c, s)
    return Value(chosen(equal(quarters & 2, 2), negative(found), found), 0.0, SIN, bad)


def _tan(x: Pair) -> Value:
    x, bad = _near(x)
    quarters, s, c = circle(x)
    odd = equal(quarters & 1, 1)
    bad = bad | equal(chosen(odd, s, c)[0], 0.0)
    top, below = chosen(odd, negative(c), s), chosen(odd, s, c)
    found = over(top, chosen(bad, one(), below))
    # Near a pole the sine that is divided by is as exact as it is small.
    return Value(found, SIN, SIN, bad)


# ------------------------------------------------------------------------- arcs

ARC = 2.0**-65
PI = paired(PI_PAIR)


def _mirrored(found: Pair, x: Pair) -> Pair:
    """An angle in the first quarter as one on the side of x."""
    return chosen(x[0] < 0.0, plus(PI, negative(found)), found)


def _leg_of(x: Pair) -> tuple[Pair, Node]:
    """sqrt(1 - x**2), and where it does not exist."""
    return root_from(times(plus(one(), negative(x)), plus(one(), x)))


def _atan2(y: Pair, x: Pair) -> Value:
    a, b = size_of(y), size_of(x)
    nowhere = equal(a[0], 0.0) & equal(b[0], 0.0)
    found = angle(a, chosen(nowhere, one(), b))
    return Value(like(_mirrored(found, x), y), 0.0, ARC)


def _asin(x: Pair) -> Value:
    leg, bad = _leg_of(x)
    return Value(like(angle(size_of(x), leg), x), 0.0, ARC, bad)


def _acos(x: Pair) -> Value:
    leg, bad = _leg_of(x)
    return Value(_mirrored(angle(leg, size_of(x)), x), 0.0, ARC, bad)


# ------------------------------------------------------------------------- roots


def _root(square: Pair) -> Value:
    found, bad = root_from(square)
    return Value(found, ROOT, 0.0, bad)


def _leg(x: Pair) -> Value:
    found, bad = _leg_of(x)
    return Value(found, ROOT, 0.0, bad)


def _hypot(x: Pair, y: Pair) -> Value:
    return _root(plus(times(x, x), times(y, y)))


def _versor(x: Pair, y: Pair) -> Value:
    square = plus(times(x, x), times(y, y))
    return Value(over(x, root_of(chosen(equal(square[0], 0.0), one(), square))), ROOT)


def _cbrt(x: Pair) -> Value:
    zero = equal(x[0], 0.0)
    x = chosen(zero, one(), x)
    y = called(text("cbrt"), x[0])
    s, e = product(y, y)
    cube, f = product(s, y)
    left = (x[0] - cube) - (f + e * y) + x[1]
    found = quick_sum(y, left / (s * 3.0))
    return Value(chosen(zero, exactly(0.0), found), ROOT)


UNARY: dict[str, Callable[[Pair], Value]] = {
    "sin": lambda x: _turned(x, 0),
    "cos": lambda x: _turned(x, 1),
    "tan": _tan,
    "asin": _asin,
    "acos": _acos,
    "atan": lambda x: _atan2(x, one()),
    "sqrt": _root,
    "cbrt": _cbrt,
    "leg": _leg,
}
BINARY: dict[str, Callable[[Pair, Pair], Value]] = {
    "atan2": _atan2,
    "hypot": _hypot,
    "versor": _versor,
}
