"""Functions of binary numbers, which are integers in units of 2**-p, for any number p of bits.

They are off by a few units more than the numbers of their terms.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

LARGER = 72
"""Bits that a large argument takes."""
MORE = 160
"""Bits that reflections may lose next to a pole as well."""
ORDERS = 12
"""The greatest order of a derivative of `digamma`."""


def _arc_series(k: int, p: int, alternate: bool) -> int:
    """The arc tangent of 1 / k, or where signs do not alternate the hyperbolic one."""
    term = (1 << p) // k
    total, n = term, 1
    while term:
        term //= k * k
        n += 2
        minus = alternate and n & 2
        total += -(term // n) if minus else term // n
    return total


@cache
def ln2(p: int) -> int:
    """The natural logarithm of 2."""
    terms = ((18, 26), (-2, 4801), (8, 8749))
    return sum(c * _arc_series(k, p + 16, False) for c, k in terms) >> 16


@cache
def pi(p: int) -> int:
    """Pi, by Machin's formula."""
    return (16 * _arc_series(5, p + 16, True) - 4 * _arc_series(239, p + 16, True)) >> 16


def power_of_e(x: int, p: int) -> int:
    """e**x, with p bits before the point too where it is above 1; 0 where it is below 2**-p."""
    k = x // ln2(p)
    if k < -p - 2:
        return 0
    more = max(k, 0) + 16
    q = p + more + abs(k).bit_length()
    r = (x << q - p) - k * ln2(q)
    term = total = 1 << q
    n = 0
    while term:
        n += 1
        term = (term * r >> q) // n
        total += term
    return total << k >> q - p if k > 0 else total >> q - p - k


def circle(x: int, p: int) -> tuple[int, int]:
    """Cosine and sine."""
    q = p + 16 + abs(x >> p).bit_length()
    half = pi(q) >> 1
    quarters = ((x << q - p) + (half >> 1)) // half
    r = (x << q - p) - quarters * half
    square = r * r >> q
    sums = []
    for start, n in ((1 << q, 0), (r, 1)):
        term = total = start
        while term and term != -1:
            term = -(term * square >> q) // ((n + 1) * (n + 2))
            n += 2
            total += term
        sums.append(total >> q - p)
    c, s = sums
    return ((c, s), (-s, c), (-c, -s), (s, -c))[quarters & 3]


def logarithm(x: int, p: int) -> int:
    """The natural logarithm of a number above 0, from that of Python's for its first bits."""
    k = x.bit_length() - 1 - p
    q = p + 16 + abs(k).bit_length()
    m = x << q - p - k if q >= p + k else x >> p + k - q
    guess = int(math.log(m / (1 << q)) * 2.0**60)
    y = guess << q - 60 if q > 60 else guess >> 60 - q
    e = power_of_e(y, q)
    t = (m - e << q) // (m + e)
    square, term, total, n = t * t >> q, t, t, 1
    while abs(term) > 1:
        term = term * square >> q
        n += 2
        total += term // n
    return y + 2 * total + k * ln2(q) >> q - p


def angle(y: int, x: int, p: int) -> int:
    """The angle of the point (x, y), neither both 0, from that of Python's for its first bits."""
    q = p + 16
    # Of as many bits as are wanted, whatever their unit.
    more = q + 64 - max(abs(x), abs(y)).bit_length()
    x, y = (x << more, y << more) if more > 0 else (x >> -more, y >> -more)
    guess = int(math.atan2(y / (1 << q + 64), x / (1 << q + 64)) * 2.0**60)
    a = guess << q - 60 if q > 60 else guess >> 60 - q
    c, s = circle(a, q)
    t = (y * c - x * s << q) // (x * c + y * s)
    square, term, total, n = t * t >> q, t, t, 1
    while abs(term) > 1:
        term = -(term * square >> q)
        n += 2
        total += term // n
    return a + total >> q - p


def error(x: int, p: int) -> int:
    """The error function of x >= 0, by a series of positive terms."""
    if x * x >> 2 * p > p:
        return 1 << p
    q = p + 24
    x <<= q - p
    square = x * x >> q
    term = total = x
    n = 1
    while term:
        n += 2
        term = 2 * (term * square >> q) // n
        total += term
    root = math.isqrt(pi(q) << q)
    return ((2 * total << q) // root << p) // power_of_e(square, q)


# ------------------------------------------------------------------------- gamma functions
#
# By asymptotic series, from a large enough argument on, and by recurrence and reflection.


@cache
def _bernoulli(n: int) -> Fraction:
    """The Bernoulli number of an even n > 0."""
    found = 1 - Fraction(n + 1, 2)
    for k in range(2, n, 2):
        found += math.comb(n + 1, k) * _bernoulli(k)
    return -found / (n + 1)


@cache
def _factor(k: int, n: int) -> Fraction:
    return _bernoulli(k) * Fraction(math.factorial(k + n - 1), math.factorial(k))


def _inverse(x: int, n: int, p: int) -> int:
    """x**-n."""
    return (1 << p * (n + 1)) // x**n if n >= 0 else x


def _series(x: int, n: int, p: int) -> int:
    """The sum of B(2k) (2k + n - 1)! / ((2k)! x**(2k + n)) over all k > 0, for a large x."""
    total, k = 0, 2
    while True:
        factor = _factor(k, n)
        term = _inverse(x, k + n, p) * factor.numerator // factor.denominator
        if abs(term) <= 1:
            return total
        total, k = total + term, k + 2


def _steps(x: int, p: int) -> int:
    """The number of ones missing for a number to be large."""
    return max(0, p // 4 - (x >> p))


def _hurwitz(n: int, x: int, p: int) -> int:
    """The sum of n! / (x + k)**(n + 1) over all k >= 0, for x > 0 and n > 0."""
    steps = _steps(x, p)
    total = sum(_inverse(x + (k << p), n + 1, p) for k in range(steps)) * math.factorial(n)
    x += steps << p
    half = _inverse(x, n + 1, p) * math.factorial(n) >> 1
    return total + _inverse(x, n, p) * math.factorial(n - 1) + half + _series(x, n, p)


def _log_gamma(x: int, p: int) -> int:
    """The logarithm of the gamma function of x > 0."""
    steps = _steps(x, p)
    product = math.prod(x + (k << p) for k in range(steps)) if steps else 1
    more = product.bit_length() - 2 * p
    cut = product >> more if more > 0 else product << -more
    less = logarithm(cut, p) + (more - p * steps + p) * ln2(p)
    x += steps << p
    main = ((x - (1 << p - 1)) * logarithm(x, p) >> p) - x + (logarithm(2 * pi(p), p) >> 1)
    return main + _series(x, -1, p) - less


def _digamma_above(x: int, p: int) -> int:
    """The derivative of that."""
    steps = _steps(x, p)
    less = sum(_inverse(x + (k << p), 1, p) for k in range(steps))
    x += steps << p
    return logarithm(x, p) - (_inverse(x, 1, p) >> 1) - _series(x, 0, p) - less


def lgamma(p: int, x: int) -> int | None:
    if x > 0:
        return _log_gamma(x << LARGER, p + LARGER) >> LARGER
    q, x = p + MORE, x << MORE
    rest = x & (1 << q) - 1
    if not rest:
        return None
    sine = circle(rest * pi(q) >> q, q)[1]
    return logarithm(pi(q), q) - logarithm(sine, q) - _log_gamma((1 << q) - x, q) >> MORE


def digamma(p: int, x: int) -> int | None:
    if x > 0:
        return _digamma_above(x << LARGER, p + LARGER) >> LARGER
    q, x = p + MORE, x << MORE
    rest = x & (1 << q) - 1
    if not rest:
        return None
    cosine, sine = circle(rest * pi(q) >> q, q)
    return _digamma_above((1 << q) - x, q) - pi(q) * cosine // sine >> MORE


def polygamma(p: int, n: int, x: int) -> int | None:
    if n & (1 << p) - 1 or not 0 <= n >> p <= ORDERS:
        return None
    n >>= p
    if not n:
        return digamma(p, x)
    q, x = p + MORE, x << MORE
    sign = 1 if n & 1 else -1
    if x > 0:
        return sign * _hurwitz(n, x, q) >> MORE
    rest = x & (1 << q) - 1
    if not rest:
        return None
    # The sum over all whole k less that over k < 0, which is one from 1 - x on.
    behind = _hurwitz(n, (1 << q) - rest, q) - _hurwitz(n, (1 << q) - x, q)
    return sign * (_hurwitz(n, rest, q) + sign * behind) >> MORE
