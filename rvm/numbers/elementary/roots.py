"""Square roots of sums of squares, cube roots, and the inverses of the hyperbolic functions."""

from __future__ import annotations

import math

from rvm.leaf import Node, constant, function, select
from rvm.leaf.ops import F64
from rvm.leaf.trace import bits, equal, fabs, of_bits, sqrt, to_float, to_int, unequal, with_sign
from rvm.numbers.elementary.exponentials import Reduced as Exponential
from rvm.numbers.elementary.exponentials import scaled
from rvm.numbers.elementary.logarithms import LARGEST, Reduced, above_one
from rvm.numbers.elementary.pairs import Pair, plus, product, quick_sum, quotient, two_sum
from rvm.numbers.elementary.tables import LN2_PAIR


def root_of(p: Pair) -> Pair:
    """The square root of a pair greater than 0."""
    root = sqrt(p[0])
    square, e = product(root, root)
    return quick_sum(root, (((p[0] - square) - e) + p[1]) / (root * 2.0))


def _squares(a: Node, b: Node) -> Pair:
    return plus(product(a, a), product(b, b))


def _fits(x: Node) -> Node:
    return (x >= 2.0**-450) & (x <= 2.0**450)


@function("hypot_cold")
def _hypot_cold(x: Node, y: Node) -> Node:
    a, b = fabs(x), fabs(y)
    infinite = (a > LARGEST) | (b > LARGEST)
    numbers = ~(unequal(a, a) | unequal(b, b))
    usual = numbers & ~infinite & ((a > 0.0) | (b > 0.0))
    larger, smaller = select(a > b, a, b), select(a > b, b, a)
    far = smaller < larger * 2.0**-60
    factor = select(larger > 2.0**400, 2.0**-600, 2.0**600)
    inside = usual & ~far
    middle = (larger <= 2.0**400) & (larger >= 2.0**-400)
    factor = select(middle, 1.0, factor)
    p = _squares(select(inside, larger * factor, 1.0), select(inside, smaller * factor, 1.0))
    high, low = root_of(p)
    value = select(far, larger + smaller, (high + low) / factor)
    value = select(usual, value, select(numbers, 0.0, math.nan))
    return select(infinite, math.inf, value)


def _hypot_is_cold(x: Node, y: Node) -> Node:
    a, b = fabs(x), fabs(y)
    return ~(_fits(a) & _fits(b))


@function("hypot", guard=_hypot_is_cold, cold=_hypot_cold)
def hypot(x: Node, y: Node) -> Node:
    """sqrt(x**2 + y**2)."""
    high, low = root_of(_squares(x, y))
    return high + low


@function("versor")
def versor(x: Node, y: Node) -> Node:
    """x / hypot(x, y); 0 at the origin."""
    a, b = fabs(x), fabs(y)
    size = select(a > b, a, b)
    usual = (size > 0.0) & (size <= LARGEST)
    factor = select(size > 2.0**400, 2.0**-600, select(size < 2.0**-400, 2.0**600, 1.0))
    along = select(usual, x * factor, 1.0)
    high, low = root_of(_squares(along, select(usual, y * factor, 1.0)))
    unusual = select(equal(size, 0.0), 0.0, x / select(size > 0.0, size, 1.0))
    return select(usual, along / (high + low), unusual)


@function("leg")
def leg(x: Node) -> Node:
    """sqrt(1 - x**2)."""
    square = (_one() - x) * (_one() + x)
    return select(square >= 0.0, sqrt(select(square >= 0.0, square, 0.0)), math.nan)


def _cube_root(x: Node) -> Node:
    """The cube root of a normal number, by a guess from its bits, and Newton's steps."""
    size = fabs(x)
    # A third of the exponent and of the bits after it, within 4 % of the root.
    third = to_int((to_float(bits(size) >> 32)) * (1.0 / 3.0)) + 715094163
    y = of_bits((third & 0x7FFFFFFF) * (1 << 32))
    for _ in range(3):
        y = y - (y - size / (y * y)) * (1.0 / 3.0)
    square, e = product(y, y)
    cube, f = product(square, y)
    # The exact residue, e being the square's.
    left = ((size - cube) - f) - e * y
    return with_sign(y + left / (square * 3.0), x)


@function("cbrt_cold")
def _cbrt_cold(x: Node) -> Node:
    size = fabs(x)
    small = (size > 0.0) & (size < 2.0**-500)
    large = (size > 2.0**500) & (size <= LARGEST)
    factor = select(small, 2.0**600, select(large, 2.0**-600, 1.0))
    inside = select(small | large, x * factor, 1.0)
    return select(small | large, _cube_root(inside) * select(small, 2.0**-200, 2.0**200), x)


def _cbrt_is_cold(x: Node) -> Node:
    return ~((fabs(x) >= 2.0**-500) & (fabs(x) <= 2.0**500))


@function("cbrt", guard=_cbrt_is_cold, cold=_cbrt_cold)
def cbrt(x: Node) -> Node:
    """The cube root."""
    return _cube_root(x)


def _far_logarithm(size: Node) -> Node:
    """log(2 x) of a large number."""
    found = Reduced(size)
    start, low = found.natural()
    s, e = two_sum(start, LN2_PAIR[0])
    high, rest = found.pair(s, e + (low + LN2_PAIR[1]))
    return high + rest


def _one() -> Node:
    return constant(1.0, F64)


@function("asinh_cold")
def _asinh_cold(x: Node) -> Node:
    size = fabs(x)
    large = (size > 2.0**28) & (size <= LARGEST)
    return select(large, with_sign(_far_logarithm(select(large, size, 1.0)), x), x)


@function(
    "asinh", guard=lambda x: ~((fabs(x) <= 2.0**28) & (fabs(x) >= 2.0**-28)), cold=_asinh_cold
)
def asinh(x: Node) -> Node:
    """The inverse of the hyperbolic sine: log(1 + u) of u = x + x**2 / (1 + sqrt(1 + x**2))."""
    size = fabs(x)
    p, e = product(size, size)
    s, f = two_sum(p, _one())
    root = root_of(quick_sum(s, f + e))
    d, g = two_sum(root[0], _one())
    q = quotient((p, e), quick_sum(d, g + root[1]))
    t, h = two_sum(size, q[0])
    high, low = above_one(t, h + q[1])
    return with_sign(high + low, x)


@function("acosh_cold")
def _acosh_cold(x: Node) -> Node:
    large = (x > 2.0**28) & (x <= LARGEST)
    value = _far_logarithm(select(large, x, 1.0))
    special = select(x > LARGEST, x, select(equal(x, 1.0), 0.0, math.nan))
    return select(large, value, special)


@function("acosh", guard=lambda x: ~((x <= 2.0**28) & (x > 1.0)), cold=_acosh_cold)
def acosh(x: Node) -> Node:
    """The inverse of the hyperbolic cosine: log(1 + u), u = t + sqrt(t (t + 2)), t = x - 1."""
    t = x - 1.0
    d, e = two_sum(t, 2.0)
    p, f = product(t, d)
    root = root_of(quick_sum(p, f + t * e))
    s, g = two_sum(t, root[0])
    high, low = above_one(s, g + root[1])
    return high + low


@function("atanh_cold")
def _atanh_cold(x: Node) -> Node:
    edge = select(equal(fabs(x), 1.0), select(x > 0.0, math.inf, -math.inf), math.nan)
    return select(fabs(x) < 0.5, x, edge)


@function("atanh", guard=lambda x: ~((fabs(x) < 1.0) & (fabs(x) >= 2.0**-28)), cold=_atanh_cold)
def atanh(x: Node) -> Node:
    """The inverse of the hyperbolic tangent: half of log(1 + 2 x / (1 - x))."""
    size = fabs(x)
    d, e = two_sum(_one(), -size)
    q = quotient((size * 2.0, constant(0.0, F64)), (d, e))
    high, low = above_one(q[0], q[1])
    return with_sign((high + low) * 0.5, x)


def _exponential(x: Node) -> Pair:
    found = Exponential(x)
    scale = found.scale()
    return quick_sum(scale, scale * found.rest)


@function("softplus_cold")
def _softplus_cold(x: Node) -> Node:
    number = select(unequal(x, x), 0.0, x)
    value = select(number > 0.0, number, scaled(select(number > 0.0, 0.0, number)))
    return select(unequal(x, x), math.nan, value)


@function("softplus", guard=lambda x: ~(fabs(x) <= 600.0), cold=_softplus_cold)
def softplus(x: Node) -> Node:
    """log(1 + e**x): max(x, 0) + log(1 + e**-|x|)."""
    u = _exponential(-fabs(x))
    high, low = above_one(u[0], u[1])
    s, e = two_sum(select(x > 0.0, x, 0.0), high)
    return s + (e + low)
