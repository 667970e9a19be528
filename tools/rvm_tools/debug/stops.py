"""The stops of a session, and their reports: plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rvm.expr import Expr, Place
from rvm.faults import Fault
from rvm_tools.debug.lines import StopTarget


@dataclass(slots=True, eq=False)
class Breakpoint:
    """A place to stop at in both directions, perhaps conditional; or a tracepoint, which prints."""

    number: int
    target: StopTarget
    condition: str = ""
    guards: Mapping[str, Expr] = field(default_factory=dict)
    """The condition by function."""
    temporary: bool = False
    enabled: bool = True
    ignore: int = 0
    wanted: Callable[[int], bool] | None = None
    """The hits to stop at, by number; None for all."""
    hits: int = 0
    message: str | None = None
    """The text that a tracepoint prints."""

    @property
    def kind(self) -> str:
        return "tracepoint" if self.message is not None else "breakpoint"


@dataclass(slots=True, eq=False)
class Watchpoint:
    """A place of one frame: stop when it has changed, or (`reads`) before it is read.

    The frame is the one at `depth` (0 is the outermost) that exists between the times `born` and
    `ended`, as far as these are known.  While the machine is outside, the watch sleeps.
    """

    number: int
    text: str
    place: Place
    depth: int
    function: str
    reads: bool = False
    condition: str = ""
    guard: Expr | None = None
    in_code: bool = False
    """Whether the code of all calls that may change the place asks for the condition, so that not
    all changes are seen."""
    enabled: bool = True
    ignore: int = 0
    wanted: Callable[[int], bool] | None = None
    """The hits to stop at, by number; None for all."""
    hits: int = 0
    cell: list[Any] = field(default_factory=lambda: [None])
    """The value that was seen last."""
    awake: bool = True
    born: int | None = None
    ended: int | None = None

    @property
    def kind(self) -> str:
        return "read watchpoint" if self.reads else "watchpoint"

    def sleep(self, direction: int, time: int) -> None:
        """Record that the place's frame has ended at a time, in the machine's direction."""
        self.awake = False
        if direction > 0:
            self.ended = time
        else:
            self.born = time

    @property
    def within(self) -> int:
        """While it sleeps: a time at which its call is active."""
        return self.ended - 1 if self.ended is not None else (self.born or 0) + 1

    def waking(self, direction: int) -> int | None:
        """While it sleeps: the time at which its frame is there again; None if that is never."""
        edge = self.ended if direction < 0 else self.born
        return None if self.awake else edge

    def gone(self, direction: int) -> str:
        """The message when the place's frame no longer exists, or does not exist yet."""
        way = "has returned" if direction > 0 else "has not been called yet"
        return (
            f"watchpoint {self.number} sleeps: the call of `{self.function}` that `{self.text}` "
            f"belongs to {way}"
        )


def passed(probe: Breakpoint | Watchpoint) -> bool:
    """Count a hit; whether it is one to pass by."""
    probe.hits += 1
    if probe.ignore:
        probe.ignore -= 1
        return True
    return probe.wanted is not None and not probe.wanted(probe.hits)


@dataclass(frozen=True, slots=True)
class StopEvent:
    """One reason for a stop: the probe, and its report."""

    kind: str
    text: str
    number: int = 0
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stop:
    """The outcome of a command.

    `reason` is "step", "breakpoint", "watchpoint", "goto", "start", "end", "error", "interrupted"
    or "limit"; `direction` is the machine's direction.
    """

    reason: str
    time: int
    work: int
    direction: int
    function: str
    line: int
    pc: int
    """The next instruction, in the order of the function as written."""
    events: tuple[StopEvent, ...] = ()
    error: Fault | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        out: dict[str, Any] = {
            "reason": self.reason,
            "time": self.time,
            "work": self.work,
            "direction": "forwards" if self.direction > 0 else "backwards",
            "function": self.function,
            "line": self.line,
            "instruction": self.pc,
            "events": [
                {"kind": e.kind, "number": e.number, "text": e.text, **e.data} for e in self.events
            ],
        }
        if self.error is not None:
            out["error"] = self.error.diagnostics[0].as_json()
        return out
