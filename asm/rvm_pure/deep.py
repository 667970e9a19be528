"""A larger recursion limit for passes over terms; Python's own is meant for endless recursion."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
_FRAMES = 12_000


def deep(f: Callable[P, R]) -> Callable[P, R]:
    """A function with as many frames as terms of the size that is read take."""

    @wraps(f)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        before = sys.getrecursionlimit()
        if before >= _FRAMES:
            return f(*args, **kwargs)
        sys.setrecursionlimit(_FRAMES)
        try:
            return f(*args, **kwargs)
        finally:
            sys.setrecursionlimit(before)

    return inner
