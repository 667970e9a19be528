"""The text of one LLVM function as it grows: blocks, names, constants, ways out.

It is what number systems write their code with (`rvm.numbers.llvm.Emitter`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from rvm.leaf import Function
from rvm.leaf.llvm import symbol
from rvm.leaf.ops import LLVM_TYPES
from rvm.numbers.llvm import SYMBOLS, Value, register_type
from rvm.types import Scalar

COLD = "!prof !1"
"""Branches that are hardly ever taken: the first target is the unlikely one."""


def double_bits(x: float) -> str:
    """An f64 constant as LLVM writes it, to the bit."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


def constant(value: Any, t: Scalar) -> Value:
    """The operand of a raw value."""
    if t.is_bool:
        return "true" if value else "false"
    if t.is_complex:
        return double_bits(value.real), double_bits(value.imag)
    if t.row.dtype[0] == "f":
        # LLVM writes a float constant as the double of the same value.
        return double_bits(value)
    bits = t.bits
    wrapped = value % (1 << bits)
    return str(wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped)


class Writer:
    """Instructions in order, cut into blocks.

    `symbols` and `helpers` collect what the text needs from outside: the C library's functions,
    and those of the prelude.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.entry: list[str] = []
        """Instructions of the entry block: room for variables."""
        self.symbols: dict[str, str] = {}
        """Declarations of outside functions, by symbol."""
        self.helpers: set[str] = set()
        self.block = "entry"
        """The label of the block that is being written."""
        self._names = 0
        self._leave: Callable[[], str] | None = None

    # ------------------------------------------------------------ names and blocks

    def fresh(self, stem: str = "t") -> str:
        """A name that is not used yet."""
        self._names += 1
        return f"{stem}{self._names}"

    def line(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append("  " + text)

    def label(self, name: str) -> None:
        """Begin a block; the one before must have ended in a jump."""
        self.lines.append(f"{name}:")
        self.block = name

    def jump(self, target: str) -> None:
        """End the block by going on in another."""
        self.line(f"br label %{target}")

    def fork(self, condition: str, yes: str, no: str, hint: str = "") -> None:
        """End the block by going to one of two others."""
        self.line(f"br i1 {condition}, label %{yes}, label %{no}{', ' + hint if hint else ''}")

    def variable(self, t: str, stem: str = "v") -> str:
        """Room for a value of an LLVM type in the function's frame; LLVM makes a register of it."""
        name = "%" + self.fresh(stem)
        self.entry.append(f"  {name} = alloca {t}")
        return name

    def load(self, t: str, pointer: str, note: str = "") -> str:
        """The value behind a pointer."""
        return self.op(f"load {t}, ptr {pointer}{note}")

    def store(self, t: str, value: str, pointer: str, note: str = "") -> None:
        """Put a value behind a pointer."""
        self.line(f"store {t} {value}, ptr {pointer}{note}")

    # ------------------------------------------------------------ what number systems use

    def op(self, text: str) -> str:
        """Append an instruction that has a result; the result's name."""
        name = "%" + self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def pure(self, symbol: str, result: str, *args: tuple[str, str]) -> str:
        """Call a function of the C library that has no effects."""
        if symbol not in SYMBOLS:
            raise KeyError(symbol)
        types = ", ".join(t for t, _ in args)
        self.symbols[symbol] = f"declare {result} @{symbol}({types}) #0"
        return self.op(f"call {result} @{symbol}({_arguments(args)})")

    def helper(self, name: str, result: str, *args: tuple[str, str]) -> str:
        """Call a function of the prelude."""
        self.helpers.add(name)
        return self.op(f"call {result} @{name}({_arguments(args)})")

    def written(self, function: Function, args: tuple[str, ...]) -> str:
        """Call a function over leaf operations, which the prelude defines."""
        typed = ((LLVM_TYPES[p.kind], a) for p, a in zip(function.params, args, strict=True))
        return self.helper(symbol(function), LLVM_TYPES[function.result.kind], *typed)

    def trouble(self, condition: str) -> None:
        """Leave the function at the present instruction if an `i1` holds."""
        if condition == "false":
            return
        assert self._leave is not None, "no instruction is being written"
        going = self.fresh("c")
        self.fork(condition, self._leave(), going, COLD)
        self.label(going)

    def leaving(self, way: Callable[[], str] | None) -> None:
        """What `trouble` jumps to from now on: gives a label, made when it is first asked for."""
        self._leave = way

    # ------------------------------------------------------------ shorthands

    def compare(self, how: str, t: str, a: str, b: str) -> str:
        """An integer comparison."""
        return self.op(f"icmp {how} {t} {a}, {b}")

    def choose(self, condition: str, t: str, a: str, b: str) -> str:
        """One of two values, both computed."""
        return self.op(f"select i1 {condition}, {t} {a}, {t} {b}")


def _arguments(args: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{t} {v}" for t, v in args)


def operands(t: Scalar, value: Value) -> list[tuple[str, str]]:
    """A value's LLVM types and operands: one pair, or two for a complex number."""
    kind = register_type(t)
    return [(kind, v) for v in (value if isinstance(value, tuple) else (value,))]
