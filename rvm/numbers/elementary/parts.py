"""Functions of complex numbers by their parts: each takes and gives pairs (real, imaginary) of f64.

They have the same bits wherever they are evaluated.  Errors are those of a number, not of each
part: one that is much smaller than the other has fewer digits of its own.
"""

from __future__ import annotations

import math

from rvm.leaf import Node, select
from rvm.leaf.trace import called, equal, fabs
from rvm.numbers.elementary import text
from rvm.numbers.elementary.pairs import Pair, product, quick_sum, two_sum

Parts = tuple[Node, Node]


def cis(x: Node) -> Parts:
    """cos x + i sin x."""
    return called(text("cos"), x), called(text("sin"), x)


def expm1(z: Parts) -> Parts:
    """e**z - 1: the real part is expm1(x) cos y - 2 sin(y / 2)**2."""
    x, y = z
    half = called(text("sin"), y * 0.5)
    re = called(text("expm1"), x) * called(text("cos"), y) - half * half * 2.0
    im = called(text("exp"), x) * called(text("sin"), y)
    real = equal(y, 0.0)
    return select(real, called(text("expm1"), x), re), select(real, y, im)


def _squares_less_one(x: Node, more: Node, y: Node) -> Pair:
    """x * more + y * y, where that is near 0, with twice the digits of a float."""
    p, e = product(x, more)
    q, f = product(y, y)
    s, g = two_sum(p, q)
    return quick_sum(s, g + (e + f))


def _log_modulus(x: Node, y: Node, above: Pair, name: str, unit: float) -> Node:
    """The logarithm (the function `name`) of |x + i y|, `above` being the square of that less 1."""
    u, low = above
    near = fabs(u) < 0.5
    inside = select(near, u, 0.0)
    # log(1 + u + low) = log(1 + u) + low / (1 + u).
    close = (called(text("log1p"), inside) + select(near, low, 0.0) / (inside + 1.0)) * (0.5 * unit)
    return select(near, close, called(text(name), called(text("hypot"), x, y)))


def log1p(z: Parts) -> Parts:
    """log(1 + z): the real part is log1p(x (x + 2) + y**2) / 2 near 0."""
    x, y = z
    small = fabs(x) < 2.0
    inside = select(small, x, 2.0)
    p, e = two_sum(inside, inside)
    square, f = product(inside, inside)
    q, g = product(y, y)
    s, h = two_sum(p, square)
    t, k = two_sum(s, q)
    above = quick_sum(t, k + (h + (e + f + g)))
    one = x + 1.0
    return _log_modulus(one, y, above, "log", 1.0), called(text("atan2"), y, one)


def log2(z: Parts) -> Parts:
    """The logarithm to the base 2."""
    x, y = z
    size = fabs(x)
    inside = select(size < 2.0, size, 2.0)
    above = _squares_less_one(inside - 1.0, inside + 1.0, y)
    re = _log_modulus(x, y, above, "log2", 1 / math.log(2))
    return re, called(text("atan2"), y, x) * (1 / math.log(2))
