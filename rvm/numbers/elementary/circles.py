"""Sine, cosine and tangent: reduction by pi/2 in pieces, or by the bits of 2/pi, and polynomials.

The reductions are those of W. J. Cody and W. Waite, "Software manual for the elementary functions"
(1980), and of M. H. Payne and R. N. Hanek, "Radian reduction for trigonometric functions", ACM
SIGNUM Newsletter 18 (1983).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from rvm.leaf import Function, Node, constant, function, select
from rvm.leaf.ops import F64, I64
from rvm.leaf.trace import apply, bits, equal, fabs, nearest, to_float, to_int
from rvm.numbers.elementary.pairs import (
    Pair,
    balanced,
    polynomial,
    product,
    quick_sum,
    quotient,
    two_sum,
)
from rvm.numbers.elementary.tables import (
    COS_POLY,
    HALF_PI,
    HALF_PI_PAIR,
    SIN_POLY,
    TWO_OVER_PI,
    TWO_OVER_PI_BITS,
)

Series = Callable[[Sequence[Any], Node], Node]
"""A method for evaluating a polynomial."""
FAR = 1048576.0
"""Up to here the pieces of pi/2 times the number of quarters are exact."""


def near(x: Node) -> tuple[Node, Pair]:
    """The number of quarter turns in x, |x| <= FAR, and the remainder, within pi/4.

    The remainder is a float and a correction, accurate to a unit of its last place.
    """
    quarters = nearest(x * TWO_OVER_PI)
    a = x - quarters * HALF_PI[0]
    s, e = two_sum(a, quarters * -HALF_PI[1])
    t, f = two_sum(s, quarters * -HALF_PI[2])
    return to_int(quarters), (t, (e + f) - quarters * HALF_PI[3])


def turning_words(exponent: Node) -> tuple[Node, Node, Node]:
    """Three words of 2/pi, by which m * 2**exponent is taken modulo whole turns.

    Bits before these count whole turns; the table begins with a word of zeros.
    """
    first = exponent + 62
    word, shift = first >> 6, first & 63
    words = [TWO_OVER_PI_BITS[word + k] for k in range(4)]

    def taken(k: int) -> Node:
        upper = apply("shl", words[k], shift)
        return upper | apply("lshr", apply("lshr", words[k + 1], 1), 63 - shift)

    return taken(0), taken(1), taken(2)


def far(x: Node) -> tuple[Node, Pair]:
    """The same for any number |x| >= FAR."""
    whole = bits(x)
    exponent = (apply("lshr", whole, 52) & 0x7FF) - 1075
    mantissa = (whole & ((1 << 52) - 1)) | (1 << 52)
    w0, w1, w2 = turning_words(exponent)
    low2, high2 = apply("wmul", mantissa, w2), apply("umulh", mantissa, w2)
    low1, high1 = apply("wmul", mantissa, w1), apply("umulh", mantissa, w1)
    middle = apply("wadd", low1, high2)
    carry = select(apply("ult", middle, low1), constant(1, I64), 0)
    top = apply("wadd", apply("wadd", apply("wmul", mantissa, w0), high1), carry)
    fraction = apply("shl", top, 2) | apply("lshr", middle, 62)
    more = apply("shl", middle, 2) | apply("lshr", low2, 62)
    below = fraction < 0
    quarters = apply("lshr", top, 62) + select(below, constant(1, I64), 0)
    r = constant(0.0, F64)
    error = constant(0.0, F64)
    for part, weight in (
        (fraction >> 32, 2.0**-32),
        (fraction & 0xFFFFFFFF, 2.0**-64),
        (apply("lshr", more, 32), 2.0**-96),
        (more & 0xFFFFFFFF, 2.0**-128),
    ):
        r, e = two_sum(r, to_float(part) * weight)
        error = error + e
    r, error = quick_sum(r, error)
    p, e = product(r, constant(HALF_PI_PAIR[0], F64))
    high, rest = quick_sum(p, e + (r * HALF_PI_PAIR[1] + error * HALF_PI_PAIR[0]))
    negative = x < 0.0
    return (
        select(negative, -quarters, quarters),
        (select(negative, -high, high), select(negative, -rest, rest)),
    )


def sine(r: Pair, series: Series = polynomial) -> Pair:
    """The sine within pi/4, as a float and a correction."""
    x, low = r
    square = x * x
    rest = square * x * series(SIN_POLY, square)
    return x, rest + low * (1.0 - 0.5 * square)


def cosine(r: Pair, series: Series = polynomial) -> Pair:
    """The cosine within pi/4, as a float and a correction."""
    x, low = r
    square = x * x
    half = 0.5 * square
    w = 1.0 - half
    return w, ((1.0 - w) - half) + (square * square * series(COS_POLY, square) - x * low)


def _sine(quarters: Node, r: Pair) -> Node:
    s, c = sine(r, balanced), cosine(r, balanced)
    odd = equal(quarters & 1, 1)
    value = select(odd, c[0] + c[1], s[0] + s[1])
    return select(equal(quarters & 2, 2), -value, value)


def _tangent(quarters: Node, r: Pair) -> Node:
    r = quick_sum(*r)
    s, c = quick_sum(*sine(r)), quick_sum(*cosine(r))
    odd = equal(quarters & 1, 1)
    top = tuple(select(odd, -b, a) for a, b in zip(s, c, strict=True))
    below = tuple(select(odd, a, b) for a, b in zip(s, c, strict=True))
    high, low = quotient((top[0], top[1]), (below[0], below[1]))
    return high + low


def _circular(name: str, doc: str, of: Callable[[Node, Pair], Node], odd: bool) -> Function:
    """A function of an angle, whose size the cold text takes whole."""

    def cold(x: Node) -> Node:
        number = fabs(x) <= 1.7976931348623157e308
        value = of(*far(select(number & (fabs(x) >= FAR), x, FAR)))
        return select(number, value, math.nan)

    def body(x: Node) -> Node:
        value = of(*near(x))
        return select(fabs(x) < 2.0**-27, x, value) if odd else value

    body.__doc__ = doc
    made = function(f"{name}_cold")(cold)
    return function(name, guard=lambda x: ~(fabs(x) <= FAR), cold=made)(body)


sin = _circular("sin", "The sine.", _sine, odd=True)
cos = _circular("cos", "The cosine.", lambda quarters, r: _sine(quarters + 1, r), odd=False)
tan = _circular("tan", "The tangent.", _tangent, odd=True)
