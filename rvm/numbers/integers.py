"""Integers and bool.

`i32 i64 u8 u32 u64` are two's complement and wrap silently, so that `+` and `-` undo each other on
every value. `//` and `%` round to minus infinity, as Python's; by zero they are an error (R005),
and the least value divided by -1 wraps to itself. `**` wraps too; to a negative power only 1 and -1
have a value (0: R005, others: R015). A shift by the width or more leaves 0 (or -1 for a negative
number shifted right), by a negative count it is an error (R015); a rotation takes its count modulo
the width.

A bool is one bit: `^` accumulates, `~` is not.
"""

from __future__ import annotations

import operator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.numbers.base import NumberSystem, plain, refuse, shortened, shown
from rvm.numbers.code import Code, with_llvm
from rvm.numbers.llvm import Llvm
from rvm.numbers.llvm_integers import bool_llvm, count_of, integer_llvm
from rvm.numbers.support import NAMES, division_by_zero, name, outside_domain
from rvm.types import Scalar

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


def comparisons() -> dict[str, Code]:
    """The six comparisons, as Python and NumPy write them."""
    return {s: Code(f"({{0}} {s} {{1}})", f"({{0}} {s} {{1}})") for s in COMPARISONS}


class BoolSystem(NumberSystem):
    """One bit."""

    exact = True

    def __init__(self, t: Scalar) -> None:
        super().__init__(t, np.bool_, False, _bool_codes())

    def literal(self, value: Any) -> bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, int) and value in (0, 1):
            return bool(value)
        raise ValueError(f"a bool is true or false, not {shown(value)}")

    def from_python(self, value: Any) -> bool:
        value = plain(value)
        if not isinstance(value, bool):
            raise refuse(value, "a bool")
        return value

    def text(self, raw: Any) -> str:
        return "true" if raw else "false"


def _bool_codes() -> dict[str, Code]:
    codes = comparisons()
    del codes["<"], codes["<="], codes[">"], codes[">="]
    for f, infix, array in (("&", "and", "and"), ("|", "or", "or")):
        arrays = f"np.logical_{array}({{0}}, {{1}})"
        codes[f] = Code(f"({{0}} {f} {{1}})", arrays)
        codes[infix] = Code(f"({{0}} {infix} {{1}})", arrays)
    codes["^"] = Code("({0} != {1})", "np.not_equal({0}, {1})")
    codes["~"] = codes["not"] = Code("(not {0})", "np.logical_not({0})")
    return with_llvm(codes, bool_llvm())


class IntegerSystem(NumberSystem):
    """Two's complement integers of a width, signed or not."""

    exact = True

    def __init__(self, t: Scalar) -> None:
        self.signed = t.name[0] == "i"
        self.bits = t.bits
        self.low = -(1 << self.bits - 1) if self.signed else 0
        self.high = self.low + (1 << self.bits) - 1
        dtype = np.dtype(f"{'i' if self.signed else 'u'}{self.bits // 8}")
        super().__init__(t, dtype, 0, _integer_codes(t.name, self.bits, self.low, self.high, dtype))

    def code(self, fn: str, elems: tuple[Scalar, ...]) -> Code | None:
        code = self.codes.get(fn)
        if code is None or code.llvm is None or fn not in ("<<", ">>", "rotl", "rotr"):
            return code
        count = elems[1]
        wide = count_of(count.bits, count.name[0] == "i", saturated=fn in ("<<", ">>"))
        llvm: Llvm = code.llvm
        return replace(code, llvm=lambda e, x, k: llvm(e, x, wide(e, k)))

    def literal(self, value: Any) -> int:
        if isinstance(value, bool):
            raise ValueError(f"{str(value).lower()} is a bool, not an {self.type}")
        value = shortened(value)
        if isinstance(value, (float, Fraction)) and value == value // 1:
            value = int(value)
        if not isinstance(value, int):
            raise ValueError(f"{shown(value)} is no integer, so no {self.type}")
        if not self.low <= value <= self.high:
            raise ValueError(f"{shown(value)} does not fit {self.type} ({self.low} to {self.high})")
        return value

    def from_python(self, value: Any) -> int:
        if type(value) is int and self.low <= value <= self.high:
            return value
        value = plain(value)
        if isinstance(value, bool):
            raise refuse(value, "an integer")
        try:
            number = operator.index(value)
        except TypeError:
            raise refuse(value, "an integer") from None
        return self.literal(number)


def _wrapping(body: str, bits: int, low: int, high: int) -> str:
    """The template `body` with its result brought into range; {t9} is free for it."""
    if low == 0:
        return f"({body} & {high})"
    return f"({{t9}} if {low} <= ({{t9}} := {body}) <= {high} else wrap_i{bits}({{t9}}))"


def wrapper(bits: int, signed: bool) -> Any:
    """The function that reduces any integer to the type's range."""
    mask, half = (1 << bits) - 1, 1 << bits - 1
    if signed:
        return lambda x: ((x + half) & mask) - half
    return lambda x: x & mask


def _integer_codes(t: str, bits: int, low: int, high: int, dtype: np.dtype[Any]) -> dict[str, Code]:
    signed = low < 0
    wrap = NAMES[f"wrap_{t}"] = wrapper(bits, signed)

    def wrapped(body: str) -> str:
        return _wrapping(body, bits, low, high)

    def power(x: int, n: int) -> int:
        if n >= 0:
            result: int = wrap(pow(x, n, 1 << bits))
            return result
        if x in (1, -1):
            return x if n % 2 else 1
        if x == 0:
            raise division_by_zero(1)
        raise outside_domain("an integer to a negative power", base=x, exponent=n)

    def floordiv(a: int, b: int) -> int:
        if b == 0:
            raise division_by_zero(a)
        result: int = wrap(a // b)
        return result

    def mod(a: int, b: int) -> int:
        if b == 0:
            raise division_by_zero(a)
        return a % b

    def shr(x: int, k: int) -> int:
        if k < 0:
            raise outside_domain("a shift by a negative count", count=k)
        return x >> k

    NAMES[f"power_{t}"] = power
    mask = (1 << bits) - 1
    unsigned = "{0}" if not signed else f"({{0}} & {mask})"
    turn = "(({t0} := " + unsigned + ") {one} ({t1} := {1} % " + str(bits) + ") | {t0} {two} "
    turn += str(bits) + " - {t1})"
    left = turn.replace("{one}", "<<").replace("{two}", ">>")
    right = turn.replace("{one}", ">>").replace("{two}", "<<")
    add = wrapped("{0} + {1}")
    if not signed and bits == 64:
        add = f"({{t0}} if ({{t0}} := {{0}} + {{1}}) <= {high} else {{t0}} - {high + 1})"
    codes = comparisons()
    codes |= {
        "+": Code(add, "({0} + {1})"),
        "-": Code(wrapped("{0} - {1}"), "({0} - {1})"),
        "*": Code(wrapped("{0} * {1}"), "({0} * {1})"),
        "//": Code(
            f"({{t0}} if ({{t0}} := {{0}} // {{1}}) <= {high} else {low})"
            if signed
            else "({0} // {1})",
            "int_floordiv({0}, {1})",
            floordiv,
        ),
        "%": Code("({0} % {1})", "int_mod({0}, {1})", mod),
        "**": Code(f"power_{t}({{0}}, {{1}})", f"int_power({{0}}, {{1}}, dtype_{t})"),
        "neg": Code(wrapped("-{0}"), "(-{0})"),
        "abs": Code(wrapped("abs({0})") if signed else "{0}", "np.abs({0})"),
        "sign": Code(
            "(1 if ({t0} := {0}) > 0 else -1 if {t0} else 0)", f"np.sign({{0}}, dtype=dtype_{t})"
        ),
        "square": Code(wrapped("({t0} := {0}) * {t0}"), "np.square({0})"),
        "min": Code("({t0} if ({t0} := {0}) <= ({t1} := {1}) else {t1})", "np.minimum({0}, {1})"),
        "max": Code("({t0} if ({t0} := {0}) >= ({t1} := {1}) else {t1})", "np.maximum({0}, {1})"),
        "relu": Code("({t0} if ({t0} := {0}) > 0 else 0)", "np.maximum({0}, 0)"),
        "&": Code("({0} & {1})", "({0} & {1})"),
        "|": Code("({0} | {1})", "({0} | {1})"),
        "^": Code("({0} ^ {1})", "({0} ^ {1})"),
        "~": Code("(~{0})" if signed else f"({{0}} ^ {mask})", "(~{0})"),
        "<<": Code(
            wrapped(
                f"{{0}} << ({{t0}} if 0 <= ({{t0}} := {{1}}) < {bits} else far({{t0}}, {bits}))"
            ),
            f"int_shl({{0}}, {{1}}, dtype_{t})",
        ),
        ">>": Code("({0} >> {1})", f"int_shr({{0}}, {{1}}, dtype_{t})", shr),
        "rotl": Code(wrapped(left), f"int_rotate({{0}}, {{1}}, dtype_{t}, 1)"),
        "rotr": Code(wrapped(right), f"int_rotate({{0}}, {{1}}, dtype_{t}, -1)"),
    }
    return with_llvm(codes, integer_llvm(bits, signed))


@name
def far(k: int, bits: int) -> int:
    """A count by which every bit is shifted out; R015 for a negative one."""
    if k < 0:
        raise outside_domain("a shift by a negative count", count=k)
    return bits


def _refuse_zero(a: Any, b: Any) -> None:
    if np.any(np.equal(b, 0)):
        raise division_by_zero(np.broadcast_to(a, np.broadcast(a, b).shape)[np.equal(b, 0)].flat[0])


@name
def int_floordiv(a: Any, b: Any) -> Any:
    """`a // b` on arrays."""
    _refuse_zero(a, b)
    return np.floor_divide(a, b)


@name
def int_mod(a: Any, b: Any) -> Any:
    """`a % b` on arrays."""
    _refuse_zero(a, b)
    return np.remainder(a, b)


@name
def int_power(x: Any, n: Any, dtype: np.dtype[Any]) -> Any:
    """`x ** n` on arrays, by squaring: wraps, and takes negative exponents as the scalars do."""
    x, n = np.broadcast_arrays(np.asarray(x, dtype), np.asarray(n))
    negative = n < 0
    if np.any(negative):
        bad = negative & (x != 1) & (x.astype(np.int64) != -1)
        if np.any(bad):
            base, exponent = int(x[bad].flat[0]), int(n[bad].flat[0])
            if base == 0:
                raise division_by_zero(1)
            raise outside_domain("an integer to a negative power", base=base, exponent=exponent)
    rest = np.where(negative, n & n.dtype.type(1), n)
    result, base_ = np.ones(x.shape, dtype), x.copy()
    while np.any(rest):
        result = np.where(rest & rest.dtype.type(1), result * base_, result)
        base_ = base_ * base_
        rest = rest >> rest.dtype.type(1)
    return result


def _counts(x: Any, k: Any, dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    x, k = np.broadcast_arrays(np.asarray(x, dtype), np.asarray(k))
    if np.any(k < 0):
        raise outside_domain("a shift by a negative count", count=int(k[k < 0].flat[0]))
    return x, k


@name
def int_shl(x: Any, k: Any, dtype: np.dtype[Any]) -> Any:
    """`x << k` on arrays."""
    x, k = _counts(x, k, dtype)
    bits = 8 * dtype.itemsize
    return np.where(k < bits, x << np.minimum(k, bits - 1).astype(dtype), dtype.type(0))


@name
def int_shr(x: Any, k: Any, dtype: np.dtype[Any]) -> Any:
    """`x >> k` on arrays."""
    x, k = _counts(x, k, dtype)
    bits = 8 * dtype.itemsize
    shifted = x >> np.minimum(k, bits - 1).astype(dtype)
    return shifted if dtype.kind == "i" else np.where(k < bits, shifted, dtype.type(0))


@name
def int_rotate(x: Any, k: Any, dtype: np.dtype[Any], sign: int) -> Any:
    """The bits of `x` rotated left by `sign * k` on arrays."""
    bits = 8 * dtype.itemsize
    unsigned = np.dtype(f"u{dtype.itemsize}")
    x, k = np.broadcast_arrays(np.asarray(x, dtype), np.asarray(k))
    u = x.astype(unsigned)
    turn = k % bits if sign > 0 else (bits - k % bits) % bits
    back = (bits - turn) % bits
    return (u << turn.astype(unsigned) | u >> back.astype(unsigned)).astype(dtype)
