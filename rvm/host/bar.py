"""A bar on standard error that appears when something takes long."""

from __future__ import annotations

from time import perf_counter
from typing import Any

PATIENCE = 0.7
"""Seconds before a bar appears."""


class LateBar:
    """A progress bar on standard error that appears only after a while, and if needed.

    `text` is the field of its row for the status.
    """

    def __init__(self, what: str, total: float | None) -> None:
        self._what, self._total = what, total
        self._began = perf_counter()
        self._progress: Any = None
        self._task: Any = None

    @property
    def passed(self) -> float:
        """Seconds since the beginning."""
        return perf_counter() - self._began

    def show(self, done: float, text: str) -> None:
        """Show how much is done, unless it is too early."""
        if self._progress is None:
            if self.passed < PATIENCE:
                return
            self._begin()
        self._progress.update(self._task, completed=done, text=text)

    def reset(self, total: float | None) -> None:
        """Begin again from nothing."""
        self._total = total
        if self._progress is not None:
            self._progress.reset(self._task, total=total, text="")

    def _begin(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[text]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task(self._what, total=self._total, text="")
        self._progress.start()

    def close(self) -> None:
        """Remove the bar until there is more to show."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
