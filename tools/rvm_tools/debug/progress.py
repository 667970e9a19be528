"""The progress of a command on a terminal: a bar that appears when it takes long."""

from __future__ import annotations

from rvm.run.machine import Machine
from rvm_tools.debug.journeys import Onlooker
from rvm_tools.progress import RunBar


class ProgressBar(Onlooker):
    """A bar on standard error for each command that takes long; it goes when the command ends."""

    def __init__(self) -> None:
        self._command = ""
        self._bar: RunBar | None = None
        self._goal: int | None = None
        self._nested = 0

    def begins(self, command: str) -> None:
        self._nested += 1
        self._command = command

    def sets_out(self, machine: Machine, goal: int | None) -> None:
        if not self._nested:
            return
        total = None if goal is None else abs(goal - machine.time)
        if self._bar is None:
            self._bar = RunBar(machine.time, total, f"{self._command}  (Ctrl-C stops)")
        elif goal != self._goal:
            self._bar.aim(machine.time, total)
        self._goal = goal

    def moves(self, machine: Machine) -> None:
        if self._bar is not None:
            self._bar(machine)

    def says(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def ends(self) -> None:
        self._nested -= 1
        if self._bar is not None and not self._nested:
            self._bar.close()
            self._bar = None
