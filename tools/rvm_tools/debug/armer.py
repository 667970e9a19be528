"""The arming of a journey: a machine's frames with the traps for its probes and its goal.

Frames are armed when a journey begins and when probes change on the way, not at every trap: the
code that armed code calls or returns to is armed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from rvm.image import image_of
from rvm.probes import Armory, arm
from rvm.probes.armed import Binding, Bindings
from rvm.run.machine import Machine
from rvm.state import Frame
from rvm_tools.debug.journeys import Journey
from rvm_tools.debug.stops import Breakpoint, Watchpoint
from rvm_tools.debug.traps import LINES, TrapRules
from rvm_tools.debug.watches import handed_on, looker

_MAX_ARMORIES = 12
"""Kinds of journeys whose compiled code is kept."""
Extras = list[tuple[Frame, frozenset[Hashable]]]
"""Requests for single frames, by depth."""


class Armer:
    """Arms a machine; keeps the codes that it made until the probes change."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._armories: dict[Hashable, Armory] = {}
        self._version = 0

    def goals(self, journey: Journey) -> Extras:
        """The requests for the present frames of a journey that begins here."""
        frames = self.machine.state.frames
        found: Extras = []
        for depth, frame in enumerate(frames):
            asked: set[Hashable] = {LINES} if journey.over else set()
            if journey.out and depth == len(frames) - 2:
                asked.add((frame.pc + 1, "out"))
            found.append((frame, frozenset(asked)))
        return found

    def arm(
        self,
        journey: Journey,
        goals: Extras,
        breaks: Sequence[Breakpoint],
        active: Sequence[Watchpoint],
        guarded: Sequence[Watchpoint],
        version: int,
    ) -> None:
        """Arm all frames.

        `active` are the watchpoints to stop for, `guarded` those whose frames' ends are to be
        noticed; `version` changes whenever probes do.
        """
        state = self.machine.state
        frames = state.frames
        extras: dict[int, set[Hashable]] = {}
        for w in guarded:
            if w.depth < len(frames):
                extras.setdefault(w.depth - 1, set()).add((frames[w.depth - 1].pc + 1, ("gone", w)))
        for depth, (frame, asked) in enumerate(goals[: len(frames)]):
            # A frame that was called on the way has the position of another one.
            if asked and frame is frames[depth]:
                extras.setdefault(depth, set()).update(asked)
        if journey.quiet and not extras and journey.watch is None:
            return
        roots: dict[int, Bindings] = {}
        for w in active:
            binding = Binding(w.number, w.place.reg, True, not w.place.path)
            roots[w.depth] = roots.get(w.depth, frozenset()) | {binding}
            for depth, param, same in () if w.reads else handed_on(frames, w.depth, w.place):
                binding = Binding(w.number, param.reg, is_place=same)
                roots[depth] = roots.get(depth, frozenset()) | {binding}
        arm(
            state,
            self._armory(journey, breaks, active, version),
            roots,
            {depth: frozenset(found) for depth, found in extras.items()},
        )

    def _armory(
        self,
        journey: Journey,
        breaks: Sequence[Breakpoint],
        active: Sequence[Watchpoint],
        version: int,
    ) -> Armory:
        if self._version != version or len(self._armories) > _MAX_ARMORIES:
            self._armories.clear()
            self._version = version
        alone = journey.quiet or journey.watch is not None
        numbers = tuple((w.number, w.text) for w in active)
        key = (journey.direction, journey.lines, alone, numbers)
        found = self._armories.get(key)
        if found is None or journey.watch is not None:
            rules = TrapRules(
                journey.direction,
                [] if alone else breaks,
                active,
                lambda watch: looker(self.machine.state.frames, watch),
                journey.lines,
            )
            found = self._armories[key] = Armory(image_of(self.machine.program), rules.traps)
        return found
