"""Showing values: as aligned lines for people, as JSON, as arrays for an `.npz` file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.numbers import system
from rvm.program import Function, Layout, Record, Register, stack_text
from rvm.run.results import Info
from rvm.types import Array, RegisterType, Scalar, Stack, elem_of
from rvm_tools.tables import aligned_blocks

_EDGE = 4
"""Elements shown at each end of a long row."""
_LONG = 40
"""Arrays with more elements than this are abbreviated."""


def leaves(function: Function, layout: Layout, name: str) -> Iterator[tuple[str, int]]:
    """The registers of a parameter with their names, fields as `p.vel`."""
    if isinstance(layout, Record):
        for field, inner in layout.fields:
            yield from leaves(function, inner, f"{name}.{field}")
    else:
        yield name, layout


def parameters(function: Function) -> list[tuple[str, int]]:
    """All parameters' registers with their names."""
    return [leaf for p in function.params for leaf in leaves(function, p.layout, p.name)]


def number_text(t: Scalar, raw: Any) -> str:
    """A number as a literal that is read back to the same bits."""
    if t.is_log:
        return f"{float(raw)!r}'log64"
    if t.is_complex:
        raw = complex(raw)
    return system(t).text(raw.item() if isinstance(raw, np.generic) else raw)


def literal_text(t: RegisterType, raw: Any) -> str:
    """A register's whole value as the command line reads it."""
    elem = elem_of(t)
    if isinstance(t, Scalar):
        return number_text(elem, raw)

    def row(values: Any) -> str:
        if isinstance(values, list):
            return "[" + ",".join(map(row, values)) + "]"
        return number_text(elem, values)

    return row(raw.tolist() if isinstance(raw, np.ndarray) else list(raw))


def lines(
    function: Function, regs: Sequence[Any], slots: Sequence[tuple[str, int]], width: int = 100
) -> list[str]:
    """A line (or more, for a matrix) for each register: name, type, value, in columns."""
    rows = [
        (name, register_name(function.registers[slot], regs[slot]), slot) for name, slot in slots
    ]
    if not rows:
        return ["  (no parameters)"]
    names = max(len(name) for name, _, _ in rows)
    types = max(len(t) for _, t, _ in rows)
    room = max(width - names - types - 6, 30)
    shown = [
        ([name], [t], value_text(*seen(function.registers[k], regs[k]), room).split("\n"))
        for name, t, k in rows
    ]
    return [f"  {line}" for line in aligned_blocks(shown)]


def seen(register: Register, raw: Any) -> tuple[RegisterType, Any]:
    """A register's type and value as people see them: a stack of arrays as an array of these."""
    t, shape = register.type, register.shape
    if raw is None or not shape or len(raw) % prod(shape):
        return t, raw
    rows = np.array(raw, system(elem_of(t)).dtype).reshape(len(raw) // prod(shape), *shape)
    return Array(elem_of(t), rows.ndim), rows


def register_name(register: Register, raw: Any) -> str:
    """A register's type, an array's with its lengths."""
    if register.shape:
        return stack_text(elem_of(register.type), register.shape)
    return type_name(register.type, raw)


def type_name(t: RegisterType | None, raw: Any) -> str:
    """A type, an array's with its lengths."""
    if isinstance(t, Array) and isinstance(raw, np.ndarray):
        return f"{t.elem}[{', '.join(map(str, raw.shape))}]"
    return str(t)


def value_text(
    t: RegisterType, raw: Any, width: int = 80, *, long: int = _LONG, rows: int = 3
) -> str:
    """A register's value; arrays and stacks of more than `long` numbers are abbreviated.

    `rows` are shown at each end of a matrix.
    """
    if raw is None:
        return "-"
    elem = elem_of(t)

    def number(v: Any) -> str:
        return number_text(elem, v)

    if isinstance(t, Array):
        return array_text(raw, number, width, long, _EDGE if raw.ndim == 1 else rows)
    if isinstance(t, Stack):
        if len(raw) > long:
            texts = [*map(number, raw[:_EDGE]), "...", *map(number, raw[-_EDGE:])]
        else:
            texts = [number(v) for v in raw]
        return f"[{', '.join(texts)}]"
    return number(raw)


def array_text(
    array: NDArray[Any], number: Callable[[Any], str], width: int, long: int, edge: int
) -> str:
    """An array in lines of a width; one of more than `long` elements by those at its edges."""
    if not array.size:
        return "[]"
    return np.array2string(
        array,
        threshold=long,
        edgeitems=edge,
        separator=", ",
        max_line_width=width,
        formatter={"all": number},
    )


# ---------------------------------------------------------------- JSON and arrays


def as_json(function: Function, regs: Sequence[Any]) -> dict[str, Any]:
    """The parameters by name as JSON values; numbers that JSON lacks are string literals."""
    return {p.name: _layout_json(function, p.layout, regs) for p in function.params}


def _layout_json(function: Function, layout: Layout, regs: Sequence[Any]) -> Any:
    if isinstance(layout, Record):
        return {f: _layout_json(function, inner, regs) for f, inner in layout.fields}
    t, raw = seen(function.registers[layout], regs[layout])
    elem = elem_of(t)
    if raw is not None and isinstance(t, (Array, Stack)):
        values = raw.tolist() if isinstance(t, Array) else raw
        return values if elem.is_bool or elem.is_integer else _nested(elem, values)
    return None if raw is None else _number_json(elem, raw)


def _nested(t: Scalar, value: Any) -> Any:
    return [_nested(t, v) for v in value] if isinstance(value, list) else _number_json(t, value)


def _number_json(t: Scalar, raw: Any) -> Any:
    """A number of JSON where that keeps every bit, else a literal in a string."""
    if t.is_bool or t.is_integer:
        return raw
    if t.is_float and math.isfinite(raw):
        return float(number_text(t, raw))
    return number_text(t, raw)


def info_json(info: Info) -> dict[str, Any]:
    """The info of a run."""
    return {"erased_bits": info.erased_bits, "drift": info.drift, "bits": info.bits}


def arrays(function: Function, regs: Sequence[Any]) -> dict[str, Any]:
    """The parameters as arrays of their storage, fields under dotted names, for `numpy.savez`."""
    return {
        name: np.asarray(regs[slot], system(elem_of(function.registers[slot].type)).dtype)
        for name, slot in parameters(function)
        if regs[slot] is not None
    }
