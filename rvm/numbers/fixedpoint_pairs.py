"""Functions of fixed-point numbers as texts: the nearest raw number, or `DOUBT`.

A raw number is a pair of floats exactly, and so is, to 60 bits and more, the value of a function of
it.  That is rounded, unless a tie is within the value's error, which is a bound that
tests/numbers/test_fixed_functions.py holds against what was found: four times the largest one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from rvm.leaf import Function, Node, constant, function, select
from rvm.leaf.ops import F64, I64, limits
from rvm.leaf.trace import (
    apply,
    called,
    equal,
    fabs,
    nearest,
    to_float,
    to_int,
    unequal,
)
from rvm.numbers.elementary import text
from rvm.numbers.elementary.arcs import angle
from rvm.numbers.elementary.circles import FAR, near
from rvm.numbers.elementary.errors import between
from rvm.numbers.elementary.exponentials import Reduced
from rvm.numbers.elementary.gammas import between as tabled
from rvm.numbers.elementary.gammas import stirling
from rvm.numbers.elementary.logarithms import Reduced as Logarithm
from rvm.numbers.elementary.pairs import (
    Pair,
    polynomial,
    product,
    quick_sum,
    quotient,
    two_sum,
)
from rvm.numbers.elementary.roots import root_of
from rvm.numbers.elementary.tables import LN2_PAIR, LN10_PAIR, PI_PAIR

DOUBT = limits(I64)[0]
"""What stands for a value that has to be settled exactly: the least raw number."""
LARGEST = 9.2e18
"""Raw numbers from here on may not fit."""
FLAT = 64.0
"""Beyond this e**-x is nothing beside what a pair is off by, and e**x does not fit."""


class Value:
    """A function's value as a pair of floats, and how far it may be from that.

    It is off by `fine` parts of itself and by `off`; `bad` is where it is not computed.
    """

    def __init__(self, pair: Pair, fine: Any, off: Any = 0.0, bad: Node | None = None) -> None:
        self.pair = pair
        self.fine = fine
        self.off = off
        self.bad = bad

    def raw(self, frac: int) -> Node:
        """The nearest raw number, or `DOUBT`."""
        unit = float(1 << frac)
        high, low = self.pair[0] * unit, self.pair[1] * unit
        inside = fabs(high) < LARGEST
        if self.bad is not None:
            inside = inside & ~self.bad
        high, low = select(inside, high, 0.0), select(inside, low, 0.0)
        whole = apply("round", high)
        rest = (high - to_float(whole)) + low
        step = nearest(rest)
        error = fabs(high) * self.fine + (self.off * unit + 2.0**-50)
        sure = inside & (fabs(rest - step) + error < 0.5)
        return select(sure, whole + to_int(step), constant(DOUBT, I64))


# ------------------------------------------------------------------------- pairs


def exactly(value: float) -> Pair:
    """A constant as a pair."""
    return exactly_of(constant(value, F64))


def exactly_of(value: Node) -> Pair:
    """A float as a pair."""
    return value, constant(0.0, F64)


def constants(value: Fraction) -> Pair:
    """A number as a pair of constants."""
    high = float(value)
    return constant(high, F64), constant(float(value - Fraction(high)), F64)


def number(raw: Node, frac: int) -> Pair:
    """A raw number as a pair, exactly."""
    high, low = (to_float(raw & mask) * 2.0**-frac for mask in (-2048, 2047))
    return quick_sum(high, low)


def plus(a: Pair, b: Pair) -> Pair:
    """The sum, to some 2**-104 of the larger."""
    s, e = two_sum(a[0], b[0])
    return quick_sum(s, e + (a[1] + b[1]))


def times(a: Pair, b: Pair) -> Pair:
    """The product, to some 2**-102."""
    p, e = product(a[0], b[0])
    return quick_sum(p, e + (a[0] * b[1] + a[1] * b[0]))


def over(a: Pair, b: Pair) -> Pair:
    """The quotient, to some 2**-100."""
    return quick_sum(*quotient(a, b))


def scaled(a: Pair, factor: float) -> Pair:
    """The product by a power of 2."""
    return a[0] * factor, a[1] * factor


def negative(a: Pair) -> Pair:
    """-a."""
    return -a[0], -a[1]


def chosen(condition: Node, a: Pair, b: Pair) -> Pair:
    """One of two."""
    return select(condition, a[0], b[0]), select(condition, a[1], b[1])


def size_of(a: Pair) -> Pair:
    """|a|."""
    return chosen(a[0] < 0.0, negative(a), a)


def like(size: Pair, of: Pair) -> Pair:
    """A number with the sign of another."""
    return chosen(of[0] < 0.0, negative(size), size)


def within(a: Pair, limit: float) -> Pair:
    """A number brought between -limit and limit."""
    inside = fabs(a[0]) <= limit
    return select(inside, a[0], select(a[0] > 0.0, limit, -limit)), select(inside, a[1], 0.0)


def one() -> Pair:
    """1."""
    return exactly(1.0)


def root_from(square: Pair) -> tuple[Pair, Node]:
    """A square root, of 0 too, and where there is none."""
    zero, bad = equal(square[0], 0.0), square[0] < 0.0
    return chosen(zero, exactly(0.0), root_of(chosen(zero | bad, one(), square))), bad


# ------------------------------------------------------------------------- exponentials

EXP = 2.0**-67
"""What an exponential may be off by, in parts of itself."""


def exponential(x: Pair) -> Pair:
    """e**x for |x| <= FLAT."""
    found = Reduced(*x, finely=True)
    scale = found.scale()
    high, low = found.rest_pair
    p, e = product(scale, high)
    s, f = quick_sum(scale, p)
    return quick_sum(s, f + (e + scale * low))


def falling(x: Pair) -> Pair:
    """e**-|x|."""
    return exponential(negative(within(size_of(x), FLAT)))


def both_ways(x: Pair) -> tuple[Pair, Pair]:
    """e**|x|, or e**FLAT where that is less, and its reciprocal."""
    e = exponential(within(size_of(x), FLAT))
    return e, over(one(), e)


def _exp(x: Pair) -> Value:
    return Value(exponential(within(x, FLAT)), EXP, EXP)


def _exp2(x: Pair) -> Value:
    return Value(exponential(within(times(within(x, 2 * FLAT), LN2), FLAT)), EXP, EXP)


def _expm1(x: Pair) -> Value:
    return Value(plus(exponential(within(x, FLAT)), exactly(-1.0)), EXP, EXP)


def _sinh(x: Pair) -> Value:
    up, down = both_ways(x)
    return Value(like(scaled(plus(up, negative(down)), 0.5), x), EXP, EXP)


def _cosh(x: Pair) -> Value:
    return Value(scaled(plus(*both_ways(x)), 0.5), EXP)


def _tanh(x: Pair) -> Value:
    up, down = both_ways(x)
    return Value(like(over(plus(up, negative(down)), plus(up, down)), x), 0.0, EXP)


def _sech(x: Pair) -> Value:
    return Value(over(exactly(2.0), plus(*both_ways(x))), 0.0, EXP)


def _sigmoid(x: Pair) -> Value:
    e = falling(x)
    return Value(over(chosen(x[0] < 0.0, e, one()), plus(one(), e)), 0.0, EXP)


def _softplus(x: Pair) -> Value:
    more = logarithm(plus(one(), falling(x)))
    return Value(plus(chosen(x[0] > 0.0, x, exactly(0.0)), more), 2.0**-90, EXP)


# ------------------------------------------------------------------------- logarithms

LOG = 2.0**-73
"""What a logarithm may be off by."""
LN2 = constant(LN2_PAIR[0], F64), constant(LN2_PAIR[1], F64)
LN10 = constant(LN10_PAIR[0], F64), constant(LN10_PAIR[1], F64)


def logarithm(x: Pair) -> Pair:
    """log x of a normal number above 0."""
    found = Logarithm(x[0], (x[1], constant(0.0, F64)))
    return found.fine_pair(*found.natural())


def _of_positive(x: Pair, f: Callable[[Pair], Pair] = lambda v: v) -> Value:
    bad = ~(x[0] > 0.0)
    return Value(f(logarithm(chosen(bad, one(), x))), LOG, LOG, bad)


def _log2(x: Pair) -> Value:
    return _of_positive(x, lambda v: over(v, LN2))


def _log10(x: Pair) -> Value:
    return _of_positive(x, lambda v: over(v, LN10))


def _log1p(x: Pair) -> Value:
    return _of_positive(plus(one(), x))


def _asinh(x: Pair) -> Value:
    size = size_of(x)
    root = root_of(plus(times(size, size), one()))
    return Value(like(logarithm(plus(size, root)), x), LOG, LOG)


def _acosh(x: Pair) -> Value:
    root, bad = root_from(times(plus(x, exactly(-1.0)), plus(x, one())))
    bad = bad | (x[0] < 0.0)
    x, root = chosen(bad, one(), x), chosen(bad, one(), root)
    return Value(logarithm(plus(x, root)), LOG, LOG, bad)


def _atanh(x: Pair) -> Value:
    size = size_of(x)
    bad = ~(size[0] < 1.0)
    size = chosen(bad, exactly(0.0), size)
    ratio = over(plus(one(), size), plus(one(), negative(size)))
    return Value(like(scaled(logarithm(ratio), 0.5), x), LOG, LOG, bad)


# ------------------------------------------------------------------------- circles

TERMS = 10
"""How many terms of a Taylor series within pi/4 are taken."""


def _series(square: Node, first: int) -> Node:
    """1/first! - x**2/(first + 2)! + …, from the square of x."""
    signs = (1.0 if k % 2 == 0 else -1.0 for k in range(TERMS))
    return polynomial([s / math.factorial(first + 2 * k) for k, s in enumerate(signs)], square)


def circle(x: Pair) -> tuple[Node, Pair, Pair]:
    """The quarters of a turn in x, and sine and cosine of what is left, to some 2**-64."""
    quarters, r = near(x[0])
    a = plus(r, exactly_of(x[1]))
    square = times(a, a)
    fourth, s = times(square, square), square[0]
    # What is left out of pairs is below 2**-12.
    cosine = plus(scaled(square, -0.5), times(fourth, constants(Fraction(1, 24))))
    sine = plus(constants(Fraction(-1, 6)), times(square, constants(Fraction(1, 120))))
    sine = times(times(square, a), plus(sine, exactly_of(-(fourth[0] * _series(s, 7)))))
    cosine = plus(cosine, exactly_of(-(fourth[0] * s * _series(s, 6))))
    return quarters, plus(a, sine), plus(one(), cosine)


SIN = 2.0**-61


def _near(x: Pair) -> tuple[Pair, Node]:
    """An angle that is within the reduction, and where it is not."""
    bad = ~(fabs(x[0]) <= FAR)
    return chosen(bad, exactly(0.0), x), bad


def _turned(x: Pair, more: int) -> Value:
    x, bad = _near(x)
    quarters, s, c = circle(x)
    quarters = quarters + more
    found = chosen(equal(quarters & 1, 1), c, s)
    return Value(chosen(equal(quarters & 2, 2), negative(found), found), 0.0, SIN, bad)


def _tan(x: Pair) -> Value:
    x, bad = _near(x)
    quarters, s, c = circle(x)
    odd = equal(quarters & 1, 1)
    bad = bad | equal(chosen(odd, s, c)[0], 0.0)
    top, below = chosen(odd, negative(c), s), chosen(odd, s, c)
    found = over(top, chosen(bad, one(), below))
    # Near a pole the sine that is divided by is as exact as it is small.
    return Value(found, SIN, SIN, bad)


# ------------------------------------------------------------------------- arcs

ARC = 2.0**-65
PI = constant(PI_PAIR[0], F64), constant(PI_PAIR[1], F64)


def _mirrored(found: Pair, x: Pair) -> Pair:
    """An angle in the first quarter as one on the side of x."""
    return chosen(x[0] < 0.0, plus(PI, negative(found)), found)


def _leg_of(x: Pair) -> tuple[Pair, Node]:
    """sqrt(1 - x**2), and where there is none."""
    return root_from(times(plus(one(), negative(x)), plus(one(), x)))


def _atan2(y: Pair, x: Pair) -> Value:
    a, b = size_of(y), size_of(x)
    nowhere = equal(a[0], 0.0) & equal(b[0], 0.0)
    found = angle(a, chosen(nowhere, one(), b))
    return Value(like(_mirrored(found, x), y), 0.0, ARC)


def _asin(x: Pair) -> Value:
    leg, bad = _leg_of(x)
    return Value(like(angle(size_of(x), leg), x), 0.0, ARC, bad)


def _acos(x: Pair) -> Value:
    leg, bad = _leg_of(x)
    return Value(_mirrored(angle(leg, size_of(x)), x), 0.0, ARC, bad)


# ------------------------------------------------------------------------- roots

ROOT = 2.0**-90


def _root(square: Pair) -> Value:
    found, bad = root_from(square)
    return Value(found, ROOT, 0.0, bad)


def _leg(x: Pair) -> Value:
    found, bad = _leg_of(x)
    return Value(found, ROOT, 0.0, bad)


def _hypot(x: Pair, y: Pair) -> Value:
    return _root(plus(times(x, x), times(y, y)))


def _versor(x: Pair, y: Pair) -> Value:
    square = plus(times(x, x), times(y, y))
    return Value(over(x, root_of(chosen(equal(square[0], 0.0), one(), square))), ROOT)


def _cbrt(x: Pair) -> Value:
    zero = equal(x[0], 0.0)
    x = chosen(zero, one(), x)
    y = called(text("cbrt"), x[0])
    s, e = product(y, y)
    cube, f = product(s, y)
    left = (x[0] - cube) - (f + e * y) + x[1]
    found = quick_sum(y, left / (s * 3.0))
    return Value(chosen(zero, exactly(0.0), found), ROOT)


# ------------------------------------------------------------------------- the error function


def _erf(x: Pair) -> Value:
    size = size_of(within(x, 5.9375))
    # From the limit on it is 1 to within the last bits of a float.
    off = select(fabs(x[0]) < 5.9375, 2.0**-55, 2.0**-53)
    return Value(like(between(size[0]), x), 0.0, off, unequal(size[1], 0.0))


def _erfc(x: Pair) -> Value:
    found = _erf(x)
    return Value(plus(one(), negative(found.pair)), 0.0, found.off, found.bad)


# ------------------------------------------------------------------------- gamma functions


def _single(name: str, fine: Any, off: Any, *args: Pair) -> Value:
    """A function that is known as a float only, where its arguments are floats."""
    bad = unequal(args[-1][1], 0.0)
    found = called(text(name), *(a[0] for a in args))
    return Value(exactly_of(found), fine, off, bad)


def _lgamma(x: Pair) -> Value:
    large, usual = x[0] >= 8.0, x[0] >= 0.5
    one, other = tabled(select(usual & ~large, x[0], 1.0)), stirling(select(large, x[0], 8.0))
    found = _single("lgamma", select(large, 2.0**-67, 2.0**-53), 0.0, x)
    pair = chosen(large, other, chosen(usual, one, found.pair))
    return Value(pair, found.fine, select(usual, 2.0**-55, 2.0**-46), found.bad)


def _digamma(x: Pair) -> Value:
    return _single("digamma", 2.0**-49, select(x[0] < 0.0, 2.0**-46, 2.0**-50), x)


def _polygamma(n: Pair, x: Pair) -> Value:
    found = _single("polygamma", 2.0**-46, 2.0**-60, n, x)
    found.bad = unequal(n[1], 0.0) | unequal(x[1], 0.0) | ~(x[0] > 0.0)
    return found


# ------------------------------------------------------------------------- powers


def power(x: Pair, y: Pair, whole: Node, odd: Node) -> Value:
    """x to the power y, of which is told whether it is whole, and odd."""
    size = size_of(x)
    zero = equal(size[0], 0.0)
    bad = (zero & (y[0] < 0.0)) | ((x[0] < 0.0) & ~whole)
    exponent = times(y, logarithm(chosen(zero, one(), size)))
    found = exponential(within(exponent, FLAT))
    found = chosen((x[0] < 0.0) & odd, negative(found), found)
    # Where it is clamped the value is 0, or does not fit.
    fine = fabs(y[0]) * (LOG * 2.0) + fabs(exponent[0]) * LOG + EXP
    found = chosen(zero & (y[0] > 0.0), exactly(0.0), found)
    return Value(found, fine, EXP, bad)


def chain(x: Pair, n: int) -> Value:
    """x to the power of a small integer n > 0, by squaring."""
    found: Pair | None = None
    while True:
        if n & 1:
            found = x if found is None else times(found, x)
        n >>= 1
        if not n:
            assert found is not None
            return Value(found, ROOT)
        x = times(x, x)


UNARY: dict[str, Callable[[Pair], Value]] = {
    "exp": _exp,
    "exp2": _exp2,
    "expm1": _expm1,
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "sech": _sech,
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "log": _of_positive,
    "log1p": _log1p,
    "log2": _log2,
    "log10": _log10,
    "sin": lambda x: _turned(x, 0),
    "cos": lambda x: _turned(x, 1),
    "tan": _tan,
    "asin": _asin,
    "acos": _acos,
    "atan": lambda x: _atan2(x, one()),
    "asinh": _asinh,
    "acosh": _acosh,
    "atanh": _atanh,
    "sqrt": _root,
    "cbrt": _cbrt,
    "leg": _leg,
    "erf": _erf,
    "erfc": _erfc,
    "lgamma": _lgamma,
    "digamma": _digamma,
}
BINARY: dict[str, Callable[[Pair, Pair], Value]] = {
    "atan2": _atan2,
    "hypot": _hypot,
    "versor": _versor,
    "polygamma": _polygamma,
}


def settled(name: str, frac: int) -> Function:
    """The text of a function of raw numbers with `frac` fraction bits."""
    title = f"fixed_{name}_{frac}"
    if name == "**":
        return settled_power(frac, frac)
    if name in BINARY:
        two = BINARY[name]
        return function(title, I64, I64)(
            lambda x, y: two(number(x, frac), number(y, frac)).raw(frac)
        )
    one_of = UNARY[name]
    return function(title, I64)(lambda x: one_of(number(x, frac)).raw(frac))


def settled_power(frac: int, bits: int) -> Function:
    """The text of `x ** y`, y being a raw number with `bits` fraction bits."""

    def body(x: Node, y: Node) -> Node:
        whole = equal(y & (1 << bits) - 1, 0)
        odd = equal((y >> bits) & 1, 1)
        return power(number(x, frac), number(y, bits), whole, odd).raw(frac)

    return function(f"fixed_power_{frac}_{bits}", I64, I64)(body)


def settled_chain(frac: int, n: int) -> Function:
    """The text of `x ** n` for a small constant n."""
    return function(f"fixed_chain_{frac}_{n}", I64)(lambda x: chain(number(x, frac), n).raw(frac))
