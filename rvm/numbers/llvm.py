"""What LLVM code of a function is written with: an emitter of instructions in SSA form.

A `Code`'s `llvm` is called with an emitter and the operands of its arguments, and returns the
operand of its result.  Operands are texts of LLVM's assembly language, without their types, which
the number system knows; those of complex numbers are pairs (real part, imaginary part).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Protocol

from rvm.leaf import Function
from rvm.leaf.llvm import double as double
from rvm.leaf.ops import whole as whole
from rvm.types import Scalar

Llvm = Callable[..., Any]
"""What writes a function: called with an emitter and operands, it gives the result's operand."""

Value = str | tuple[str, str]
"""An operand, or those of the two parts of a complex number."""

SYMBOLS = {
    f"rvm_{f}": f
    for f in (
        *("exp", "log", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asinh"),
        *("pow", "atan2", "hypot", "fmod"),
    )
}
"""The C library's functions that complex numbers and `%` need, by names that LLVM does not know.

It would take those that it knows for others, `pow(x, 2.0)` for a product.
"""

BINARY_SYMBOLS = frozenset(["rvm_pow", "rvm_atan2", "rvm_hypot", "rvm_fmod"])
"""Those of two arguments; the others take one."""


def declaration(symbol: str) -> str:
    """LLVM's declaration of a key of `SYMBOLS`."""
    more = ", double" * (symbol in BINARY_SYMBOLS)
    return f"declare double @{symbol}(double{more}) nounwind willreturn memory(none)"


def number(operand: str) -> float | None:
    """The number of an operand that is a constant of type double; None of others."""
    if operand.startswith("0x"):
        found: float = struct.unpack("<d", struct.pack("<Q", int(operand, 16)))[0]
        return found
    return None if operand.startswith("%") else float(operand)


def register_type(t: Scalar) -> str:
    """LLVM's type of a value's operand (of each of the two, for a complex number)."""
    return t.row.llvm


class Emitter(Protocol):
    """Appends instructions to the code that is being made."""

    def op(self, text: str) -> str:
        """Append an instruction that has a result, as `fadd double %a, %b`; the result's name.

        Calls of LLVM's own functions (`llvm.…`) need no declaration.
        """

    def pure(self, symbol: str, result: str, *args: tuple[str, str]) -> str:
        """Call an outside function that has no effects.

        `symbol` is a key of `SYMBOLS`; `result` the type of what it returns, `args` pairs of a
        type and an operand.
        """

    def helper(self, name: str, result: str, *args: tuple[str, str]) -> str:
        """Call a function that the prelude defines (`rvm.numbers.llvm_prelude`)."""

    def written(self, function: Function, args: tuple[str, ...]) -> str:
        """Evaluate a function over leaf operations."""

    def trouble(self, condition: str) -> None:
        """Give the instruction up if an `i1` holds: the reference engine is to execute it."""


def same(emitter: Emitter, x: Any) -> Any:
    """The argument itself."""
    return x


def written(function: Function) -> Llvm:
    """A function by its text."""
    return lambda emitter, *args: emitter.written(function, args)


def chosen(emitter: Emitter, condition: str, kind: str, a: str, b: str) -> str:
    """`a` where an `i1` holds, else `b`."""
    return emitter.op(f"select i1 {condition}, {kind} {a}, {kind} {b}")


def selection(t: Scalar) -> Llvm:
    """`select(c, a, b)` of two values of a type."""
    kind = register_type(t)
    if not t.is_complex:
        return lambda emitter, c, a, b: chosen(emitter, c, kind, a, b)
    return lambda emitter, c, a, b: tuple(
        chosen(emitter, c, kind, x, y) for x, y in zip(a, b, strict=True)
    )


def raised(x: Any, n: int, times: Callable[[Any, Any], Any], one: Any = None) -> Any:
    """The power n > 0 by squaring, with the products in the order of a loop over n's bits.

    The loop starts from `one`; without it the product by 1 is left out.
    """
    result = one
    while True:
        if n & 1:
            result = x if result is None else times(result, x)
        n >>= 1
        if not n:
            return result
        x = times(x, x)


def chain(first: Llvm | None, second: Llvm | None) -> Llvm | None:
    """A function of one argument after another function; None if one of them is."""
    if first is None or second is None:
        return None
    f, g = first, second
    return lambda emitter, *args: g(emitter, f(emitter, *args))
