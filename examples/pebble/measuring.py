"""What the examples here share: a run's time and memory, bytes as people read them, tables.

Tables and pictures are made by what the gradients' examples have for that.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

HERE = Path(__file__).parent
EXAMPLES = HERE.parent
PICTURES = EXAMPLES.parent / "docs" / "pictures"
if str(EXAMPLES / "gradients") not in sys.path:
    sys.path.append(str(EXAMPLES / "gradients"))

import svg  # noqa: E402
from common import adam, error, table  # noqa: E402

__all__ = ["EXAMPLES", "PICTURES", "Measured", "adam", "error", "measured", "size", "svg", "table"]

PAGE = 4096
PAUSE = 0.002
"""Seconds between two looks at the memory."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run gave, and what it took."""

    result: Any
    seconds: float
    memory: int | None
    """The most bytes that the process had beyond those before; None where nobody tells."""


def resident() -> int | None:
    """The bytes of memory that the process has, as the system counts them."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE
    except OSError:
        return None


def measured(run: Callable[[], Any]) -> Measured:
    """A run with its seconds and its memory, at which another thread looks meanwhile."""
    before = resident()
    most, over = before or 0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not over.is_set():
            most = max(most, resident() or 0)
            sleep(PAUSE)

    watcher = threading.Thread(target=watch, daemon=True)
    if before is not None:
        watcher.start()
    began = perf_counter()
    try:
        result = run()
        seconds = perf_counter() - began
    finally:
        over.set()
    return Measured(result, seconds, None if before is None else most - before)


def size(count: float | None) -> str:
    """Bytes in three digits: 1.25 MB."""
    if count is None:
        return "-"
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5 or unit == "GB":
            break
        count /= 1000
    return f"{count:.3g} {unit}"
