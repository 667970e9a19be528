"""Contests: sizes, turns, ratios, who is left out, and that a wrong number is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rvm_bench.contest import BACK, FORWARD, GRADIENT, Fresh, Go, Peer, Read, Values, Workload
from rvm_bench.engines import IN_PLACE, engine_names, engine_peers
from rvm_bench.measure import Contest, ContestEntry, Times, measure
from rvm_bench.workloads import WORKLOADS
from sizes import wide

from rvm.faults import InternalError

LOOP = WORKLOADS["loop"]
CALLS: Workload = replace(WORKLOADS["call"], peers=())


def peer(name: str, run: Callable[..., Values], needs: str = "") -> Peer:
    def make(values: Values) -> Fresh:
        def fresh() -> tuple[Go, Read]:
            return lambda: run(**values), lambda r: r

        return fresh

    return Peer(name, FORWARD, make, needs)


def right(x: float, n: int, one: float) -> Values:
    return {"x": x + sum([one] * n)}


def counted(calls: list[int]) -> Peer:
    def run(x: float, n: int, one: float) -> Values:
        calls.append(n)
        return right(x, n, one)

    return peer("counted", run)


@pytest.mark.deep
@pytest.mark.parametrize("name", WORKLOADS)
def test_c_numpy_and_python_agree_with_the_machine(name: str) -> None:
    """Each peer computes what the program does: results, adjoints by hand, and the way back."""
    workload = WORKLOADS[name]
    for task in workload.tasks:
        peers = [p for p in engine_peers(workload, ("python",)) if p.task == task]
        peers += [
            p
            for p in workload.peers
            if p.task == task and p.name in ("C", "NumPy", "Python", "SciPy")
        ]
        found = measure(workload, task, peers, turns=1, limit=0.0, scale=0.0)
        there = [p.name for p in peers if p.there]
        assert [e.name for e in found.entries] == there
        assert {e.size for e in found.entries} == {workload.sizes[0]}


@pytest.mark.deep
@pytest.mark.parametrize("task", [FORWARD, BACK, GRADIENT])
def test_all_engines_take_part(task: str) -> None:
    peers = [p for p in engine_peers(LOOP, engine_names()) if p.task == task]
    found = measure(LOOP, task, peers, turns=1, limit=0.0)
    names = [e.name for e in found.entries]
    assert {"rvm native", "rvm vector", "rvm python", "rvm reference"} <= set(names)
    assert (IN_PLACE in names) == (task == GRADIENT)
    assert ("rvm native, unchecked" in names) == (task != BACK)


def test_another_number_is_an_error() -> None:
    def wrong(x: float, n: int, one: float) -> Values:
        return {"x": right(x, n, one)["x"] * (1 + 1e-7)}

    with pytest.raises(InternalError) as caught:
        measure(LOOP, FORWARD, [peer("a", right), peer("b", wrong)], turns=1, limit=0.0)
    assert caught.value.code == "C007"
    assert "`loop`, b gives another `x`" in caught.value.message


@wide
def test_what_differs_by_less_than_agreement_passes() -> None:
    def near(x: float, n: int, one: float) -> Values:
        return {"x": right(x, n, one)["x"] * (1 + 1e-9)}

    measure(LOOP, FORWARD, [peer("a", right), peer("b", near)], turns=1, limit=0.0)


@wide
def test_a_size_that_takes_too_long_is_not_tried() -> None:
    calls: list[int] = []
    found = measure(LOOP, FORWARD, [counted(calls)], turns=2, limit=0.0)
    assert set(calls) == {10} and found.entries[0].size == 10
    calls.clear()
    found = measure(LOOP, FORWARD, [counted(calls)], turns=2, limit=1e9, scale=1e-4)
    assert set(calls) == {10, 100} and found.entries[0].size == found.entries[0].work == 100


@wide
def test_a_short_run_is_repeated_within_its_turn() -> None:
    found = measure(CALLS, FORWARD, [peer("a", lambda r, x, y: {"r": r})], turns=3, limit=0.0)
    (entry,) = found.entries
    assert entry.times.loops > 10 and len(entry.times.seconds) == 3


@wide
def test_contestants_that_lack_something_are_listed_as_left_out() -> None:
    peers = [peer("a", right), peer("b", right, needs="no_such_module")]
    found = measure(LOOP, FORWARD, peers, turns=1, limit=0.0)
    assert [e.name for e in found.entries] == ["a"]
    assert found.left_out == (("b", "no_such_module is not installed"),)


def test_ratios_are_of_a_unit_and_turn_by_turn() -> None:
    slow = ContestEntry("slow", 10, 10, Times((1.0, 2.0, 3.0)))
    fast = ContestEntry("fast", 100, 100, Times((1.0, 1.0, 2.0)))
    contest = Contest("w", FORWARD, "step", (slow, fast))
    found = contest.ratio("slow", "fast")
    assert found is not None and (found.low, found.middle, found.high) == (12.5, 15.0, 17.5)
    assert contest.ratio("slow", "nobody") is None
    assert fast.unit_ns == pytest.approx(1e7)


def test_inputs_are_the_same_each_time() -> None:
    for workload in WORKLOADS.values():
        one, two = (workload.inputs(workload.sizes[0]) for _ in range(2))
        assert one.keys() == two.keys()
        for key, value in one.items():
            assert np.array_equal(np.asarray(value), np.asarray(two[key])), (workload.name, key)


def test_sizes_ascend_and_work_with_them() -> None:
    for workload in WORKLOADS.values():
        work: list[Any] = [workload.work(n) for n in workload.sizes]
        assert work == sorted(set(work)) and work[0] > 0
