"""Logarithms, by reciprocals of ten bits: the reduced argument is exact as a pair."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rvm.leaf import Function, Node, constant, function, select
from rvm.leaf.ops import F64, I64
from rvm.leaf.trace import bits, equal, fabs, of_bits, to_float, unequal
from rvm.numbers.elementary.exponentials import Reduced as Exponential
from rvm.numbers.elementary.exponentials import less_one
from rvm.numbers.elementary.pairs import Pair, polynomial, product, quick_sum, two_sum
from rvm.numbers.elementary.tables import (
    LN2,
    LN2_PAIR,
    LOG2_E,
    LOG10_2,
    LOG10_E,
    LOG_HIGH,
    LOG_INVERSE,
    LOG_LOW,
    LOG_POLY,
)

LEAST = 2.2250738585072014e-308
"""The least normal number."""
LARGEST = 1.7976931348623157e308
FIRST = 0x3FE6000000000000
"""The bits of 0.6875, where the first interval begins."""
EXPONENT = -(1 << 52)
"""All bits of a float but those of its mantissa."""
UPPER = -(1 << 21)
"""All bits except the last 21: the masked number has 32 bits of mantissa."""


class Reduced:
    """log x = exponent ln 2 + log c + log(1 + r), for a normal x > 0.

    The pair `more` is added to x; `octaves` are taken from the exponent.
    """

    def __init__(self, x: Node, more: Any = None, octaves: int = 0) -> None:
        whole = bits(x)
        moved = whole - FIRST
        index = moved >> 45
        self.exponent = to_float((moved >> 52) - octaves if octaves else moved >> 52)
        place = moved & EXPONENT
        z = of_bits(whole - place)
        upper = of_bits((whole - place) & UPPER)
        inverse = LOG_INVERSE[index]
        low = (z - upper) * inverse
        self.r, self.error = two_sum(upper * inverse - 1.0, low)
        if more is not None:
            # `more` in the units of z; 0 where the power of 2 would be denormal.
            power = of_bits(constant(0x3FF0000000000000, I64) - place)
            left = [select(self.exponent < 1000.0, m * power * inverse, 0.0) for m in more]
            self.r, error = two_sum(self.r, left[0])
            self.error = self.error + (error + left[1])
        self.log_high = LOG_HIGH[index]
        self.log_low = LOG_LOW[index]

    def pair(self, start: Node, start_low: Node) -> Pair:
        """start + log(1 + r), to some 2**-62 of it."""
        r, error = self.r, self.error
        s, e = two_sum(start, r)
        square = r * r
        rest = square * r * polynomial(LOG_POLY, r) - 0.5 * square
        return quick_sum(s, e + (start_low + (error - r * error) + rest))

    def fine_pair(self, start: Node, start_low: Node) -> Pair:
        """The same to some 2**-68: the square is a pair as well."""
        r, error = self.r, self.error
        s, e = two_sum(start, r)
        square, low = product(r, -0.5 * r)
        t, f = two_sum(s, square)
        cube = r * r * r * polynomial(LOG_POLY, r)
        return quick_sum(t, (e + f) + (start_low + (error - r * error) + low + cube))

    def natural(self) -> Pair:
        """The first terms of a natural logarithm."""
        k = self.exponent
        return k * LN2[0] + self.log_high, k * LN2[1] + self.log_low


def _normal(x: Node) -> Node:
    return (x >= LEAST) & (x <= LARGEST)


def natural(x: Node, octaves: int = 0) -> Pair:
    """log x of a normal x > 0."""
    found = Reduced(x, octaves=octaves)
    return found.pair(*found.natural())


def fine(x: Node, octaves: int = 0) -> Pair:
    """log x of a normal x > 0, to some 2**-68."""
    found = Reduced(x, octaves=octaves)
    return found.fine_pair(*found.natural())


def _binary(x: Node, octaves: int = 0) -> Pair:
    found = Reduced(x, octaves=octaves)
    high, low = found.pair(found.log_high, found.log_low)
    p, e = product(high, constant(LOG2_E[0], F64))
    s, f = two_sum(found.exponent, p)
    return s, f + (e + (high * LOG2_E[1] + low * LOG2_E[0]))


def _decimal(x: Node, octaves: int = 0) -> Pair:
    found = Reduced(x, octaves=octaves)
    high, low = found.pair(found.log_high, found.log_low)
    p, e = product(high, constant(LOG10_E[0], F64))
    s, f = two_sum(found.exponent * LOG10_2[0], p)
    rest = e + (high * LOG10_E[1] + low * LOG10_E[0]) + found.exponent * LOG10_2[1]
    return s, f + rest


def _logarithm(name: str, doc: str, of: Callable[..., Pair]) -> Function:
    """The function of a pair; for other than positive normal numbers, its cold text."""

    def cold(x: Node) -> Node:
        small = (x > 0.0) & (x < LEAST)
        high, low = of(select(small, x * 2.0**54, 1.0), 54)
        special = select(x < 0.0, math.nan, select(equal(x, 0.0), -math.inf, x))
        return select(small, high + low, select(unequal(x, x), math.nan, special))

    def body(x: Node) -> Node:
        high, low = of(x)
        return high + low

    body.__doc__ = doc
    made = function(f"{name}_cold")(cold)
    return function(name, guard=lambda x: ~_normal(x), cold=made)(body)


log = _logarithm("log", "The natural logarithm.", natural)
log2 = _logarithm("log2", "The logarithm to the base 2.", _binary)
log10 = _logarithm("log10", "The logarithm to the base 10.", _decimal)


def above_one(x: Node, more: Any = 0.0) -> Pair:
    """log(1 + x) for x > -1, as a pair; `more` is added to x."""
    s, e = two_sum(1.0, x)
    found = Reduced(s, two_sum(e, more))
    return found.pair(*found.natural())


@function("log1p_cold")
def _log1p_cold(x: Node) -> Node:
    return select(equal(x, -1.0), -math.inf, select(x > 0.0, x, math.nan))


@function("log1p", guard=lambda x: ~((x > -1.0) & (x <= LARGEST)), cold=_log1p_cold)
def log1p(x: Node) -> Node:
    """log(1 + x)."""
    high, low = above_one(x)
    return select(fabs(x) < 2.0**-54, x, high + low)


@function("log_add")
def log_add(a: Node, b: Node) -> Node:
    """The logarithm of e**a + e**b, for any two logarithms."""
    # Infinities are equal as well, and have no difference.
    alike = equal(a, b)
    gap = select(alike, 0.0, a - b)
    larger, smaller = select(gap > 0.0, a, b), select(gap > 0.0, b, a)
    usual = (fabs(gap) <= 700.0) & (fabs(a) <= LARGEST)
    far, more = two_sum(select(usual, smaller, -1.0), -select(usual, larger, 0.0))
    ratio = Exponential(far, more)
    scale = ratio.scale()
    part = scale * ratio.rest
    high, low = above_one(scale, part)
    s, e = two_sum(select(usual, larger, 0.0), high)
    value = select(usual, s + (e + low), larger)
    s, e = two_sum(a, LN2_PAIR[0])
    doubled = select(fabs(a) <= LARGEST, s + (e + LN2_PAIR[1]), a)
    return select(alike, doubled, select(unequal(gap, gap), math.nan, value))


@function("log_sub")
def log_sub(a: Node, b: Node) -> Node:
    """The logarithm of e**a - e**b; NaN where that is negative."""
    same = equal(a, b)
    gap = select(same, 0.0, b - a)
    usual = (gap < 0.0) & (gap >= -700.0)
    size = select(usual, gap, -1.0)
    high, low = less_one(size)
    tiny = size > -(2.0**-500)
    found = Reduced(
        select(tiny, size * -(2.0**600), -high), (select(tiny, 0.0, -low), constant(0.0, F64))
    )
    found.exponent = found.exponent - select(tiny, 600.0, 0.0)
    start, start_low = found.natural()
    rest = found.pair(start, start_low)
    s, e = two_sum(select(usual, a, 0.0), rest[0])
    value = select(usual, s + (e + rest[1]), select(gap < 0.0, a, math.nan))
    nothing = select(a > LARGEST, math.nan, -math.inf)
    return select(equal(b, -math.inf), a, select(same, nothing, value))
