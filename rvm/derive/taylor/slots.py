"""Where the numbers of places stand among the slots of a field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from rvm.engines.evaluate import evaluate
from rvm.expr import Expr, Index, Part, Place, Span, Transposed
from rvm.isa.derivatives import adjoint_type
from rvm.types import RegisterType, ValueType, elem_of

Regs = Sequence[Any]
SlotList = Sequence[Any]
"""For each register its slots: an int, an array of ints, a list for a stack; None without any."""


def carries_slots(t: RegisterType | None) -> bool:
    """Whether a register or place of this type holds numbers with derivatives."""
    assert t is not None
    return adjoint_type(elem_of(t)) is not None


def is_wide(place: Place) -> bool:
    """Whether a place holds complex numbers, of two slots each."""
    return elem_of(cast(ValueType, place.type)).is_complex


def locate(place: Place, regs: Regs, slots: SlotList) -> Any:
    """The slots of a place: an int, an array in the place's shape, or a stack's own list."""
    base = slots[place.reg]
    part = 0
    for step in place.path:
        if isinstance(step, Index):
            base = base[tuple(_item(i, regs) for i in step.items)]
        elif isinstance(step, Part):
            part = step.name == "im"
        elif isinstance(step, Transposed):
            base = base.T
    if part:
        base = base + 1
    return base if isinstance(base, (np.ndarray, list)) else int(base)


def _item(item: Expr | Span, regs: Regs) -> Any:
    if isinstance(item, Span):
        return slice(
            None if item.lo is None else evaluate(item.lo, regs),
            None if item.hi is None else evaluate(item.hi, regs),
        )
    return evaluate(item, regs)
