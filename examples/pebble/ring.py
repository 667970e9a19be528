"""Bennett's trade of memory for time: heat on a ring, undone step by step, and its gradient.

    python examples/pebble/ring.py

A step of diffusion blurs, so it goes from one buffer to another, and a state is given up by running
the step backwards from the state before it.  Bennett's recursion cuts 100 steps into 4 pieces, and
those again; Knill's schedule is the shortest that there is in as much memory; and a schedule that
may erase states goes straight on.

Source: NiLang's example `bennett`, with its numbers: alpha = 0.04, 100 points h = pi/100 apart,
steps of 0.01, and 1 at one point to begin with.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from measuring import EXAMPLES, error, table

import rvm
import rvm.pebble
from rvm.pebble.bridge.runs import Iteration
from rvm.pebble.bridge.runs.results import Gradient

POINTS, AT = 100, 50
C = 0.04 * 0.01 / (np.pi / POINTS) ** 2

BUDGETS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Bennett, 4 pieces", {"strategy": "bennett", "radix": 4}),
    ("Bennett, 2 pieces", {"strategy": "bennett", "radix": 2}),
    ("optimal, 10 pebbles", {"pebbles": 10}),
    ("optimal, 8 pebbles", {"pebbles": 8}),
    ("every state", {"pebbles": 100}),
    ("8 pebbles, erasing at 20 moves", {"pebbles": 8, "price": 20}),
    ("8 pebbles, erasing for nothing", {"pebbles": 8, "price": 0}),
)


def iteration(steps: int = 100, **budget: Any) -> Iteration:
    """The ring's step, so many times, within a budget."""
    step = rvm.load(EXAMPLES / "ring_diffusion_step.rasm").step
    return rvm.pebble.iterate(step, steps, **budget)


def start() -> np.ndarray:
    """Nothing anywhere but at one point."""
    x = np.zeros(POINTS)
    x[AT] = 1
    return x


def gradient(steps: int = 100, **budget: Any) -> Gradient:
    """What is left at that point, by the start and by c."""

    def loss(x: Any) -> tuple[float, np.ndarray]:
        bar = np.zeros(POINTS)
        bar[AT] = 1
        return float(x[AT]), bar

    return iteration(steps, **budget).gradient(start(), loss, constants={"c": C})


def matrix() -> np.ndarray:
    """The step as a matrix."""
    eye = np.eye(POINTS)
    return eye + C * (np.roll(eye, 1, 0) - 2 * eye + np.roll(eye, -1, 0))


def formula(steps: int = 100) -> tuple[np.ndarray, float]:
    """The gradient by matrix powers: those of a step and of its derivative by c commute."""
    a = matrix()
    by_c = steps * (np.linalg.matrix_power(a, steps - 1) @ ((a - np.eye(POINTS)) / C))[AT, AT]
    return np.linalg.matrix_power(a.T, steps)[AT], float(by_c)


def report(steps: int) -> None:
    """Print what the run and its gradient take by several schedules."""
    by_start, by_c = formula(steps)
    rows = []
    for name, budget in BUDGETS:
        there = iteration(steps, **budget).reach(start(), constants={"c": C})
        g = gradient(steps, **budget)
        assert there.played == there.plan.schedule.tally()
        off = max(error(g.state, by_start), abs(g.constants["c"] / by_c - 1))
        counts = (there.played.moves, there.played.peak, there.played.erased)
        back = (g.played.moves, g.played.peak, g.played.erased, off)
        rows.append([name, *(int(v) for v in counts), *(int(v) for v in back[:3]), off])
    header = ["schedule", "moves", "peak", "erased", "back: moves", "peak", "erased", "error"]
    print(table(header, rows))
    x = there.state
    print(f"\nafter {steps} steps there is {x[AT]:.11f} at point {AT}, and {x.sum():.12f} in all")
    print(f"of what is there, the derivative by c is {g.constants['c']:.11f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100, help="of time (100)")
    report(parser.parse_args().steps)
