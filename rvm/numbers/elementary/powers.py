"""x to the power y, as e**(y log x) with the logarithm to some 68 bits."""

from __future__ import annotations

import math

from rvm.leaf import Node, function, select
from rvm.leaf.trace import bits, equal, fabs, to_float, to_int, unequal
from rvm.numbers.elementary.exponentials import HOT, Reduced, scaled
from rvm.numbers.elementary.logarithms import LARGEST, LEAST, fine
from rvm.numbers.elementary.pairs import Pair, product

WIDEST = 2.0**66
"""Beyond this exponent every power but those of 1 is 0 or an infinity."""
NARROWEST = 2.0**-80
"""Below this one every power is 1."""


def _exponent(x: Node, y: Node, octaves: int = 0) -> Pair:
    """y log x, for a normal x > 0."""
    high, low = fine(x, octaves)
    p, e = product(y, high)
    return p, e + y * low


def _is_cold(x: Node, y: Node) -> Node:
    size = fabs(y)
    plain = (x >= LEAST) & (x <= LARGEST) & (size <= WIDEST) & (size >= NARROWEST)
    return ~(plain & (fabs(_exponent(x, y)[0]) <= HOT))


@function("pow_cold")
def _pow_cold(x: Node, y: Node) -> Node:
    size = fabs(x)
    small = size < LEAST
    usual = (size > 0.0) & (size <= LARGEST)
    base = select(usual, select(small, size * 2.0**54, size), 1.0)
    # An exponent as large as matters, and a whole one exactly.
    within = fabs(y) < 2.0**53
    whole = to_int(select(within, y, 0.0))
    is_whole = equal(to_float(whole), y) | (fabs(y) >= 2.0**53)
    odd = within & equal(to_float(whole), y) & equal(whole & 1, 1)
    number = select(unequal(y, y), 0.0, y)
    clamped = select(number > WIDEST, WIDEST, select(number < -WIDEST, -WIDEST, number))
    one, other = _exponent(base, clamped), _exponent(base, clamped, 54)
    high = select(small, other[0], one[0])
    low = select(small, other[1], one[1])
    far = fabs(high) > 1000.0
    value = scaled(high, select(far, 0.0, low))
    # Of 0 and infinities: as their size is below 1 or above.
    vanishes = ((size < 1.0) & (y > 0.0)) | ((size > 1.0) & (y < 0.0))
    value = select(usual & (fabs(y) <= LARGEST), value, select(vanishes, 0.0, math.inf))
    value = select(equal(size, 1.0) & (fabs(number) > LARGEST), 1.0, value)
    value = select((bits(x) < 0) & odd, -value, value)
    finite_below = (x < 0.0) & usual & (fabs(y) <= LARGEST)
    value = select(finite_below & ~is_whole, math.nan, value)
    value = select(unequal(x, x) | unequal(y, y), math.nan, value)
    return select(equal(y, 0.0) | equal(x, 1.0), 1.0, value)


@function("pow", guard=_is_cold, cold=_pow_cold)
def power(x: Node, y: Node) -> Node:
    """x to the power y."""
    high, low = _exponent(x, y)
    found = Reduced(high, low)
    scale = found.scale()
    return scale + scale * found.rest
