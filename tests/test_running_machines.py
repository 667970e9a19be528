"""A machine runs once at a time: callbacks, signal handlers and other threads are refused."""

from __future__ import annotations

import copy
import signal
import threading
from typing import Any

import pytest

import rvm
from rvm.engines import executing

TOLD = rvm.assemble("""
func f(x: i64, k: i64)
    for i = 1 to k
        add x, i
        extern both
            callback told, x
        end
    end
""").f
LONG = rvm.assemble("""
func f(x: i64, k: i64)
    for i = 1 to k
        add x, i
        alloc t: i64 = x
        drop t
    end
""").f
WAYS = ("run", "run_back", "step", "seek", "go")
each_engine = pytest.mark.parametrize("engine", executing(loops=False))


def use(machine: rvm.Machine, way: str) -> None:
    match way:
        case "step":
            machine.step(3)
        case "seek":
            machine.seek(2)
        case _:
            getattr(machine, way)()


@each_engine
@pytest.mark.parametrize("way", WAYS)
def test_a_callback_does_not_run_its_machine(engine: str, way: str) -> None:
    caught: list[Any] = []

    def told(*_: object) -> None:
        if len(caught) < 2:
            with pytest.raises(rvm.MachineError) as found:
                use(machine, way)
            caught.append(found.value.code)

    machine = TOLD.machine(x=0, k=6, engine=engine, callbacks={"told": told})
    assert machine.run()["x"] == 21
    assert caught == ["R020", "R020"]
    assert machine.run_back()["x"] == 0


@each_engine
def test_a_callback_may_run_a_copy_and_ask_its_machine(engine: str) -> None:
    ends: list[int] = []

    def told(*_: object) -> None:
        if machine["x"] == 3 and not ends:
            ends.append(0)
            ends[0] = copy.copy(machine).run()["x"]

    machine = TOLD.machine(x=0, k=6, engine=engine, callbacks={"told": told})
    assert machine.run()["x"] == 21 and ends == [21]


@each_engine
def test_an_error_from_a_callback_does_not_leave_it_running(engine: str) -> None:
    def told(*_: object) -> None:
        if machine["x"] == 10 and not seen:
            seen.append(1)
            raise KeyError("once")

    seen: list[int] = []
    machine = TOLD.machine(x=0, k=6, engine=engine, callbacks={"told": told})
    with pytest.raises(KeyError):
        machine.run()
    assert machine.run()["x"] == 21


@each_engine
@pytest.mark.parametrize("way", WAYS)
def test_another_thread_does_not_run_it(engine: str, way: str) -> None:
    """While a callback holds the first up, which makes this certain."""
    caught: list[str] = []

    def other() -> None:
        try:
            use(machine, way)
        except rvm.MachineError as error:
            caught.append(error.code)

    def told(*_: object) -> None:
        if not caught:
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()

    machine = TOLD.machine(x=0, k=6, engine=engine, callbacks={"told": told})
    assert machine.run()["x"] == 21
    assert caught == ["R020"]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no such timers")
@pytest.mark.parametrize("way", WAYS)
def test_a_signal_handler_does_not_run_it(way: str) -> None:
    """Nor put it back to its beginning, where the way back forgets."""
    caught: list[str] = []

    def handle(*_: object) -> None:
        try:
            use(machine, way)
        except rvm.MachineError as error:
            caught.append(error.code)

    before = signal.signal(signal.SIGALRM, handle)
    try:
        machine = LONG.machine(x=0, k=100_000, engine="python")
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        machine.run()
        signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert caught == ["R020"]
    assert machine["x"] == 100_000 * 100_001 // 2
