"""Functions of fixed-point numbers that grow as e**x does, and powers, in pairs of floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rvm.leaf import Node, constant, select
from rvm.leaf.ops import F64
from rvm.leaf.trace import called, equal, fabs, unequal
from rvm.numbers.elementary import text
from rvm.numbers.elementary.errors import between
from rvm.numbers.elementary.exponentials import Reduced
from rvm.numbers.elementary.gammas import between as tabled
from rvm.numbers.elementary.gammas import stirling
from rvm.numbers.elementary.logarithms import Reduced as Logarithm
from rvm.numbers.elementary.pairs import (
    Pair,
    chosen,
    exactly,
    exactly_of,
    like,
    negative,
    one,
    over,
    paired,
    plus,
    product,
    quick_sum,
    scaled,
    size_of,
    times,
    within,
)
from rvm.numbers.elementary.roots import root_of
from rvm.numbers.elementary.tables import LN2_PAIR, LN10_PAIR
from rvm.numbers.fixedpoint_values import ROOT, Value, root_from

FLAT = 64.0
"""Beyond this e**-x is below the error of a pair, and e**x does not fit."""


# ------------------------------------------------------------------------- exponentials

EXP = 2.0**-67
"""The largest relative error of an exponential."""


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

LOG = 2.0**-71
"""The largest error of a logarithm."""
LN2, LN10 = paired(LN2_PAIR), paired(LN10_PAIR)


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
    """x to the power y, given whether y is whole, and odd."""
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
    "asinh": _asinh,
    "acosh": _acosh,
    "atanh": _atanh,
    "erf": _erf,
    "erfc": _erfc,
    "lgamma": _lgamma,
    "digamma": _digamma,
}
BINARY: dict[str, Callable[[Pair, Pair], Value]] = {"polygamma": _polygamma}
