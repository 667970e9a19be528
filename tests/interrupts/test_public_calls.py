"""Ctrl-C at any moment of any public call of a function: it is told as the pages say."""

from __future__ import annotations

import inspect
import random
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from interrupts.operations import PROGRAM, ROUNDS
from sizes import first_and_another, part, sized, thin

import rvm
from rvm.engines import executing
from rvm.library.handle import FunctionHandle
from rvm.run import doors
from rvm.run.transaction import AS_BEFORE

pytestmark = [
    sized,
    pytest.mark.skipif(sys.platform != "linux", reason="the timers are those of Linux"),
]
HOME = str(Path(rvm.__file__).parent)
GIVEN: dict[str, Any] = {"loss": "e", "tangents": {"b": 1.0}, "seeds": {"e": 1.0}}
"""The arguments of methods that are no inputs."""
SHORT = ("for_values", "target_of", "with_options")
"""Methods that run nothing, and make no programs."""


def calls() -> dict[str, Callable[..., Any]]:
    """Every public method of a function and of its map, the calls themselves, and `check_grad`."""
    out: dict[str, Callable[..., Any]] = {"check_grad": rvm.check_grad}
    kinds = {"": FunctionHandle, "map.": type(PROGRAM.model.map)}
    for prefix, kind in kinds.items():
        for name, method in vars(kind).items():
            public = not name.startswith("_") or name == "__call__"
            takes = inspect.isfunction(method) and "inputs" in inspect.signature(method).parameters
            if public and takes and name not in SHORT:

                def call(f: Any, *a: Any, n: str = name, p: str = prefix, **k: Any) -> Any:
                    return getattr(f.map if p else f, n)(*a, **k)

                out[prefix + name] = call
                call.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]
    return out


CALLS = calls()


def bound(name: str, f: Any, k: int) -> Callable[[Any], Any]:
    """A call on an array, with what it asks for."""
    call = CALLS[name]
    asked = inspect.signature(call).parameters
    positional = [GIVEN[n] for n in asked if n in GIVEN and n != "loss"]
    more = {"loss": "e"} if "loss" in asked else {}
    if "map" in name and name != "map.__call__":
        more["wrt"] = ["a"]
    return lambda a: call(f, *positional, e=0.0, a=a, b=0.5, k=k, **more)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Python's own handler of Ctrl-C for the signal of a timer."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def is_inside(error: BaseException) -> bool:
    """Whether an exception came while code of rvm ran that had begun, within what wraps it."""
    trace, found = error.__traceback__, False
    while trace is not None:
        code = trace.tb_frame.f_code
        wraps = code.co_filename == doors.__file__ or trace.tb_lineno == code.co_firstlineno
        found |= code.co_filename.startswith(HOME) and not wraps
        trace = trace.tb_next
    return found


@thin
@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_in_any_call(name: str) -> None:
    rng = random.Random(name)
    engines = first_and_another(sorted(executing()), name)
    # A machine has no such option.
    for engine, estimate in product(engines, (False, True)[: 1 + (name != "machine")]):
        f = PROGRAM.model.with_options(engine=engine, error=estimate)
        shape = (3, 7) if name.startswith("map") else (7,)
        a = np.linspace(0.1, 0.9, int(np.prod(shape))).reshape(shape)
        go, old = bound(name, f, ROUNDS[engine] // 8), a.tobytes()
        go(a)
        began = perf_counter()
        go(a)
        lasts = perf_counter() - began
        for _ in range(part(400)):
            error: BaseException | None = None
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, 1.1 * lasts))
                    go(a)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt as found:
                error = found
            assert a.tobytes() == old
            if error is not None and is_inside(error):
                assert isinstance(error, rvm.Interrupted), (name, engine, error)
                hint = AS_BEFORE if name == "__call__" else doors.UNCHANGED
                assert error.hint in (hint, ""), (name, engine, error.hint)
