"""The system requirements of machine code: llvmlite, and the process's C library."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.util import find_spec
from typing import Any

from rvm.faults import UsageError


@cache
def library() -> Any:
    """The functions of this process, the C library's among them; UsageError U002 without it."""
    problem = why_not()
    if problem is not None:
        raise problem
    return _process()


class Llvm:
    """What is known of llvmlite in this process; it is only loaded when code is compiled."""

    works = False
    """Whether machine code has been made ready."""
    error: UsageError | None = None
    """The reason why llvmlite could not be loaded."""


def why_not() -> UsageError | None:
    """The error that prevents the engine `native` from running here; None if none is known."""
    return Llvm.error or _lack()


@cache
def _lack() -> UsageError | None:
    if find_spec("llvmlite") is None:
        return UsageError(
            "U002",
            "the engine `native` needs llvmlite, which is not installed",
            hint="pip install llvmlite; or use another engine",
        )
    if _process() is None:
        return UsageError(
            "U002",
            "the engine `native` is for Linux and macOS: this system's Python cannot call the C "
            "library of its own process",
            hint="use another engine; `auto` does",
        )
    return None


@cache
def _process() -> Any:
    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):
        # Windows has no library that stands for the process.
        return None
