"""Unevaluated sums of two floats, which represent numbers of twice the precision.

The algorithms are Dekker's and Knuth's: T. J. Dekker, "A floating-point technique for extending the
available precision", Numerische Mathematik 18 (1971); D. E. Knuth, "Seminumerical Algorithms",
section 4.2.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rvm.leaf import Node

Pair = tuple[Node, Node]
"""A number as a float and a correction of less than half a unit of its last place."""
SPLITTER = 134217729.0
"""2**27 + 1."""


def two_sum(a: Any, b: Any) -> Pair:
    """a + b, exactly."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def quick_sum(a: Any, b: Any) -> Pair:
    """a + b, exactly, where a is 0 or not smaller than b in size."""
    s = a + b
    return s, b - (s - a)


def split(a: Node) -> Pair:
    """A float below 2**996 as a sum of two of 26 bits."""
    c = a * SPLITTER
    high = c - (c - a)
    return high, a - high


def product(a: Node, b: Node) -> Pair:
    """a * b, exactly, where nothing overflows or is denormal."""
    p = a * b
    a1, a2 = split(a)
    b1, b2 = split(b)
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def quotient(a: Pair, b: Pair) -> Pair:
    """a / b, to some 2**-100."""
    q = a[0] / b[0]
    p, e = product(q, b[0])
    return q, (((a[0] - p) - e) + a[1] - q * b[1]) / b[0]


def polynomial(coefficients: Sequence[Any], x: Node) -> Node:
    """The value of a polynomial by Horner's rule, the constant coefficient first."""
    found: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        found = found * x + c
    assert isinstance(found, Node)
    return found


def balanced(coefficients: Sequence[Any], x: Node) -> Node:
    """The same by Estrin's scheme, in which few operations depend on others.

    Its rounding errors are larger, so it is for values that are small compared with what they are
    added to.
    """
    terms = list(coefficients)
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        terms = [low + high * x for low, high in pairs] + terms[len(terms) & ~1 :]
        x = x * x
    found = terms[0]
    assert isinstance(found, Node)
    return found
