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
from interrupts.operations import PROGRAM, ROUNDS, TEXT
from sizes import first_and_another, part, sized, thin

import rvm
from rvm.engines import executing
from rvm.host import signals
from rvm.library.handle import FunctionHandle
from rvm.run import doors
from rvm.run.transaction import AS_BEFORE

pytestmark = [
    sized,
    pytest.mark.skipif(sys.platform != "linux", reason="the timers are those of Linux"),
]
WRAPPERS = (doors.__file__, signals.__file__)
HOME = str(Path(rvm.__file__).parent)
GIVEN: dict[str, Any] = {"loss": "e", "tangents": {"b": 1.0}, "seeds": {"e": 1.0}}
"""The arguments of methods that are no inputs."""
JUDGED = ("grad", "vjp", "jacobian", "hessian", "hvp", "map.grad")
"""Those whose results have an error that is computed when it is asked for."""
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
    return out | {f"{name} error": read_later(out[name]) for name in JUDGED}


def read_later(call: Callable[..., Any]) -> Callable[..., Any]:
    """A call, and then the error of its result."""

    def both(*args: Any, **named: Any) -> Any:
        return call(*args, **named).info.error

    both.__signature__ = inspect.signature(call)  # type: ignore[attr-defined]
    return both


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
        wraps = (
            code.co_filename in (doors.__file__, signals.__file__)
            or trace.tb_lineno == code.co_firstlineno
        )
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


def shrunk(e, a, k):  # type: ignore[no-untyped-def]
    for i in range(k):
        e += a[i % len(a)] * 0.3


def typed(e: rvm.f64, k: rvm.i64) -> None:
    e += k * 0.3


GENERIC = (
    "func shrunk[T](e: T, a: T[n])\n    for i = 0 to n - 1\n        add e, a[i] * T(0.3)\n    end\n"
)
MADE: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "assemble": (lambda: TEXT, rvm.assemble),
    "gradient": (lambda: rvm.assemble(TEXT), lambda p: rvm.gradient(p, "model")),
    "tangent": (lambda: rvm.assemble(TEXT), lambda p: rvm.tangent(p, "model")),
    "invert": (lambda: rvm.assemble(TEXT), rvm.invert),
    "gradient_program": (lambda: rvm.assemble(TEXT).model, lambda f: f.gradient_program),
    "for_values": (
        lambda: rvm.assemble(GENERIC).shrunk,
        lambda f: f.for_values({"e": 0.0, "a": np.ones(3)}),
    ),
    "program": (lambda: rvm.reversible(typed), lambda f: f.program),
    "library.f": (lambda: rvm.assemble(GENERIC), lambda p: p.shrunk),
    "library['f[f64]']": (lambda: rvm.assemble(GENERIC), lambda p: p["shrunk[f64]"]),
    "having": (lambda: rvm.assemble(GENERIC), lambda p: p.having("shrunk[f64]")),
    "dir": (lambda: rvm.assemble(GENERIC), dir),
    "source_of": (lambda: rvm.reversible(shrunk), lambda f: f.source_of(0.0, np.ones(3), 2)),
}
"""What is made when it is asked for, without inputs: of what, and how."""


@thin
@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("name", MADE)
def test_ctrl_c_while_something_is_made(name: str) -> None:
    rng, (prepare, make) = random.Random(name), MADE[name]
    make(prepare())
    whole, began = prepare(), perf_counter()
    make(whole)
    lasts = perf_counter() - began
    for _ in range(part(400)):
        error: BaseException | None = None
        whole = prepare()
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, 1.1 * lasts))
                make(whole)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt as found:
            error = found
        assert error is None or not is_inside(error) or isinstance(error, rvm.Interrupted), name
