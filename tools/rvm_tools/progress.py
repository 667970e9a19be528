"""A progress bar on a terminal, for runs that take long."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rvm.run.machine import Machine

PATIENCE = 0.7
"""Seconds before a bar appears."""


class Bar:
    """What a machine calls while it runs; makes its bar when the run turns out to be long."""

    def __init__(self, start: int, total: int | None, what: str) -> None:
        self.start = start
        self.total = total
        self.what = what
        self._began = self._since = perf_counter()
        self._progress: Any = None
        self._task: Any = None

    def __call__(self, machine: Machine) -> None:
        if self._progress is None:
            if perf_counter() - self._began < PATIENCE:
                return
            self._begin()
        done = abs(machine.time - self.start)
        speed = done / max(perf_counter() - self._since, 1e-9)
        self._progress.update(
            self._task,
            completed=done,
            speed=f"{done:,} steps, {speed / 1e6:.2f} M/s",
        )

    def aim(self, start: int, total: int | None) -> None:
        """Go on with another part of `total` ticks, which begins at time `start`."""
        self.start, self.total, self._since = start, total, perf_counter()
        if self._progress is not None:
            self._progress.reset(self._task, total=total, speed="")

    def _begin(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[speed]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task(self.what, total=self.total, speed="")
        self._progress.start()

    def close(self) -> None:
        """Take the bar away, until the machine runs on."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


@contextmanager
def watching(machine: Machine, total: int | None, what: str) -> Iterator[None]:
    """Show the machine's progress within, if standard error is a terminal.

    `total` is the number of ticks to come if it is known, `what` says which way the run goes.
    """
    if not sys.stderr.isatty():
        yield
        return
    bar = Bar(machine.time, total, what)
    machine.on_progress = bar
    try:
        yield
    finally:
        machine.on_progress = None
        bar.close()
