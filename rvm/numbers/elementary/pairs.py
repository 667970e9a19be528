"""Unevaluated sums of two floats, which represent numbers of twice the precision.

The algorithms are Dekker's and Knuth's: T. J. Dekker, "A floating-point technique for extending the
available precision", Numerische Mathematik 18 (1971); D. E. Knuth, "Seminumerical Algorithms",
section 4.2.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rvm.leaf import Node, constant, select
from rvm.leaf.ops import F64
from rvm.leaf.trace import fabs

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


def exactly(value: float) -> Pair:
    """A constant as a pair."""
    return exactly_of(constant(value, F64))


def exactly_of(value: Node) -> Pair:
    """A float as a pair."""
    return value, constant(0.0, F64)


def paired(values: tuple[float, ...]) -> Pair:
    """A pair of constants."""
    return constant(values[0], F64), constant(values[1], F64)


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
