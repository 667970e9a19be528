"""How much work something is, as far as no other program on the computer changes it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any


def calls(work: Callable[[], Any]) -> int:
    """How many functions are called, those in C included, and entered or left otherwise."""
    count = 0

    def called(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += 1

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def processor_time(work: Callable[[], Any]) -> float:
    """The seconds that this thread computes, the least of three times."""

    def once() -> float:
        began = time.thread_time()
        work()
        return time.thread_time() - began

    return min(once() for _ in range(3))
