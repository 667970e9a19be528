"""Numbers and arrays of zeros, as callers give them for results, and of other numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rvm.numbers import system
from rvm.types import Scalar
from rvm_pure.types import Arr, Type


def zeros(t: Type, lengths: Mapping[str, int]) -> Any:
    """Zeros of a type; None where a length is not known."""
    return filled(t, lengths, lambda elem: 0)


def filled(
    t: Type,
    lengths: Mapping[str, int],
    number: Callable[[Scalar], float],
    shape: tuple[int, ...] = (),
) -> Any:
    """A value of a type with one number for each number type; None where a length is not known."""
    if isinstance(t, Arr):
        n = t.length
        if n is None or (n.name and n.name not in lengths):
            return None
        k = (lengths[n.name] if n.name else 0) + n.more
        return filled(t.elem, lengths, number, (*shape, max(0, k)))
    assert isinstance(t, Scalar)
    made = np.full(shape, number(t), system(t).dtype)
    return made if shape else system(t).to_python(made.item())
