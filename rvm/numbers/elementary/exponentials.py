"""exp and functions based on it, by a table of 128 powers of 2 and a short polynomial.

The reduction is that of P. T. P. Tang, "Table-driven implementation of the exponential function in
IEEE floating-point arithmetic", ACM TOMS 15 (1989).
"""

from __future__ import annotations

import math
from typing import Any

from rvm.leaf import Node, constant, function, select
from rvm.leaf.ops import I64
from rvm.leaf.trace import fabs, nearest, of_bits, to_int, unequal, with_sign
from rvm.numbers.elementary.pairs import Pair, polynomial, quick_sum, quotient, two_sum
from rvm.numbers.elementary.tables import (
    EXP_BITS,
    EXP_LONG_POLY,
    EXP_POLY,
    EXP_TAIL,
    LN2_PAIR,
    LN2_STEP,
    STEPS_PER_LN2,
)

STEP = 1 << 45
"""A 128th of an exponent, in the bits of a float."""
HOT = 660.0
"""Up to here no intermediate value for e**x or its reciprocal is denormal or infinite."""
OVERFLOW, UNDERFLOW = 709.782712893384, -745.1332191019412
"""Beyond these e**x is an infinity, or 0."""


class Reduced:
    """e**(x + more) as a power of 2, `scale`, times 1 + `rest`; `finely` for `rest` as a pair."""

    def __init__(self, x: Node, more: Any = None, *, finely: bool = False) -> None:
        steps = nearest(x * STEPS_PER_LN2)
        high = x - steps * LN2_STEP[0]
        low = steps * LN2_STEP[1]
        if more is None:
            r, error = quick_sum(high, -low)
        elif finely:
            r, error = two_sum(high, more - low)
        else:
            # The remainder is no more than one float here, as x is not exact either.
            r, error = (high - low) + more, None
        self.steps = to_int(steps)
        self.r = r
        square, power_low = r * r, EXP_TAIL[self.steps]
        if finely:
            tail = (power_low + power_low * r) + square * polynomial(EXP_LONG_POLY, r)
        else:
            tail = power_low + square * polynomial(EXP_POLY, r)
        self._parts = (r, tail if error is None else tail + error)

    @property
    def rest(self) -> Node:
        """The factor of the power of 2, minus 1."""
        return self._parts[1] + self._parts[0]

    @property
    def rest_pair(self) -> Pair:
        """The same as a pair."""
        return quick_sum(*self._parts)

    def scale(self, more: Any = 0) -> Node:
        """The power of 2, times 2**more."""
        return of_bits(EXP_BITS[self.steps] + (self.steps + more * 128) * STEP)


def _stretched(found: Reduced, positive: Node) -> Node:
    """The power where it may overflow, if it is above 1, or be denormal, if not."""
    scale = found.scale(select(positive, constant(-1000, I64), 1022))
    part = scale * found.rest
    s = scale + part
    # Below the least normal number: rounded once, to as few bits as the result has.
    over = 1.0 + s
    low = ((1.0 - over) + s) + ((scale - s) + part)
    exact = select(positive | (s >= 1.0), s, (over + low) - 1.0)
    return exact * select(positive, 2.0**1000, 2.0**-1022)


def scaled(x: Node, more: Any = None) -> Node:
    """e**x where it may be denormal or overflow, x being a number."""
    inside = select(x > UNDERFLOW - 1.0, select(x < OVERFLOW + 1.0, x, OVERFLOW), UNDERFLOW)
    value = _stretched(Reduced(inside, more), inside > 0.0)
    return select(x > OVERFLOW, math.inf, select(x < UNDERFLOW, 0.0, value))


def _within(x: Node, limit: float) -> Node:
    """Whether x is a number no greater than a limit in size."""
    return fabs(x) <= limit


@function("exp_cold")
def _exp_cold(x: Node) -> Node:
    number = select(unequal(x, x), 0.0, x)
    return select(unequal(x, x), math.nan, scaled(number))


@function("exp", guard=lambda x: ~_within(x, HOT), cold=_exp_cold)
def exp(x: Node) -> Node:
    """e to the power x."""
    found = Reduced(x)
    scale = found.scale()
    return scale + scale * found.rest


def less_one(x: Node) -> Pair:
    """e**x - 1 for |x| <= 708, as a pair."""
    found = Reduced(x, finely=True)
    scale = found.scale()
    high, low = found.rest_pair
    above, error = two_sum(scale, -1.0)
    s, e = two_sum(above, high)
    return quick_sum(s, e + (error + low * scale + above * high))


@function("expm1_cold")
def _expm1_cold(x: Node) -> Node:
    number = select(unequal(x, x), 0.0, x)
    return select(unequal(x, x), math.nan, select(number > 0.0, scaled(number), -1.0))


@function("expm1", guard=lambda x: ~_within(x, HOT), cold=_expm1_cold)
def expm1(x: Node) -> Node:
    """e**x - 1."""
    high, low = less_one(x)
    return select(fabs(x) < 2.0**-55, x, high + low)


def _halved(x: Node) -> Node:
    """e**|x| / 2 for |x| > 22, NaN left as it is."""
    size = fabs(x)
    number = select(size < 711.0, size, 711.0)
    found = Reduced(number)
    scale = found.scale(-2)
    value = (scale + scale * found.rest) * 2.0
    return select(unequal(x, x), math.nan, select(size < 711.0, value, math.inf))


@function("sinh_cold")
def _sinh_cold(x: Node) -> Node:
    return with_sign(_halved(x), x)


@function("sinh", guard=lambda x: ~_within(x, 22.0), cold=_sinh_cold)
def sinh(x: Node) -> Node:
    """The hyperbolic sine: of u = e**|x| - 1 it is (u + u / (1 + u)) / 2."""
    u = less_one(fabs(x))
    d, e = two_sum(1.0, u[0])
    q = quotient(u, (d, e + u[1]))
    s, e = two_sum(u[0], q[0])
    value = (s + (e + (u[1] + q[1]))) * 0.5
    return select(fabs(x) < 2.0**-28, x, with_sign(value, x))


@function("cosh_cold")
def _cosh_cold(x: Node) -> Node:
    return _halved(x)


@function("cosh", guard=lambda x: ~_within(x, HOT), cold=_cosh_cold)
def cosh(x: Node) -> Node:
    """The hyperbolic cosine, of both exponentials as pairs."""
    up, down = Reduced(x), Reduced(-x)
    one, other = up.scale(-1), down.scale(-1)
    s, e = two_sum(one, other)
    return s + (e + (one * up.rest + other * down.rest))


@function("tanh_cold")
def _tanh_cold(x: Node) -> Node:
    return select(unequal(x, x), math.nan, select(x > 0.0, 1.0, -1.0))


@function("tanh", guard=lambda x: ~_within(x, 22.0), cold=_tanh_cold)
def tanh(x: Node) -> Node:
    """The hyperbolic tangent: of u = e**2|x| - 1 it is u / (u + 2)."""
    u = less_one(fabs(x) * 2.0)
    d, e = two_sum(u[0], 2.0)
    q = quotient(u, (d, e + u[1]))
    return select(fabs(x) < 2.0**-28, x, with_sign(q[0] + q[1], x))


@function("sech_cold")
def _sech_cold(x: Node) -> Node:
    number = select(unequal(x, x), 0.0, fabs(x))
    return select(unequal(x, x), math.nan, scaled(-number) * 2.0)


@function("sech", guard=lambda x: ~_within(x, 600.0), cold=_sech_cold)
def sech(x: Node) -> Node:
    """The hyperbolic secant: of e = e**-|x| it is 2 e / (1 + e**2)."""
    found = Reduced(-fabs(x))
    scale = found.scale()
    e = scale + scale * found.rest
    return (e * 2.0) / (e * e + 1.0)


class _Binary(Reduced):
    """2**x: the remainder is exact before it is multiplied by ln 2."""

    def __init__(self, x: Node) -> None:
        steps = nearest(x * 128.0)
        left = x - steps * (1.0 / 128.0)
        self.steps = to_int(steps)
        r = left * LN2_PAIR[0]
        # What the product loses is below a 500th of the result's last place.
        self._parts = (r, EXP_TAIL[self.steps] + r * r * polynomial(EXP_POLY, r))


@function("exp2_cold")
def _exp2_cold(x: Node) -> Node:
    number = select(unequal(x, x), 0.0, x)
    inside = select(number < 1025.0, select(number > -1080.0, number, -1080.0), 1025.0)
    value = _stretched(_Binary(inside), inside > 0.0)
    value = select(number >= 1024.0, math.inf, select(number <= -1075.0, 0.0, value))
    return select(unequal(x, x), math.nan, value)


@function("exp2", guard=lambda x: ~_within(x, 1021.0), cold=_exp2_cold)
def exp2(x: Node) -> Node:
    """2 to the power x."""
    found = _Binary(x)
    scale = found.scale()
    return scale + scale * found.rest


@function("sigmoid_cold")
def _sigmoid_cold(x: Node) -> Node:
    number = select(unequal(x, x), 0.0, x)
    return select(unequal(x, x), math.nan, select(number > 0.0, 1.0, scaled(number)))


@function("sigmoid", guard=lambda x: ~_within(x, 600.0), cold=_sigmoid_cold)
def sigmoid(x: Node) -> Node:
    """1 / (1 + e**-x)."""
    found = Reduced(-fabs(x))
    scale = found.scale()
    high, low = quick_sum(scale, scale * found.rest)
    d, e = two_sum(1.0, high)
    below = (high, low)
    top: Pair = (select(x < 0.0, below[0], 1.0), select(x < 0.0, below[1], 0.0))
    q = quotient(top, (d, e + low))
    return q[0] + q[1]
