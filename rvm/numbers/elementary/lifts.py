"""The factors of the shears that rotate by an angle, in words of 64 bits.

These are the factors of `rvm.numbers.lifting`, which are correctly rounded.  Here they are computed
to some 2**-98, and if that leaves the rounding in doubt (once in some 2**33 cases) there is no
result.  Angles are m * 2**e; u is the remainder of an angle, within a quarter turn, after half
turns are removed.
"""

from __future__ import annotations

import math

from rvm.leaf import Node, constant, function, select
from rvm.leaf.ops import I64
from rvm.leaf.trace import apply, by_kind, equal, to_float
from rvm.numbers.binaries import pi
from rvm.numbers.code import DOUBT
from rvm.numbers.elementary.circles import turning_words
from rvm.numbers.elementary.pairs import chosen

Words = tuple[Node, Node]
"""A number without a sign as two words, the higher one first."""


def _words(value: int) -> Words:
    signed = [w - (1 << 64) if w >> 63 else w for w in (value >> 64, value & (1 << 64) - 1)]
    return constant(signed[0], I64), constant(signed[1], I64)


def _bit(condition: Node) -> Node:
    return select(condition, constant(1, I64), 0)


def _sum(a: Words, b: Words) -> Words:
    low = apply("wadd", a[1], b[1])
    carry = _bit(apply("ult", low, a[1]))
    return apply("wadd", apply("wadd", a[0], b[0]), carry), low


def _less(a: Words, b: Words) -> Words:
    low = apply("wsub", a[1], b[1])
    borrow = _bit(apply("ult", a[1], b[1]))
    return apply("wsub", apply("wsub", a[0], b[0]), borrow), low


def _high(a: Words, b: Words) -> Words:
    """The upper half of the product, less by 3 of its units at most."""
    top: Words = (apply("umulh", a[0], b[0]), apply("wmul", a[0], b[0]))
    zero = constant(0, I64)
    for x, y in ((a[0], b[1]), (a[1], b[0])):
        top = _sum(top, (zero, apply("umulh", x, y)))
    return top


def _left(a: Words, by: int) -> Words:
    high = apply("shl", a[0], by) | apply("lshr", a[1], 64 - by)
    return high, apply("shl", a[1], by)


def _half_turns(m: Node, e: Node) -> tuple[Node, Words]:
    """The half turns of the angle |m| * 2**e, e >= -62, modulo 2, and the remainder.

    The remainder is in units of 2**-128 of half a turn, as in `rvm.numbers.elementary.circles.far`.
    """
    w0, w1, w2 = turning_words(e)
    zero = constant(0, I64)
    middle = _sum((apply("umulh", m, w1), apply("wmul", m, w1)), (zero, apply("umulh", m, w2)))
    top = apply("wadd", apply("wmul", m, w0), middle[0])
    rest = _left((top, middle[1]), 1)
    return apply("lshr", top, 63), (rest[0], rest[1] | apply("lshr", apply("wmul", m, w2), 63))


TERMS = 14
"""The number of terms of the series of sine and cosine."""


class _Reduced:
    """Whether the half turns in m * 2**e are `odd`, whether u is `below` 0; |u / 2| by 2**-128.

    `small`: the angle is below 2**-27, where factors differ from it by less than its last bit.
    """

    def __init__(self, m: Node, e: Node) -> None:
        size = apply("wabs", m)
        room = select(e < -71, constant(62, I64), select(e > -9, constant(0, I64), -9 - e))
        tiny = (e < -62) | apply("ult", size, apply("shl", constant(1, I64), room))
        whole, rest = _half_turns(size, select(tiny, constant(0, I64), e))
        beyond = rest[0] < 0
        zero = (constant(0, I64), constant(0, I64))
        rest = chosen(beyond, _less(zero, rest), rest)
        angle = _left(_high(rest, _words(pi(128) >> 2)), 1)
        own = _shifted(size, e + 127)
        self.small = tiny & apply("ult", own[0], 1 << 37)
        self.odd = by_kind("ne", equal(whole, 1), beyond) & ~tiny
        self.below = by_kind("ne", m < 0, beyond & ~tiny)
        self.angle = chosen(tiny, own, angle)


def _shifted(x: Node, by: Node) -> Words:
    """A number below 2**63 times 2**by, where that is below 2**128."""
    left = select(by > 63, constant(63, I64), select(by > 0, by, 0))
    far = select(by > 126, constant(62, I64), select(by > 64, by - 64, 0))
    down = select(by < -63, constant(63, I64), select(by < 0, -by, 0))
    high = apply("lshr", apply("lshr", x, 1), 63 - left)
    low = apply("lshr", apply("shl", x, left), down)
    beyond = by > 63
    return select(beyond, apply("shl", x, far), high), select(beyond, constant(0, I64), low)


def _series(angle: Words) -> tuple[Words, Words]:
    """Sine and cosine of an angle in units of 2**-128, in units of 2**-127."""
    square = _high(angle, angle)
    found = []
    for first in (1, 0):
        total = _words((1 << 127) // math.factorial(2 * TERMS + first))
        for k in reversed(range(TERMS)):
            term = _words((1 << 127) // math.factorial(2 * k + first))
            total = _less(term, _high(square, total))
        found.append(total)
    return _high(angle, found[0]), found[1]


WINDOW = 1 << 30
"""A bound on the errors, in units of 2**-126."""


def _nearest(value: Words, found: _Reduced, small: Words) -> Node:
    """A number in units of 2**-126 as a factor; it is `small` where the angle is."""
    high, low = chosen(found.small, small, value)
    size = apply("wadd", high, apply("lshr", low, 63))
    near = apply("ult", apply("wadd", low, WINDOW - (1 << 63)), 2 * WINDOW)
    signed = select(found.below, apply("wneg", size), size)
    return select(near & ~found.small, DOUBT, signed)


def _right(a: Words, by: int) -> Words:
    low = apply("lshr", a[1], by) | apply("shl", a[0], 64 - by)
    return apply("lshr", a[0], by), low


@function("lift_tan", I64, I64)
def tangent(m: Node, e: Node) -> Node:
    """tan(u / 2) for the angle m * 2**e."""
    found = _Reduced(m, e)
    sine, cosine = _series(found.angle)
    # A reciprocal that is too small by some 2**-50, and what it leaves to 1.
    c = to_float(apply("lshr", cosine[0], 1)) * 2.0**-62
    guess = (apply("int", (1.0 / c) * (1.0 - 2.0**-50) * 2.0**61), constant(0, I64))
    guess = _left(guess, 2)
    rest = _less(_words(1 << 126), _high(cosine, guess))
    ratio = _high(sine, guess)
    value = _sum(ratio, _left(_high(ratio, rest), 2))
    # Of a small angle it is a little more than that, so that ties are rounded up.
    return _nearest(value, found, _right(found.angle, 2))


@function("lift_sin", I64, I64)
def sine_of(m: Node, e: Node) -> Node:
    """sin u for the angle m * 2**e."""
    found = _Reduced(m, e)
    sine, cosine = _series(found.angle)
    # Of a small angle it is a little less than that.
    small = _less(_right(found.angle, 1), (constant(0, I64), constant(1, I64)))
    return _nearest(_left(_high(sine, cosine), 1), found, small)


@function("lift_odd", I64, I64)
def odd(m: Node, e: Node) -> Node:
    """Whether the half turns in the angle m * 2**e are odd, as 0 or 1."""
    return _bit(_Reduced(m, e).odd)
