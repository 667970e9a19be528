"""Writing to places in registers, and the check that places do not overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rvm.engines.evaluate import Found, Regs, evaluate, find
from rvm.expr import Expr, Place
from rvm.faults import MachineError
from rvm.image import Clash
from rvm.ir.typed import element
from rvm.state import Frame
from rvm.verify.text import show


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


def check_clashes(clashes: Sequence[Clash], frame: Frame) -> None:
    """MachineError R004 if two places that must be apart share memory."""
    regs, function = frame.regs, frame.code.function
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
            f"`{show(a, function)}` and `{show(b, function)}` overlap",
            values={**_key("first", one), **_key("second", two)},
            hint="a place that is changed must not overlap anything else that the instruction uses",
        )


def _key(name: str, found: Found) -> dict[str, Any]:
    return {} if found.key is None else {f"{name} index": list(found.key)}


def _address(view: Any) -> int:
    return int(view.__array_interface__["data"][0])


def lengths(dims: Sequence[Expr | None], regs: Regs) -> tuple[int, ...]:
    """The lengths that a local array is declared with."""
    return tuple(evaluate(d, regs) for d in dims if d is not None)
