"""The same chains by other libraries' schedules: checkpoint_schedules and pyrevolve.

Each contestant is a function that makes a schedule and returns, for each of its actions, the number
of steps forwards, including those done with their adjoints.  The sum of these numbers is the same
for all optimal schedules.  Times are seconds of processor time.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import chain
from math import inf
from time import process_time
from typing import Any

from rvm.pebble import plan
from rvm.pebble.actions import Kind

BUDGETS = {256: (10, 32), 1_000: (10, 20, 60), 10**6: (10, 100)}
_FORWARDS = frozenset(int(k) for k in (Kind.ADVANCE, Kind.OVERWRITE, Kind.REVERSE))
LIMIT = 100.0
"""Seconds beyond which a schedule is not followed to its end."""
PATIENCE = 2.0
"""Seconds beyond which it is not followed again for its memory, which takes far longer."""

_Contestant = Callable[[], Iterator[int]]


@dataclass(frozen=True, slots=True)
class _FollowedSchedule:
    """The cost of following a schedule."""

    start: float
    """Seconds to the first action."""
    seconds: float
    """To the last, or to the limit."""
    actions: int
    steps: int | None
    """Done forwards; None if the end was not reached."""
    memory: int | None
    """The most bytes of Python objects, if that was measured."""


def follow(contestant: _Contestant) -> _FollowedSchedule:
    """Follow a schedule to its end, once for the time and once for the memory."""
    begin = process_time()
    done = contestant()
    first = next(done)
    start = process_time() - begin
    actions = steps = 0
    ended = True
    for count in chain([first], done):
        actions += 1
        steps += count
        if not actions % 4096 and process_time() - begin > LIMIT:
            ended = False
            break
    seconds = process_time() - begin
    memory = None
    if seconds < PATIENCE:
        tracemalloc.start()
        for _ in contestant():
            pass
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return _FollowedSchedule(start, seconds, actions, steps if ended else None, memory)


# ---------------------------------------------------------------- contestants


def _ours(n: int, pebbles: int, **terms: Any) -> Iterator[int]:
    """A plan's own actions."""
    made = plan(n, goal="gradient", pebbles=pebbles, **terms)
    return (j - i if kind in _FORWARDS else 0 for kind, i, j in made.actions())


def _translated(n: int, pebbles: int, **terms: Any) -> Iterator[int]:
    """A plan as a schedule of checkpoint_schedules."""
    from rvm.pebble import checkpointing

    made = plan(n, goal="gradient", pebbles=pebbles, **terms)
    return _theirs(checkpointing.schedule(made))


def _theirs(schedule: Any) -> Iterator[int]:
    """The actions of a schedule of checkpoint_schedules."""
    import checkpoint_schedules as cs

    for action in schedule:
        if isinstance(action, cs.EndReverse):
            return
        yield action.n1 - action.n0 if isinstance(action, cs.Forward) else 0


def _named(name: str, *args: Any, **more: Any) -> Iterator[int]:
    """A schedule of checkpoint_schedules by its class."""
    import checkpoint_schedules as cs

    return _theirs(getattr(cs, name)(*args, **more))


def _crevolve(n: int, pebbles: int) -> Iterator[int]:
    """The actions of pyrevolve's Revolve."""
    from pyrevolve.schedulers import Action, CRevolve

    schedule = CRevolve(pebbles, n)
    while True:
        action = schedule.next()
        if action.type == Action.TERMINATE:
            return
        if action.type == Action.ADVANCE:
            yield action.capo - action.old_capo
        else:
            yield int(action.type in (Action.LASTFW, Action.REVERSE))


def _contest(n: int, pebbles: int) -> Iterator[tuple[str, _Contestant]]:
    """The contestants; classes that make large tables only if these take at most some seconds."""
    yield "rvm", partial(_ours, n, pebbles, price=0)
    if find_spec("checkpoint_schedules"):
        yield "rvm, as checkpoint_schedules", partial(_translated, n, pebbles, price=0)
        multistage = "MultistageCheckpointSchedule"
        yield "cs Multistage", partial(_named, multistage, n, pebbles, 0)
        if n * n * pebbles <= 20 * 10**6:
            yield "cs Revolve", partial(_named, "Revolve", n, pebbles)
    if find_spec("pyrevolve"):
        yield "pyrevolve CRevolve", partial(_crevolve, n, pebbles)
    if n <= 1_000 and pebbles <= 10:
        disk = {"disk": inf, "write": 5, "read": 5}
        yield "rvm, a disk at 5", partial(_ours, n, pebbles, **disk)
        if find_spec("checkpoint_schedules"):
            yield "cs DiskRevolve, at 5", partial(_named, "DiskRevolve", n, pebbles, wd=5, rd=5)


def peers() -> Iterator[str]:
    """Lines of the table."""
    missing = [m for m in ("checkpoint_schedules", "pyrevolve") if not find_spec(m)]
    if missing:
        yield f"not installed: {', '.join(missing)}"
    yield (
        f"{'steps':>9} {'pebbles':>7}  {'schedule':<30}{'forwards':>12}{'actions':>12}"
        f"{'first s':>9}{'all s':>9}{'MB':>8}{'M/s':>8}"
    )
    for n, budgets in BUDGETS.items():
        for pebbles in budgets:
            for name, contestant in _contest(n, pebbles):
                yield line(n, pebbles, name, follow(contestant))


def line(n: int, pebbles: int, name: str, found: _FollowedSchedule) -> str:
    """A line of the table; beyond the limit there is no number of steps."""
    steps = "-" if found.steps is None else f"{found.steps:,}"
    memory = "-" if found.memory is None else f"{found.memory / 1e6:.1f}"
    speed = found.actions / max(found.seconds, 1e-6) / 1e6
    return (
        f"{n:>9,} {pebbles:>7,}  {name:<30}{steps:>12}{found.actions:>12,}"
        f"{found.start:>9.3f}{found.seconds:>9.2f}{memory:>8}{speed:>8.2f}"
    )
