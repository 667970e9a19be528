"""Conversions between number types, and functions of f64 on other real types.

Conversions between integers wrap. Floats and fixed-point numbers are truncated to integers
(rounded to zero); integers and floats are rounded to fixed-point numbers to nearest, ties to even.
A number that does not fit, NaN or an infinity is an error (R009). To bool: whether the number is
not zero. To a float: the nearest. To log64: the logarithm of the nearest f64, -inf for 0 and NaN
for negative numbers; from log64: by `exp`, in f64.
"""

from __future__ import annotations

import math
from functools import cache

from rvm.leaf import Node, select
from rvm.leaf.ops import F32, I64, limits
from rvm.leaf.trace import Fault, apply, called, constant, converted, unequal, unless
from rvm.numbers.code import Body, Code, coded, identifier, kind_of, moved
from rvm.numbers.elementary import text
from rvm.numbers.support import out_of_range
from rvm.types import F64 as F64_TYPE
from rvm.types import Scalar

NARROW: dict[Scalar, Body] = {}
"""For float types narrower than f32 and stored as f32: how an f64 is rounded, to an f64."""


@cache
def _no_fit(title: str) -> Fault:
    return Fault(identifier(f"no_{title}"), lambda x: out_of_range(x, title))


def as_double(x: Node, source: Scalar) -> Node:
    """A raw number as the nearest f64."""
    if source.is_log:
        return called(text("exp"), x)
    if source == F64_TYPE:
        return x
    found = apply(f"f64_of_{kind_of(source)}", x)
    return found * 2.0**-source.frac if source.is_fixed else found


def of_double(x: Node, target: Scalar) -> Node:
    """An f64 as a raw number of a real type."""
    if target.is_log:
        return called(text("log"), x)
    if target == F64_TYPE:
        return x
    if target.is_float:
        return apply("f32_of_f64", NARROW[target](x) if target in NARROW else x)
    fault = _no_fit(str(target))
    if target.is_fixed:
        scaled = x * float(1 << target.frac)
        fits = (scaled >= -(2.0**63)) & (scaled < 2.0**63)
        return apply("round", unless(scaled, ~fits, _no_fit(f"fixed({target.frac})"), x))
    low, high = limits(target.name)
    exact = float(low - 1) == low - 1
    # Below -2**63 comes no float that would be cut to it.
    above = x > float(low - 1) if exact else x >= float(low)
    return apply(f"{target.name}_of_f64", unless(x, ~(above & (x < float(high + 1))), fault, x))


def _within(x: Node, low: int, high: int, fault: Fault) -> Node:
    """An integer, refused unless it is within two limits, of which its kind may need only one."""
    least, greatest = limits(x.kind)
    tests = [x < low] if low > least else []
    tests += [x > high] if high < greatest else []
    if not tests:
        return x
    return unless(x, tests[0] if len(tests) == 1 else tests[0] | tests[1], fault, x)


def _nonzero(x: Node, source: Scalar) -> Node:
    if source.is_bool:
        return x
    return unequal(x, -math.inf if source.is_log else 0)


def _whole(x: Node, source: Scalar, target: Scalar) -> Node:
    """A fixed-point number without its fraction, rounded to zero, as an integer."""
    if source.frac:
        below = (1 << source.frac) - 1
        x = apply("ashr", select(x < 0, x + below, x), source.frac)
    return converted(_within(x, *limits(target.name), _no_fit(str(target))), target.name)


def _fixed(x: Node, source: Scalar, target: Scalar) -> Node:
    """A bool, integer or fixed-point number as a fixed-point number."""
    shift = target.frac - source.frac
    if shift < 0:
        # More than half is rounded up, and half where what stands before it is odd.
        quotient = apply("ashr", x, -shift)
        rest = apply("and", x, (1 << -shift) - 1) + apply("and", quotient, 1)
        return quotient + converted(rest > (1 << -shift - 1), I64)
    low, high = limits(I64)
    if not source.is_bool:
        x = _within(x, low >> shift, high >> shift, _no_fit(str(target)))
    x = converted(x, I64)
    return x * (1 << shift) if shift else x


def body(target: Scalar, source: Scalar) -> Body:
    """A conversion as leaf operations."""
    if target == source:
        return lambda x: x
    if target.is_bool:
        return lambda x: _nonzero(x, source)
    exact = source.is_bool or source.is_integer or source.is_fixed
    if target.is_integer and exact and not source.is_fixed:
        return lambda x: converted(x, target.name)
    if target.is_integer and source.is_fixed:
        return lambda x: _whole(x, source, target)
    if target.is_fixed and exact:
        return lambda x: _fixed(x, source, target)
    if target.name == F32 and exact:
        unit = constant(2.0**-source.frac, F32)
        whole = f"f32_of_{kind_of(source)}"
        return lambda x: apply(whole, x) * unit if source.is_fixed else apply(whole, x)
    if target.is_complex:
        of_real = body(F64_TYPE, source)
        return lambda x: apply("complex", of_real(x), 0.0)
    return lambda x: of_double(as_double(x, source), target)


@cache
def conversion(target: Scalar, source: Scalar) -> Code:
    """The code that takes a raw value of `source` to one of `target`."""
    if target == source:
        return moved(target)
    if target.is_bool and source.is_complex:
        raise TypeError("a complex number converts to complex numbers alone")
    name = identifier(f"{target}_of_{source}_raw")
    return coded(name, body(target, source), (kind_of(source),))


@cache
def on_real(name: str, of_doubles: Body, arguments: tuple[Scalar, ...], t: Scalar) -> Code:
    """A function of f64 numbers applied to real types; its result is rounded to `t`."""

    def rounded(*args: Node) -> Node:
        wide = (as_double(x, s) for x, s in zip(args, arguments, strict=True))
        return of_double(of_doubles(*wide), t)

    title = identifier("_".join([name, *map(str, arguments)]))
    return coded(title, rounded, tuple(map(kind_of, arguments)))
