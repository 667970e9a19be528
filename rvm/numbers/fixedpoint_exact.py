"""Functions of fixed-point numbers in Python's integers: the nearest raw number, ties to even.

This is their definition; faster code calls it for whatever it cannot decide.  Algebraic functions
are integer roots.  The others are computed to more and more bits until all possible values round to
one number.  That ends, since by the theorems of Lindemann and of Gelfond and Schneider their values
are not ties, except for powers with rational results, which are computed as fractions, and the
cases in `ties`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

from rvm.leaf.ops import I64, limits
from rvm.numbers.binaries import (
    angle,
    circle,
    digamma,
    error,
    lgamma,
    ln2,
    logarithm,
    polygamma,
    power_of_e,
)
from rvm.numbers.support import division_by_zero, out_of_range

LOW, HIGH = limits(I64)
GUARD = 64
"""Bits that are computed beyond those of the result at first."""
ERROR = 1 << 20
"""The largest error of a value of the functions below, in units of its last bit."""
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
    """The arguments for which a function other than a power is a tie; None if there are none."""
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
    """The nearest integer of a number that is not a tie, from the integer below its double."""
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
    """A power that is rational and needs exact treatment; None for others."""
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


# ------------------------------------------------------------------------- the functions


def _one(p: int) -> int:
    return 1 << p


def _divided(a: int, b: int, p: int) -> int:
    return (a << p) // b


def _growing(f: Callable[[int, int], int], p: int, x: int) -> int | None:
    """A function of e**x and e**-x, which are out of range if |x| is large."""
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
    return error(x, p) if x > 0 else -error(-x, p)


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
    "lgamma": lgamma,
    "digamma": digamma,
    "polygamma": polygamma,
}
"""Functions of numbers in units of 2**-p, accurate to `ERROR` such units; None where undefined."""
