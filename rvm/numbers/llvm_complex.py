"""LLVM code of complex numbers: the operations of CPython's `complex` and `cmath`, step by step."""

from __future__ import annotations

from rvm.numbers.llvm import Emitter

Pair = tuple[str, str]


def conjugate(e: Emitter, z: Pair) -> Pair:
    """The complex conjugate."""
    return z[0], e.op(f"fneg double {z[1]}")


def squared_modulus(e: Emitter, z: Pair) -> str:
    """re * re + im * im."""
    re, im = (e.op(f"fmul double {part}, {part}") for part in z)
    return e.op(f"fadd double {re}, {im}")


def angle(e: Emitter, z: Pair) -> str:
    """The angle of a complex number."""
    return e.pure("rvm_atan2", "double", ("double", z[1]), ("double", z[0]))
