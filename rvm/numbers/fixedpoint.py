"""Fixed-point numbers: 64-bit integers in units of 2**-frac.

`+`, `-`, `*` and `//` wrap around as two's complement integers do, so that `+` and `-` undo each
other on every value. Products and quotients are exact before they are rounded once, to nearest,
ties to even; a division by zero is an error (R005). `x ** n` with an i64 exponent is by squaring,
every product rounded; a negative one divides 1 by that. All other functions are computed in f64
and rounded to nearest; there, and in conversions, a result that does not fit (NaN and infinities
among them) is an error (R009).
"""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.numbers.base import NumberSystem, plain, refuse, shortened, shown
from rvm.numbers.code import Code, compiled, with_llvm
from rvm.numbers.elementary import TEXTS, text, written
from rvm.numbers.floats import FLOAT_CODES
from rvm.numbers.integers import comparisons, wrapper
from rvm.numbers.llvm_fixed import fixed_llvm, fixed_power_llvm, through_float_llvm
from rvm.numbers.support import NAMES, division_by_zero, name, out_of_range
from rvm.types import DEFAULT_FRAC, Scalar

LOW, HIGH = -(1 << 63), (1 << 63) - 1
_wrap = wrapper(64, True)


class Fixed(Fraction):
    """A fixed-point number as Python sees it: exactly raw / 2**frac.

    It compares and computes as the fraction that it is; `raw` and `frac` are its bits.
    """

    __slots__ = ("frac", "raw")
    raw: int
    frac: int

    def __new__(cls, raw: int, frac: int = DEFAULT_FRAC) -> Fixed:
        self = super().__new__(cls, raw, 1 << frac)
        self.raw = raw
        self.frac = frac
        return self

    @classmethod
    def from_float(cls, f: float) -> Fraction:  # type: ignore[override]
        """An exact fraction: what comparisons with floats are made with."""
        return Fraction.from_float(f)

    @classmethod
    def from_decimal(cls, dec: Decimal) -> Fraction:  # type: ignore[override]
        """An exact fraction."""
        return Fraction.from_decimal(dec)

    def __repr__(self) -> str:
        return f"Fixed({self.raw}, {self.frac})"

    def __str__(self) -> str:
        return decimal_text(self.raw, self.frac)

    def __reduce__(self) -> tuple[Any, ...]:
        return Fixed, (self.raw, self.frac)

    def __copy__(self) -> Fixed:
        return self

    def __deepcopy__(self, memo: Any) -> Fixed:
        return self


def nearest(value: Fraction, frac: int) -> int:
    """The raw number nearest to an exact value, ties to even."""
    return round(value * (1 << frac))


def decimal_text(raw: int, frac: int) -> str:
    """The shortest decimal that rounds to the number."""
    value = Fraction(raw, 1 << frac)
    for digits in range(1, 22):
        context = Context(prec=digits)
        short = context.divide(Decimal(value.numerator), Decimal(value.denominator))
        if nearest(Fraction(short), frac) == raw:
            text = format(short, "f")
            return text if "." in text else text + ".0"
    raise AssertionError("21 digits tell all 64-bit numbers apart")


class FixedSystem(NumberSystem):
    """Fixed point with `type.frac` fraction bits."""

    exact = True

    def __init__(self, t: Scalar) -> None:
        self.frac = t.frac
        super().__init__(t, np.int64, 0, _fixed_codes(t.frac))

    def code(self, fn: str, elems: tuple[Scalar, ...]) -> Code | None:
        if fn == "**" and elems[1].is_integer:
            frac = self.frac
            return Code(
                f"fixed_power({{0}}, {{1}}, {frac})",
                f"fixed_power_array({{0}}, {{1}}, {frac})",
                None,
                fixed_power_llvm(frac),
            )
        found = self.codes.get(fn)
        if found is not None:
            return found
        name = "pow" if fn == "**" else fn
        return _through_text(name, self.frac) if name in TEXTS else None

    def literal(self, value: Any) -> int:
        if isinstance(value, bool):
            raise ValueError(f"{str(value).lower()} is a bool, not a {self.type}")
        if not isinstance(value, (Real, Decimal)):
            raise ValueError(f"{value} is no {self.type}")
        value = shortened(value)
        try:
            exact = Fraction(value)
        except (ValueError, OverflowError):
            raise ValueError(f"a {self.type} has no {value}") from None
        raw = nearest(exact, self.frac)
        if not LOW <= raw <= HIGH:
            limit = 2.0 ** (63 - self.frac)
            raise ValueError(f"{shown(value)} does not fit {self.type} (below {limit:g} in size)")
        return raw

    def from_python(self, value: Any) -> int:
        value = plain(value)
        if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
            raise refuse(value, "a real number")
        return self.literal(value)

    def to_python(self, raw: Any) -> Any:
        return raw if isinstance(raw, np.ndarray) else Fixed(int(raw), self.frac)

    def text(self, raw: Any) -> str:
        return decimal_text(int(raw), self.frac)


@name
def fixed_div(a: int, b: int, frac: int) -> int:
    """The quotient of two raw numbers, rounded to nearest, ties to even, and wrapped."""
    if b == 0:
        raise division_by_zero(a)
    q, r = divmod(a << frac, b)
    twice = 2 * r - b if b > 0 else b - 2 * r
    if twice > 0 or (twice == 0 and q & 1):
        q += 1
    result: int = _wrap(q)
    return result


@name
def fixed_mul(a: int, b: int, frac: int) -> int:
    """The product of two raw numbers, rounded to nearest, ties to even, and wrapped."""
    p = a * b
    if frac:
        p = p + (1 << frac - 1) - 1 + (p >> frac & 1) >> frac
    result: int = _wrap(p)
    return result


@name
def fixed_power(x: int, n: int, frac: int) -> int:
    """`x ** n` by squaring, every product rounded."""
    result, rest = 1 << frac, abs(n)
    result = _wrap(result)
    while rest:
        if rest & 1:
            result = fixed_mul(result, x, frac)
        rest >>= 1
        if rest:
            x = fixed_mul(x, x, frac)
    return fixed_div(1 << frac, result, frac) if n < 0 else result


@name
def fixed_round(x: float, frac: int) -> int:
    """An f64 as the nearest raw number; R009 where there is none."""
    scaled = x * float(1 << frac)
    if not -9.223372036854775808e18 <= scaled < 9.223372036854775808e18:
        raise out_of_range(x, f"fixed({frac})")
    return round(scaled)


_U32 = np.uint64(0xFFFFFFFF)


@name
def fixed_mul_array(a: Any, b: Any, frac: int) -> NDArray[Any]:
    """The rounded product on arrays, exact by way of 128-bit products in halves."""
    a, b = np.broadcast_arrays(np.asarray(a, np.int64), np.asarray(b, np.int64))
    low = a * b
    if frac == 0:
        return np.asarray(low)
    ua, ub, s = a.astype(np.uint64), b.astype(np.uint64), np.uint64(32)
    a0, a1, b0, b1 = ua & _U32, ua >> s, ub & _U32, ub >> s
    mid = a1 * b0 + (a0 * b0 >> s)
    cross = a0 * b1 + (mid & _U32)
    high = a1 * b1 + (mid >> s) + (cross >> s)
    high -= np.where(a < 0, ub, np.uint64(0))
    high -= np.where(b < 0, ua, np.uint64(0))
    ulow, f = low.astype(np.uint64), np.uint64(frac)
    quotient = ulow >> f | high << np.uint64(64 - frac)
    rest = ulow & np.uint64((1 << frac) - 1)
    half = np.uint64(1 << frac - 1)
    up = (rest > half) | ((rest == half) & (quotient & np.uint64(1) == 1))
    return np.asarray((quotient + up.astype(np.uint64)).astype(np.int64))


@name
def fixed_div_array(a: Any, b: Any, frac: int) -> NDArray[Any]:
    """The rounded quotient on arrays: long division of the magnitudes, bit by bit."""
    a, b = np.broadcast_arrays(np.asarray(a, np.int64), np.asarray(b, np.int64))
    if np.any(b == 0):
        raise division_by_zero(int(a[b == 0].flat[0]))
    one = np.uint64(1)
    n = np.where(a < 0, -a, a).astype(np.uint64)
    d = np.where(b < 0, -b, b).astype(np.uint64)
    q, r = n // d, n % d
    for _ in range(frac):
        r = r << one
        bit = r >= d
        r = np.where(bit, r - d, r)
        q = q << one | bit.astype(np.uint64)
    over = d - r
    up = (r > over) | ((r == over) & (q & one == 1))
    q = (q + up.astype(np.uint64)).astype(np.int64)
    return np.asarray(np.where((a < 0) != (b < 0), -q, q))


@name
def fixed_power_array(x: Any, n: Any, frac: int) -> NDArray[Any]:
    """`x ** n` on arrays."""
    x, n = np.broadcast_arrays(np.asarray(x, np.int64), np.asarray(n, np.int64))
    flat = [fixed_power(int(v), int(k), frac) for v, k in zip(x.flat, n.flat, strict=True)]
    return np.array(flat, np.int64).reshape(x.shape)


@name
def fixed_floordiv(a: int, b: int, frac: int) -> int:
    """The floor of the quotient, as a raw number, wrapped."""
    if b == 0:
        raise division_by_zero(a)
    result: int = _wrap(a // b << frac)
    return result


@name
def fixed_round_array(x: Any, frac: int) -> NDArray[Any]:
    """f64 numbers as the nearest raw numbers; R009 where there is none."""
    scaled = np.asarray(x, np.float64) * float(1 << frac)
    bad = ~((scaled >= -9.223372036854775808e18) & (scaled < 9.223372036854775808e18))
    if np.any(bad):
        raise out_of_range(float(np.asarray(x)[bad].flat[0]), f"fixed({frac})")
    return np.asarray(np.rint(scaled).astype(np.int64))


def through_float(code: Code, frac: int, arity: int) -> Code:
    """A function on fixed-point numbers, computed by its f64 code and rounded."""
    unit = f"{2.0**-frac!r}"
    args = [f"({{{k}}} * {unit})" for k in range(arity)]

    def inside(template: str) -> str:
        for k, arg in enumerate(args):
            template = template.replace(f"{{{k}}}", arg)
        return template

    inner = code.value or compiled(code.python, arity, NAMES)

    def value(*raws: int) -> int:
        return fixed_round(inner(*(r * 2.0**-frac for r in raws)), frac)

    return Code(
        f"fixed_round({inside(code.python)}, {frac})",
        f"fixed_round_array({inside(code.numpy)}, {frac})",
        value,
        code.llvm and through_float_llvm(code.llvm, frac),
    )


def _fixed_codes(frac: int) -> dict[str, Code]:
    def wrapped(body: str, t: str = "{t9}") -> str:
        return f"({t} if {LOW} <= ({t} := {body}) <= {HIGH} else wrap_i64({t}))"

    half = (1 << frac - 1) - 1 if frac else 0
    product = "{0} * {1}"
    square = "({t0} := {0}) * {t0}"
    if frac:
        rounding = f"({{t1}} := BODY) + {half} + ({{t1}} >> {frac} & 1) >> {frac}"
        product = rounding.replace("BODY", product)
        square = rounding.replace("BODY", square)
    one = 1 << frac
    unit = f"{_wrap(one)}"
    codes = comparisons()
    codes |= {
        "+": Code(wrapped("{0} + {1}"), "({0} + {1})"),
        "-": Code(wrapped("{0} - {1}"), "({0} - {1})"),
        "*": Code(wrapped(product), f"fixed_mul_array({{0}}, {{1}}, {frac})"),
        "/": Code(f"fixed_div({{0}}, {{1}}, {frac})", f"fixed_div_array({{0}}, {{1}}, {frac})"),
        "//": Code(
            f"fixed_floordiv({{0}}, {{1}}, {frac})", f"(int_floordiv({{0}}, {{1}}) << {frac})"
        ),
        "%": Code("({0} % {1})", "int_mod({0}, {1})", _modulo),
        "neg": Code(wrapped("-{0}"), "(-{0})"),
        "abs": Code(wrapped("abs({0})"), "np.abs({0})"),
        "sign": Code(
            f"({unit} if ({{t0}} := {{0}}) > 0 else -{one} if {{t0}} else 0)",
            f"(np.sign({{0}}) << {frac})",
        ),
        "square": Code(wrapped(square), f"fixed_square_array({{0}}, {frac})"),
        "min": Code("({t0} if ({t0} := {0}) <= ({t1} := {1}) else {t1})", "np.minimum({0}, {1})"),
        "max": Code("({t0} if ({t0} := {0}) >= ({t1} := {1}) else {t1})", "np.maximum({0}, {1})"),
        "relu": Code("({t0} if ({t0} := {0}) > 0 else 0)", "np.maximum({0}, 0)"),
        "floor": Code(f"({{0}} >> {frac} << {frac})", f"({{0}} >> {frac} << {frac})"),
    }
    return with_llvm(codes, fixed_llvm(frac)) | {
        "sqrt": through_float(FLOAT_CODES["sqrt"], frac, 1)
    }


@cache
def _through_text(name: str, frac: int) -> Code:
    """An elementary function of f64 on fixed-point numbers."""
    return through_float(written(name), frac, len(text(name).params))


@name
def fixed_square_array(x: Any, frac: int) -> NDArray[Any]:
    """The rounded square on arrays."""
    return fixed_mul_array(x, x, frac)


def _modulo(a: int, b: int) -> int:
    if b == 0:
        raise division_by_zero(a)
    return a % b
