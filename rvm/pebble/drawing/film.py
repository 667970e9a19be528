"""A schedule as intervals of time in which nodes hold a state, and adjoints.

Time is counted in *ticks*.  A tick is a step done, undone, or done with its adjoint; on a graph, a
move.  Actions without steps (a state freed, copied, saved, loaded) take no time: they happen
between two ticks.  A node is held *in* a tick if it is held at its end; a state that advances over
several steps is at one node after the other, for a tick each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rvm.faults import ScheduleError, UsageError
from rvm.pebble.actions import Block, Kind

Ints = NDArray[np.int64]

LONGEST = 200_000_000
"""Ticks of a schedule that is still drawn: ten seconds or so."""
CHUNK = 1 << 16


class Scene(NamedTuple):
    """Some stretch of a schedule, in order.

    `events` has shape (4, m): tick, node, +1 or -1, and 0 for memory or 1 for the disk.  `adjoints`
    has shape (2, k): tick and node.
    """

    events: Ints
    adjoints: Ints


@dataclass(frozen=True, slots=True)
class Film:
    """A schedule's scenes, made while they are asked for; nodes `first` to `last` take part."""

    title: str
    first: int
    last: int
    length: int
    """Ticks."""
    tick: str
    """The meaning of a tick: step or move."""
    name: Callable[[int], str]
    scenes: Callable[[], Iterator[Scene]]
    has_adjoints: bool = False
    has_disk: bool = False

    @property
    def nodes(self) -> int:
        """The number of nodes shown."""
        return self.last - self.first + 1


class Bar(NamedTuple):
    """A node is held in the ticks from `start` up to `stop`."""

    node: int
    start: int
    stop: int
    disk: bool


@dataclass(frozen=True, slots=True)
class Raster:
    """A film in cells: bands of nodes by stretches of ticks, shape (rows, columns).

    `held` and `disk` are how many states there are in a cell's nodes, averaged over its ticks;
    `adjoints` how many adjoints are taken in it.
    """

    held: NDArray[np.float64]
    disk: NDArray[np.float64]
    adjoints: NDArray[np.int64]
    ticks: float
    """The ticks of a column."""
    nodes: float
    """The nodes of a row."""

    @property
    def full(self) -> int:
        """So many states in a cell are many: more than in half of those that have any.

        Mostly that is 1; but cells of many nodes may be full of states, and should differ.
        """
        there = self.held[self.held > 0]
        return max(1, round(float(np.median(there)))) if len(there) else 1


# ---------------------------------------------------------------- scenes of schedules


def check_drawable(length: int) -> None:
    """Raise UsageError P030 for a schedule that is too long."""
    if length > LONGEST:
        raise UsageError(
            "P030",
            f"a schedule of {length:,} steps is too long to be drawn",
            values={"steps": length, "most": LONGEST},
            hint="curves over all budgets have no such limit: `frontier`, `rvm pebble --plot`",
        )


def dag_scene(schedule: tuple[int, ...]) -> Scene:
    """The only scene of a graph's schedule."""
    moves = np.array(schedule, np.int64)
    placed = moves >= 0
    events = np.zeros((4, len(moves)), np.int64)
    events[0] = np.arange(len(moves))
    events[1] = np.where(placed, moves, ~moves)
    events[2] = np.where(placed, 1, -1)
    return Scene(events, np.zeros((2, 0), np.int64))


def ticks_of(block: Block) -> Ints:
    """The ticks that each action takes."""
    kinds, starts, stops = block
    return np.where(kinds <= Kind.REVERSE, stops - starts, 0)


def chain_scenes(blocks: Iterable[Block]) -> Iterator[Scene]:
    """The scenes of a chain's schedule, one for each block."""
    begin = 0
    for block in blocks:
        ticks = ticks_of(block)
        ends = begin + np.cumsum(ticks)
        yield _chain_scene(block, ends - ticks, ends)
        begin = int(ends[-1])


def _chain_scene(block: Block, begins: Ints, ends: Ints) -> Scene:
    kinds, starts, stops = block
    back = kinds == Kind.UNSHIFT
    comes = np.isin(kinds, (Kind.ADVANCE, Kind.SHIFT, Kind.UNSHIFT, Kind.OVERWRITE))
    parts = [
        _events(kinds == Kind.UNADVANCE, begins, stops, -1),
        _events(np.isin(kinds, (Kind.SHIFT, Kind.OVERWRITE)), begins, starts, -1),
        _events(back, begins, stops, -1),
        _events(kinds == Kind.FREE, begins, starts, -1),
        _events(comes, ends - 1, np.where(back, starts, stops), 1),
        _events(kinds == Kind.LOAD, begins, starts, 1),
        _events(kinds == Kind.SAVE, begins, starts, 1, 1),
        _events(kinds == Kind.DROP, begins, starts, -1, 1),
        *_on_the_way(comes & (stops > starts + 1), block, begins),
    ]
    order = np.concatenate([at for at, _ in parts]).argsort(kind="stable")
    events = np.concatenate([events for _, events in parts], axis=1)[:, order]
    # The input is drawn on disk only: in memory it has a place that is not counted.
    events = events[:, (events[1] > 0) | (events[3] > 0)]
    taken = kinds == Kind.REVERSE
    return Scene(events, np.stack([begins[taken], starts[taken]]))


def _events(
    which: NDArray[np.bool_], times: Ints, nodes: Ints, change: int, disk: int = 0
) -> tuple[Ints, Ints]:
    """The events of some actions, with the numbers of these actions."""
    at = np.flatnonzero(which)
    fill = np.ones(len(at), np.int64)
    return at, np.stack([times[at], nodes[at], change * fill, disk * fill])


def _on_the_way(
    which: NDArray[np.bool_], block: Block, begins: Ints
) -> Iterator[tuple[Ints, Ints]]:
    """A state that goes over several steps is at each node between for a tick."""
    at = np.flatnonzero(which)
    if not len(at):
        return
    kinds, starts, stops = block
    counts = (stops - starts - 1)[at]
    owner = np.repeat(at, counts)
    past = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    back = kinds[owner] == Kind.UNSHIFT
    nodes = np.where(back, stops[owner] - 1 - past, starts[owner] + 1 + past)
    times = begins[owner] + past
    ones, none = np.ones(len(owner), np.int64), np.zeros(len(owner), np.int64)
    yield owner, np.stack([times, nodes, ones, none])
    yield owner, np.stack([times + 1, nodes, -ones, none])


# ---------------------------------------------------------------- bars and cells


def bars(film: Film) -> tuple[list[Bar], list[tuple[int, int]]]:
    """Every bar of a film, by their starts, and (tick, node) of every adjoint."""
    since: dict[tuple[int, int], int] = {}
    found: list[Bar] = []
    adjoints: list[tuple[int, int]] = []
    for scene in film.scenes():
        for time, node, change, disk in zip(*scene.events.tolist(), strict=True):
            if change > 0:
                since[node, disk] = time
            elif (start := since.pop((node, disk), -1)) < 0:
                raise ScheduleError("P003", f"node {node} is given up, and was not held")
            elif start < time:
                found.append(Bar(node, start, time, bool(disk)))
        adjoints += zip(*scene.adjoints.tolist(), strict=True)
    found += [
        Bar(node, start, film.length, bool(disk))
        for (node, disk), start in since.items()
        if start < film.length
    ]
    return sorted(found, key=lambda bar: (bar.start, bar.node)), adjoints


def rastered(film: Film, ticks: float, nodes: float) -> Raster:
    """The film in cells of a number of ticks by a number of nodes; the last ones may be smaller."""
    columns = max(1, int(np.ceil(film.length / ticks - 1e-9)))
    rows = max(1, int(np.ceil(film.nodes / nodes - 1e-9)))
    final = film.length / ticks - (columns - 1)
    # A change in a column counts there for the rest of the column, and in all later ones fully.
    changes = np.zeros((2, rows, columns + 2))
    adjoints = np.zeros((rows, columns), np.int64)
    flat = changes.reshape(-1)
    for scene in film.scenes():
        for low in range(0, scene.events.shape[1], CHUNK):
            times, places, signs, disk = scene.events[:, low : low + CHUNK]
            at = times / ticks
            column = at.astype(np.int64)
            cell = (disk * rows + _row(film, places, nodes)) * (columns + 2) + column
            width = np.where(column == columns - 1, final, 1.0)
            rest = np.maximum(width - (at - column), 0) / width
            for where, share in ((cell, rest), (cell + 1, 1 - rest)):
                least = int(where.min())
                sums = np.bincount(where - least, signs * share)
                flat[least : least + len(sums)] += sums
        times, places = scene.adjoints
        np.add.at(adjoints, (_row(film, places, nodes), (times / ticks).astype(np.int64)), 1)
    held, disk = np.cumsum(changes, axis=2)[:, :, :columns]
    # Sums of fractions that should be zero are not quite.
    return Raster(held.clip(0).round(9), disk.clip(0).round(9), adjoints, ticks, nodes)


def _row(film: Film, nodes: Ints, band: float) -> Ints:
    return ((nodes - film.first) / band).astype(np.int64)
