"""The cost of counting: counted runs on an engine compared with ordinary ones.

`python -m rvm_bench.counting [SCALE] [ENGINE]` prints the median times of runs in turns, and their
ratio with the quartiles, in seconds of processor time; the default engine is python.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from time import thread_time
from typing import Any, NamedTuple

import numpy as np

from rvm import assemble, load
from rvm.program import Program
from rvm.run.machine import Machine
from rvm.state import Options

_TURNS = 9
"""Runs of each kind, after one that warms up."""


_FOLDER = Path(__file__).parent / "work"


class _CountedWork(NamedTuple):
    """A program of one sort of work, and its inputs at a scale.

    Without a text it is one of those that `rvm bench` runs.
    """

    name: str
    text: str
    inputs: Callable[[float], dict[str, Any]]

    def program(self) -> Program:
        """Its program, assembled anew."""
        if self.text:
            return assemble(self.text, self.name).program
        return load(str(_FOLDER / f"{self.name}.rasm")).program


def _bodies(scale: float) -> dict[str, Any]:
    random = np.random.default_rng(1)
    return {
        "e": 0.0,
        "x": random.normal(size=(5, 3)),
        "v": random.normal(size=(5, 3)) / 10,
        "m": np.full(5, 0.01),
        "steps": round(1500 * scale),
        "h": 1e-3,
    }


def _matrices(scale: float) -> dict[str, Any]:
    n = round(100 * scale ** (1 / 3))
    return {"C": np.zeros((n, n)), "A": np.ones((n, n)), "B": np.ones((n, n))}


_WORKS = (
    _CountedWork(
        "loop",
        "func f(s: i64, n: i64)\n    for i = 1 to n\n        xor s, i * i\n    end\n",
        lambda scale: {"s": 0, "n": round(300_000 * scale)},
    ),
    _CountedWork(
        "floats",
        "func f(x: f64, v: f64, n: i64)\n    for i = 1 to n\n"
        "        add x, v * 0.01\n        sub v, x * 0.01 / (1 + x * x)\n    end\n",
        lambda scale: {"x": 1.0, "v": 0.0, "n": round(200_000 * scale)},
    ),
    _CountedWork(
        "branches",
        "func f(a: i64, b: i64, n: i64)\n    for i = 1 to n\n        if i % 3 == 0\n"
        "            add a, i\n        else\n            xor b, i\n        end\n    end\n",
        lambda scale: {"a": 0, "b": 0, "n": round(150_000 * scale)},
    ),
    _CountedWork(
        "elements",
        "func f(x: i64[m], n: i64)\n    for i = 1 to n\n"
        "        add x[i % 8], x[8 + i % 5] * 3\n    end\n",
        lambda scale: {"x": np.arange(16), "n": round(150_000 * scale)},
    ),
    _CountedWork(
        "arrays",
        "func f(x: f64[m], w: f64[m], y: f64, n: i64)\n    for i = 1 to n\n"
        "        add x, w * 0.5\n        add y, dot(x, w)\n        add x[0:4], w[4:8]\n    end\n",
        lambda scale: {"x": np.ones(10), "w": np.ones(10), "y": 0.0, "n": round(10_000 * scale)},
    ),
    _CountedWork(
        "slices",
        "func f(x: f64[m], y: f64, n: i64)\n    for i = 1 to n\n"
        "        add y, sum(x[i % 7:])\n    end\n",
        lambda scale: {"x": np.ones(10), "y": 0.0, "n": round(20_000 * scale)},
    ),
    _CountedWork(
        "calls",
        "func f(out: i64, n: i64)\n    if n < 2\n        add out, n\n    else\n"
        "        call f(out, n - 1)\n        call f(out, n - 2)\n    end\n",
        lambda scale: {"out": 0, "n": round(20 + 1.44 * np.log2(scale))},
    ),
    _CountedWork(
        "leapfrog",
        "",
        lambda scale: {
            "x": 1.0,
            "y": 0.0,
            "u": 0.0,
            "v": 1.0,
            "n": round(20_000 * scale),
            "h": 1e-3,
        },
    ),
    _CountedWork("bodies", "", _bodies),
    _CountedWork("matmul", "", _matrices),
    _CountedWork(
        "xtea",
        "",
        lambda scale: {
            "v": np.arange(2 * round(3000 * scale), dtype=np.uint32),
            "k": np.arange(4, dtype=np.uint32),
        },
    ),
)


def _compare(work: _CountedWork, scale: float, engine: str) -> tuple[int, list[float], list[float]]:
    """Ticks, and the seconds of ordinary and of counted runs."""
    program = work.program()
    times: tuple[list[float], list[float]] = [], []
    steps = 0
    for _ in range(_TURNS + 1):
        for counted in (False, True):
            options = Options(engine=engine)
            machine = Machine.start(program, program.entry, work.inputs(scale), options)
            if counted:
                machine.count()
            began = thread_time()
            machine.run()
            times[counted].append(thread_time() - began)
            steps = machine.time
    return steps, times[0][1:], times[1][1:]


def main(scale: float = 1.0, engine: str = "python") -> None:
    """Print the table."""
    print("work             steps  ordinary   counted  ratio")
    for work in _WORKS:
        steps, plain, counted = _compare(work, scale, engine)
        ratios = [c / p for p, c in zip(plain, counted, strict=True)]
        low, _, high = quantiles(ratios, n=4)
        print(
            f"{work.name:<10}{steps:>12,} {median(plain):>8.3f}s {median(counted):>8.3f}s "
            f"{median(ratios):>6.2f} ({low:.2f} … {high:.2f})"
        )


if __name__ == "__main__":
    main(float((*sys.argv, "1")[1]), *sys.argv[2:3])
