"""Conversions between number types.

Integers to integers wrap; a float or fixed-point number to an integer drops its fraction (rounds to
zero), an integer or float to a fixed-point number rounds to nearest, ties to even: what does not
fit, NaN and infinities among it, is an error (R009). To bool: whether the number is not zero. To a
float: the nearest. To log64: the logarithm of the nearest f64, -inf for 0 and NaN for what is
negative; from log64: by `exp`, in f64.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.numbers.code import Code, compiled, compose
from rvm.numbers.elementary import written
from rvm.numbers.fixedpoint import HIGH, LOW, fixed_round
from rvm.numbers.floats import ROUND32, f32
from rvm.numbers.integers import IntegerSystem
from rvm.numbers.llvm import Emitter, chain, same
from rvm.numbers.llvm_conversions import (
    fixed_of_float,
    fixed_of_whole,
    float_of,
    integer_of_fixed,
    integer_of_float,
    nonzero,
    resized,
    rounded_shift,
)
from rvm.numbers.support import NAMES, name, out_of_range
from rvm.types import F64, I64, Scalar

SAME = Code("{0}", "{0}", None, same)


@name
def no_fit(x: Any, to: str) -> Any:
    """Raises R009."""
    raise out_of_range(x, to)


@name
def cast(x: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array in another storage type, as C converts numbers that fit; integers wrap."""
    return np.asarray(x).astype(dtype)


@name
def float_to_int_array(x: Any, low: int, high: int, to: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Floats without their fractions as integers; R009 where they do not fit."""
    whole = np.trunc(np.asarray(x, np.float64))
    bad = ~((whole >= float(low)) & (whole < float(high + 1)))
    if np.any(bad):
        raise out_of_range(float(np.asarray(x)[bad].flat[0]), to)
    return whole.astype(dtype)


@name
def checked_array(x: Any, low: int, high: int, to: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Integers that must lie in the range of another type; R009 where one does not."""
    bad = (x < max(low, np.iinfo(x.dtype).min)) | (x > min(high, np.iinfo(x.dtype).max))
    if np.any(bad):
        raise out_of_range(int(x[bad].flat[0]), to)
    return np.asarray(x.astype(dtype))


@name
def trunc_shift(x: Any, frac: int) -> NDArray[Any]:
    """Raw fixed-point numbers without their fractions, rounded to zero, as integers."""
    whole = x >> frac
    rest = x & np.int64((1 << frac) - 1)
    return np.asarray(whole + ((x < 0) & (rest != 0)))


@name
def round_shift(x: Any, k: int) -> Any:
    """An integer, or an array of them, divided by 2**k > 1, rounded to nearest, ties to even."""
    q, rest, half = x >> k, x & (1 << k) - 1, 1 << k - 1
    return q + ((rest > half) | ((rest == half) & (q & 1 == 1)))


@name
def f32_of_int(n: int) -> float:
    """The f32 nearest to an integer.

    A large one is first cut to 53 bits with a sticky last bit, so that it is not rounded twice.
    """
    if -(1 << 53) <= n <= 1 << 53:
        return f32(float(n))
    size = abs(n)
    cut = size >> 11 | (size & 2047 != 0)
    return math.copysign(f32(cut * 2048.0), n)


@cache
def conversion(target: Scalar, source: Scalar) -> Code:
    """The code that takes a raw value of `source` to one of `target`."""
    if target == source:
        return SAME
    if target.is_bool:
        zero = "-inf" if source.is_log else "0"
        return Code(f"({{0}} != {zero})", f"({{0}} != {zero})", None, nonzero(source))
    if source.is_log and target != F64:
        return _then(conversion(F64, source), conversion(target, F64))
    if target.is_log and source != F64:
        return _then(conversion(F64, source), conversion(target, F64))
    if target.is_complex:
        real = conversion(F64, source)
        return Code(
            f"complex({real.python})",
            compose("cast({0}, dtype_c128)", real.numpy),
            None,
            chain(real.llvm, lambda e, x: (x, "0.0")),
        )
    if target.is_integer:
        return _to_integer(target, source)
    if target.is_fixed:
        return _to_fixed(target, source)
    return _to_float(target, source)


def _then(first: Code, second: Code) -> Code:
    """Two conversions, one after the other."""
    f, g = _total(first), _total(second)
    return Code(
        compose(second.python, first.python),
        compose(second.numpy, first.numpy),
        lambda x: g(f(x)),
        chain(first.llvm, second.llvm),
    )


def _total(code: Code) -> Any:
    return code.value or compiled(code.python, 1, NAMES)


def _to_float(target: Scalar, source: Scalar) -> Code:
    t = target.name
    if target.is_log:
        return written("log")
    if source.is_log:
        return written("exp")
    llvm = float_of(target, source)
    if source.is_float:
        if t == "f64":
            return Code("{0}", "cast({0}, dtype_f64)", None, llvm)
        return Code(ROUND32, "cast({0}, dtype_f32)", f32, llvm)
    unit = f" * {2.0**-source.frac!r}" if source.is_fixed else ""
    array = f"(cast({{0}}, dtype_{t}){unit})"
    if t == "f64":
        return Code(f"({{0}}{unit})" if unit else "float({0})", array, None, llvm)
    return Code(f"(f32_of_int({{0}}){unit})", array, None, llvm)


def _to_integer(target: Scalar, source: Scalar) -> Code:
    t = target.name
    to = IntegerSystem(target)
    low, high = to.low, to.high
    limits = f"{low}, {high}, {t!r}, dtype_{t}"

    def fits(body: str) -> str:
        return f"({{t9}} if {low} <= ({{t9}} := {body}) <= {high} else no_fit({{t9}}, {t!r}))"

    def of_float(x: float) -> int:
        if not low <= x // 1 <= high and not low <= -(-x // 1) <= high:
            raise out_of_range(x, t)
        return int(x)

    def wrapped(e: Emitter, x: str) -> str:
        return resized(e, x, source, target)

    if source.is_bool:
        return Code("int({0})", f"cast({{0}}, dtype_{t})", None, wrapped)
    if source.is_float:
        array = f"float_to_int_array({{0}}, {limits})"
        return Code(fits("int({0})"), array, of_float, integer_of_float(target, source, low, high))
    if source.is_fixed:
        frac = source.frac
        if frac == 0:
            body, array = "{0}", "{0}"
        else:
            body = f"({{t0}} >> {frac} if ({{t0}} := {{0}}) >= 0 else -(-{{t0}} >> {frac}))"
            array = f"trunc_shift({{0}}, {frac})"
        llvm = integer_of_fixed(target, source, low, high)
        if target == I64:
            return Code(body, array, None, llvm)
        return Code(fits(body), f"checked_array({array}, {limits})", None, llvm)
    array = f"cast({{0}}, dtype_{t})"
    inner = IntegerSystem(source)
    if low <= inner.low and inner.high <= high:
        return Code("{0}", array, None, wrapped)
    return Code(f"wrap_{t}({{0}})", array, None, wrapped)


def _to_fixed(target: Scalar, source: Scalar) -> Code:
    frac, t = target.frac, str(target)
    shift = frac - source.frac

    def fits(body: str) -> str:
        return f"({{t9}} if {LOW} <= ({{t9}} := {body}) <= {HIGH} else no_fit({{t9}}, {t!r}))"

    if source.is_float:
        return Code(
            f"fixed_round({{0}}, {frac})",
            f"fixed_round_array({{0}}, {frac})",
            lambda x: fixed_round(x, frac),
            fixed_of_float(source, frac),
        )
    if shift < 0:
        rounded = f"round_shift({{0}}, {-shift})"
        return Code(rounded, rounded, None, rounded_shift(-shift))
    low, high = LOW >> shift, HIGH >> shift
    llvm = fixed_of_whole(target, source, low, high)
    if source.is_bool:
        return Code(
            fits(f"int({{0}}) << {frac}"), f"(cast({{0}}, dtype_i64) << {frac})", None, llvm
        )
    if shift == 0 and source.name != "u64":
        return Code("{0}", "cast({0}, dtype_i64)", None, llvm)
    return Code(
        fits(f"{{0}} << {shift}"),
        f"(checked_array({{0}}, {low}, {high}, {t!r}, dtype_i64) << {shift})",
        None,
        llvm,
    )
