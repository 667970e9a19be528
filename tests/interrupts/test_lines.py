"""An exception at every line of the machine's own Python: what windows there are is found so.

Signals wait while an instruction is executed; an exception that a trace function raises does not.
So this is more than a handler of a signal can do, and a machine may say that it is torn.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from interrupts.operations import ENGINES, OPERATIONS, Call, Debug, Mapped, Run, Stacks
from sizes import thin, wide

import rvm
from rvm.engines import executing
from rvm.host.signals import Relay
from rvm.registry import LAW, ROWS

KINDS = [k for k in OPERATIONS if k is not Debug]
"""A session has bookkeeping of its own beside the machine's; it is safe from signals only."""
OURS = (str(Path(rvm.__file__).parent), "<rvm ")
GENERATED = [row.name for row in ROWS if not row.compiles and row.name != LAW]
"""Engines of generated Python."""


class Stop(BaseException):
    pass


class Late(Exception):
    """What a library raises in a thread whose time is up."""


class Injector:
    """Raises at one line among those that are executed; `then`: and so many calls later."""

    def __init__(self, at: int, then: int = 0) -> None:
        self.at = at
        self.then = then
        self.kind: type[BaseException] = Stop if at % 2 else Late
        self.seen = 0
        self.generated: dict[tuple[str, int], int] = {}
        """The lines of generated code, and when each was executed last."""
        self.raised = 0

    def __enter__(self) -> Injector:
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        sys.setprofile(None)

    def trace(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        if event == "line":
            self.seen += 1
            if frame.f_code.co_filename.startswith("<rvm "):
                self.generated[frame.f_code.co_filename, frame.f_lineno] = self.seen
            if self.seen == self.at:
                self.raised += 1
                if self.then:
                    sys.setprofile(self.profile)
                raise self.kind
        return self.trace

    def profile(self, frame: FrameType, event: str, arg: Any) -> None:
        if frame.f_code.co_filename.startswith(OURS) and event in ("call", "c_call"):
            self.then -= 1
            if self.then == 0:
                self.raised += 1
                raise self.kind


def inject(operation: Call, at: int, then: int = 0) -> Injector:
    """Do an operation with exceptions at a line, and look at what is left."""
    operation.start()
    error: BaseException | None = None
    injector = Injector(at, then)
    try:
        with injector:
            operation.go()
    except (Stop, Late) as found:
        error = found
    operation.check(error)
    for number in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(number)
        if isinstance(handler, Relay):
            # Left behind: it acts as the handler that it stands for, and the next call removes it.
            with pytest.raises(KeyboardInterrupt) as caught:
                signal.raise_signal(number)
            assert type(caught.value) is KeyboardInterrupt
    operation.start()
    operation.go()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return injector


def lines(operation: Call) -> int:
    """How many lines of ours an operation executes."""
    operation.start()
    with Injector(-1) as injector:
        operation.go()
    return injector.seen


def attack(engine: str, kind: type[Call], tries: int, seed: int) -> tuple[int, int]:
    operation = small(kind, engine)
    n = lines(operation)
    stride = max(1, n // tries)
    raised = 0
    for at in range(1 + seed % stride, n, stride):
        raised += inject(operation, at).raised
        raised += inject(operation, at, 1 + (at // stride) % 7).raised
    return raised, n


def small(kind: type[Call], engine: str) -> Call:
    """An operation of few rounds, most of whose lines are those around them."""

    class Small(kind):  # type: ignore[valid-type, misc]
        def start(self) -> None:
            self.k = min(self.k, 12)
            super().start()

    return Small(engine)


@thin
@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
@pytest.mark.parametrize("engine", executing(loops=False)[1:])
def test_data_are_whole_after_an_exception_at_some_lines(engine: str, kind: type[Call]) -> None:
    raised, _ = attack(engine, kind, 12, seed=len(kind.name))
    assert raised > 6


@pytest.mark.parametrize("kind", [Stacks, Mapped], ids=lambda k: k.name)
@pytest.mark.parametrize("engine", GENERATED)
def test_no_instruction_is_repeated_for_an_exception_from_outside(
    engine: str, kind: type[Call]
) -> None:
    operation = small(kind, engine)
    lines(operation)
    operation.start()
    with Injector(-1) as found:
        operation.go()
    assert len(found.generated) > 10
    for at in found.generated.values():
        operation.start()
        with pytest.raises(Late), Injector(at) as injector:
            injector.kind = Late
            operation.go()
        assert operation.held() == operation.old


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
@pytest.mark.parametrize("engine", ENGINES)
def test_soak_of_lines(engine: str, kind: type[Call]) -> None:
    raised, n = attack(engine, kind, 1000, seed=1)
    assert raised > min(n, 500)


@wide
def test_a_machine_that_is_torn_says_so() -> None:
    operation = Run("reference")
    n, poisoned = lines(operation), 0
    for at in range(n // 3, n // 3 + 60):
        inject(operation, at)
    assert Run.poisoned == 0 and (poisoned := operation.poisoned) > 0, poisoned
