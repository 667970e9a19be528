"""LLVM code of f64 and f32: IEEE 754, each operation rounded by itself.

There is no fault among floats, so nothing is given up.
"""

from __future__ import annotations

from rvm.leaf import Function
from rvm.numbers.llvm import Emitter, Llvm, chosen, instruction

ORDERED = {"<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "==": "oeq", "!=": "une"}
"""LLVM's names of the comparisons: with a NaN only `!=` holds."""


def float_comparisons(kind: str) -> dict[str, Llvm]:
    """The six comparisons on `double` or `float`."""
    return {s: instruction(f"fcmp {t} {kind}") for s, t in ORDERED.items()}


def native_llvm(kind: str) -> dict[str, Llvm]:
    """The functions that are instructions on `double` and on `float`."""
    suffix = {"double": "f64", "float": "f32"}[kind]

    def intrinsic(name: str) -> Llvm:
        return lambda e, x: e.op(f"call {kind} @llvm.{name}.{suffix}({kind} {x})")

    return {
        **float_comparisons(kind),
        **float_extremes(kind),
        "+": instruction(f"fadd {kind}"),
        "-": instruction(f"fsub {kind}"),
        "*": instruction(f"fmul {kind}"),
        "/": instruction(f"fdiv {kind}"),
        "neg": instruction(f"fneg {kind}"),
        "abs": intrinsic("fabs"),
        "sqrt": intrinsic("sqrt"),
        "floor": intrinsic("floor"),
        "square": lambda e, x: e.op(f"fmul {kind} {x}, {x}"),
        "sign": _sign(kind),
        "relu": lambda e, x: chosen(e, e.op(f"fcmp ole {kind} {x}, 0.0"), kind, "0.0", x),
    }


def float_extremes(kind: str) -> dict[str, Llvm]:
    """`min` and `max`: NaN if one is NaN, the first of equals."""

    def by(test: str) -> Llvm:
        def write(e: Emitter, a: str, b: str) -> str:
            first = e.op(f"fcmp {test} {kind} {a}, {b}")
            nan = e.op(f"fcmp uno {kind} {a}, {a}")
            return chosen(e, e.op(f"or i1 {first}, {nan}"), kind, a, b)

        return write

    return {"min": by("ole"), "max": by("oge")}


def _sign(kind: str) -> Llvm:
    def write(e: Emitter, x: str) -> str:
        # A zero of either sign gives 0, a NaN itself.
        rest = chosen(e, e.op(f"fcmp oeq {kind} {x}, 0.0"), kind, "0.0", x)
        below = chosen(e, e.op(f"fcmp olt {kind} {x}, 0.0"), kind, "-1.0", rest)
        return chosen(e, e.op(f"fcmp ogt {kind} {x}, 0.0"), kind, "1.0", below)

    return write


def _remainder(e: Emitter, a: str, b: str) -> tuple[str, str, str]:
    """C's remainder, that brought to the sign of b, and whether it was brought there."""
    rest = e.pure("rvm_fmod", "double", ("double", a), ("double", b))
    nonzero = e.op(f"fcmp une double {rest}, 0.0")
    unlike = e.op(
        f"xor i1 {e.op(f'fcmp olt double {b}, 0.0')}, {e.op(f'fcmp olt double {rest}, 0.0')}"
    )
    moved = e.op(f"and i1 {nonzero}, {unlike}")
    return rest, nonzero, moved


def modulo(e: Emitter, a: str, b: str) -> str:
    """`a % b` as Python has it; NaN where b is 0."""
    rest, nonzero, moved = _remainder(e, a, b)
    added = chosen(e, moved, "double", e.op(f"fadd double {rest}, {b}"), rest)
    zero = e.op(f"call double @llvm.copysign.f64(double 0.0, double {b})")
    return chosen(e, nonzero, "double", added, zero)


def floor_division(e: Emitter, a: str, b: str) -> str:
    """`a // b` as Python has it; a / b where b is 0."""
    rest, _, moved = _remainder(e, a, b)
    whole = e.op(f"fdiv double {e.op(f'fsub double {a}, {rest}')}, {b}")
    whole = chosen(e, moved, "double", e.op(f"fsub double {whole}, 1.0"), whole)
    # The quotient may miss the integer that it stands for by a rounding.
    floor = e.op(f"call double @llvm.floor.f64(double {whole})")
    above = e.op(f"fcmp ogt double {e.op(f'fsub double {whole}, {floor}')}, 0.5")
    floor = chosen(e, above, "double", e.op(f"fadd double {floor}, 1.0"), floor)
    ratio = e.op(f"fdiv double {a}, {b}")
    zero = e.op(f"call double @llvm.copysign.f64(double 0.0, double {ratio})")
    found = chosen(e, e.op(f"fcmp une double {whole}, 0.0"), "double", floor, zero)
    return chosen(e, e.op(f"fcmp oeq double {b}, 0.0"), "double", ratio, found)


def float_llvm() -> dict[str, Llvm]:
    """The functions of f64 numbers that have no text over leaf operations."""
    return {**native_llvm("double"), "%": modulo, "//": floor_division}


def integer_exponent(power: Function, is_single: bool) -> Llvm:
    """`x ** n` of a `double` or `float` with an i64 exponent."""

    def write(e: Emitter, x: str, n: str) -> str:
        base = e.op(f"fpext float {x} to double") if is_single else x
        found = e.written(power, (base, e.op(f"sitofp i64 {n} to double")))
        return e.op(f"fptrunc double {found} to float") if is_single else found

    return write


def through_double(llvm: Llvm) -> Llvm:
    """An f64 function on f32 operands, its result rounded."""

    def write(e: Emitter, *args: str) -> str:
        wide = [e.op(f"fpext float {x} to double") for x in args]
        return e.op(f"fptrunc double {llvm(e, *wide)} to float")

    return write
