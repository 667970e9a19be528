"""Matched frees: the code that made a value is undone, and nothing that it read has changed.

`alloc t = e … free t = e`, a routine and its undo, mirrored updates, a call and the uncall of the
same function: in exact arithmetic such a place holds its value again, whatever the numbers are, so
that the residue is rounding and needs no tolerance. Values that are used after they were restored
in this way have lost bits by rounding; `restorations` finds these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from rvm.program import Function
from rvm.types import Stack, elem_of
from rvm.verify.flow import liveness
from rvm.verify.numbering import ASKED, GONE, MADE, MOVE, UPDATE, Event, InValues, Items, Region

InOut = Mapping[str, Collection[int]]
"""For each function the parameters that it may change."""
Steps = Mapping[tuple[int, int], int]
"""For a register and an event that changes it the event that undoes that, or that it undoes."""


class Matched(NamedTuple):
    """Instructions that free, or pop into, a place which is back at its value by construction."""

    all: frozenset[int]
    by_adjoint: frozenset[int]
    """Frees of values that an adjoint has restored."""


class Restoration(NamedTuple):
    """A register that code from one position on changes, and has restored at another."""

    reg: int
    start: int
    end: int


def matched(function: Function, inout: InOut, in_values: InValues) -> Matched:
    """The frees and pops of a function that are matched."""
    return _matched(_whole(function, inout, in_values))


def _matched(whole: Region) -> Matched:
    return Matched(frozenset(whole.found), frozenset(whole.by_adjoint))


def restored(function: Function, inout: InOut, in_values: InValues) -> frozenset[int]:
    """The parameters that hold at the end the values of the beginning, by construction."""
    whole = _whole(function, inout, in_values)
    return frozenset(k for k in range(function.n_args) if whole.restores(k))


def restorations(
    function: Function, inout: InOut, in_values: InValues
) -> tuple[tuple[Restoration, ...], Matched]:
    """Restored registers of inexact numbers: undone and used afterwards (or, backwards, before).

    Code from `start` to `end` is entered at the one and left at the other only.  What is `matched`
    is found with them.
    """
    whole = _whole(function, inout, in_values)
    return tuple(_restorations(whole, outermost=True)), _matched(whole)


def _whole(function: Function, inout: InOut, in_values: InValues) -> Region:
    items = Items(function.registers, inout)
    return Region(function, items, in_values, liveness(function), {}, 0, len(function.code))


def _restorations(region: Region, *, outermost: bool) -> Iterator[Restoration]:
    undoes, undone = _pairs(region)
    uses = _Uses(region, outermost)
    for (reg, last), first in undoes.items():
        t = region.function.registers[reg].type
        if isinstance(t, Stack) or elem_of(t).is_exact:
            continue
        if uses.follow(reg, last, undoes, 1) or uses.follow(reg, first, undone, -1):
            yield Restoration(reg, region.events[first].start, region.events[last].end)
    for inner in region.inner:
        yield from _restorations(inner, outermost=False)


def _pairs(region: Region) -> tuple[Steps, Steps]:
    """The event that each event undoes, for each register that it changes, and vice versa."""
    undoes: dict[tuple[int, int], int] = {}
    undone: dict[tuple[int, int], int] = {}
    left: defaultdict[int, dict[int, int]] = defaultdict(dict)
    """For each register the events by which it left values."""
    for k, event in enumerate(region.events):
        for reg, numbers in event.changed.items():
            before, behind = map(region.same, numbers)
            if event.kind in (MADE, GONE, ASKED):
                left[reg].clear()
            elif before != behind:
                left[reg][before] = k
                first = left[reg].get(behind)
                if first is not None and event.kind == UPDATE:
                    undoes[reg, k] = first
                    undone[reg, first] = k
    return undoes, undone


class _Uses:
    """Whether the contents of registers at some event are used, in one direction or the other."""

    def __init__(self, region: Region, outermost: bool) -> None:
        self.region = region
        self.outermost = outermost

    def follow(self, reg: int, at: int, steps: Steps, way: int) -> bool:
        """Whether a run that comes from an event uses the register, in direction 1 or -1.

        Uses that only undo do not count, since their results are restored too.
        """
        events, ended = self.region.events, GONE if way > 0 else MADE
        at += way
        while 0 <= at < len(events):
            event = events[at]
            if reg in event.changed:
                if event.kind == MOVE:
                    reg = next(r for r in event.changed if r != reg)
                elif event.kind in (MADE, GONE):
                    return False
                else:
                    return event.kind == ASKED or not self._only_undoes(at, steps)
            elif reg in event.reads and event.kind != ended and not self._only_undoes(at, steps):
                return True
            at += way
        if self.outermost:
            return reg < self.region.function.n_args
        border = self.region.end if way > 0 else self.region.start
        return reg in self.region.lives.live(border)

    def _only_undoes(self, at: int, steps: Steps) -> bool:
        event: Event = self.region.events[at]
        if event.kind != UPDATE or not event.changed:
            return False
        return all(
            (reg, at) in steps or self.region.same(before) == self.region.same(behind)
            for reg, (before, behind) in event.changed.items()
        )
