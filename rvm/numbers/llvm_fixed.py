"""LLVM code of fixed-point numbers with a given count of fraction bits."""

from __future__ import annotations

from rvm.numbers.llvm import Emitter, Llvm, chosen, double, instruction, raised, whole
from rvm.numbers.llvm_conversions import fixed_of_float
from rvm.numbers.llvm_integers import (
    extremes,
    integer_comparisons,
    magnitude,
    relu,
    sign,
    signed_division,
)
from rvm.types import F64

MOST_UNROLLED = 16
"""The greatest constant exponent whose products are written out."""


def fixed_llvm(frac: int) -> dict[str, Llvm]:
    """The functions that are not computed by way of f64."""
    compare = integer_comparisons("i64", signed=True)
    division = signed_division("i64")
    product = _product(frac)

    def floor(e: Emitter, x: str) -> str:
        return e.op(f"shl i64 {e.op(f'ashr i64 {x}, {frac}')}, {frac}")

    def floordiv(e: Emitter, a: str, b: str) -> str:
        return e.op(f"shl i64 {division['//'](e, a, b)}, {frac}")

    return {
        **compare,
        **extremes("i64", compare),
        "+": instruction("add i64"),
        "-": instruction("sub i64"),
        "*": product,
        "/": lambda e, a, b: quotient(e, a, b, frac),
        "//": floordiv,
        "%": division["%"],
        "neg": instruction("sub i64 0,"),
        "abs": magnitude("i64"),
        "sign": sign("i64", str(1 << frac), str(-(1 << frac))),
        "square": lambda e, x: product(e, x, x),
        "relu": relu("i64"),
        "floor": floor,
    }


def _product(frac: int) -> Llvm:
    """The product in 128 bits, rounded to nearest, ties to even."""

    def write(e: Emitter, a: str, b: str) -> str:
        if not frac:
            return e.op(f"mul i64 {a}, {b}")
        wide = [e.op(f"sext i64 {x} to i128") for x in (a, b)]
        p = e.op(f"mul i128 {', '.join(wide)}")
        odd = e.op(f"and i128 {e.op(f'lshr i128 {p}, {frac}')}, 1")
        under = e.op(f"add i128 {p}, {(1 << frac - 1) - 1}")
        rounded = e.op(f"lshr i128 {e.op(f'add i128 {under}, {odd}')}, {frac}")
        return e.op(f"trunc i128 {rounded} to i64")

    return write


def quotient(e: Emitter, a: str, b: str, frac: int) -> str:
    """The quotient, rounded to nearest, ties to even; given up where b is 0."""
    if not whole(b):
        zero = e.op(f"icmp eq i64 {b}, 0")
        e.trouble(zero)
        b = chosen(e, zero, "i64", "1", b)
    return e.helper("rvm_fixed_div", "i64", ("i64", a), ("i64", b), ("i64", str(frac)))


def fixed_power_llvm(frac: int) -> Llvm:
    """`x ** n` with an integer exponent; to a negative one, 1 is divided by the power."""

    product = _product(frac)

    def write(e: Emitter, x: str, n: str) -> str:
        constant = whole(n)
        if constant is not None and 0 < abs(constant) <= MOST_UNROLLED:
            found = str(raised(x, abs(constant), lambda a, b: product(e, a, b)))
            return found if constant > 0 else quotient(e, str(1 << frac), found, frac)
        size = e.op(f"call i64 @llvm.abs.i64(i64 {n}, i1 false)")
        power = e.helper("rvm_fixed_power", "i64", ("i64", x), ("i64", size), ("i64", str(frac)))
        below = e.op(f"icmp slt i64 {n}, 0")
        inverse = quotient(e, str(1 << frac), chosen(e, below, "i64", power, "1"), frac)
        return chosen(e, below, "i64", inverse, power)

    return write


def through_float_llvm(llvm: Llvm, frac: int) -> Llvm:
    """An f64 function on fixed-point numbers, rounded; given up where the result does not fit."""
    rounded = fixed_of_float(F64, frac)

    def write(e: Emitter, *raws: str) -> str:
        wide = (e.op(f"sitofp i64 {x} to double") for x in raws)
        numbers = [e.op(f"fmul double {x}, {double(2.0**-frac)}") for x in wide]
        return str(rounded(e, llvm(e, *numbers)))

    return write
