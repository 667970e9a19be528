"""A progress bar on a terminal, for runs that take long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rvm.run.machine import Machine

PATIENCE = 0.7
"""Seconds before a bar appears."""


class LateBar:
    """A bar on standard error that appears when there is something to show after a while.

    `text` is the field of its row that says how it goes.
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
        """Take the bar away, until there is more to show."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


class RunBar(LateBar):
    """What a machine calls while it runs: shows its steps, and how fast they are made."""

    def __init__(self, start: int, total: int | None, what: str) -> None:
        super().__init__(what, total)
        self.start, self._since = start, perf_counter()

    def __call__(self, machine: Machine) -> None:
        done = abs(machine.time - self.start)
        speed = done / max(perf_counter() - self._since, 1e-9)
        self.show(done, f"{done:,} steps, {speed / 1e6:.2f} M/s")

    def aim(self, start: int, total: int | None) -> None:
        """Go on with another part of `total` ticks, which begins at time `start`."""
        self.start, self._since = start, perf_counter()
        self.reset(total)


@contextmanager
def watching(machine: Machine, total: int | None, what: str) -> Iterator[None]:
    """Show the machine's progress within, if standard error is a terminal.

    `total` is the number of ticks to come if it is known, `what` says which way the run goes.
    """
    if not sys.stderr.isatty():
        yield
        return
    bar = RunBar(machine.time, total, what)
    machine.on_progress = bar
    try:
        yield
    finally:
        machine.on_progress = None
        bar.close()


@contextmanager
def naming(what: str) -> Iterator[Callable[[str], None]]:
    """A function that takes what comes next, and shows it and how many came before."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    bar, done = LateBar(what, None), count()
    try:
        yield lambda text: bar.show(n := next(done), f"{text}, after {n:,}")
    finally:
        bar.close()
