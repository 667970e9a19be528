"""Functions of fixed-point numbers in Python's integers: the nearest raw number, ties to even.

This is their definition; what is faster leaves to it whatever it cannot settle.  Algebraic
functions are integer roots.  The others are computed to more and more bits until all that the
value may be rounds to one number.  That ends: by the theorems of Lindemann and of Gelfond and
Schneider their values are no ties, but for powers with rational results, which are computed as
fractions, and what `ties` names.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial

from rvm.leaf.ops import I64, limits
from rvm.numbers.support import division_by_zero, out_of_range

LOW, HIGH = limits(I64)
GUARD = 64
"""Bits that are computed beyond those of the result at first."""
ERROR = 1 << 20
"""How far a value of the functions below may be off, in units of its last bit."""
LARGE = 45
"""Beyond this exponent no power of e is below 2**64, nor is its reciprocal above 2**-64."""


def exact(name: str, frac: int, *raws: int) -> int:
    """A function of raw numbers with `frac` fraction bits; R009 where it does not fit or exist."""
    if name in ROOTS:
        found = ROOTS[name](frac, *raws)
    else:
        found = _powers(frac, *raws) if name == "**" else None
        found = _by_bits(name, frac, raws) if found is None else found
    if found is None or not LOW <= found <= HIGH:
        shown = [raw / (1 << frac) for raw in raws]
        raise out_of_range(shown[0] if len(shown) == 1 else tuple(shown), f"fixed({frac})")
    return found


def exact_power(frac: int, raw: int, n: int) -> int:
    """A fixed-point number to the power of an integer; R005 for 0 to a negative one."""
    if n < 0 and not raw:
        raise division_by_zero(1.0)
    return exact("**", frac, raw, n << frac)


def ties(name: str, frac: int) -> tuple[int, ...] | None:
    """For which arguments a function that is no power is half a unit; None where for none."""
    if name == "exp2" and frac + 1 << frac <= HIGH:
        return (-(frac + 1) << frac,)
    return (0,) if name == "sigmoid" and not frac else None


def _by_bits(name: str, frac: int, raws: tuple[int, ...]) -> int | None:
    if raws == ties(name, frac):
        return 0
    p = frac + GUARD
    while True:
        value = FUNCTIONS[name](p, *(raw << p - frac for raw in raws))
        if value is None:
            return None
        half = 1 << p - frac - 1
        low, high = (value + off + half >> p - frac for off in (-ERROR, ERROR))
        if low == high:
            return low
        p *= 2


# ------------------------------------------------------------------------- algebraic functions


def _half_up(twice: int) -> int:
    """The nearest integer of a number that is no tie, from the integer below its double."""
    return twice + 1 >> 1


def _sqrt(frac: int, x: int) -> int | None:
    return None if x < 0 else _half_up(math.isqrt(x << frac + 2))


def _hypot(frac: int, x: int, y: int) -> int:
    return _half_up(math.isqrt(4 * (x * x + y * y)))


def _versor(frac: int, x: int, y: int) -> int:
    square = x * x + y * y
    size = _half_up(math.isqrt((x * x << 2 * frac + 2) // square)) if square else 0
    return size if x > 0 else -size


def _leg(frac: int, x: int) -> int | None:
    square = (1 << 2 * frac) - x * x
    return None if square < 0 else _half_up(math.isqrt(4 * square))


def _cbrt(frac: int, x: int) -> int:
    if not x:
        return 0
    cube = abs(x) << 2 * frac + 3
    root = 1 << -(-cube.bit_length() // 3)
    while True:
        less = (2 * root + cube // (root * root)) // 3
        if less >= root:
            break
        root = less
    return -_half_up(root) if x < 0 else _half_up(root)


ROOTS: dict[str, Callable[..., int | None]] = {
    "sqrt": _sqrt,
    "hypot": _hypot,
    "versor": _versor,
    "leg": _leg,
    "cbrt": _cbrt,
}
"""Functions of raw numbers by integer roots."""


def _powers(frac: int, raw: int, exponent: int) -> int | None:
    """A power that is rational, and for which that matters; None of others."""
    n, base = Fraction(exponent, 1 << frac), Fraction(raw, 1 << frac)
    while n.denominator > 1:
        if base < 0:
            return None
        above, below = math.isqrt(base.numerator), math.isqrt(base.denominator)
        root = Fraction(above, below)
        if root * root != base:
            return None
        base, n = root, n * 2
    if not n:
        return 1 << frac
    if not base:
        return 0 if n > 0 else None
    if abs(base) == 1:
        return (int(base) if n.numerator & 1 else 1) << frac
    # Beyond that a power does not fit, or is far below a half.
    return round(base**n.numerator * (1 << frac)) if abs(n.numerator) <= 64 else None


# ------------------------------------------------------------------------- constants and cores
#
# Numbers are integers in units of 2**-p.


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


def _error(x: int, p: int) -> int:
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
    """How many ones a number lacks to be large."""
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


LARGER = 72
"""Bits that a large argument takes."""
MORE = 160
"""Bits that reflections may lose next to a pole as well."""


def _lgamma(p: int, x: int) -> int | None:
    if x > 0:
        return _log_gamma(x << LARGER, p + LARGER) >> LARGER
    q, x = p + MORE, x << MORE
    rest = x & _one(q) - 1
    if not rest:
        return None
    sine = circle(rest * pi(q) >> q, q)[1]
    return logarithm(pi(q), q) - logarithm(sine, q) - _log_gamma(_one(q) - x, q) >> MORE


def _digamma(p: int, x: int) -> int | None:
    if x > 0:
        return _digamma_above(x << LARGER, p + LARGER) >> LARGER
    q, x = p + MORE, x << MORE
    rest = x & _one(q) - 1
    if not rest:
        return None
    cosine, sine = circle(rest * pi(q) >> q, q)
    return _digamma_above(_one(q) - x, q) - pi(q) * cosine // sine >> MORE


def _polygamma(p: int, n: int, x: int) -> int | None:
    if n & _one(p) - 1 or not 0 <= n >> p <= ORDERS:
        return None
    n >>= p
    if not n:
        return _digamma(p, x)
    q, x = p + MORE, x << MORE
    sign = 1 if n & 1 else -1
    if x > 0:
        return sign * _hurwitz(n, x, q) >> MORE
    rest = x & _one(q) - 1
    if not rest:
        return None
    # The sum over all whole k less that over k < 0, which is one from 1 - x on.
    behind = _hurwitz(n, _one(q) - rest, q) - _hurwitz(n, _one(q) - x, q)
    return sign * (_hurwitz(n, rest, q) + sign * behind) >> MORE


ORDERS = 12
"""The greatest order of a derivative of `digamma`."""


# ------------------------------------------------------------------------- the functions


def _one(p: int) -> int:
    return 1 << p


def _divided(a: int, b: int, p: int) -> int:
    return (a << p) // b


def _growing(f: Callable[[int, int], int], p: int, x: int) -> int | None:
    """A function of e**x and e**-x, of which both are beyond all numbers where |x| is large."""
    if abs(x) >> p >= LARGE:
        return None
    return f(power_of_e(x, p), power_of_e(-x, p))


def _exp(p: int, x: int) -> int | None:
    return None if x >> p >= LARGE else power_of_e(x, p)


def _exp2(p: int, x: int) -> int | None:
    return None if x >> p >= 64 else power_of_e(x * ln2(2 * p) >> 2 * p, p) if x else _one(p)


def _expm1(p: int, x: int) -> int | None:
    found = _exp(p, x)
    return None if found is None else found - _one(p)


def _tanh(p: int, x: int) -> int:
    # (1 - e) / (1 + e), with e = e**(-2 |x|).
    e = power_of_e(-2 * abs(x), p)
    size = _divided(_one(p) - e, _one(p) + e, p)
    return size if x > 0 else -size


def _sech(p: int, x: int) -> int:
    e = power_of_e(-abs(x), p)
    return _divided(2 * e, _one(p) + (e * e >> p), p)


def _sigmoid(p: int, x: int) -> int:
    e = power_of_e(-abs(x), p)
    return _divided(_one(p) if x > 0 else e, _one(p) + e, p)


def _softplus(p: int, x: int) -> int:
    return max(x, 0) + logarithm(_one(p) + power_of_e(-abs(x), p), p)


def _log(p: int, x: int, base: Callable[[int], int] | None = None) -> int | None:
    if x <= 0:
        return None
    return logarithm(x, p) if base is None else _divided(logarithm(x, p), base(p), p)


def _log1p(p: int, x: int) -> int | None:
    return _log(p, x + _one(p))


def _tan(p: int, x: int) -> int:
    # No fixed-point number is closer to a pole than some 2**-130.
    q = p + 160
    c, s = circle(x << q - p, q)
    return _divided(s, c, p)


def _side(p: int, x: int) -> int | None:
    """sqrt(1 - x * x), in units of 2**-2p."""
    square = _one(2 * p) - x * x
    return None if square < 0 else math.isqrt(square << 2 * p)


def _asin(p: int, x: int) -> int | None:
    side = _side(p, x)
    return None if side is None else angle(x << p, side, p)


def _acos(p: int, x: int) -> int | None:
    side = _side(p, x)
    return None if side is None else angle(side, x << p, p)


def _atan2(p: int, y: int, x: int) -> int:
    return angle(y, x, p) if x or y else 0


def _asinh(p: int, x: int) -> int:
    size = logarithm(abs(x) + math.isqrt(x * x + _one(2 * p)), p)
    return size if x > 0 else -size


def _acosh(p: int, x: int) -> int | None:
    square = (x * x - _one(2 * p)) << 2 * p
    return None if x < _one(p) else logarithm((x << p) + math.isqrt(square), 2 * p) >> p


def _atanh(p: int, x: int) -> int | None:
    if abs(x) >= _one(p):
        return None
    return logarithm(_divided(_one(p) + x, _one(p) - x, 2 * p), 2 * p) >> p + 1


def _erf(p: int, x: int) -> int:
    return _error(x, p) if x > 0 else -_error(-x, p)


def _pow(p: int, x: int, y: int) -> int | None:
    whole = not y & _one(p) - 1
    if (x < 0 and not whole) or not x:
        return None
    q = p + 72
    exponent = y * logarithm(abs(x) << q - p, q) >> p
    if exponent >> q >= LARGE:
        return None
    size = power_of_e(exponent >> q - p, p)
    return -size if x < 0 and y >> p & 1 else size


FUNCTIONS: dict[str, Callable[..., int | None]] = {
    "exp": _exp,
    "exp2": _exp2,
    "expm1": _expm1,
    "sinh": partial(_growing, lambda a, b: a - b >> 1),
    "cosh": partial(_growing, lambda a, b: a + b >> 1),
    "tanh": _tanh,
    "sech": _sech,
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "log": _log,
    "log1p": _log1p,
    "log2": partial(_log, base=ln2),
    "log10": partial(_log, base=lambda p: logarithm(10 << p, p)),
    "sin": lambda p, x: circle(x, p)[1],
    "cos": lambda p, x: circle(x, p)[0],
    "tan": _tan,
    "asin": _asin,
    "acos": _acos,
    "atan": lambda p, x: angle(x, _one(p), p),
    "atan2": _atan2,
    "asinh": _asinh,
    "acosh": _acosh,
    "atanh": _atanh,
    "erf": _erf,
    "erfc": lambda p, x: _one(p) - _erf(p, x),
    "**": _pow,
    "lgamma": _lgamma,
    "digamma": _digamma,
    "polygamma": _polygamma,
}
"""Functions of numbers in units of 2**-p, to within `ERROR` of these; None where there is none."""
