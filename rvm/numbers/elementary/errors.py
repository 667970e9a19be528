"""The error function and its complement."""

from __future__ import annotations

import math
from typing import Any

from rvm.leaf import Node, constant, function, select
from rvm.leaf.ops import F64
from rvm.leaf.trace import fabs, nearest, to_int, unequal, with_sign
from rvm.numbers.elementary.exponentials import Reduced
from rvm.numbers.elementary.pairs import polynomial, product, quick_sum, two_sum
from rvm.numbers.elementary.tables import (
    ERF_HIGH,
    ERF_LOW,
    ERF_POLY,
    ERF_SLOPE,
    ERFC_RANGE,
    ERFC_SERIES,
    TWO_OVER_ROOT_PI,
)

TERMS = 10
"""The number of terms of a Taylor series by Hermite polynomials."""


def _beyond(x: Node) -> Node:
    """erf x - x for |x| <= 1/2."""
    square = x * x
    return x * (ERF_SLOPE[0] + (ERF_SLOPE[1] + square * polynomial(ERF_POLY, square)))


def between(size: Node) -> tuple[Node, Node]:
    """erf of a number up to 5.96 as a float and a small rest, from the nearest multiple of 1/32."""
    step = nearest(size * 32.0)
    index = to_int(step)
    c = step * 0.03125
    t = size - c
    slope = Reduced(-(c * c))
    scale = slope.scale()
    # The derivatives at c are Hermite polynomials times the first one.
    before: Any = 1.0
    hermite: Any = 2.0 * c
    coefficients: list[Any] = [1.0]
    for n in range(1, TERMS):
        coefficients.append(hermite * ((-1.0) ** n / math.factorial(n + 1)))
        before, hermite = hermite, 2.0 * c * hermite - before * (2.0 * n)
    series: Any = coefficients[-1]
    for a in reversed(coefficients[:-1]):
        series = series * t + a
    gain = (scale + scale * slope.rest) * TWO_OVER_ROOT_PI * t * series
    return ERF_HIGH[index], ERF_LOW[index] + gain


@function("erf_cold")
def _erf_cold(x: Node) -> Node:
    size = fabs(x)
    number = select(unequal(x, x), 0.0, size)
    inside = select(number < 0.5, 0.5, select(number > 5.9375, 5.9375, number))
    high, low = between(inside)
    value = select(number > 5.9375, 1.0, high + low)
    return select(unequal(x, x), math.nan, with_sign(value, x))


@function("erf", guard=lambda x: ~(fabs(x) <= 0.5), cold=_erf_cold)
def erf(x: Node) -> Node:
    """The error function."""
    return select(fabs(x) < 2.0**-1000, x * TWO_OVER_ROOT_PI, x + _beyond(x))


def _far(x: Node) -> Node:
    """erfc of 0.5 <= x <= 28: a Chebyshev series times exp(-x**2)."""
    t = (x - 3.75) / (x + 3.75)
    s = (t - ERFC_RANGE[0]) * (2.0 * ERFC_RANGE[1])
    b: Any = constant(0.0, F64)
    c: Any = constant(0.0, F64)
    for a in reversed(ERFC_SERIES[1:]):
        b, c = s * b - c + a, b
    value = 0.5 * s * b - c + 0.5 * ERFC_SERIES[0]
    p, e = product(x, x)
    found = Reduced(-p, -e)
    # Its result may be denormal: the power of 2 is given in two parts.
    scale = found.scale(600)
    factor: Node = value / (x + 3.75)
    return (scale + scale * found.rest) * factor * 2.0**-600


@function("erfc_cold")
def _erfc_cold(x: Node) -> Node:
    number = select(unequal(x, x), 0.0, x)
    size = fabs(number)
    far = _far(select(size < 5.0, 5.0, select(size > 28.0, 28.0, size)))
    high, low = between(select(size < 0.5, 0.5, select(size > 5.9375, 5.9375, size)))
    above = select(size < 5.0, (1.0 - high) - low, select(size > 28.0, 0.0, far))
    below = select(size > 5.9375, 2.0, (1.0 + high) + low)
    return select(unequal(x, x), math.nan, select(number > 0.0, above, below))


@function("erfc", guard=lambda x: ~(fabs(x) <= 0.5), cold=_erfc_cold)
def erfc(x: Node) -> Node:
    """1 - erf(x), to its own last digits where that is small."""
    s, e = two_sum(constant(1.0, F64), -x)
    high, low = quick_sum(s, e - _beyond(x))
    return high + low
