"""IEEE 754 floats.

`f64` and `f32` follow IEEE 754 everywhere: 1/0 is an infinity, log 0 is -inf, the square root of -1
is NaN, an overflow is an infinity; nothing raises an exception. An `f32` scalar is a Python float
that is already rounded; its arithmetic is that of f64, rounded once more, which for `+ - * /` and
sqrt is the correctly rounded f32 result. `min` and `max` give NaN if an argument is NaN, and the
first of two equal arguments; `sign` of a zero is 0. `x // y` and `x % y` round to minus infinity,
as in Python; by zero they follow IEEE 754 and NumPy (an infinity or NaN, and NaN). `x ** n` with
an i64 exponent converts the exponent to f64. Elementary functions are those of
`rvm.numbers.elementary`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from decimal import Decimal
from numbers import Rational, Real
from typing import Any

import numpy as np

from rvm.leaf import Function, Node, select
from rvm.leaf.ops import F32, F64
from rvm.leaf.python import f32
from rvm.leaf.python import total as total_of
from rvm.leaf.trace import apply, by_kind, constant, equal, unequal, with_sign
from rvm.numbers.base import InexactSystem, nearest, shown, words
from rvm.numbers.code import Body, codes_of, comparisons
from rvm.types import Scalar


class FloatSystem(InexactSystem):
    """f64 and f32; with `narrow`, fewer numbers that are held as f32, and f64 results rounded.

    Whole numbers are of the type up to `whole`.  `near` is the nearest number to an f64.
    """

    updates = frozenset({"add", "mul"})
    factors = "nonzero"
    converts = True

    def __init__(self, t: Scalar, narrow: Body | None = None, whole: int = 1 << 24) -> None:
        kind = f"f{8 * t.row.bytes}"
        bodies = float_bodies(kind)
        self.whole = whole
        self.near: Callable[[float], float] | None = None
        if kind == F32:
            self.unit, self.least, self.near = 2.0 / whole, 2.0**-126, f32
        if narrow is not None:
            bodies |= {f: _narrowed(b, narrow) for f, b in float_bodies(F64).items() if f in ROUND}
            rounded = total_of(Function(f"{t.name}_near", narrow, (F64,)))
            self.near = lambda x: f32(rounded(x))
        super().__init__(t, 0.0, codes_of(t.name, {"": (kind,)}, bodies))

    def holds(self, number: float) -> bool:
        return self.near is None or number != number or self.near(number) == number

    def literal(self, value: Any) -> float:
        if isinstance(value, bool):
            raise ValueError(f"{str(value).lower()} is a bool, not an {self.type}")
        if not isinstance(value, (Real, Decimal)):
            raise ValueError(f"{value} is not a value of {self.type}")
        return rounded(value, self.type, self.near)

    def from_python(self, value: Any) -> float:
        if type(value) is float:
            # What most calls give, without the questions that other numbers need.
            number = self.near(value) if self.near else value
            if math.isfinite(number) or not math.isfinite(value):
                return number
        elif type(value) is int and -self.whole <= value <= self.whole:
            return float(value)
        return float(super().from_python(value))

    def list_from_python(self, values: list[Any]) -> list[Any]:
        if self.near is None and set(map(type, values)) == {float}:
            return values.copy()
        return super().list_from_python(values)

    def text(self, raw: Any) -> str:
        if self.near is f32:
            short = str(np.float32(raw))
            if f32(float(short)) == raw:
                return repr(float(short))
        return repr(float(raw))


def rounded(value: Any, t: Scalar, near: Callable[[float], float] | None = None) -> float:
    """A real number as the nearest of a float type.

    ValueError if a whole number is not one of these, or if a finite one is beyond the largest.
    """
    number = nearest(value)
    if near:
        number = _nearest(value, number, near)
    if math.isinf(number) and not is_infinite(value):
        raise ValueError(f"{shown(value)} is beyond the largest {t}")
    if isinstance(value, Rational) and value.denominator == 1 and number != value:
        raise ValueError(f"{value} is not a value of {t}: the nearest is {number:.0f}")
    return number


def _nearest(value: Any, number: float, near: Callable[[float], float]) -> float:
    """The nearest to a value, whose nearest f64 is `number`: that may be midway by rounding."""
    if number == value or not math.isfinite(number):
        return near(number)
    low, high = (near(math.nextafter(number, to)) for to in (-math.inf, math.inf))
    if number - low != high - number:
        return near(number)
    return high if value > number else low


def is_infinite(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_infinite()
    return isinstance(value, float) and math.isinf(value)


def float_bodies(kind: str) -> dict[str, Body]:
    """The arithmetic of f64 or f32, over leaf operations of that kind."""

    def through_double(body: Body) -> Body:
        if kind == F64:
            return body

        def rounded(a: Node, b: Node) -> Node:
            return apply("f32_of_f64", body(*(apply("f64_of_f32", x) for x in (a, b))))

        return rounded

    def sign(x: Node) -> Node:
        # A zero of either sign gives 0, a NaN itself.
        one, zero, minus = (constant(v, kind) for v in (1.0, 0.0, -1.0))
        return select(x > 0.0, one, select(x < 0.0, minus, select(equal(x, 0.0), zero, x)))

    return {
        **comparisons(),
        **extremes(),
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "/": lambda a, b: apply("fdiv", a, b),
        "//": through_double(floor_division),
        "%": through_double(modulo),
        "neg": lambda x: -x,
        "abs": lambda x: apply("fabs", x),
        "sign": sign,
        "square": lambda x: x * x,
        "relu": lambda x: select(x <= 0.0, constant(0.0, kind), x),
        "floor": lambda x: apply("floor", x),
        "sqrt": lambda x: apply("sqrt", x),
    }


ROUND = words("+ - * / // % sqrt square")
"""Functions of floats whose results are rounded."""


def _narrowed(body: Body, narrow: Body) -> Body:
    """A function of f64 on numbers that are held as f32, and its result rounded."""

    def one(x: Node) -> Node:
        return apply("f32_of_f64", narrow(body(apply("f64_of_f32", x))))

    def two(a: Node, b: Node) -> Node:
        return apply("f32_of_f64", narrow(body(*(apply("f64_of_f32", x) for x in (a, b)))))

    return one if len(inspect.signature(body).parameters) == 1 else two


def extremes() -> dict[str, Body]:
    """`min` and `max` of floats: NaN if one is NaN, the first of equals."""
    return {
        "min": lambda a, b: select((a <= b) | unequal(a, a), a, b),
        "max": lambda a, b: select((a >= b) | unequal(a, a), a, b),
    }


def _remainder(a: Node, b: Node) -> tuple[Node, Node, Node]:
    """C's remainder, whether it is not 0, and whether it is of the other sign than b."""
    rest = apply("fmod", a, b)
    nonzero = unequal(rest, 0.0)
    return rest, nonzero, nonzero & by_kind("ne", b < 0.0, rest < 0.0)


def modulo(a: Node, b: Node) -> Node:
    """`a % b` as in Python; NaN where b is 0."""
    rest, nonzero, moved = _remainder(a, b)
    return select(nonzero, select(moved, rest + b, rest), with_sign(constant(0.0, F64), b))


def floor_division(a: Node, b: Node) -> Node:
    """`a // b` as in Python; a / b where b is 0."""
    rest, _, moved = _remainder(a, b)
    whole = (a - rest) / b
    whole = select(moved, whole - 1.0, whole)
    # The quotient may miss the integer that it stands for by a rounding.
    floor = apply("floor", whole)
    floor = select(whole - floor > 0.5, floor + 1.0, floor)
    ratio = a / b
    found = select(unequal(whole, 0.0), floor, with_sign(constant(0.0, F64), ratio))
    return select(equal(b, 0.0), ratio, found)
