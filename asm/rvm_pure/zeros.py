"""Values of zeros, as callers give them for results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rvm.numbers import system
from rvm_pure.types import Arr, Product, Type


def zeros(t: Type, lengths: Mapping[str, int], shape: tuple[int, ...] = ()) -> Any:
    """Zeros of a type; None where a length is not known."""
    if isinstance(t, Arr):
        n = t.length
        if n is None or (n.name and n.name not in lengths):
            return None
        k = (lengths[n.name] if n.name else 0) + n.more
        return zeros(t.elem, lengths, (*shape, max(0, k)))
    if isinstance(t, Product):
        parts = [zeros(item, lengths, shape) for item in t.items]
        if any(p is None for p in parts):
            return None
        return {f"p{k + 1}": p for k, p in enumerate(parts)}
    made = np.zeros(shape, system(t).dtype)
    return made if shape else made.item()
