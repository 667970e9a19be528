"""Timing engines and plain Python in turns, so that a slow minute hits all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter
from typing import Any

import numpy as np

from rvm.faults import InternalError
from rvm.machine import Machine
from rvm.state import Options
from rvm_tools.bench.workloads import Workload

PLAIN = "plain Python"


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of several runs."""

    seconds: tuple[float, ...]

    @property
    def middle(self) -> float:
        return median(self.seconds)

    @property
    def spread(self) -> float:
        """Half the distance between the quartiles, as a share of the median."""
        if len(self.seconds) < 2:
            return 0.0
        low, _, high = quantiles(self.seconds, n=4, method="inclusive")
        return (high - low) / 2 / self.middle


@dataclass(frozen=True, slots=True)
class Measured:
    """What one workload took: `steps` ticks by each engine both ways, and plain Python's time."""

    name: str
    steps: int
    plain: Times
    forwards: dict[str, Times]
    backwards: dict[str, Times]

    def ratio(self, engine: str) -> float:
        """How many times the engine's run takes what plain Python takes."""
        return self.forwards[engine].middle / self.plain.middle


def measure(
    workload: Workload,
    engines: Sequence[str],
    repeat: int,
    scale: float = 1.0,
    after_each: Callable[[], object] = lambda: None,
) -> Measured:
    """Time a workload; the first run of each contestant warms up and is not counted.

    InternalError if an engine and plain Python differ in a result, or the run back does not
    restore the inputs (floats: within 1e-6).
    """
    program = workload.program()
    there: dict[str, list[float]] = {e: [] for e in engines}
    back: dict[str, list[float]] = {e: [] for e in engines}
    plain: list[float] = []
    steps = 0
    for turn in range(repeat + 1):
        inputs = workload.inputs(scale)
        began = perf_counter()
        expected = workload.python(**inputs)
        plain.append(perf_counter() - began)
        for engine in engines:
            arrays = workload.arrays(scale)
            start = deepcopy(arrays)
            machine = Machine.start(program, "main", arrays, Options(engine=engine))
            began = perf_counter()
            machine.run()
            middle = perf_counter()
            result = dict(machine.result)
            if turn == 0:
                result = deepcopy(result)
            again = perf_counter()
            steps = machine.time
            machine.run_back()
            back[engine].append(perf_counter() - again)
            there[engine].append(middle - began)
            if turn == 0:
                _same(workload.name, engine, result, expected)
                _same(workload.name, engine, machine.result, start)
            after_each()
    return Measured(
        workload.name,
        steps,
        Times(tuple(plain[1:])),
        {e: Times(tuple(t[1:])) for e, t in there.items()},
        {e: Times(tuple(t[1:])) for e, t in back.items()},
    )


def _same(name: str, engine: str, have: Any, want: Any) -> None:
    for key, value in want.items():
        if not np.allclose(have[key], value, rtol=1e-9, atol=1e-6):
            raise InternalError(
                "C002",
                f"the workload `{name}` gives another `{key}` on the {engine} engine",
                values={"engine": have[key], "expected": value},
            )
