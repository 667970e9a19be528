"""Rotations of integers and fixed-point numbers by shears, which are undone to the bit.

A rotation by an angle t is a rotation by u, which is t minus the half turns that bring it within a
quarter turn, and a change of both signs if their number is odd.  The rotation by u is three shears,
each undone by subtracting what it added: x -= y tan(u / 2); y += x sin u; x -= y tan(u / 2).
Products are rounded to nearest, ties to even; the factors are numbers of the type fixed(62), within
-1 and 1, and correctly rounded.  A sum that does not fit is an error (R009), and so is a NaN or
infinite angle.

A. A. M. L. Bruekers, A. W. M. van den Enden, "New networks for perfect inversion and perfect
reconstruction", IEEE J. on Selected Areas in Communications 10 (1992).
"""

from __future__ import annotations

import math
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from rvm.leaf import Function, Node, select
from rvm.leaf.ops import BIT, F64, I64, limits
from rvm.leaf.trace import Fault, apply, bits, called, constant, converted, equal, fitting, unless
from rvm.numbers.binaries import circle, pi
from rvm.numbers.code import Body, Code, identifier
from rvm.numbers.support import name, out_of_range

FRAC = 62
"""The fraction bits of the factors of shears."""
ONE = 1 << FRAC
LOW = -(1 << 63)


# ---------------------------------------------------------------- exactly


def root(n: int) -> int:
    """The square root of a whole number that is not a square, rounded to nearest."""
    return (math.isqrt(4 * n) + 1) // 2


HALF_ROOT, EIGHTH = root(1 << 2 * FRAC - 1), root(1 << 2 * FRAC + 1) - ONE
"""sin(pi / 4) and tan(pi / 8) as factors."""


@lru_cache(4096)
def factors(m: int, e: int) -> tuple[int, int, bool]:
    """tan(u / 2), sin u and whether the half turns are odd, for the angle m * 2**e."""
    sign = -1 if m < 0 else 1
    for precision in (160, 300):
        tangent, sine, odd = _factors(abs(m), e, precision)
        one, other = _rounded(tangent, precision), _rounded(sine, precision)
        if one is not None and other is not None:
            return sign * one, sign * other, odd
    raise AssertionError("but for 0, no tangent or sine is as near to the middle of two factors")


def _rounded(value: int, precision: int) -> int | None:
    """The nearest factor to `value` units of 2**-precision; None where its error leaves doubts."""
    low, high = ((value + d + (1 << precision - FRAC - 1)) >> precision - FRAC for d in (-64, 64))
    return high if low == high else None


def _factors(m: int, e: int, precision: int) -> tuple[int, int, bool]:
    """The same in units of 2**-precision, with errors of some units, for m >= 0."""
    p = precision + 40
    q = p + max(e + m.bit_length(), 0)
    angle = m << q + e if q + e >= 0 else m >> -q - e
    half_turn = pi(q)
    count = (2 * angle + half_turn) // (2 * half_turn)
    rest = angle - count * half_turn
    cosine, sine = circle(abs(rest) >> q - p + 1, p)
    found = (sine << precision) // cosine, sine * cosine >> 2 * p - precision - 1
    below = rest < 0
    return -found[0] if below else found[0], -found[1] if below else found[1], bool(count & 1)


def _parts(x: float) -> tuple[int, int]:
    """A float as m * 2**e; R009 where it is not a number."""
    if not math.isfinite(x):
        raise out_of_range(x, f"fixed({FRAC})")
    numerator, denominator = x.as_integer_ratio()
    shift = 1 - denominator.bit_length()
    if not numerator:
        return 0, 0
    zeros = (numerator & -numerator).bit_length() - 1
    return numerator >> zeros, shift + zeros


# ---------------------------------------------------------------- functions of the table

Angle = tuple[Node, Node]
"""An angle as m * 2**e."""
LARGEST = 1.7976931348623157e308


def _lifts() -> ModuleType:
    return import_module("rvm.numbers.elementary.lifts")


def _of_float(x: Node) -> Angle:
    """A float as m * 2**e; refused where it is not a number."""
    x = unless(x, ~(apply("fabs", x) <= LARGEST), NO_FACTOR, x)
    whole = bits(x)
    exponent = apply("lshr", whole, 52) & 0x7FF
    mantissa = whole & ((1 << 52) - 1)
    normal = exponent > 0
    size = select(normal, mantissa | (1 << 52), mantissa)
    return select(whole < 0, -size, size), select(normal, exponent, 1) - 1075


NO_FACTOR = Fault("no_factor", lambda x: out_of_range(x, f"fixed({FRAC})"))


def _angle(x: Node, frac: int | None) -> Angle:
    """An angle of f64, or of fixed with `frac` fraction bits."""
    return _of_float(x) if frac is None else (x, constant(-frac, I64))


@name
def lifted(part: int, x: Any, frac: int | None) -> Any:
    """The result of `factors` for an angle, by index."""
    return factors(*(_parts(x) if frac is None else (x, -frac)))[part]


@name
def lifted_array(part: int, x: Any, frac: int | None) -> Any:
    """The same on an array."""
    x = np.asarray(x)
    found = [lifted(part, v, frac) for v in x.ravel().tolist()]
    return np.array(found, np.bool_ if part == 2 else np.int64).reshape(x.shape)


PARTS = ("tangent", "sine_of", "odd")
"""The texts of the factors, and of whether the half turns are odd."""


def factor_code(part: int, frac: int | None) -> Code:
    """The code of one of `PARTS`, of angles as `_angle` takes them."""

    def body(x: Node) -> Node:
        found = called(getattr(_lifts(), PARTS[part]), *_angle(x, frac))
        if part == 2:
            return equal(found, 1)
        # Where there is a doubt it is for the exact factors.
        return unless(found, equal(found, LOW), NO_FACTOR, x)

    kind = F64 if frac is None else I64
    title = f"lift_{PARTS[part]}_{'f64' if frac is None else frac}"
    slots = f"({part}, {{0}}, {frac})"
    f = Function(title, body, (kind,))
    return Code(f"lifted{slots}", f"lifted_array{slots}", None, f, alike=True)


KINDS = {"turned": (BIT,), "shear": (I64,)}
"""The kinds of the arguments after the first, if they differ."""


def lifting_bodies(kind: str, title: str) -> dict[str, Body]:
    """Sums that must fit, changes of sign and shears of integers of a kind, the type `title`."""
    fault = Fault(identifier(f"beyond_{title}"), lambda *x: out_of_range(x, title))
    low, high = limits(kind)

    def checked(op: str) -> Body:
        def body(a: Node, b: Node) -> Node:
            if kind != I64:
                found = apply(op, *(converted(x, I64) for x in (a, b)))
                bad = (found < low) | (found > high)
                return fitting(unless(found, bad, fault, a, b), kind)
            found = apply(f"w{op}", a, b)
            # Of a sum that wraps neither term has the sign.
            other = b if op == "add" else apply("inv", b)
            return unless(found, ((a ^ found) & (other ^ found)) < 0, fault, a, b)

        return body

    def turned(x: Node, odd: Node) -> Node:
        x = unless(x, odd & equal(x, low), fault, x)
        return select(odd, apply("wneg", x), x)

    def shear(x: Node, k: Node) -> Node:
        found = apply(f"fixed_mul_{FRAC}", converted(x, I64), k)
        if kind != I64:
            found = unless(found, (found < low) | (found > high), fault, x, k)
        return fitting(found, kind)

    return {
        "checked_add": checked("add"),
        "checked_sub": checked("sub"),
        "turned": turned,
        "shear": shear,
    }
