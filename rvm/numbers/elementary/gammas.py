"""The logarithm of the gamma function and its derivatives.

Up to 8 they use tables of polynomials, four per octave, for the quotient by the zeros; beyond,
Stirling's series; below 0, reflection.  Near their zeros below 0, of which there are two between
each pair of poles, results have an absolute error of about 2**-53, and no bound on the relative
error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rvm.leaf import Node, Table, constant, function, select
from rvm.leaf.ops import F64
from rvm.leaf.trace import bits as bits_of
from rvm.leaf.trace import called, equal, fabs, nearest, of_bits, to_int, unequal
from rvm.numbers.elementary.circles import cosine, sine, tan
from rvm.numbers.elementary.logarithms import LARGEST, LEAST, fine, natural
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
    times,
    two_sum,
)
from rvm.numbers.elementary.tables import (
    DIGAMMA_HIGH,
    DIGAMMA_LOW,
    DIGAMMA_POLY,
    DIGAMMA_ROOT,
    DIGAMMA_TAIL,
    FACTORIALS,
    GAMMA_HIGH,
    GAMMA_LOW,
    GAMMA_POLY,
    HURWITZ_TAIL,
    LOG_PI_PAIR,
    PI_PAIR,
    STIRLING_PAIR,
    STIRLING_TAIL,
)

FIRST = 0x3FE0000000000000
"""The bits of 1/2, where the tables begin."""
QUARTER = 1 << 50
"""A quarter of an octave, in the bits of a float."""
MOST = 12
"""The highest derivative of the digamma function for which there is code."""
SHIFT = 20
"""From here on the series of `_tail` has all digits."""


def _looked_up(u: Node, t: Any, high: Table, low: Table, rows: Sequence[Table]) -> Pair:
    """A tabled function at a number within 1/2 and 8 near u, where t(c) is its distance from c."""
    place = bits_of(u) - FIRST
    index = place >> 50
    middle = of_bits((place & -QUARTER) + (FIRST + QUARTER // 2))
    by = t(middle)
    return quick_sum(high[index], low[index] + by * polynomial([row[index] for row in rows], by))


def between(x: Node) -> Pair:
    """lgamma x for 1/2 <= x < 8: (x - 1)(x - 2) times a tabulated function."""
    q = _looked_up(x, lambda c: x - c, GAMMA_HIGH, GAMMA_LOW, GAMMA_POLY)
    return times(times(exactly_of(x - 1.0), two_sum(x, -2.0)), q)


def _near_one(x: Node) -> Pair:
    """lgamma(1 + x) for |x| <= 1/2."""
    q = _looked_up(1.0 + x, lambda c: x - (c - 1.0), GAMMA_HIGH, GAMMA_LOW, GAMMA_POLY)
    return times(times(exactly_of(x), two_sum(x, -1.0)), q)


def stirling(x: Node) -> Pair:
    """lgamma x for 8 <= x <= 2**900: (x - 1/2)(log x - 1) + log(2 pi) / 2 - 1/2, and a series."""
    high, low = fine(x)
    less = two_sum(high, -1.0)
    main = times(two_sum(x, -0.5), (less[0], less[1] + low))
    inverse = 1.0 / x
    s, e = two_sum(main[0], STIRLING_PAIR[0])
    rest = inverse * polynomial(STIRLING_TAIL, inverse * inverse)
    return quick_sum(s, e + (main[1] + STIRLING_PAIR[1] + rest))


def _sine_of_pi(x: Node) -> Pair:
    """|sin(pi x)| for |x| below 2**51."""
    r = fabs(x - nearest(x))
    swapped = r > 0.25
    p, e = product(select(swapped, 0.5 - r, r), constant(PI_PAIR[0], F64))
    angle = quick_sum(p, e + select(swapped, 0.5 - r, r) * PI_PAIR[1])
    s, c = quick_sum(*sine(angle)), quick_sum(*cosine(angle))
    return chosen(swapped, c, s)


def _reflected(size: Node) -> Pair:
    """lgamma(-size) for 1/2 <= size < 2**51: log(pi / (size |sin(pi size)|)) - lgamma(size)."""
    near = size < 8.0
    one, other = between(select(near, size, 1.0)), stirling(select(near, 8.0, size))
    s = _sine_of_pi(size)
    pole = equal(s[0], 0.0)
    high, low = natural(select(pole, 1.0, s[0]))
    log_sine = (high, low + select(pole, 0.0, s[1]) / select(pole, 1.0, s[0]))
    mirror = chosen(near, one, other)
    found = plus(
        plus(paired(LOG_PI_PAIR), negative(natural(size))), negative(plus(log_sine, mirror))
    )
    return select(pole, math.inf, found[0]), select(pole, 0.0, found[1])


@function("lgamma_below")
def _lgamma_below(x: Node) -> Node:
    size = fabs(x)
    # Beyond 2**900 products are of smaller numbers.
    far = (x > 2.0**900) & (x <= LARGEST)
    high, low = fine(select(far, x, 1.0))
    scaled = select(far, x * 2.0**-200, 0.0) * ((high - 1.0) + low) * 2.0**200
    small = size < 0.5
    tiny = (size < LEAST) & (size > 0.0)
    one, other = (
        natural(select(small & ~tiny, select(size > 0.0, size, 1.0), 1.0)),
        natural(select(tiny, size * 2.0**54, 1.0), 54),
    )
    log = chosen(tiny, other, one)
    around = plus(negative(log), _near_one(select(small, x, 0.0)))
    value = select(small, around[0] + around[1], scaled)
    inside = (x < 0.0) & ~small & (size < 2.0**51)
    below = _reflected(select(inside, size, 1.5))
    value = select(inside, below[0] + below[1], value)
    pole = equal(x, 0.0) | (size > LARGEST) | (x <= -(2.0**51))
    return select(unequal(x, x), math.nan, select(pole, math.inf, value))


@function("lgamma_far", guard=lambda x: ~((x >= 8.0) & (x <= 2.0**900)), cold=_lgamma_below)
def _lgamma_far(x: Node) -> Node:
    high, low = stirling(x)
    return high + low


@function("lgamma", guard=lambda x: ~((x >= 0.5) & (x < 8.0)), cold=_lgamma_far)
def lgamma(x: Node) -> Node:
    """The logarithm of the absolute value of the gamma function."""
    high, low = between(x)
    return (high + low) + 0.0


# ---------------------------------------------------------------- derivatives


def _digamma_near(x: Node) -> Pair:
    """digamma x for 1/2 <= x < 8: x minus the zero, times a tabulated function."""
    q = _looked_up(x, lambda c: x - c, DIGAMMA_HIGH, DIGAMMA_LOW, DIGAMMA_POLY)
    s, e = two_sum(x, -DIGAMMA_ROOT[0])
    return times(quick_sum(s, e - DIGAMMA_ROOT[1]), q)


def _digamma_near_one(x: Node) -> Pair:
    """digamma(1 + x) for |x| <= 1/2."""
    q = _looked_up(1.0 + x, lambda c: x - (c - 1.0), DIGAMMA_HIGH, DIGAMMA_LOW, DIGAMMA_POLY)
    s, e = two_sum(1.0 - DIGAMMA_ROOT[0], x)
    return times(quick_sum(s, e - DIGAMMA_ROOT[1]), q)


def _digamma_series(x: Node) -> Pair:
    """digamma x for x >= 8: log x - 1 / (2 x) - a series by 1 / x**2."""
    high, low = natural(x)
    inverse = 1.0 / x
    square = inverse * inverse
    s, e = two_sum(high, -0.5 * inverse)
    return quick_sum(s, e + (low - square * polynomial(DIGAMMA_TAIL, square)))


def _cotangent_of_pi(x: Node) -> Node:
    """cot(pi x) for |x| below 2**51, which is not whole."""
    r = x - nearest(x)
    size = fabs(r)
    swapped = size > 0.25
    t = called(tan, select(swapped, 0.5 - size, size) * PI_PAIR[0])
    found = select(swapped, t, 1.0 / select(swapped, 1.0, t))
    return select(r < 0.0, -found, found)


@function("digamma_below")
def _digamma_below(x: Node) -> Node:
    size = fabs(x)
    tiny = (size < 2.0**-100) & (size > 0.0)
    small = (size < 0.5) & ~tiny
    at = select(small & (size > 0.0), x, 0.25)
    inverse = 1.0 / at
    high, low = _digamma_near_one(at)
    s, e = two_sum(-inverse, high)
    p, f = product(inverse, at)
    # With what the quotient has lost.
    value = s + (e + (low + ((p - 1.0) + f) * inverse))
    value = select(tiny, -1.0 / select(tiny, x, 1.0), value)
    small = small | tiny
    whole = equal(x, nearest(select(size < 2.0**51, x, 1.0)))
    inside = (x < 0.0) & (size >= 0.5) & (size < 2.0**51) & ~whole
    at = select(inside, size, 1.5)
    near = at < 8.0
    one, other = _digamma_near(select(near, at, 1.0)), _digamma_series(select(near, 8.0, at))
    mirror = chosen(near, one, other)
    turn = _cotangent_of_pi(select(inside, x, 0.25)) * -PI_PAIR[0]
    s, e = two_sum(turn, mirror[0])
    value = select(inside, s + (e + (mirror[1] + 1.0 / at)), value)
    zero = select(bits_of(x) < 0, constant(math.inf, F64), -math.inf)
    value = select((small & (size > 0.0)) | inside, value, math.nan)
    value = select(equal(x, 0.0), zero, value)
    return select(x > LARGEST, math.inf, value)


@function("digamma_far", guard=lambda x: ~((x >= 8.0) & (x <= LARGEST)), cold=_digamma_below)
def _digamma_far(x: Node) -> Node:
    high, low = _digamma_series(x)
    return high + low


@function("digamma", guard=lambda x: ~((x >= 0.5) & (x < 8.0)), cold=_digamma_far)
def digamma(x: Node) -> Node:
    """The derivative of lgamma."""
    high, low = _digamma_near(x)
    return high + low


def _power(y: Node, n: Node) -> Node:
    """y**n for 0 <= n < 16."""
    found: Any = 1.0
    for bit in range(4):
        found = select(equal((n >> bit) & 1, 1), y, 1.0) * found
        y = y * y
    return found  # type: ignore[no-any-return]


@function("hurwitz")
def _hurwitz(order: Node, x: Node) -> Node:
    """The sum of n! / (x + k)**(n + 1) over all k >= 0, for x > 0 and a whole n from 1 to MOST."""
    n = to_int(order)
    near = x < float(SHIFT)
    w = select(near, x + float(SHIFT), x)
    inverse = 1.0 / w
    z = inverse * inverse
    series = polynomial([row[n] for row in HURWITZ_TAIL], z)
    # (n - 1)! / w**n + n! / (2 w**(n + 1)) + ...
    tail = _power(inverse, n) * (FACTORIALS[n - 1] * (order * inverse * 0.5 + 1.0) + z * series)
    terms: Any = 0.0
    for k in reversed(range(SHIFT)):
        terms = terms + _power(1.0 / (select(near, x, 1.0) + float(k)), n + 1)
    return select(near, terms * FACTORIALS[n] + tail, tail)


def _signed(n: Node, x: Node) -> Node:
    return select(equal(n & 1, 1), x, -x)


def _is_order(n: Node) -> Node:
    return (n >= 1.0) & (n <= float(MOST)) & equal(n, nearest(n))


@function("polygamma_below")
def _polygamma_below(n: Node, x: Node) -> Node:
    inside = _is_order(n)
    number = select(inside, n, 1.0)
    order = to_int(number)
    odd = equal(order & 1, 1)
    size = fabs(x)
    r = x - nearest(select(size < 2.0**51, x, 0.0))
    whole = equal(r, 0.0) | (size >= 2.0**51)
    usual = (x < 0.0) & ~whole
    at, off = select(usual, x, -0.5), select(usual, r, -0.5)
    # The sum over all whole k less that over k < 0, which is one from 1 - x on.
    main = _power(1.0 / off, order + 1) * FACTORIALS[order]
    ahead, behind = called(_hurwitz, number, 1.0 + off), called(_hurwitz, number, 1.0 - off)
    found = main + (ahead + _signed(order, behind - called(_hurwitz, number, 1.0 - at)))
    value = select(usual, _signed(order, found), math.nan)
    value = select(odd & whole & (x <= 0.0), math.inf, value)
    value = select(x > LARGEST, constant(0.0, F64), value)
    return select(equal(n, 0.0), called(digamma, x), select(inside, value, math.nan))


def _polygamma_is_cold(n: Node, x: Node) -> Node:
    return ~((x > 0.0) & (x <= LARGEST) & _is_order(n))


@function("polygamma", guard=_polygamma_is_cold, cold=_polygamma_below)
def polygamma(n: Node, x: Node) -> Node:
    """The derivative of digamma of order n, from 0 to MOST; NaN for other orders."""
    return _signed(to_int(n), called(_hurwitz, n, x))
