"""Functions of complex numbers by their parts: each takes and gives pairs (real, imaginary) of f64.

They have the same bits wherever they are evaluated.  Errors are those of the complex number, not of
each part: a part that is much smaller than the other has fewer correct digits.
"""

from __future__ import annotations

import math

from rvm.leaf import Node, select
from rvm.leaf.trace import called, fabs
from rvm.numbers.complex_functions import log_modulus, logarithm
from rvm.numbers.elementary import text
from rvm.numbers.elementary.pairs import product, quick_sum, two_sum

Parts = tuple[Node, Node]


def cis(x: Node) -> Parts:
    """cos x + i sin x."""
    return called(text("cos"), x), called(text("sin"), x)


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
    return log_modulus((one, y), above), called(text("atan2"), y, one)


def log2(z: Parts) -> Parts:
    """The logarithm to the base 2."""
    return logarithm(z, "log2", 1 / math.log(2))
