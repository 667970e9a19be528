"""A bar on a terminal that shows how many of a run's steps are done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from rvm.host.bar import LateBar

PAUSE = 0.1
"""Seconds between two looks at it."""

Watch = bool | Callable[[int, int | None], object] | None
"""True: a bar; a function of the steps done and those in all (None if that is not known); None:
a bar if standard error is a terminal."""


class Counter:
    """Counts steps as they are done, and reports ten times a second."""

    def __init__(self, total: int | None, tell: Callable[[int, int | None], object]) -> None:
        self.done = 0
        self.total = total
        self.tell = tell
        self._next = perf_counter() + PAUSE

    def counted(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """A step that is counted."""

        def call(*args: Any, **named: Any) -> Any:
            out = step(*args, **named)
            self.done += 1
            now = perf_counter()
            if now >= self._next:
                self._next = now + PAUSE
                self.tell(self.done, self.total)
            return out

        return call


@contextmanager
def watched(progress: Watch, total: int | None, what: str) -> Iterator[Counter | None]:
    """Within it, a counter for steps that shows how far a run is; None if no progress is shown."""
    if progress is None:
        progress = sys.stderr.isatty()
    if callable(progress):
        counter = Counter(total, progress)
        yield counter
        progress(counter.done, total)
    elif progress:
        bar = LateBar(what, total)

        def show(done: int, total: int | None) -> None:
            bar.show(done, f"{done:,} steps, {done / max(bar.passed, 1e-9):,.0f}/s")

        try:
            yield Counter(total, show)
        finally:
            bar.close()
    else:
        yield None
