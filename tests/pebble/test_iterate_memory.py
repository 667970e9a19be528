"""What a run takes: memory as traced, files on disk, and what is left of them afterwards."""

from __future__ import annotations

import gc
import signal
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sizes import wide

import rvm
from rvm.faults import Interrupted
from rvm.pebble import iterate
from rvm.pebble.bridge.runs.files import PREFIX

SIZE = 250_000
STATE = 8 * SIZE
SLACK = 0.25
"""States that everything else may take: the schedule, files' buffers, Python itself."""


def traced(run: Callable[[], object]) -> float:
    """The most memory that a run takes, in states."""
    run()
    gc.collect()
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1] / STATE
    finally:
        tracemalloc.stop()


def halving(writes: str) -> Any:
    if writes == "new":
        return lambda x: x * 0.5
    if writes == "out":
        return lambda x, out: np.multiply(x, 0.5, out=out)

    def step(x: np.ndarray) -> None:
        x *= 0.5

    return step


def walked(run: Any, x0: np.ndarray, **more: Any) -> None:
    for _, state in run.back(x0, **more):
        assert state is not None
        del state


@pytest.mark.deep
@pytest.mark.parametrize("writes", ("new", "out", "in place"))
@pytest.mark.parametrize("terms", ({}, {"price": float("inf")}, {"disk": 4}))
def test_a_run_takes_the_memory_of_its_pebbles(writes: str, terms: dict[str, Any]) -> None:
    x0, bar = np.ones(SIZE), np.ones(SIZE)
    run = iterate(
        halving(writes),
        40,
        pebbles=7,
        writes=writes,
        adjoint=lambda x, y: 0.5 * y,
        progress=False,
        **terms,
    )
    there = traced(lambda: run(x0))
    back = traced(lambda: walked(run, x0))
    gradient = traced(lambda: run.gradient(x0, seed=bar))
    held = run.reach(x0).played.peak
    assert there <= held + 1 + SLACK
    # Back: the last state, and in buffers the copy that is given out.
    assert back <= 7 + (1 if writes == "new" else 2) + SLACK
    # A gradient: two adjoints.
    assert gradient <= 7 + (2 if writes == "new" else 3) + SLACK
    assert back > 6


@wide
@pytest.mark.parametrize("writes", ("new", "out", "in place"))
def test_a_budget_in_bytes_is_kept(writes: str) -> None:
    x0, bar = np.ones(SIZE), np.ones(SIZE)
    run = iterate(
        halving(writes),
        60,
        memory=9 * STATE,
        writes=writes,
        adjoint=lambda x, y: 0.5 * y,
        progress=False,
    )
    assert 8 < traced(lambda: run.gradient(x0, seed=bar)) <= 9 + SLACK
    assert traced(lambda: run(x0)) <= 2 + SLACK


@wide
@pytest.mark.parametrize("terms", ({}, {"price": 0}))
def test_functions_of_programs_keep_to_a_budget_in_bytes(terms: dict[str, Any]) -> None:
    program = rvm.assemble("""
func step(y: f64[n], x: f64[n], c: f64)
    for i = 0 to n - 1
        add y[i], x[i] * c
    end
""")
    x0, bar, constants = np.ones(SIZE), np.ones(SIZE), {"c": 0.5}
    step = program.step.with_options(engine="native")
    run = iterate(step, 40, memory=11 * STATE, progress=False, **terms)
    assert 9 < traced(lambda: run.gradient(x0, seed=bar, constants=constants)) <= 11 + SLACK
    assert traced(lambda: run(x0, constants=constants)) <= 11 + SLACK


# ------------------------------------------------------------------ disk


def saved(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.rglob("*.npy"))


def test_states_on_disk_are_files_as_the_plan_says(tmp_path: Path) -> None:
    most, sizes = 0, set()

    def step(x: dict[str, Any]) -> dict[str, Any]:
        nonlocal most
        files = list(tmp_path.rglob("*.npy"))
        names = {p.name.split(".")[0] for p in files}
        most = max(most, len(names))
        sizes.update(np.load(p).shape for p in files)
        return {"a": x["a"] + 1, "b": x["b"] + [1j, 2], "n": x["n"] * 3, "s": x["s"][1:] + b"z"}

    x0 = {"a": np.zeros((2, 3)), "b": np.zeros(2, complex), "n": 10**30, "s": b"abc"}
    run = iterate(step, 50, pebbles=2, disk=6, write=1, read=1, folder=tmp_path, progress=False)
    walk = run.back(x0)
    states = dict(walk)
    for i in range(51):
        x = states[i]
        assert (x["a"] == i).all() and (x["b"] == [1j * i, 2 * i]).all()
        assert x["n"] == 10**30 * 3**i and x["s"] == (b"abc" + b"z" * i)[-3:]
    cost = walk.plan.cost
    assert (walk.played.writes, walk.played.reads) == (cost.writes, cost.reads)
    assert most == walk.played.disk_peak == cost.disk_peak > 2
    assert {(2, 3), (2,), (3,)} <= sizes
    assert list(tmp_path.iterdir()) == []


class Stop(Exception):
    pass


@pytest.mark.parametrize("error", (Stop, KeyboardInterrupt, Interrupted))
@pytest.mark.parametrize("what", ("step", "adjoint", "loss"))
@pytest.mark.parametrize("writes", ("new", "out", "in place"))
def test_an_interrupted_run_leaves_no_files(
    tmp_path: Path, error: type[BaseException], what: str, writes: str
) -> None:
    count = 0
    plain = halving(writes)

    def failing(part: str, after: int) -> None:
        nonlocal count
        if part == what:
            count += 1
            if count == after:
                assert saved(tmp_path)
                if error is Interrupted:
                    signal.raise_signal(signal.SIGINT)
                raise error

    def step(x: np.ndarray, **out: Any) -> Any:
        failing("step", 35)
        return plain(x, **out)

    def adjoint(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        failing("adjoint", 3)
        return y

    def running(s: np.ndarray, i: int) -> None:
        failing("loss", 3)

    run = iterate(
        step,
        40,
        pebbles=2,
        disk=9,
        write=1,
        read=1,
        writes=writes,
        adjoint=adjoint,
        folder=tmp_path,
        progress=False,
    )
    x0 = np.arange(4.0)
    with pytest.raises(error) as caught:
        run.gradient(x0, seed=np.ones(4), running=running)
    assert list(tmp_path.iterdir()) == []
    assert (x0 == np.arange(4.0)).all() and x0.flags.writeable
    assert type(caught.value) is error
    if isinstance(caught.value, Interrupted):
        assert caught.value.code == "R016" and not isinstance(caught.value, Exception)


def test_a_walk_that_is_given_up_leaves_no_files(tmp_path: Path) -> None:
    run = iterate(lambda x: x + 1, 60, pebbles=1, disk=8, folder=tmp_path, progress=False)
    with run.back(0.0) as walk:
        assert next(walk) == (60, 60.0) and saved(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StopIteration):
        next(walk)
    walk = run.back(0.0)
    next(walk)
    assert saved(tmp_path)
    del walk
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_without_a_folder_files_are_where_temporary_ones_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run = iterate(lambda x: x + 1, 60, pebbles=1, disk=8, progress=False)
    walk = run.back(0.0)
    next(walk)
    (own,) = tmp_path.iterdir()
    assert own.name.startswith(PREFIX) and saved(own)
    walk.close()
    assert list(tmp_path.iterdir()) == []
