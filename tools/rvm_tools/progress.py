"""A progress bar on a terminal, for runs that take long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING

from rvm.host.bar import LateBar

if TYPE_CHECKING:
    from rvm.run.machine import Machine


class RunBar(LateBar):
    """A callback of a running machine that shows its steps, and their rate."""

    def __init__(self, start: int, total: int | None, what: str) -> None:
        super().__init__(what, total)
        self.start, self._since = start, perf_counter()

    def __call__(self, machine: Machine) -> None:
        done = abs(machine.time - self.start)
        speed = done / max(perf_counter() - self._since, 1e-9)
        self.show(done, f"{done:,} steps, {speed / 1e6:.2f} M/s")

    def aim(self, start: int, total: int | None) -> None:
        """Continue with another part of `total` ticks, which begins at time `start`."""
        self.start, self._since = start, perf_counter()
        self.reset(total)


@contextmanager
def watching(machine: Machine, total: int | None, what: str) -> Iterator[None]:
    """Show the machine's progress during the context, if standard error is a terminal.

    `total` is the number of ticks to come if known, `what` names the run's direction.
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
    """A function that shows the name of the next item, and the number of items before it."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    bar, done = LateBar(what, None), count()
    try:
        yield lambda text: bar.show(n := next(done), f"{text}, after {n:,}")
    finally:
        bar.close()
