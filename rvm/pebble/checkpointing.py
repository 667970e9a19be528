"""Our gradient plans as schedules of the library checkpoint_schedules.

    plan = rvm.pebble.plan(n, goal="gradient", strategy="revolve", pebbles=10)
    tape.enable_checkpointing(checkpointing.schedule(plan))

Programs that use that library's schedules (pyadjoint, firedrake) can then run ours.  The library is
imported when it is needed.

There, restart data of a step are in RAM or on disk, and WORK is the moving state; here, the moving
state has a pebble, and the input needs none.  So S pebbles are S restart points in RAM, including
that of the input.  The library has no action that undoes a step, so plans that undo steps cannot be
converted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, pairwise
from typing import Any

from rvm.faults import UsageError
from rvm.pebble.actions import Action, Kind, at
from rvm.pebble.chains.online import Online
from rvm.pebble.plans import Plan

ADVANCE, FREE, REVERSE = int(Kind.ADVANCE), int(Kind.FREE), int(Kind.REVERSE)
"""Plain numbers, which are faster to compare with: schedules have millions of these."""
TRANSLATED = ("revolve", "hybrid", "online", "disk", "multistage")


@cache
def library() -> Any:
    """The module checkpoint_schedules; UsageError P007 if it is not there."""
    try:
        import checkpoint_schedules
    except ImportError as error:
        raise UsageError(
            "P007",
            "the library checkpoint_schedules is not installed",
            hint='pip install "rvm[checkpoint]"',
        ) from error
    return checkpoint_schedules


class Translator:
    """The position of a run in the library's terms, and the translation of our actions."""

    def __init__(self) -> None:
        self.cs = library()
        self.work: int | None = 0
        """The node whose state is in WORK."""
        self.ram: set[int] = set()
        self.disk: set[int] = set()
        self.saving: int | None = None
        """A node that goes to disk with the next step from it."""

    def translate(self, action: Action, following: Action | None) -> tuple[list[Any], bool]:
        """The library's actions for one of ours, and whether the following is done by them, too."""
        kind, i, j = action
        if kind == REVERSE:
            last = i == 0 or (following is not None and following == (FREE, i, i))
            return self._reverse(i, j, last), last and i > 0
        if kind == FREE:
            return self._free(i), False
        if kind == ADVANCE:
            return self._advance(i, j), False
        if kind == Kind.OVERWRITE:
            return self._overwrite(i, j), False
        return self._with_disk(action, following)

    def _with_disk(self, action: Action, following: Action | None) -> tuple[list[Any], bool]:
        kind, i, _ = action
        storage = self.cs.StorageType
        match kind:
            case Kind.SAVE:
                self.saving = i
                return [], False
            case Kind.LOAD:
                self.work = i
                if following == at(Kind.DROP, i):
                    self.disk.remove(i)
                    return [self.cs.Move(i, storage.DISK, storage.WORK)], True
                return [self.cs.Copy(i, storage.DISK, storage.WORK)], False
            case Kind.DROP if i == self.saving:
                self.saving = None
                return [], False
            case Kind.DROP:
                self.disk.remove(i)
                return [self.cs.Move(i, storage.DISK, storage.NONE)], False
        raise _foreign(action)

    def _free(self, i: int) -> list[Any]:
        if i in self.ram:
            self.ram.remove(i)
            return [self.cs.Move(i, self.cs.StorageType.RAM, self.cs.StorageType.NONE)]
        self.work = None
        return []

    def _forward(self, i: int, j: int, keep: Any = None, adjoint: bool = False) -> Any:
        work = self.cs.StorageType.WORK
        return self.cs.Forward(i, j, keep is not None, adjoint, work if keep is None else keep)

    def _fetched(self, i: int, last: bool) -> list[Any]:
        """The actions that bring s_i to WORK, unless it is there; out of RAM on its `last` use."""
        storage = self.cs.StorageType
        if i in self.ram:
            if last:
                self.ram.remove(i)
            return [(self.cs.Move if last else self.cs.Copy)(i, storage.RAM, storage.WORK)]
        assert self.work == i, f"state {i} is not available"
        return []

    def _advance(self, i: int, j: int) -> list[Any]:
        out, self.work = self._fetched(i, False), j
        if out:
            return [*out, self._forward(i, j)]
        self.ram.add(i)
        return [self._forward(i, j, self.cs.StorageType.RAM)]

    def _overwrite(self, i: int, j: int) -> list[Any]:
        out, self.work = self._fetched(i, True), j
        if out or self.saving != i:
            return [*out, self._forward(i, j)]
        self.saving = None
        self.disk.add(i)
        return [self._forward(i, j, self.cs.StorageType.DISK)]

    def _reverse(self, i: int, j: int, last: bool) -> list[Any]:
        out, self.work = self._fetched(i, last), None
        assert out or last, f"state {i} is lost with its adjoint"
        return [*out, self._forward(i, j, adjoint=True), self.cs.Reverse(j, i, True)]


def translated(
    actions: Iterable[Action], by: Translator, schedule: Any, ended: bool
) -> Iterator[Any]:
    """The library's actions for ours, with the ends of the run and of the sweep.

    Before each is yielded, `schedule` gets the position of the run and of the sweep after it, in
    the attributes that the library's schedules have for this.
    """
    forward, reverse, n = by.cs.Forward, by.cs.Reverse, schedule.max_n
    skip = False
    for action, following in pairwise(chain(actions, [None])):
        if skip or action is None:
            skip = False
            continue
        out, skip = by.translate(action, following)
        for found in out:
            kind = type(found)
            if kind is reverse:
                schedule._r = n - found.args[1]
                yield found
            elif kind is forward:
                node = found.args[1]
                schedule._n = node
                yield found
                if node == n and not ended:
                    ended = True
                    yield by.cs.EndForward()
            else:
                yield found


@cache
def _classes() -> tuple[type, type]:
    """The schedules, which derive from a class of the library."""
    cs = library()

    class Followed(cs.CheckpointSchedule):  # type: ignore[misc, name-defined]
        """A schedule that tells where the run and the sweep are."""

        def __init__(self, n: int | None, disk: bool) -> None:
            super().__init__(max_n=n)
            self._exhausted = False
            self._disk = disk

        @property
        def is_exhausted(self) -> bool:
            return self._exhausted

        def uses_storage_type(self, storage_type: Any) -> bool:
            kinds = cs.StorageType
            return storage_type in (kinds.RAM, kinds.WORK) or (
                storage_type == kinds.DISK and self._disk
            )

        def _ended(self) -> Any:
            self._exhausted = True
            return cs.EndReverse()

        def _iterator(self) -> Iterator[Any]:
            raise NotImplementedError

    class PlannedSchedule(Followed):
        """A plan as a schedule of the library.  One adjoint calculation."""

        def __init__(self, plan: Plan) -> None:
            super().__init__(plan.n, plan.cost.writes > 0)
            self.plan = plan

        def _iterator(self) -> Iterator[Any]:
            yield from translated(self.plan.actions(), Translator(), self, ended=False)
            yield self._ended()

    class OnlineSchedule(Followed):
        """A schedule for a run of unknown length: call `finalize(n)` after its last step."""

        def __init__(self, pebbles: int) -> None:
            super().__init__(None, disk=False)
            self.run = Online(pebbles)

        def _iterator(self) -> Iterator[Any]:
            by = Translator()
            while self._max_n is None:
                yield from translated(self.run.step(), by, self, ended=True)
            if self._max_n != self.run.n:
                raise UsageError(
                    "P001",
                    f"the run was told to end after {self._max_n} steps, but has done {self.run.n}",
                )
            yield cs.EndForward()
            yield from translated(self.run.finish(), by, self, ended=True)
            yield self._ended()

    return PlannedSchedule, OnlineSchedule


def schedule(plan: Plan) -> Any:
    """A gradient plan as a `checkpoint_schedules.CheckpointSchedule`.

    UsageError P001 if the plan undoes steps, which the library cannot say; P007 without it.
    """
    if plan.goal != "gradient" or plan.strategy not in TRANSLATED or plan.units.price:
        raise UsageError(
            "P001",
            f"a plan for `{plan.goal}` by `{plan.strategy}` is not one of checkpoint_schedules",
            values={"price": plan.units.price},
            hint="of gradient plans, those by revolve, online, disk and multistage are, and "
            "those by hybrid at price 0",
        )
    return _classes()[0](plan)


def online(pebbles: int) -> Any:
    """A schedule for a run whose length becomes known at its end, by `finalize(n)`."""
    return _classes()[1](pebbles)


def _foreign(action: Action) -> UsageError:
    return UsageError("P001", f"checkpoint_schedules has no action for {action!r}")
