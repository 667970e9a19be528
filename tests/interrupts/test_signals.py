"""Handlers of signals that raise at any moment, once and twice: data are old or new ones."""

from __future__ import annotations

import ctypes
import gc
import random
import signal
import sys
import time
from collections.abc import Iterator
from time import perf_counter
from types import FrameType
from typing import Any

import pytest
from interrupts.operations import ENGINES, OPERATIONS, Call, Debug
from sizes import part, sample, sized, thin

import rvm
from rvm.engines.native import flight
from rvm.host import signals

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the timers are those of Linux")


class Timeout(Exception):
    """What a handler of SIGALRM raises, as they usually do."""


def raising(number: int, frame: FrameType | None) -> None:
    """A handler as a user has it."""
    assert number in SIGNALS and frame is not None
    raise Timeout


SIGNALS = (signal.SIGALRM, signal.SIGUSR1)


class Timer:
    """A timer that sends SIGUSR1 once, beside the one that Python knows, which sends SIGALRM."""

    def __init__(self) -> None:
        self.c = ctypes.CDLL(None)
        event = (ctypes.c_int * 16)()
        event[2] = signal.SIGUSR1
        self.id = ctypes.c_void_p()
        assert self.c.timer_create(time.CLOCK_MONOTONIC, event, ctypes.byref(self.id)) == 0

    def set(self, delay: float) -> None:
        at = (ctypes.c_long * 4)(0, 0, int(delay), int(delay % 1 * 1e9))
        assert self.c.timer_settime(self.id, 0, at, None) == 0


@pytest.fixture
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many boundaries, in small runs."""
    monkeypatch.setattr("rvm.run.machine.CHUNK_SECONDS", 1e-4)
    monkeypatch.setattr("rvm.engines.extent.first_chunk", lambda *_: 20)
    monkeypatch.setattr(flight.Launch, "_foreseen", lambda *_: 20)
    monkeypatch.setattr(flight, "SOON", 1e-9)


@pytest.fixture
def timer() -> Iterator[Timer]:
    """Python drops what a handler raises in a callback of its collector: those of tools are off."""
    before, callbacks = [signal.getsignal(n) for n in SIGNALS], gc.callbacks[:]
    gc.callbacks.clear()
    made = Timer()
    yield made
    made.set(0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    gc.callbacks[:] = callbacks
    for n, handler in zip(SIGNALS, before, strict=True):
        signal.signal(n, handler)


def attack(
    timer: Timer, engine: str, kind: type[Call], handler: Any, times: int, tries: int
) -> int:
    """Do an operation again and again with signals at random moments; how often it raised.

    On a busy machine all signals may come late: it goes on until one has raised, for a while.
    """
    rng, raised, operation = random.Random(len(kind.name) + times), 0, kind(engine)
    operation.start()
    began = perf_counter()
    operation.go()
    lasts = perf_counter() - began
    for n in SIGNALS:
        signal.signal(n, handler)
    for done in range(max(tries, 100)):
        if done >= tries and raised:
            break
        operation.start()
        delay, apart = rng.uniform(1e-6, 1.1 * lasts), 10 ** rng.uniform(-6.5, -3)
        error: BaseException | None = None
        # What comes late is raised in these lines, when the operation is over.
        try:
            try:
                try:
                    if times > 1:
                        timer.set(delay + apart)
                    signal.setitimer(signal.ITIMER_REAL, delay)
                    operation.go()
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    timer.set(0)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                timer.set(0)
        except (Timeout, KeyboardInterrupt) as found:
            error, raised = found, raised + 1
        # A signal that another thread has taken for us may come later still.
        for _ in range(3):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0)
                timer.set(0)
                time.sleep(1e-5)
                look(operation, error, handler)
                break
            except (Timeout, KeyboardInterrupt) as found:
                error = error or found
    return raised


def look(operation: Call, error: BaseException | None, handler: Any) -> None:
    """Whether all is as it must be after an operation."""
    ours = (KeyboardInterrupt, rvm.Interrupted)
    assert error is None or type(error) in ((Timeout,) if handler is raising else ours)
    assert all(signal.getsignal(n) is handler for n in SIGNALS)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not signals._waiting, "a signal that is left over is heard in another run"
    operation.check(error)


@thin
@pytest.mark.usefixtures("short_chunks")
@pytest.mark.parametrize("kind", OPERATIONS, ids=lambda k: k.name)
@pytest.mark.parametrize("engine", ENGINES)
@sample
@sized
def test_data_are_whole_whenever_a_handler_raises(
    engine: str, kind: type[Call], timer: Timer
) -> None:
    raised = sum(attack(timer, engine, kind, raising, times, part(25)) for times in (1, 2))
    assert raised > 0


@pytest.mark.soak
@pytest.mark.parametrize("chunks", ["short", "long"])
@pytest.mark.parametrize("handler", [raising, signal.default_int_handler], ids=["alarm", "ctrl-c"])
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("kind", OPERATIONS, ids=lambda k: k.name)
@pytest.mark.parametrize("engine", ENGINES)
def test_soak(
    engine: str,
    kind: type[Call],
    times: int,
    handler: Any,
    chunks: str,
    timer: Timer,
    request: pytest.FixtureRequest,
) -> None:
    if chunks == "short":
        request.getfixturevalue("short_chunks")
    # A session is stopped by Ctrl-C, and raises nothing.
    stops = issubclass(kind, Debug) and handler is not raising
    assert attack(timer, engine, kind, handler, times, 250) > 0 or stops
