"""LLVM code of conversions between number types."""

from __future__ import annotations

from rvm.numbers.llvm import Emitter, Llvm, double, register_type
from rvm.types import Scalar


def is_signed(t: Scalar) -> bool:
    """Whether the raw numbers of an integer, bool or fixed-point type have a sign."""
    return t.is_fixed or t.name in ("i32", "i64")


def nonzero(source: Scalar) -> Llvm:
    """To bool: whether a raw number is not that of zero."""
    kind = register_type(source)
    if source.is_log:
        return lambda e, x: e.op(f"fcmp une double {x}, {double(float('-inf'))}")
    if source.is_float:
        return lambda e, x: e.op(f"fcmp une {kind} {x}, 0.0")
    return lambda e, x: e.op(f"icmp ne {kind} {x}, 0")


def resized(e: Emitter, x: str, source: Scalar, target: Scalar) -> str:
    """A raw integer (bool, fixed-point number) in the width of another type; it wraps."""
    a, b = register_type(source), register_type(target)
    if a == b:
        return x
    how = "trunc" if int(a[1:]) > int(b[1:]) else "sext" if is_signed(source) else "zext"
    return e.op(f"{how} {a} {x} to {b}")


def float_of(target: Scalar, source: Scalar) -> Llvm:
    """A raw number (bool, integer, fixed-point or float) as the nearest float.

    An integer is rounded once, and divided by a power of 2 then.
    """
    a, b = register_type(source), register_type(target)

    def write(e: Emitter, x: str) -> str:
        if source.is_float:
            return e.op(f"{'fpext' if b == 'double' else 'fptrunc'} {a} {x} to {b}")
        found = e.op(f"{'sitofp' if is_signed(source) else 'uitofp'} {a} {x} to {b}")
        if not source.is_fixed:
            return found
        return e.op(f"fmul {b} {found}, {double(2.0**-source.frac)}")

    return write


def _wide(e: Emitter, x: str, source: Scalar) -> str:
    return e.op(f"fpext float {x} to double") if source.name == "f32" else x


def _within(e: Emitter, x: str, least: str, low: float, high: float) -> None:
    """Give up unless low < x < high (`least`: by which comparison low is passed)."""
    above = e.op(f"fcmp {least} double {x}, {double(low)}")
    below = e.op(f"fcmp olt double {x}, {double(high)}")
    e.trouble(e.op(f"xor i1 {e.op(f'and i1 {above}, {below}')}, true"))


def integer_of_float(target: Scalar, source: Scalar, low: int, high: int) -> Llvm:
    """A float without its fraction."""
    kind = register_type(target)
    exact = float(low - 1) == low - 1

    def write(e: Emitter, x: str) -> str:
        x = _wide(e, x, source)
        # Below -2**63 comes no float that would be cut to it.
        _within(e, x, "ogt" if exact else "oge", float(low - 1 if exact else low), float(high + 1))
        # What does not fit gives no number at all, which must not be used: `freeze` makes it one.
        if target.name == "u64":
            return e.op(f"freeze i64 {e.op(f'fptoui double {x} to i64')}")
        wide = "i32" if target.name == "i32" else "i64"
        found = e.op(f"freeze {wide} {e.op(f'fptosi double {x} to {wide}')}")
        return found if wide == kind else e.op(f"trunc {wide} {found} to {kind}")

    return write


def fixed_of_float(source: Scalar, frac: int) -> Llvm:
    """A float as the nearest raw fixed-point number, ties to even."""

    def write(e: Emitter, x: str) -> str:
        scaled = e.op(f"fmul double {_wide(e, x, source)}, {double(float(1 << frac))}")
        _within(e, scaled, "oge", -(2.0**63), 2.0**63)
        whole = e.op(f"call double @llvm.rint.f64(double {scaled})")
        return e.op(f"freeze i64 {e.op(f'fptosi double {whole} to i64')}")

    return write


def integer_of_fixed(target: Scalar, source: Scalar, low: int, high: int) -> Llvm:
    """A fixed-point number without its fraction, rounded to zero."""
    frac = source.frac

    def write(e: Emitter, x: str) -> str:
        whole = x
        if frac:
            # What is added before numbers below zero are rounded down.
            below = e.op(f"lshr i64 {e.op(f'ashr i64 {x}, 63')}, {64 - frac}")
            # The sum passes no limit: it is only added to numbers below zero.
            whole = e.op(f"ashr i64 {e.op(f'add i64 {x}, {below}')}, {frac}")
        _between(e, whole, low, min(high, (1 << 63) - 1))
        return resized(e, whole, source, target)

    return write


def _between(e: Emitter, x: str, low: int, high: int) -> None:
    """Give up unless low <= x <= high, both of i64."""
    if low > -(1 << 63):
        e.trouble(e.op(f"icmp slt i64 {x}, {low}"))
    if high < (1 << 63) - 1:
        e.trouble(e.op(f"icmp sgt i64 {x}, {high}"))


def fixed_of_whole(target: Scalar, source: Scalar, low: int, high: int) -> Llvm:
    """A raw number with fewer fraction bits, within low and high, as one with more."""
    shift = target.frac - source.frac

    def write(e: Emitter, x: str) -> str:
        wide = resized(e, x, source, target)
        if source.name == "u64":
            e.trouble(e.op(f"icmp ugt i64 {wide}, {high}"))
        elif source.name in ("i64", "i32") or source.is_fixed:
            _between(e, wide, low, high)
        elif (1 << source.bits) - 1 > high:
            e.trouble(e.op(f"icmp ugt i64 {wide}, {high}"))
        return e.op(f"shl i64 {wide}, {shift}")

    return write


def rounded_shift(k: int) -> Llvm:
    """A raw fixed-point number divided by 2**k > 1, rounded to nearest, ties to even."""

    def write(e: Emitter, x: str) -> str:
        quotient = e.op(f"ashr i64 {x}, {k}")
        rest = e.op(f"and i64 {x}, {(1 << k) - 1}")
        half = 1 << k - 1
        odd = e.op(f"and i64 {quotient}, 1")
        # More than half, or half and odd.
        above = e.op(f"icmp ugt i64 {e.op(f'add i64 {rest}, {odd}')}, {half}")
        return e.op(f"add i64 {quotient}, {e.op(f'zext i1 {above} to i64')}")

    return write
