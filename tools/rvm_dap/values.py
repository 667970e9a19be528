"""Values as an editor's tree: the object of a reference, and its children, in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rvm_tools.debug.texts import raw_text
from rvm_tools.show import number_text, seen, type_name

from rvm.program import Function, Record, Register
from rvm.types import Array, RegisterType, Scalar, Stack, elem_of

CHUNK = 1000
"""The number of elements sent at once to a client that cannot request parts."""


@dataclass(frozen=True, slots=True)
class Child:
    """One value: its name in its container, its text as an expression, and its value.

    `inner` is the node of its contents, if it has any.
    """

    name: str
    text: str
    value: str
    type: str = ""
    inner: Node | None = None
    settable: bool = True


@dataclass(frozen=True, slots=True)
class NamedValues:
    """Values by name: a frame's parameters or ancillas, or the fields of a record."""

    depth: int
    children: Callable[[bool], Sequence[Child]]
    """The value's text; the argument says whether integers are shown in base 16."""


@dataclass(frozen=True, slots=True)
class ArrayPart:
    """An array (from some leading indices on) or a stack, from one element to another."""

    depth: int
    text: str
    """The whole as an expression; empty for a computed value."""
    type: Array | Stack
    raw: Any
    indices: tuple[int, ...]
    low: int
    high: int

    def __len__(self) -> int:
        return self.high - self.low

    def part(self, start: int, count: int, hexadecimal: bool) -> Iterator[Child]:
        """Elements (rows, of a matrix), counted from the first of these."""
        low = self.low + max(start, 0)
        for k in range(low, min(low + count, self.high)):
            yield self._element(k, hexadecimal)

    def chunks(self) -> Iterator[Child]:
        """Parts of a long value, each shown on its own."""
        size = CHUNK
        while size * CHUNK < len(self):
            size *= CHUNK
        for low in range(self.low, self.high, size):
            high = min(low + size, self.high)
            inner = ArrayPart(self.depth, self.text, self.type, self.raw, self.indices, low, high)
            yield Child(f"[{low} … {high - 1}]", "", "…", "", inner, False)

    def _element(self, k: int, hexadecimal: bool) -> Child:
        at = (*self.indices, k)
        inside = ", ".join(map(str, at))
        elem, raw = elem_of(self.type), self.raw[k]
        text = f"{self.text}[{inside}]" if self.text else ""
        settable = bool(text) and isinstance(self.type, Array)
        if isinstance(raw, np.ndarray):
            row = Array(elem, raw.ndim)
            inner = ArrayPart(self.depth, self.text, row, raw, at, 0, len(raw))
            return Child(f"[{k}]", text, raw_text(row, raw), type_name(row, raw), inner, settable)
        value = _scalar_text(elem, raw, hexadecimal)
        return Child(f"[{k}]", text, value, str(elem), None, settable)


Node = NamedValues | ArrayPart


def _scalar_text(t: Scalar, raw: Any, hexadecimal: bool) -> str:
    """A number; integers in base 16 if that is wanted."""
    if hexadecimal and t.is_integer and not t.is_bool:
        return f"{int(raw):#x}"
    return number_text(t, raw)


def value_of_type(
    depth: int, name: str, text: str, t: RegisterType | None, raw: Any, hexadecimal: bool = False
) -> Child:
    """A register's or an expression's value."""
    if raw is not None and isinstance(t, (Array, Stack)):
        inner = ArrayPart(depth, text, t, raw, (), 0, len(raw))
        settable = bool(text) and isinstance(t, Array)
        return Child(name, text, raw_text(t, raw), type_name(t, raw), inner, settable)
    if raw is not None and isinstance(t, Scalar):
        return Child(name, text, _scalar_text(t, raw, hexadecimal), str(t), None, bool(text))
    return Child(name, text, raw_text(t, raw), str(t or ""), None, False)


def record_value(
    depth: int, name: str, text: str, function: Function, layout: Record, regs: Sequence[Any]
) -> Child:
    """A record: its fields are its children."""

    def fields(hexadecimal: bool) -> list[Child]:
        return [
            parameter(depth, field, f"{text}.{field}", function, inner, regs, hexadecimal)
            for field, inner in layout.fields
        ]

    shown = ", ".join(f"{c.name}: {c.value}" for c in fields(False))
    return Child(name, text, f"{{{shown}}}", layout.name, NamedValues(depth, fields), False)


def parameter(
    depth: int,
    name: str,
    text: str,
    function: Function,
    layout: int | Record,
    regs: Sequence[Any],
    hexadecimal: bool,
) -> Child:
    """A parameter, or a field of one."""
    if isinstance(layout, Record):
        return record_value(depth, name, text, function, layout, regs)
    return register_value(depth, name, text, function.registers[layout], regs[layout], hexadecimal)


def register_value(
    depth: int, name: str, text: str, register: Register, raw: Any, hexadecimal: bool
) -> Child:
    """A register's value; the arrays of a stack are not places, which could be named or set."""
    text = "" if register.shape else text
    return value_of_type(depth, name, text, *seen(register, raw), hexadecimal)
