"""Values of functions of fixed-point numbers as pairs of floats, with bounds of their errors.

A raw number is exactly a pair of floats, and a pair represents the value of a function of it to 60
bits and more.  That is rounded, unless a tie is within the bound of the value's error.  The bound
is four times the largest error found, and is checked by tests/numbers/test_fixed_functions.py.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from rvm.leaf import Node, constant, select
from rvm.leaf.ops import F64, I64
from rvm.leaf.trace import apply, equal, fabs, nearest, to_float, to_int
from rvm.numbers.code import DOUBT
from rvm.numbers.elementary.pairs import Pair, chosen, exactly, one, quick_sum
from rvm.numbers.elementary.roots import root_of

ROOT = 2.0**-90
"""The largest relative error of a root, or of a power made by squaring."""
LARGEST = 9.2e18
"""Raw numbers from here on may not fit."""


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


def constants(value: Fraction) -> Pair:
    """A number as a pair of constants."""
    high = float(value)
    return constant(high, F64), constant(float(value - Fraction(high)), F64)


def number(raw: Node, frac: int) -> Pair:
    """A raw number as a pair, exactly."""
    high, low = (to_float(raw & mask) * 2.0**-frac for mask in (-2048, 2047))
    return quick_sum(high, low)


def root_from(square: Pair) -> tuple[Pair, Node]:
    """A square root, including that of 0, and where it does not exist."""
    zero, bad = equal(square[0], 0.0), square[0] < 0.0
    return chosen(zero, exactly(0.0), root_of(chosen(zero | bad, one(), square))), bad
