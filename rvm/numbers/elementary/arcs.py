"""Arc tangents from 17 points and one corrected division, and functions derived from them."""

from __future__ import annotations

import math

from rvm.leaf import Node, constant, function, select
from rvm.leaf.ops import F64
from rvm.leaf.trace import bits, equal, fabs, nearest, sqrt, to_int, unequal, with_sign
from rvm.numbers.elementary.logarithms import LARGEST
from rvm.numbers.elementary.pairs import (
    Pair,
    chosen,
    exactly_of,
    negative,
    paired,
    plus,
    polynomial,
    product,
    quick_sum,
    quotient,
    two_sum,
)
from rvm.numbers.elementary.tables import ATAN_HIGH, ATAN_LOW, ATAN_POLY, HALF_PI_PAIR, PI_PAIR


def angle(a: Pair, b: Pair) -> Pair:
    """The arc tangent of a / b, for b > 0 and 0 <= a, neither denormal nor near an overflow."""
    swapped = a[0] > b[0]
    y, x = chosen(swapped, b, a), chosen(swapped, a, b)
    step = nearest(y[0] / x[0] * 16.0)
    c = step * 0.0625
    # (y - c x) / (x + c y), within a 31st
    p, e = product(c, x[0])
    top = plus(y, (-p, -(e + c * x[1])))
    p, e = product(c, y[0])
    below = plus(x, (p, e + c * y[1]))
    t, low = quotient(top, below)
    square = t * t
    index = to_int(step)
    s, f = two_sum(ATAN_HIGH[index], t)
    rest = f + (ATAN_LOW[index] + low + t * square * polynomial(ATAN_POLY, square))
    found = quick_sum(s, rest)
    other = plus(paired(HALF_PI_PAIR), negative(found))
    return chosen(swapped, other, found)


def _fits(x: Node) -> Node:
    return (x >= 2.0**-400) & (x <= 2.0**400)


@function("atan_cold")
def _atan_cold(x: Node) -> Node:
    far = select(x > 0.0, HALF_PI_PAIR[0], -HALF_PI_PAIR[0])
    return select(unequal(x, x), math.nan, select(fabs(x) > 1.0, far, x))


@function("atan", guard=lambda x: ~_fits(fabs(x)), cold=_atan_cold)
def atan(x: Node) -> Node:
    """The arc tangent."""
    high, low = angle(exactly_of(fabs(x)), exactly_of(constant(1.0, F64)))
    return with_sign(high + low, x)


def _around(y: Node, x: Node, found: Pair) -> Node:
    """An angle in the first quarter as that of (x, y)."""
    mirrored = plus(paired(PI_PAIR), negative(found))
    value = chosen(bits(x) < 0, mirrored, found)
    return with_sign(value[0] + value[1], y)


@function("atan2_cold")
def _atan2_cold(y: Node, x: Node) -> Node:
    a, b = fabs(y), fabs(x)
    numbers = ~(unequal(a, a) | unequal(b, b))
    infinite = (a > LARGEST, b > LARGEST)
    # Two infinities are as far as each other; one is far from every number.
    a = select(infinite[0], select(infinite[1], 1.0, math.inf), select(infinite[1], 0.0, a))
    b = select(infinite[1], 1.0, select(infinite[0], 1.0, b))
    a = select(numbers, a, 1.0)
    b = select(numbers, b, 1.0)
    nothing = equal(a, 0.0) & equal(b, 0.0)
    tiny = (a < b * 2.0**-80) | nothing
    steep = ((b < a * 2.0**-80) | (a > LARGEST)) & ~nothing
    small = select(tiny & ~nothing, a, 0.0) / select(tiny & ~nothing, b, 1.0)
    plain = ~(tiny | steep)
    larger = select(a > b, a, b)
    factor = select(larger < 2.0**-600, 2.0**600, select(larger > 2.0**600, 2.0**-700, 1.0))
    found = angle(
        exactly_of(select(plain, a * factor, 1.0)), exactly_of(select(plain, b * factor, 1.0))
    )
    rest = select(steep, HALF_PI_PAIR[1], select(tiny, 0.0, found[1]))
    high = select(steep, HALF_PI_PAIR[0], select(tiny, small, found[0]))
    return select(numbers, _around(y, x, (high, rest)), math.nan)


def _is_cold(y: Node, x: Node) -> Node:
    a, b = fabs(y), fabs(x)
    near = (a * 2.0**-100 <= b) & (b * 2.0**-100 <= a)
    return ~(_fits(a) & _fits(b) & near)


@function("atan2", guard=_is_cold, cold=_atan2_cold)
def atan2(y: Node, x: Node) -> Node:
    """The angle of the point (x, y)."""
    return _around(y, x, angle(exactly_of(fabs(y)), exactly_of(fabs(x))))


def _leg(x: Node) -> Pair:
    """sqrt(1 - x**2) for |x| < 1."""
    p, e = product(1.0 - x, 1.0 + x)
    # Neither sum is exact; their errors times the other, with that of the product.
    a, lost_a = two_sum(constant(1.0, F64), -x)
    b, lost_b = two_sum(constant(1.0, F64), x)
    e = e + (lost_a * b + lost_b * a)
    root = sqrt(p)
    square, f = product(root, root)
    return quick_sum(root, (((p - square) - f) + e) / (root * 2.0))


@function("asin_cold")
def _asin_cold(x: Node) -> Node:
    edge = with_sign(select(fabs(x) <= 1.0, HALF_PI_PAIR[0], math.nan), x)
    return select(fabs(x) < 0.5, x, select(fabs(x) <= 1.0, edge, math.nan))


@function("asin", guard=lambda x: ~((fabs(x) < 1.0) & (fabs(x) >= 2.0**-28)), cold=_asin_cold)
def asin(x: Node) -> Node:
    """The arc sine."""
    high, low = angle(exactly_of(fabs(x)), _leg(x))
    return with_sign(high + low, x)


@function("acos_cold")
def _acos_cold(x: Node) -> Node:
    small = HALF_PI_PAIR[0] - (x - HALF_PI_PAIR[1])
    edge = select(x > 0.0, 0.0, PI_PAIR[0])
    return select(fabs(x) < 0.5, small, select(fabs(x) <= 1.0, edge, math.nan))


@function("acos", guard=lambda x: ~((fabs(x) < 1.0) & (fabs(x) >= 2.0**-60)), cold=_acos_cold)
def acos(x: Node) -> Node:
    """The arc cosine."""
    found = angle(_leg(x), exactly_of(fabs(x)))
    mirrored = plus(paired(PI_PAIR), negative(found))
    value = chosen(x < 0.0, mirrored, found)
    return value[0] + value[1]
