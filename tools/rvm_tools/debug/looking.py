"""Values, frames and code as lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rvm_asm.printer import Names, Printer

from rvm.expr import Place
from rvm.program import Function
from rvm.types import Array, RegisterType, Scalar, Stack, elem_of
from rvm_tools.show import number_text

EDGE, LONG = 4, 12
MAX_MARKED = 10_000
"""The longest array whose changed elements are marked."""
PAGE = 20
"""Rows of an array that are shown at a time."""


def raw_text(t: RegisterType | None, raw: Any, width: int = 68) -> str:
    """A raw value of some type, long ones abbreviated."""
    if raw is None:
        return "(not live)"
    if t is None:
        return str(raw)
    elem = elem_of(t)
    if isinstance(t, Array):
        if not raw.size:
            return "[]"
        return np.array2string(
            raw,
            threshold=LONG,
            edgeitems=EDGE if raw.ndim == 1 else 2,
            separator=", ",
            max_line_width=width,
            formatter={"all": lambda v: number_text(elem, v)},
        )
    if isinstance(t, Stack):
        texts = [number_text(elem, v) for v in raw]
        if len(texts) > LONG:
            texts = [*texts[:EDGE], "...", *texts[-EDGE:]]
        return f"[{', '.join(texts)}]"
    return number_text(elem, raw)


def elements_changed(name: str, t: Scalar, a: Any, b: Any, width: int = 68) -> str:
    """`x  [2] 0 -> 7, [3] 0 -> 8`, as many as a line holds."""
    where = np.argwhere((a != b) & ~((a != a) & (b != b))).tolist()
    if len(where) == 1:
        at = tuple(where[0])
        return (
            f"{name}[{', '.join(map(str, at))}]  {number_text(t, a[at])} -> {number_text(t, b[at])}"
        )
    text = f"{name}  {len(where)} elements: "
    for k, index in enumerate(where):
        at = tuple(index)
        part = f"[{', '.join(map(str, at))}] {number_text(t, a[at])} -> {number_text(t, b[at])}"
        if len(text) + len(part) + 3 > width:
            return text + "…"
        text += (", " if k else "") + part
    return text


def place_text(place: Place, function: Function) -> str:
    """A place as the source writes it."""
    return Printer(function, Names(function)).place(place)


def type_name(t: RegisterType | None, raw: Any) -> str:
    """A type, an array's with its lengths."""
    if isinstance(t, Array) and isinstance(raw, np.ndarray):
        return f"{t.elem}[{', '.join(map(str, raw.shape))}]"
    return str(t)


def kept(regs: Sequence[Any]) -> list[Any]:
    """Copies of a frame's registers, long arrays aside (None), to find what changes."""
    out: list[Any] = []
    for v in regs:
        if isinstance(v, np.ndarray):
            out.append(v.copy() if v.size <= MAX_MARKED else None)
        elif isinstance(v, list):
            out.append(list(v) if len(v) <= MAX_MARKED else None)
        else:
            out.append(v)
    return out
