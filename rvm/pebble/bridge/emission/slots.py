"""Where the pebbles of a stretch are in memory: slots of a pool that its caller lends it.

A function has a pool of as many slots as its stretch holds pebbles at a time, which are all zero
but for what it finds.  What it makes for its caller, or takes away, has the last slot; its own
pebbles have the first ones, as they come, and go in opposite order.  A stretch that it calls gets a
slice of the free slots, at whose one end is the slot of what that makes or takes: the first for a
pebble of its own, the last for the caller's.  So each function is there as it is and *mirrored*,
with the slots counted from the other end, and no state is ever moved from slot to slot.

While the caller's pebble is not made yet, its slot is as free as the others: that is what keeps to
the budget, which counts pebbles, and not the places that wait for one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rvm.pebble.actions import Action, Kind
from rvm.pebble.bridge.emission.layout import Layout, Pebble
from rvm.pebble.bridge.emission.score import UNDOING, Part, Play
from rvm.pebble.grammar import Name


@dataclass(slots=True)
class Seats:
    """The slots of a stretch, counted from the end where its own pebbles begin."""

    need: int = 0
    """How many slots there are."""
    first: dict[Pebble, int] = field(default_factory=dict)
    """The first slot of each pebble of its own; rows have the next ones."""
    free: list[int] = field(default_factory=list)
    """For each part the first slot that is free while it is played."""
    near: list[bool] = field(default_factory=list)
    """For each part, if it is a name: whether what that makes or takes is not the caller's."""
    spared: bool = False
    """Whether the caller's pebble has memory of its own, and no slot."""


class _Seating:
    """Slots while parts are played."""

    def __init__(self, layout: Layout, needs: Callable[[Name], int], spared: bool) -> None:
        self.seats = Seats(spared=spared)
        self.needs = needs
        self.taken: dict[int, Pebble] = {}
        """The slots in use."""
        self.outer = any(p.nodes != range(1) for p in layout.start)
        """Whether the caller's pebble is there."""

    def top(self) -> int:
        return max(self.taken, default=-1) + 1

    def want(self, slots: int) -> None:
        """Have so many slots, and one for the caller's pebble if it is there."""
        beside = self.outer and not self.seats.spared
        self.seats.need = max(self.seats.need, slots + beside)

    def sit(self, pebble: Pebble, first: int) -> None:
        """Give a pebble the first slots that are free from there on."""
        if pebble.outer:
            self.outer = True
            return
        count = len(pebble.nodes)
        while True:
            hit = next((k for k in range(first + count - 1, first - 1, -1) if k in self.taken), -1)
            if hit < 0:
                break
            first = hit + 1
        self.seats.first[pebble] = first
        for k in range(count):
            self.taken[first + k] = pebble

    def leave(self, pebble: Pebble) -> None:
        if pebble.outer:
            self.outer = False
            return
        first = self.seats.first[pebble]
        for k in range(len(pebble.nodes)):
            del self.taken[first + k]

    def play(self, part: Play, changed: list[Pebble]) -> None:
        """A name: its slice of the slots."""
        need = self.needs(part.name)
        near = not (changed and changed[0].outer)
        if near:
            # Its pebble is the last that was made here, so that all behind it are free.
            free = self.seats.first[changed[0]] if changed else self.top()
            assert all(p in changed for at, p in self.taken.items() if at >= free)
            self.want(free + need)
        else:
            free = self.top()
            self.seats.need = max(self.seats.need, free + need)
        self.seats.free.append(free)
        self.seats.near.append(near)


def seat(layout: Layout, needs: Callable[[Name], int], spared: bool = False) -> Seats:
    """The slots of a stretch whose names need so many each."""
    s = _Seating(layout, needs, spared)
    for part, life in zip(layout.parts, layout.lives, strict=True):
        if isinstance(part, Play):
            waiting = [p for p in life.made if p.outer]
            for pebble in life.made:
                if not pebble.outer:
                    s.sit(pebble, s.top())
            s.play(part, [*life.made, *life.taken])
            for pebble in waiting:
                s.sit(pebble, 0)
        else:
            for pebble in life.made:
                s.sit(pebble, 0)
            s.seats.free.append(s.top())
            s.seats.near.append(False)
            s.want(s.top() + computes(part))
        for pebble in life.taken:
            s.leave(pebble)
        s.want(s.top())
    return s.seats


def computes(part: Part) -> bool:
    """Whether a part takes an adjoint for which the state after the step has to be computed."""
    if isinstance(part, Play):
        return False
    before = None
    for action in part.body:
        if action.kind == Kind.REVERSE and not fuses(before, action):
            return True
        before = action
    return False


def fuses(before: Action | None, action: Action | None) -> bool:
    """Whether a step is undone, and then its adjoint taken: the adjoint function does both."""
    if before is None or before.kind not in UNDOING or before.stop != before.start + 1:
        return False
    return action == (Kind.REVERSE, before.start, before.stop)
