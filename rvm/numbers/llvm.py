"""What LLVM code of a function is written with: an emitter of instructions in SSA form.

A `Code`'s `llvm` is called with an emitter and the operands of its arguments, and returns the
operand of its result.  Operands are texts of LLVM's assembly language, without their types, which
the number system knows; those of complex numbers are pairs (real part, imaginary part).
"""

from __future__ import annotations

from typing import Protocol

from rvm.types import Scalar

Value = str | tuple[str, str]
"""An operand, or those of the two parts of a complex number."""

REGISTER_TYPES = {
    "bool": "i1",
    "i32": "i32",
    "i64": "i64",
    "u8": "i8",
    "u32": "i32",
    "u64": "i64",
    "f32": "float",
    "f64": "double",
    "fixed": "i64",
    "log64": "double",
    "c128": "double",
}
"""LLVM's type of an operand, by number type; a complex number has two."""


def register_type(t: Scalar) -> str:
    """LLVM's type of a value's operand (of each of the two, for a complex number)."""
    return REGISTER_TYPES[t.name]


def memory_type(t: Scalar) -> str:
    """LLVM's type of an element in memory; a complex number takes two in a row."""
    return "i8" if t.is_bool else register_type(t)


class Emitter(Protocol):
    """Appends instructions to the code that is being made."""

    def op(self, text: str) -> str:
        """Append an instruction that has a result, as `fadd double %a, %b`; the result's name."""

    def pure(self, symbol: str, result: str, *args: tuple[str, str]) -> str:
        """Call an outside function that has no effects.

        `symbol` is a key of `SYMBOLS`; `result` the type of what it returns, `args` pairs of a
        type and an operand.
        """

    def helper(self, name: str, result: str, *args: tuple[str, str]) -> str:
        """Call a function that the prelude defines (`rvm.numbers.llvm_prelude`)."""

    def trouble(self, condition: str) -> None:
        """Give the instruction up if an `i1` holds: the reference engine is to execute it."""
