"""Exceptions that signal handlers raise at random moments: data are the old or the new ones.

A handler raises once, or a second time soon after, while what was begun is being taken back.  It
does so only while the operation is under way, so that every exception is the operation's to handle.
"""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

import rvm
from attack.cases import Broken, InputKind
from attack.runs import bits
from rvm.engines import ENGINES, LAW, executing
from rvm.faults import RvmError
from rvm.run.machine import Machine

_TEXT = """\
func main(x: i64[n], q: fixed[n], k: i64)
    for r = 1 to k
        for i = 0 to n - 1
            add x[i], r * i
            xor x[i], 5
            add q[i], fixed(r) * 0.25
        end
    end

func smooth(y: f64[n], e: f64, k: i64)
    for r = 1 to k
        for i = 0 to n - 2
            add y[i], 0.01 * sin(y[i + 1])
        end
    end
    add e, sum(y)
"""
_OPERATIONS = ("call", "uncall", "drift", "map", "grad", "machine", "back")
_SPEED = dict.fromkeys(ENGINES, 120) | {LAW: 12, "native": 4000}
"""Iterations of a loop that take a few milliseconds on an engine."""


class _Alarm(Exception):
    """What the handler raises."""


class _Measured(NamedTuple):
    """An operation undisturbed: its seconds, and the data before and after it."""

    seconds: float
    old: Any
    new: Any


@cache
def _library() -> rvm.Library:
    return rvm.assemble(_TEXT, "signals.rasm")


def _data_for(operation: str, rounds: int) -> dict[str, Any]:
    """Fresh data for an operation."""
    rng = np.random.default_rng(7)
    if operation in ("drift", "grad"):
        return {"y": rng.normal(size=24), "e": 0.0, "k": rounds}
    if operation == "map":
        return {"x": rng.integers(0, 9, (3, 24)), "q": rng.integers(0, 9, (3, 24)), "k": rounds}
    return {"x": rng.integers(0, 9, 24), "q": rng.integers(0, 9, 24), "k": rounds}


def _begun(operation: str, engine: str, data: Mapping[str, Any]) -> Callable[[], object]:
    """The operation on these data, to be called."""
    if operation in ("machine", "back"):
        machine = Machine(_library(), "main", engine=engine, **data)
        return machine.run if operation == "machine" else lambda: machine.run().run_back()
    name = "smooth" if operation in ("drift", "grad") else "main"
    f = _library()[name].with_options(engine=engine)
    match operation:
        case "grad":
            return lambda: f.grad(loss="e", **data)
        case "map":
            return lambda: f.map(**data)
        case "uncall":
            return lambda: (~f)(**data)
        case _:
            return lambda: f(**data)


@cache
def _measured(operation: str, engine: str) -> _Measured:
    """An operation undisturbed; once before, so that compiling is not measured."""
    rounds = _SPEED[engine] // (3 if operation == "grad" else 1)
    for _ in range(2):
        data = _data_for(operation, rounds)
        old = bits(data)
        run = _begun(operation, engine, data)
        began = time.perf_counter()
        run()
        seconds = time.perf_counter() - began
    return _Measured(seconds, old, bits(data))


def _make(rng: random.Random) -> bytes:
    """What is done on which engine, and when it is disturbed."""
    case = {
        "operation": rng.choice(_OPERATIONS),
        "engine": rng.choice(executing()),
        "after": rng.random() * 1.05,
        "again": rng.choice((0.0, 0.0, 1e-6, 3e-5, 1e-4, 1e-3)),
    }
    return json.dumps(case).encode()


def _attack(data: bytes, folder: Path) -> bool:
    """Do an operation, raise in it, and look at the data."""
    case = json.loads(data)
    operation, engine = str(case["operation"]), str(case["engine"])
    plain = _measured(operation, engine)
    rounds = _SPEED[engine] // (3 if operation == "grad" else 1)
    given = _data_for(operation, rounds)
    run = _begun(operation, engine, given)
    raised = _disturbed(run, plain.seconds * float(case["after"]), float(case["again"]))
    found = bits(given)
    what = f"{operation} on {engine}"
    if operation in ("machine", "back"):
        if raised:
            _stands(run, given, plain, what)
        return True
    allowed = (plain.old, plain.new) if raised else (plain.new,)
    if found not in allowed:
        raise Broken(f"data are neither old nor new behind {what}", f"raised {raised} times")
    return True


def _stands(run: Any, given: Mapping[str, Any], plain: _Measured, what: str) -> None:
    """Raise Broken unless an interrupted machine runs back to its start, or says that it can't."""
    cells = [c.cell_contents for c in run.__closure__ or ()]
    machine = next((c for c in cells if isinstance(c, Machine)), None) or run.__self__
    try:
        machine.run_back()
    except RvmError:
        return
    if bits(given) != plain.old:
        raise Broken(f"a machine believes a wrong place: {what}")


def _disturbed(run: Callable[[], object], after: float, again: float) -> int:
    """Run with a handler that raises after some seconds, and perhaps again; how often it did."""
    count = 0

    def operation() -> None:
        run()

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal count
        while frame is not None and frame.f_code is not operation.__code__:
            frame = frame.f_back
        if frame is not None:
            count += 1
            if again and count == 1:
                signal.setitimer(signal.ITIMER_REAL, again)
            raise _Alarm(count)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, max(after, 1e-6))
    try:
        operation()
    except _Alarm:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return count


KIND = InputKind("signals", "handlers that raise", ".json", _make, _attack, (), share=0.5)
