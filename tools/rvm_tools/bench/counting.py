"""What counting costs: a counted run on the python engine beside an ordinary one.

`python -m rvm_tools.bench.counting [SCALE]` prints the median times of runs in turns, and their
ratio with the quartiles.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median, quantiles
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from rvm import assemble
from rvm.machine import Machine
from rvm.state import Options

TURNS = 9
"""Runs of each kind, after one that warms up."""


class Work(NamedTuple):
    """A program of one sort of work, and its inputs at a scale."""

    name: str
    text: str
    inputs: Callable[[float], dict[str, Any]]


WORKS = (
    Work(
        "loop",
        "func f(s: i64, n: i64)\n    for i = 1 to n\n        add s, i\n    end\n",
        lambda scale: {"s": 0, "n": round(300_000 * scale)},
    ),
    Work(
        "floats",
        "func f(x: f64, v: f64, n: i64)\n    for i = 1 to n\n"
        "        add x, v * 0.01\n        sub v, x * 0.01 / (1 + x * x)\n    end\n",
        lambda scale: {"x": 1.0, "v": 0.0, "n": round(200_000 * scale)},
    ),
    Work(
        "branches",
        "func f(a: i64, b: i64, n: i64)\n    for i = 1 to n\n        if i % 3 == 0\n"
        "            add a, i\n        else\n            xor b, i\n        end\n    end\n",
        lambda scale: {"a": 0, "b": 0, "n": round(150_000 * scale)},
    ),
    Work(
        "elements",
        "func f(x: i64[m], n: i64)\n    for i = 1 to n\n"
        "        add x[i % 8], x[8 + i % 5] * 3\n    end\n",
        lambda scale: {"x": np.arange(16), "n": round(150_000 * scale)},
    ),
    Work(
        "arrays",
        "func f(x: f64[m], w: f64[m], y: f64, n: i64)\n    for i = 1 to n\n"
        "        add x, w * 0.5\n        add y, dot(x, w)\n        add x[0:4], w[4:8]\n    end\n",
        lambda scale: {
            "x": np.ones(10),
            "w": np.ones(10),
            "y": 0.0,
            "n": round(10_000 * scale),
        },
    ),
    Work(
        "slices",
        "func f(x: f64[m], y: f64, n: i64)\n    for i = 1 to n\n"
        "        add y, sum(x[i % 7:])\n    end\n",
        lambda scale: {"x": np.ones(10), "y": 0.0, "n": round(20_000 * scale)},
    ),
    Work(
        "calls",
        "func f(out: i64, n: i64)\n    if n < 2\n        add out, n\n    else\n"
        "        call f(out, n - 1)\n        call f(out, n - 2)\n    end\n",
        lambda scale: {"out": 0, "n": round(18 + 2 * np.log2(scale))},
    ),
)


def compare(work: Work, scale: float) -> tuple[int, list[float], list[float]]:
    """Ticks, and the seconds of ordinary and of counted runs."""
    program = assemble(work.text, work.name)
    times: tuple[list[float], list[float]] = [], []
    steps = 0
    for _ in range(TURNS + 1):
        for counted in (False, True):
            options = Options(engine="python")
            machine = Machine.start(program, "f", work.inputs(scale), options)
            if counted:
                machine.count()
            began = perf_counter()
            machine.run()
            times[counted].append(perf_counter() - began)
            steps = machine.time
    return steps, times[0][1:], times[1][1:]


def main(scale: float = 1.0) -> None:
    """Print the table."""
    print("work           steps  ordinary   counted  ratio")
    for work in WORKS:
        steps, plain, counted = compare(work, scale)
        ratios = [c / p for p, c in zip(plain, counted, strict=True)]
        low, _, high = quantiles(ratios, n=4)
        print(
            f"{work.name:<10}{steps:>10,} {median(plain):>8.3f}s {median(counted):>8.3f}s "
            f"{median(ratios):>6.2f} ({low:.2f} … {high:.2f})"
        )


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
