"""Timing contestants in turns, so that a slow minute affects all of them alike.

A time is the wall-clock or the processor time, whichever is less: on a busy machine the clock
includes other processes, and processor time counts every thread of a contestant.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter, process_time

import numpy as np

from rvm.faults import InternalError
from rvm_bench.contest import BACK, GRADIENT, HESSIAN, Fresh, Go, Peer, Values, Workload
from rvm_bench.engines import PREFIX

_SHORT = 0.002
"""Seconds below which a run is repeated within its turn."""
_MOST_LOOPS = 2_000
_WARM = 6
"""Runs at most that warm a contestant up at a size."""
_AGREEMENT = 1e-8
"""The largest accepted relative difference between peers' numbers and ours."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of one run each, one for each turn; of `loops` runs in a row at a time."""

    seconds: tuple[float, ...]
    loops: int = 1

    @property
    def middle(self) -> float:
        return median(self.seconds)


@dataclass(frozen=True, slots=True)
class ContestEntry:
    """The time that one contestant took for a task at a size, in units of work."""

    name: str
    size: int
    work: int
    times: Times
    ticks: int = 0
    """The machine's instructions in one run; 0 where they are not known."""

    @property
    def unit_ns(self) -> float:
        """Nanoseconds for a unit of work."""
        return 1e9 * self.times.middle / self.work


@dataclass(frozen=True, slots=True)
class Spread:
    """A median and the quartiles about it."""

    middle: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Contest:
    """One task of one workload: entries, who was left out, and why."""

    workload: str
    task: str
    unit: str
    entries: tuple[ContestEntry, ...]
    left_out: tuple[tuple[str, str], ...] = ()

    def entry(self, name: str) -> ContestEntry | None:
        """The entry of a contestant; None if it did not take part."""
        return next((e for e in self.entries if e.name == name), None)

    def ratio(self, name: str, to: str) -> Spread | None:
        """The ratio of a contestant's time to that of `to`, turn by turn; None without both."""
        one, two = self.entry(name), self.entry(to)
        if one is None or two is None:
            return None
        pairs = zip(one.times.seconds, two.times.seconds, strict=True)
        return _spread([a / one.work * two.work / b for a, b in pairs])


def _spread(values: Sequence[float]) -> Spread:
    """Median and quartiles."""
    if len(values) < 2:
        return Spread(values[0], values[0], values[0])
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return Spread(middle, low, high)


def timed(go: Go) -> float:
    """Seconds of one run."""
    wall, cpu = perf_counter(), process_time()
    go()
    return min(process_time() - cpu, perf_counter() - wall)


def measure(
    workload: Workload,
    task: str,
    peers: Sequence[Peer],
    *,
    turns: int,
    limit: float,
    scale: float = 1.0,
    after_each: Callable[[str], object] = lambda _: None,
) -> Contest:
    """Check contestants at the smallest size, find each its own, and time them in turns.

    InternalError C007 if numbers differ.  `limit`: seconds that a run may take; `scale` shrinks or
    stretches the limit on sizes.
    """
    ready: list[tuple[Peer, int, Fresh, int]] = []
    left_out = [(p.name, f"{p.needs} is not installed") for p in peers if not p.there]
    sizes = [n for n in workload.sizes if n <= scale * workload.sizes[-1]] or [workload.sizes[0]]
    wanted: Values | None = None
    for peer in (p for p in peers if p.there):
        inputs = workload.inputs(sizes[0])
        if task == BACK:
            wanted = inputs
        fresh = peer.make(inputs)
        go, read = fresh()
        found = read(go())
        if wanted is None:
            wanted = {k: np.array(v) for k, v in found.items()}
        else:
            _same(workload.name, task, peer.name, found, wanted)
        size, fresh, loops = _sized(workload, peer, sizes, fresh, limit)
        ready.append((peer, size, fresh, loops))
        after_each(peer.name)
    seconds: dict[str, list[float]] = {p.name: [] for p, *_ in ready}
    gc.collect()
    gc.disable()
    try:
        for _ in range(turns):
            for peer, _, fresh, loops in ready:
                gos = [fresh()[0] for _ in range(loops)]
                seconds[peer.name].append(timed(lambda g=gos: [go() for go in g]) / loops)  # type: ignore[misc]
                after_each(peer.name)
    finally:
        gc.enable()
    entries = [
        ContestEntry(
            p.name,
            n,
            workload.work(n),
            Times(tuple(seconds[p.name]), loops),
            ticks(workload, task, n) if p.name.startswith(PREFIX) else 0,
        )
        for p, n, _, loops in ready
    ]
    return Contest(workload.name, task, workload.unit, tuple(entries), tuple(left_out))


def ticks(workload: Workload, task: str, size: int) -> int:
    """The instructions of one run of a task; 0 for second derivatives.

    Counted at a middling size, from which larger ones follow by their work.
    """
    if task == HESSIAN:
        return 0
    counted = min(size, workload.sizes[min(2, len(workload.sizes) - 1)])
    f = workload.main().with_options(engine="python")
    key = (ticks, task, counted)
    found = f.program.cache.get(key)
    if not isinstance(found, int):
        inputs = workload.inputs(counted)
        pull = f.pullback(**inputs)
        if task == GRADIENT:
            assert workload.seeds is not None
            pull.seed_all(workload.seeds(inputs))
            pull()
        found = f.program.cache[key] = pull.ticks
    return round(found * workload.work(size) / workload.work(counted))


def _sized(
    workload: Workload, peer: Peer, sizes: Sequence[int], fresh: Fresh, limit: float
) -> tuple[int, Fresh, int]:
    """The largest size that a contestant does within the limit, ready, and how often a turn."""
    size = sizes[0]
    took = _settled(fresh)
    for n in sizes[1:]:
        grown = workload.work(n) / workload.work(size)
        if took * min(grown, 10) > limit:  # what is short is mostly the call
            break
        size, fresh = n, peer.make(workload.inputs(n))
        took = _settled(fresh)
    loops = 1 if took > _SHORT else min(_MOST_LOOPS, max(1, round(_SHORT / max(took, 1e-7))))
    return size, fresh, loops


def _settled(fresh: Fresh) -> float:
    """The seconds of a run once runs no longer become faster, since compilers may work in steps."""
    took = timed(fresh()[0])
    for _ in range(_WARM):
        before, took = took, timed(fresh()[0])
        if took > 0.7 * before:
            return min(before, took)
    return took


def _same(name: str, task: str, peer: str, have: Values, want: Values) -> None:
    for key, value in want.items():
        if key not in have:
            continue
        expected, found = np.asarray(value), np.asarray(have[key])
        # What comes back need not be as exact as it is large: it may be zero.
        least = 1.0 if task == BACK else 1e-300
        scale = max(float(np.max(np.abs(expected), initial=0.0)), least)
        if not np.allclose(found, expected, rtol=_AGREEMENT, atol=_AGREEMENT * scale):
            raise InternalError(
                "C007",
                f"in the {task} task of the workload `{name}`, {peer} gives another `{key}`",
                values={peer: found, "expected": expected},
            )
