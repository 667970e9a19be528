"""A bar on a terminal that shows how many of a run's steps are done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

PATIENCE = 0.7
"""Seconds before a bar appears."""
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


class ProgressBar:
    """A bar that appears when a run turns out to be long."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._began = perf_counter()
        self._progress: Any = None

    def __call__(self, done: int, total: int | None) -> None:
        now = perf_counter()
        if self._progress is None:
            if now - self._began < PATIENCE:
                return
            self._begin(total)
        speed = done / max(now - self._began, 1e-9)
        self._progress.update(self._task, completed=done, speed=f"{done:,} steps, {speed:,.0f}/s")

    def _begin(self, total: int | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task(self.what, total=total, speed="")
        self._progress.start()

    def close(self) -> None:
        """Take the bar off the screen."""
        if self._progress is not None:
            self._progress.stop()


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
        bar = ProgressBar(what)
        try:
            yield Counter(total, bar)
        finally:
            bar.close()
    else:
        yield None
