"""Values, frames and code as lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rvm_asm.printer import RegisterNames, SourcePrinter

from rvm.expr import Place
from rvm.image.traps import same
from rvm.program import Function
from rvm.types import RegisterType, Scalar
from rvm_tools.show import number_text, value_text

LONG = 12
"""Arrays of more elements are abbreviated."""
MAX_MARKED = 10_000
"""The longest array whose changed elements are marked."""
PAGE = 20
"""Rows of an array that are shown at a time."""


def raw_text(t: RegisterType | None, raw: Any, width: int = 68) -> str:
    """A raw value of some type, long ones abbreviated."""
    if raw is None:
        return "(not live)"
    return str(raw) if t is None else value_text(t, raw, width, long=LONG, rows=2)


def differs(a: Any, b: Any) -> bool:
    """Whether a kept value differs from the present one; too long values are not kept."""
    if a is None and isinstance(b, (np.ndarray, list)):
        return len(b) <= MAX_MARKED if isinstance(b, list) else b.size <= MAX_MARKED
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape != b.shape or not same(a, b)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return True
    return not same(a, b)


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
    return SourcePrinter(function, RegisterNames(function)).place(place)


def kept(regs: Sequence[Any]) -> list[Any]:
    """Copies of a frame's registers, except long arrays (None), to find changes."""
    out: list[Any] = []
    for v in regs:
        if isinstance(v, np.ndarray):
            out.append(v.copy() if v.size <= MAX_MARKED else None)
        elif isinstance(v, list):
            out.append(list(v) if len(v) <= MAX_MARKED else None)
        else:
            out.append(v)
    return out
