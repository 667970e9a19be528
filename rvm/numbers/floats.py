"""IEEE 754 floats, and complex numbers made of two.

`f64` and `f32` follow IEEE 754 everywhere: 1/0 is an infinity, log 0 is -inf, the square root of -1
is NaN, an overflow is an infinity; nothing raises an exception. An `f32` scalar is a Python float
that is rounded already; its arithmetic is that of f64, rounded once more, which for `+ - * /` and
sqrt is the correctly rounded f32 result. `min` and `max` give NaN if an argument is NaN, and the
first of two equal arguments; `sign` of a zero is 0. `x // y` and `x % y` round to minus infinity,
as Python's; by zero they are what IEEE 754 and NumPy say (an infinity or NaN, and NaN). `x ** n`
with an i64 exponent converts the exponent to f64.
Elementary functions are those of `rvm.numbers.elementary`.

`c128` is a pair of f64. Its functions are those of C99 by Python's `cmath`, with NumPy's result
where `cmath` would raise an exception; so is its division (by zero: infinities and NaN).
"""

from __future__ import annotations

import cmath
import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from numbers import Rational, Real
from typing import Any

import numpy as np

from rvm.leaf import Function, Node, select
from rvm.leaf.ops import F32, F64
from rvm.leaf.python import f32
from rvm.leaf.python import total as total_of
from rvm.leaf.trace import apply, compare, constant, equal, unequal, with_sign
from rvm.numbers.base import InexactSystem, nearest, plain, refuse, shown, words
from rvm.numbers.code import Body, Code, codes_of, comparisons, compiled, fill
from rvm.numbers.llvm import Llvm, chain
from rvm.numbers.llvm_complex import complex_llvm, complex_operands
from rvm.numbers.support import NAMES, name, total
from rvm.types import F64 as F64_TYPE
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
            self.unit, self.near = 2.0 / whole, f32
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
        value = plain(value)
        if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
            raise refuse(value, "a real number")
        return self.literal(value)

    def text(self, raw: Any) -> str:
        if self.near is f32:
            short = str(np.float32(raw))
            if f32(float(short)) == raw:
                return repr(float(short))
        return repr(float(raw))


def rounded(value: Any, t: Scalar, near: Callable[[float], float] | None = None) -> float:
    """A real number as the nearest of a float type.

    ValueError if a whole number is none of these, or if a finite one is beyond the largest.
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


class ComplexSystem(InexactSystem):
    """c128: two f64."""

    updates = frozenset({"add", "mul"})
    factors = "nonzero"
    converts = True

    def __init__(self, t: Scalar) -> None:
        super().__init__(t, 0j, COMPLEX_CODES)

    def code(self, fn: str, elems: tuple[Scalar, ...]) -> Code | None:
        code = self.codes.get(fn)
        return code if code is None else mixed(code, elems)

    def literal(self, value: Any) -> complex:
        if isinstance(value, bool):
            raise ValueError(f"{str(value).lower()} is a bool, not a {self.type}")
        if isinstance(value, (complex, np.complexfloating)):
            return complex(value)
        if not isinstance(value, (Real, Decimal)):
            raise ValueError(f"{value} is not a value of {self.type}")
        return complex(rounded(value, F64_TYPE))

    def from_python(self, value: Any) -> complex:
        value = plain(value)
        if isinstance(value, bool) or not isinstance(value, (complex, Real, Decimal)):
            raise refuse(value, "a complex number")
        return self.literal(value)

    def text(self, raw: Any) -> str:
        im = repr(raw.imag)
        return f"{raw.real!r}{'' if im.startswith('-') else '+'}{im}j"


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
    return rest, nonzero, nonzero & compare("ne", b < 0.0, rest < 0.0)


def modulo(a: Node, b: Node) -> Node:
    """`a % b` as Python has it; NaN where b is 0."""
    rest, nonzero, moved = _remainder(a, b)
    return select(nonzero, select(moved, rest + b, rest), with_sign(constant(0.0, F64), b))


def floor_division(a: Node, b: Node) -> Node:
    """`a // b` as Python has it; a / b where b is 0."""
    rest, _, moved = _remainder(a, b)
    whole = (a - rest) / b
    whole = select(moved, whole - 1.0, whole)
    # The quotient may miss the integer that it stands for by a rounding.
    floor = apply("floor", whole)
    floor = select(whole - floor > 0.5, floor + 1.0, floor)
    ratio = a / b
    found = select(unequal(whole, 0.0), floor, with_sign(constant(0.0, F64), ratio))
    return select(equal(b, 0.0), ratio, found)


@name
def complex_leg_array(z: Any) -> Any:
    """sqrt(1 - z * z) on arrays."""
    return np.sqrt((1.0 - z) * (1.0 + z))


COMPLEX_LIBM = {
    **{f: f for f in ("exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f"a{f}": f"arc{f}" for f in ("sin", "cos", "tan")},
}
"""Functions of one complex argument: the name in `cmath`, and that in NumPy."""


def mixed(code: Code, elems: tuple[Scalar, ...]) -> Code:
    """A function of complex numbers on some that are real: they are converted.

    Python 3.14 would take their imaginary parts for none at all, instead of 0.
    """
    if all(t.is_complex for t in elems):
        return code
    slots = [f"{{{k}}}" if t.is_complex else f"complex({{{k}}})" for k, t in enumerate(elems)]
    f = code.value or compiled(code.python, len(elems), NAMES)

    def value(*args: Any) -> Any:
        return f(*map(complex, args))

    llvm = code.llvm and complex_operands(code.llvm, elems)
    return Code(fill(code.python, *slots), code.numpy, value, llvm, code.alike)


def _modulus(z: complex) -> float:
    try:
        return abs(z)
    except OverflowError:
        return math.inf


def _complex_codes() -> dict[str, Code]:
    codes = {
        s: Code(t := f"({{0}} {s} {{1}})", t, alike=s != "*") for s in ("==", "!=", "+", "-", "*")
    }
    codes |= {
        "/": Code(
            "({0} / {1})", "np.divide({0}, {1})", total(lambda a, b: a / b, np.divide, complex)
        ),
        "**": Code(
            "({0} ** {1})", "np.power({0}, {1})", total(lambda a, b: a**b, np.power, complex)
        ),
        "neg": Code("(-{0})", "(-{0})", alike=True),
        "square": Code("(({t0} := {0}) * {t0})", "np.square({0})"),
        "abs": Code("abs({0})", "np.abs({0})", _modulus),
    }
    for f, array in COMPLEX_LIBM.items():
        codes[f] = Code(
            f"c{f}({{0}})",
            f"np.{array}({{0}})",
            total(getattr(cmath, f), getattr(np, array), complex),
        )
    codes["sech"] = Code(
        "(complex(1.0) / ccosh({0}))",
        "np.divide(1.0, np.cosh({0}))",
        total(lambda z: 1 / cmath.cosh(z), lambda z: np.divide(1.0, np.cosh(z)), complex),
    )
    codes["leg"] = Code(
        "csqrt((complex(1.0) - ({t0} := {0})) * (complex(1.0) + {t0}))",
        "complex_leg_array({0})",
        total(lambda z: cmath.sqrt((1 - z) * (1 + z)), complex_leg_array, complex),
    )
    llvm: dict[str, Llvm | None] = {**complex_llvm()}
    plus, minus, times, root = (complex_llvm()[f] for f in ("+", "-", "*", "sqrt"))
    one = ("1.0", "0.0")
    llvm["leg"] = lambda e, z: root(e, times(e, minus(e, one, z), plus(e, one, z)))
    divided = complex_llvm()["/"]
    llvm["sech"] = chain(llvm["cosh"], lambda e, c: divided(e, ("1.0", "0.0"), c))
    return {f: replace(code, llvm=llvm.get(f)) for f, code in codes.items()}


COMPLEX_CODES = _complex_codes()
