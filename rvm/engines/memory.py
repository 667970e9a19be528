"""Places in registers: finding, reading and writing them, written to be read.

Indices count from 0 and are checked; a slice must lie inside its dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rvm.expr import Expr, Index, Part, Peek, Place, Span
from rvm.faults import InvertibilityError, MachineError
from rvm.image import Clash
from rvm.ir.typed import element

Regs = Sequence[Any]


class Found:
    """A place that has been found: a whole register, an array view, or one element.

    `base` is the register's value or a view; `key` the element's index tuple, -1 for a stack's top,
    or None; `part` is "real" or "imag" where only that part of one complex number is meant.
    """

    __slots__ = ("base", "key", "part")

    def __init__(self, base: Any, key: Any, part: str | None) -> None:
        self.base = base
        self.key = key
        self.part = part

    def read(self) -> Any:
        """The raw value: a number, an array (not copied), or a stack's list."""
        value = self.base
        if self.key is not None:
            value = value[self.key] if isinstance(value, list) else value[self.key].item()
        return value if self.part is None else getattr(value, self.part)

    def bytes_view(self) -> Any:
        """An array that covers just the place's memory, for overlap tests."""
        view = self.base if self.key is None else self.base[(*self.key, ...)]
        return view if self.part is None else getattr(view, self.part)


def find(place: Place, regs: Regs) -> Found:
    """Follow a place's path; MachineError R003 where an index is out of bounds."""
    from rvm.engines.evaluate import evaluate

    base = regs[place.reg]
    key: Any = None
    part: str | None = None
    for step in place.path:
        if isinstance(step, Index):
            items = [
                _slice(i, base.shape[k], k, regs)
                if isinstance(i, Span)
                else _checked(evaluate(i, regs), base.shape[k], k)
                for k, i in enumerate(step.items)
            ]
            if len(items) == base.ndim and not any(isinstance(i, slice) for i in items):
                key = tuple(items)
            else:
                base = base[tuple(items)]
        elif isinstance(step, Part):
            name = {"re": "real", "im": "imag"}[step.name]
            if key is None and isinstance(base, np.ndarray):
                base = getattr(base, name)
            else:
                part = name
        elif isinstance(step, Peek):
            if step.name == "len":
                base = len(base)
            elif not base:
                raise InvertibilityError("R006", "the stack is empty")
            else:
                key = -1
        else:
            base = base.T
    return Found(base, key, part)


def _checked(i: Any, length: int, axis: int) -> Any:
    if not 0 <= i < length:
        raise MachineError(
            "R003",
            f"the index {i} is outside 0 … {length - 1}"
            if length
            else f"the index {i} on an axis of length 0",
            values={"index": i, "length": length, "axis": axis},
        )
    return i


def _slice(item: Span, length: int, axis: int, regs: Regs) -> Any:
    from rvm.engines.evaluate import evaluate

    lo = 0 if item.lo is None else evaluate(item.lo, regs)
    hi = length if item.hi is None else evaluate(item.hi, regs)
    if not 0 <= lo <= hi <= length:
        raise MachineError(
            "R003",
            f"the slice {lo}:{hi} does not lie inside a dimension of length {length}",
            values={"from": lo, "to": hi, "length": length, "axis": axis},
            hint="a slice a:b needs 0 <= a <= b <= length",
        )
    return slice(lo, hi)


def store(place: Place, regs: Any, value: Any) -> None:
    """Write a raw value to a place; an array is filled in place, never replaced."""
    found = find(place, regs)
    if found.part is not None:
        old = Found(found.base, found.key, None).read()
        re, im = (value, old.imag) if found.part == "real" else (old.real, value)
        value = complex(re, im)
    if found.key is not None:
        found.base[found.key] = value
    elif isinstance(found.base, np.ndarray):
        found.base[...] = value
    else:
        regs[place.reg] = value


def check_clashes(clashes: Sequence[Clash], regs: Regs) -> None:
    """MachineError R004 if two places that must be apart share memory."""
    for a, b, same_ok in clashes:
        if same_ok and None not in (element(a), element(b)):
            # Apart or the same, wherever they are.
            continue
        one, two = find(a, regs), find(b, regs)
        x, y = one.bytes_view(), two.bytes_view()
        if not isinstance(x, np.ndarray) or not np.shares_memory(x, y):
            continue
        if same_ok and x.shape == y.shape and x.strides == y.strides and _address(x) == _address(y):
            continue
        raise MachineError(
            "R004",
            "two places of the instruction overlap",
            values={**_key("first", one), **_key("second", two)},
            hint="what is changed must lie apart from everything else the instruction uses",
        )


def _key(name: str, found: Found) -> dict[str, Any]:
    return {} if found.key is None else {f"{name} index": list(found.key)}


def _address(view: Any) -> int:
    return int(view.__array_interface__["data"][0])


def lengths(dims: Sequence[Expr | None], regs: Regs) -> tuple[int, ...]:
    """The lengths that a local array is declared with."""
    from rvm.engines.evaluate import evaluate

    return tuple(evaluate(d, regs) for d in dims if d is not None)
