"""A larger recursion limit for passes over terms; Python's own is meant for endless recursion."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from rvm.faults import AssemblyError, Diagnostic

P = ParamSpec("P")
R = TypeVar("R")
_FRAMES = 12_000


def deep(f: Callable[P, R]) -> Callable[P, R]:
    """A function with as many frames as terms of the size that is read take.

    AssemblyError A046 where even these are not enough.
    """

    @wraps(f)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        before = sys.getrecursionlimit()
        if before >= _FRAMES:
            return f(*args, **kwargs)
        sys.setrecursionlimit(_FRAMES)
        try:
            return f(*args, **kwargs)
        except RecursionError:
            raise too_long() from None
        finally:
            sys.setrecursionlimit(before)

    return inner


def too_long() -> AssemblyError:
    """The error A046 for a definition that takes too much time or memory to be transformed."""
    what = "the definition is too long, or nests too deeply, to be transformed"
    hint = "`loop` repeats what is the same; parts may be definitions of their own"
    return AssemblyError([Diagnostic("A046", what, hint=hint)])
