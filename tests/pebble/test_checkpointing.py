"""Our plans as schedules of checkpoint_schedules, beside that library's own, replayed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from sizes import sample

from rvm.faults import UsageError
from rvm.pebble import checkpointing, plan
from rvm.pebble.chains.revolve import forwards

cs = pytest.importorskip("checkpoint_schedules", reason="checkpoint_schedules is not installed")


class Executor:
    """Runs any schedule of the library on states that are their own numbers, and counts.

    What an action needs must be there: WORK holds one restart state, or one step's adjoint data.
    """

    def __init__(self) -> None:
        self.work: int | None = 0
        self.data: int | None = None
        self.stored: dict[Any, set[int]] = {cs.StorageType.RAM: set(), cs.StorageType.DISK: set()}
        self.steps = self.reads = 0
        self.writes: dict[Any, int] = dict.fromkeys(self.stored, 0)
        self.peak: dict[Any, int] = dict.fromkeys(self.stored, 0)
        self.adjoint: int | None = None
        self.reversed: list[int] = []

    def run(self, schedule: Iterable[Any], n: int) -> Executor:
        for action in schedule:
            if isinstance(action, cs.EndReverse):
                break
            self.act(action, n)
        assert self.reversed == list(range(n - 1, -1, -1))
        return self

    def act(self, action: Any, n: int) -> None:
        match type(action).__name__:
            case "Forward":
                assert self.work == action.n0
                if action.write_ics:
                    kept = self.stored[action.storage]
                    assert action.n0 not in kept
                    kept.add(action.n0)
                    self.writes[action.storage] += 1
                    self.peak[action.storage] = max(self.peak[action.storage], len(kept))
                if action.write_adj_deps:
                    assert action.storage == cs.StorageType.WORK and len(action) == 1
                    self.data = action.n0
                self.steps += len(action)
                self.work = min(action.n1, n)
            case "Reverse":
                assert len(action) == 1 and self.data == action.n0
                assert self.adjoint is not None and self.adjoint == action.n1
                self.adjoint, self.data = action.n0, None
                self.reversed.append(action.n0)
            case "Copy" | "Move":
                assert action.n in self.stored[action.from_storage]
                if isinstance(action, cs.Move):
                    self.stored[action.from_storage].remove(action.n)
                if action.to_storage == cs.StorageType.WORK:
                    self.work = action.n
                    self.reads += 1
            case _:
                assert isinstance(action, cs.EndForward) and self.work == n
                assert self.adjoint is None
                self.adjoint = n


RAM = cs.StorageType.RAM
DISK = cs.StorageType.DISK


@sample
@pytest.mark.parametrize("n", [1, 2, 3, 7, 20, 64, 150])
@pytest.mark.parametrize("slots", [1, 2, 3, 5, 10])
def test_revolve_takes_as_many_steps_as_the_librarys(n: int, slots: int) -> None:
    made = plan(n, goal="gradient", strategy="revolve", pebbles=slots)
    ours = Executor().run(checkpointing.schedule(made), n)
    assert ours.steps == forwards(n, slots) + n
    assert ours.peak[RAM] <= slots and not ours.writes[DISK]
    if n > 1:
        theirs = Executor().run(cs.MultistageCheckpointSchedule(n, slots, 0), n)
        assert ours.steps == theirs.steps
    if 1 < n <= 20:
        assert ours.steps == Executor().run(cs.Revolve(n, slots), n).steps


@pytest.mark.parametrize("n", [2, 5, 12, 40, 90])
@pytest.mark.parametrize(("slots", "disk"), [(1, 1), (2, 2), (1, 4), (3, 1), (4, 6)])
def test_multistage_takes_as_many_steps_and_no_more_of_the_disk(
    n: int, slots: int, disk: int
) -> None:
    made = plan(n, goal="gradient", strategy="multistage", pebbles=slots, disk=disk)
    ours = Executor().run(checkpointing.schedule(made), n)
    theirs = Executor().run(cs.MultistageCheckpointSchedule(n, slots, disk), n)
    assert ours.steps == theirs.steps == made.cost.moves + n
    assert ours.writes[DISK] == made.cost.writes
    assert ours.peak[RAM] <= slots and ours.peak[DISK] <= disk


@pytest.mark.parametrize("n", [2, 6, 15, 30])
def test_a_disk_of_any_size_costs_no_more_than_disk_revolve(n: int) -> None:
    """The library counts a step backwards, too, and has the input in RAM or on disk itself."""
    for slots in (1, 2, 3):
        for price in (1, 4):
            made = plan(
                n, goal="gradient", pebbles=slots, disk=float("inf"), write=price, read=price
            )
            ours = Executor().run(checkpointing.schedule(made), n)
            theirs = Executor().run(cs.DiskRevolve(n, slots, wd=price, rd=price), n)
            total = theirs.steps + price * theirs.writes[DISK]
            assert ours.steps + price * ours.writes[DISK] <= total + price * theirs.reads
            assert ours.peak[RAM] <= slots


@pytest.mark.parametrize("n", [1, 2, 5, 30, 99])
@pytest.mark.parametrize("slots", [1, 2, 4, 9])
def test_a_run_of_unknown_length(n: int, slots: int) -> None:
    schedule = checkpointing.online(slots)
    executor, actions = Executor(), iter(schedule)
    while schedule.n < n:
        executor.act(next(actions), n)
    schedule.finalize(n)
    executor.run(actions, n)
    assert schedule.is_exhausted and schedule.r == n
    assert executor.peak[RAM] <= slots
    planned = plan(n, goal="gradient", strategy="online", pebbles=slots)
    assert executor.steps == planned.cost.moves + n
    again = Executor().run(checkpointing.schedule(planned), n)
    assert again.steps == executor.steps


def test_a_run_ends_where_it_is() -> None:
    schedule = checkpointing.online(2)
    actions = iter(schedule)
    while schedule.n < 5:
        next(actions)
    schedule.finalize(3)
    with pytest.raises(UsageError) as caught:
        next(actions)
    assert caught.value.code == "P001"


def test_a_schedule_says_where_it_is() -> None:
    made = plan(9, goal="gradient", pebbles=2, disk=2, write=0.1, read=0.1)
    schedule = checkpointing.schedule(made)
    assert schedule.max_n == 9 and not schedule.is_exhausted
    assert schedule.uses_storage_type(RAM) and schedule.uses_storage_type(DISK)
    for action in schedule:
        if isinstance(action, cs.Forward):
            assert schedule.n == action.n1
        if isinstance(action, cs.Reverse):
            assert schedule.r == 9 - action.n0
    assert schedule.is_exhausted
    plain = plan(9, goal="gradient", price=0, pebbles=2)
    assert not checkpointing.schedule(plain).uses_storage_type(DISK)


def test_plans_that_undo_steps_cannot_be_converted() -> None:
    for made in (
        plan(9, pebbles=5),
        plan(9, goal="gradient", pebbles=5),
        plan(9, goal="gradient", pebbles=5, price=2),
    ):
        with pytest.raises(UsageError) as caught:
            checkpointing.schedule(made)
        assert caught.value.code == "P001"


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "checkpoint_schedules", None)
    checkpointing.library.cache_clear()
    with pytest.raises(UsageError) as caught:
        checkpointing.library()
    assert caught.value.code == "P007" and "rvm[checkpoint]" in caught.value.hint
    monkeypatch.undo()
    checkpointing.library.cache_clear()
