"""The order of sums and products, one element at a time: what engines are compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def ordered(x: Sequence[Any], f: Callable[[Any, Any], Any], empty: Any) -> Any:
    """All elements combined: 64 partial results, then halves taken into halves."""
    parts = list(x[:64])
    for i in range(64, len(x)):
        parts[i % 64] = f(parts[i % 64], x[i])
    held, width = len(parts), 64
    while width > 1:
        width //= 2
        for j in range(max(0, held - width)):
            parts[j] = f(parts[j], parts[j + width])
        held = min(held, width)
    return parts[0] if parts else empty


def one_by_one(x: Sequence[Any], f: Callable[[Any, Any], Any], empty: Any) -> Any:
    """All elements combined from the first on."""
    if not len(x):
        return empty
    total = x[0]
    for v in x[1:]:
        total = f(total, v)
    return total
