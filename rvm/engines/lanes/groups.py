"""Frames over lanes, and the groups of lanes at one position of them.

A `Frame` holds the registers of all lanes that entered a function.  While these run together, they
work directly in these registers.  A group of some of them works on packed copies of the registers
that it uses, and writes the changed ones back when it stops; the registers of waiting lanes are all
in the frame.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rvm.engines.lanes.faults import Ragged
from rvm.engines.lanes.plan import LanePlan
from rvm.engines.lanes.stacks import LaneStack

Lanes = Any
"""Lane numbers, as an array of integers."""


def take(value: Any, lanes: Any) -> Any:
    """A register's value in some lanes: a copy, except for stacks."""
    if isinstance(value, LaneStack):
        return value.part(lanes)
    return value.take(lanes, axis=-1)


class Frame:
    """The registers of a function for the lanes that entered it.

    `ids` are their numbers in the block.  `waiting` holds, by position, the lanes of the frame that
    wait there for others.
    """

    __slots__ = ("apart", "caller", "held", "ids", "plan", "regs", "waiting")

    def __init__(self, plan: LanePlan, regs: list[Any], ids: Lanes, caller: Group | None) -> None:
        self.plan = plan
        self.regs = regs
        self.ids = ids
        self.caller = caller
        self.waiting: dict[int, Lanes] = {}
        self.apart: set[int] = set()
        """Positions of operations executed by several groups of lanes, which meet after each."""
        self.held: dict[int, Any] = {}
        """For arrays that groups made: the lanes whose values the frame holds."""

    @property
    def width(self) -> int:
        return len(self.ids)

    def wait(self, at: int, lanes: Lanes) -> None:
        """Let lanes wait at a position, with those already there."""
        there = self.waiting.get(at)
        self.waiting[at] = lanes if there is None else np.concatenate([there, lanes])


class Group:
    """Lanes of a frame that continue together from the position `at`.

    `lanes` are their numbers in the frame, None for all of them.  `ticks` were done since the
    lanes' own counts were last updated.
    """

    __slots__ = ("at", "changed", "frame", "lanes", "regs", "ticks")

    def __init__(self, frame: Frame, at: int, lanes: Lanes | None) -> None:
        self.frame = frame
        self.at = at
        self.ticks = 0
        self.changed: set[int] = set()
        if lanes is not None and len(lanes) == frame.width:
            lanes = None
        self.lanes = lanes
        self.regs: list[Any] = frame.regs if lanes is None else [None] * len(frame.regs)

    @property
    def width(self) -> int:
        return self.frame.width if self.lanes is None else len(self.lanes)

    @property
    def ids(self) -> Lanes:
        """The lanes' numbers in the block."""
        return self.frame.ids if self.lanes is None else self.frame.ids[self.lanes]

    # ------------------------------------------------------------ packed registers

    def load(self, varying: tuple[int, ...], uniform: tuple[int, ...]) -> None:
        """Load registers that are about to be used."""
        if self.lanes is None:
            return
        frame = self.frame
        for k in uniform:
            self.regs[k] = frame.regs[k]
        for k in varying:
            if self.regs[k] is None and k not in self.changed and frame.regs[k] is not None:
                self.regs[k] = take(frame.regs[k], self.lanes)

    def note(self, changed: frozenset[int]) -> None:
        """Remember that registers were changed."""
        if self.lanes is None:
            return
        varying = self.frame.plan.varying
        for k in changed:
            if k in varying:
                self.changed.add(k)
            else:
                self.frame.regs[k] = self.regs[k]

    def write_back(self, some: Any = None) -> None:
        """Store changed registers in the frame, of the lanes that a mask names or of all."""
        if self.lanes is None:
            return
        at = self.lanes if some is None else self.lanes[some]
        for k in self.changed:
            value = self.regs[k]
            if value is None:
                if k in self.frame.held:
                    self.frame.held[k][at] = False
            else:
                self._store(k, value if some is None else take(value, np.flatnonzero(some)), at)

    def _store(self, k: int, value: Any, at: Lanes) -> None:
        frame = self.frame
        if isinstance(value, LaneStack):
            if frame.regs[k] is None:
                frame.regs[k] = LaneStack(value.dtype, frame.width)
            frame.regs[k].put(at, value)
            return
        shape = (*value.shape[:-1], frame.width)
        old = frame.regs[k]
        if old is None or old.shape != shape:
            held = frame.held.get(k)
            if old is not None and held is not None:
                others = held.copy()
                others[at] = False
                if others.any():
                    raise Ragged
            frame.regs[k] = np.zeros(shape, value.dtype)
            if value.ndim > 1:
                frame.held[k] = np.zeros(frame.width, bool)
        frame.regs[k][..., at] = value
        if k in frame.held:
            frame.held[k][at] = True

    # ------------------------------------------------------------ parting

    def numbers(self, mask: Any) -> Lanes:
        """The frame's numbers of the lanes that a mask over the group names."""
        found = np.flatnonzero(mask)
        return found if self.lanes is None else self.lanes[found]

    def keep(self, mask: Any) -> None:
        """Continue with only the lanes of a mask; the others must have been handled."""
        found = np.flatnonzero(mask)
        if self.lanes is None:
            self.lanes = found
            self.regs = [None] * len(self.frame.regs)
            self.changed = set()
            return
        self.lanes = self.lanes[found]
        for k in self.frame.plan.varying:
            if self.regs[k] is not None:
                self.regs[k] = take(self.regs[k], found)

    def part(self, mask: Any, at: int) -> None:
        """Let the lanes of a mask wait at a position, and continue with the others."""
        self.write_back(mask)
        self.frame.wait(at, self.numbers(mask))
        self.keep(~mask)
