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
import math
import struct
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import cache
from numbers import Rational, Real
from typing import Any

import numpy as np

from rvm.leaf.python import on_numbers
from rvm.numbers.base import InexactSystem, nearest, plain, refuse, shown
from rvm.numbers.code import Code, compiled, compose, fill, with_llvm
from rvm.numbers.elementary import TEXTS, text, written
from rvm.numbers.integers import comparisons
from rvm.numbers.llvm import Llvm, chain
from rvm.numbers.llvm_complex import complex_llvm, complex_operands
from rvm.numbers.llvm_floats import float_llvm, integer_exponent, native_llvm, through_double
from rvm.numbers.support import NAMES, name, total
from rvm.types import F64, Scalar

_pack = struct.Struct("=f").pack
_unpack = struct.Struct("=f").unpack
NAMES["pack32"], NAMES["unpack32"] = _pack, _unpack
ROUND32 = "unpack32(pack32({0}))[0]"
"""Rounds an f64 to f32; OverflowError where the result is an infinity."""


@name
def f32(x: float) -> float:
    """An f64 rounded to the nearest f32, an infinity where it is beyond the largest."""
    try:
        result: float = _unpack(_pack(x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)
    return result


@name
def least(a: Any, b: Any) -> Any:
    """The lesser of two on arrays; NaN if either is, the first of equals."""
    return np.where((a <= b) | (a != a), a, b)


@name
def greatest(a: Any, b: Any) -> Any:
    """The greater of two on arrays; NaN if either is, the first of equals."""
    return np.where((a >= b) | (a != a), a, b)


EXACT32 = 1 << 24
"""Whole numbers up to here are exact in f32 and f64."""


class FloatSystem(InexactSystem):
    """f64, and f32 with results rounded."""

    def __init__(self, t: Scalar) -> None:
        self.single = t.name == "f32"
        codes = single_codes(FLOAT_CODES) if self.single else FLOAT_CODES
        super().__init__(t, np.float32 if self.single else np.float64, 0.0, codes)

    def code(self, fn: str, elems: tuple[Scalar, ...]) -> Code | None:
        found = self.codes.get(fn)
        if found is not None:
            return found
        name = "pow" if fn == "**" else fn
        if name not in TEXTS:
            return None
        if name == "pow" and elems[1].is_integer:
            return _integer_exponent(self.single)
        return _rounded(name) if self.single else written(name)

    def literal(self, value: Any) -> float:
        if isinstance(value, bool):
            raise ValueError(f"{str(value).lower()} is a bool, not an {self.type}")
        if not isinstance(value, (Real, Decimal)):
            raise ValueError(f"{value} is no {self.type}")
        return rounded(value, self.type)

    def from_python(self, value: Any) -> float:
        if type(value) is float:
            # What most calls give, without the questions that other numbers need.
            number = f32(value) if self.single else value
            if math.isfinite(number) or not math.isfinite(value):
                return number
        elif type(value) is int and -EXACT32 <= value <= EXACT32:
            return float(value)
        value = plain(value)
        if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
            raise refuse(value, "a real number")
        return self.literal(value)

    def text(self, raw: Any) -> str:
        if self.single:
            short = str(np.float32(raw))
            if f32(float(short)) == raw:
                return repr(float(short))
        return repr(float(raw))


def rounded(value: Any, t: Scalar) -> float:
    """A real number as the nearest of type f32 or f64.

    ValueError if a whole number is none of these, or if a finite one is beyond the largest.
    """
    number = nearest(value)
    if t.name == "f32":
        number = _nearest32(value, number)
    if math.isinf(number) and not is_infinite(value):
        raise ValueError(f"{shown(value)} is beyond the largest {t}")
    if isinstance(value, Rational) and value.denominator == 1 and number != value:
        raise ValueError(f"{value} is no {t}: the nearest is {number:.0f}")
    return number


def _nearest32(value: Any, number: float) -> float:
    """The f32 nearest to a value, whose nearest f64 is `number`: that may be midway by rounding."""
    if number == value or not math.isfinite(number):
        return f32(number)
    low, high = (f32(math.nextafter(number, to)) for to in (-math.inf, math.inf))
    if number - low != high - number:
        return f32(number)
    return high if value > number else low


def is_infinite(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_infinite()
    return isinstance(value, float) and math.isinf(value)


class ComplexSystem(InexactSystem):
    """c128: two f64."""

    def __init__(self, t: Scalar) -> None:
        super().__init__(t, np.complex128, 0j, COMPLEX_CODES)

    def code(self, fn: str, elems: tuple[Scalar, ...]) -> Code | None:
        code = self.codes.get(fn)
        return code if code is None else mixed(code, elems)

    def literal(self, value: Any) -> complex:
        if isinstance(value, bool):
            raise ValueError(f"{str(value).lower()} is a bool, not a {self.type}")
        if isinstance(value, (complex, np.complexfloating)):
            return complex(value)
        if not isinstance(value, (Real, Decimal)):
            raise ValueError(f"{value} is no {self.type}")
        return complex(rounded(value, F64))

    def from_python(self, value: Any) -> complex:
        value = plain(value)
        if isinstance(value, bool) or not isinstance(value, (complex, Real, Decimal)):
            raise refuse(value, "a complex number")
        return self.literal(value)

    def text(self, raw: Any) -> str:
        im = repr(raw.imag)
        return f"{raw.real!r}{'' if im.startswith('-') else '+'}{im}j"


def _float_codes() -> dict[str, Code]:
    def by_numpy(f: Callable[..., Any], g: Callable[..., Any]) -> Callable[..., Any]:
        return total(f, g, float)

    codes = comparisons()
    for s in "+-*":
        codes[s] = Code(f"({{0}} {s} {{1}})", f"({{0}} {s} {{1}})")
    codes |= {
        "/": Code("({0} / {1})", "np.divide({0}, {1})", by_numpy(lambda a, b: a / b, np.divide)),
        "//": Code(
            "({0} // {1})",
            "np.floor_divide({0}, {1})",
            by_numpy(lambda a, b: a // b, np.floor_divide),
        ),
        "%": Code(
            "({0} % {1})", "np.remainder({0}, {1})", by_numpy(lambda a, b: a % b, np.remainder)
        ),
        "neg": Code("(-{0})", "(-{0})"),
        "abs": Code("abs({0})", "np.abs({0})"),
        "sign": Code(
            "(1.0 if ({t0} := {0}) > 0.0 else -1.0 if {t0} < 0.0 else 0.0 if {t0} == 0.0 else"
            " {t0})",
            "np.sign({0})",
        ),
        "square": Code("(({t0} := {0}) * {t0})", "np.square({0})"),
        "min": Code(
            "({t0} if ({t0} := {0}) <= ({t1} := {1}) or {t0} != {t0} else {t1})",
            "least({0}, {1})",
        ),
        "max": Code(
            "({t0} if ({t0} := {0}) >= ({t1} := {1}) or {t0} != {t0} else {t1})",
            "greatest({0}, {1})",
        ),
        "relu": Code("(0.0 if ({t0} := {0}) <= 0.0 else {t0})", "relu({0})"),
        "floor": Code(
            "({t1} if ({t1} := ({t0} := {0}) // 1.0) == {t1} else {t0})", "np.floor({0})"
        ),
        "sqrt": Code("sqrt({0})", "np.sqrt({0})", by_numpy(math.sqrt, np.sqrt)),
    }
    return with_llvm(codes, float_llvm())


@name
def complex_leg_array(z: Any) -> Any:
    """sqrt(1 - z * z) on arrays."""
    return np.sqrt((1.0 - z) * (1.0 + z))


@name
def relu(x: Any) -> Any:
    """x where it is positive or NaN, else 0, on arrays."""
    return np.where(x <= 0, x.dtype.type(0), x)


COMPLEX_LIBM = {
    **{f: f for f in ("exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f"a{f}": f"arc{f}" for f in ("sin", "cos", "tan")},
}
"""Functions of one complex argument: the name in `cmath`, and that in NumPy."""
SINGLE_EXACT = {*comparisons(), "neg", "abs", "sign", "min", "max", "relu", "floor"}
"""Functions whose f64 result on f32 arguments is an f32 already."""
SINGLE_NATIVE = {*SINGLE_EXACT, "+", "-", "*", "/", "sqrt", "square"}
"""Functions that NumPy computes in f32 to the same bits."""

SINGLE_LLVM = native_llvm("float")


def single(f: str, code: Code) -> Code:
    """The f32 version of an f64 function: its result, rounded."""
    if f in SINGLE_EXACT:
        return replace(code, llvm=SINGLE_LLVM[f])
    inner = code.value

    def value(*args: Any) -> float:
        assert inner is not None
        return f32(inner(*args))

    array = code.numpy if f in SINGLE_NATIVE else _through_double(code.numpy)
    direct = compiled_total(code) if inner is None else value
    llvm = SINGLE_LLVM.get(f) or (code.llvm and through_double(code.llvm))
    return Code(compose(ROUND32, code.python), array, direct, llvm)


@cache
def _rounded(name: str) -> Code:
    return single(name, written(name))


@cache
def _integer_exponent(is_single: bool) -> Code:
    """`x ** n` with an integer exponent, which is converted to f64."""
    code = _rounded("pow") if is_single else written("pow")
    power, plain_text = on_numbers(text("pow")), fill(code.python, "{0}", "float({1})")
    return Code(
        plain_text,
        code.numpy,
        (lambda x, n: f32(power(x, float(n)))) if is_single else None,
        integer_exponent(text("pow"), is_single),
    )


def compiled_total(code: Code) -> Callable[..., float]:
    """A total f64 template as a function whose result is rounded to f32."""
    arity = 2 if "{1}" in code.python else 1
    f = compiled(code.python, arity, NAMES)
    return lambda *args: f32(f(*args))


def _through_double(template: str) -> str:
    for k in range(3):
        template = template.replace(f"{{{k}}}", f"np.asarray({{{k}}}, dtype_f64)")
    return f"{template}.astype(dtype_f32)"


def single_codes(codes: dict[str, Code]) -> dict[str, Code]:
    """The f32 versions of all f64 functions."""
    return {f: single(f, code) for f, code in codes.items()}


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
    return Code(fill(code.python, *slots), code.numpy, value, llvm)


def _modulus(z: complex) -> float:
    try:
        return abs(z)
    except OverflowError:
        return math.inf


def _complex_codes() -> dict[str, Code]:
    codes = {s: code for s, code in comparisons().items() if s in ("==", "!=")}
    for s in "+-*":
        codes[s] = Code(f"({{0}} {s} {{1}})", f"({{0}} {s} {{1}})")
    codes |= {
        "/": Code(
            "({0} / {1})", "np.divide({0}, {1})", total(lambda a, b: a / b, np.divide, complex)
        ),
        "**": Code(
            "({0} ** {1})", "np.power({0}, {1})", total(lambda a, b: a**b, np.power, complex)
        ),
        "neg": Code("(-{0})", "(-{0})"),
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
    return with_llvm(codes, llvm)


FLOAT_CODES = _float_codes()
COMPLEX_CODES = _complex_codes()
