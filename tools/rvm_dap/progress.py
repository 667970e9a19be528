"""Progress of journeys, for clients that can show and cancel it."""

from __future__ import annotations

from time import monotonic
from typing import Any

from rvm_tools.debug.journeys import Onlooker

from rvm.run.machine import Machine
from rvm_dap.protocol import Channel

PATIENCE = 0.7
"""Seconds before a client is informed that something takes long."""
INTERVAL = 0.25
"""Seconds between two messages about it."""


class ProgressEvents(Onlooker):
    """Events of progress, one sequence for each command that takes long."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._count = 0
        self._title, self._nested = "", 0
        self._told = False
        self._when = self._began = 0.0
        self._start, self._time = 0, 0
        self._goal: int | None = None

    @property
    def id(self) -> str:
        """The present sequence."""
        return f"journey-{self._count}"

    def begins(self, command: str) -> None:
        self._nested += 1
        if self._nested == 1:
            self._title, self._began = command, monotonic()
            self._count += 1

    def sets_out(self, machine: Machine, goal: int | None) -> None:
        self._start, self._goal = machine.time, goal

    def moves(self, machine: Machine) -> None:
        now = monotonic()
        if not self._nested or now - self._began < PATIENCE:
            return
        body: dict[str, Any] = {"progressId": self.id, "message": f"at time {machine.time:,}"}
        if self._goal is not None and self._goal != self._start:
            share = (machine.time - self._start) / (self._goal - self._start)
            body["percentage"] = round(100 * min(max(share, 0.0), 1.0), 1)
        if not self._told:
            self._told = True
            body |= {"title": self._title, "cancellable": True}
            self._channel.event("progressStart", body)
        elif now - self._when >= INTERVAL:
            self._channel.event("progressUpdate", body)
        else:
            return
        self._when = now

    def ends(self) -> None:
        self._nested -= 1
        if self._nested:
            return
        if self._told:
            self._channel.event("progressEnd", {"progressId": self.id})
        self._told = False
