"""Functions of fixed-point numbers as texts: the nearest raw number, or `DOUBT`."""

from __future__ import annotations

from rvm.leaf import Function, Node, function
from rvm.leaf.ops import I64
from rvm.leaf.trace import equal
from rvm.numbers import fixedpoint_circles, fixedpoint_growth
from rvm.numbers.fixedpoint_growth import chain, power
from rvm.numbers.fixedpoint_values import number

UNARY = fixedpoint_growth.UNARY | fixedpoint_circles.UNARY
BINARY = fixedpoint_growth.BINARY | fixedpoint_circles.BINARY


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
