"""The gradient of a hundred thousand steps of a wave, in as much memory as you give it.

    python examples/pebble/waves.py
    python examples/pebble/waves.py --steps 100000 --points 2000  # 3.2 GB of states

A pulse goes along a string on which waves are slower in two places.  What passes some points of it
is recorded; then the string is assumed to be the same everywhere, and the gradient of the misfit
tells how to change it, until it makes the same record.  This is how the ground is looked into from
its surface (full waveform inversion).  With --picture the string is found in that way.

The scheme is the leapfrog: u(t+dt) = 2 u(t) - u(t-dt) + r (u(x+dx) - 2 u(x) + u(x-dx)), in which
r = (c dt/dx)^2 may differ from point to point.  A state is two rows, u(t-dt) and u(t).
Source of the adjoint method: R. Plessix, "A review of the adjoint-state method for computing the
gradient of a functional with geophysical applications" (2006).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from measuring import PICTURES, adam, error, measured, size, svg, table

import rvm.pebble


def step(x: np.ndarray, out: np.ndarray, r: np.ndarray) -> None:
    """One step of time; the ends are held."""
    old, u = x
    out[0] = u
    new = out[1]
    new[1:-1] = u[2:] + u[:-2]
    new[1:-1] -= 2 * u[1:-1]
    new[1:-1] *= r[1:-1]
    new[1:-1] += 2 * u[1:-1] - old[1:-1]
    new[0] = new[-1] = 0


def step_adjoint(
    x: np.ndarray, ybar: np.ndarray, r: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The adjoint of a step: of the state before it, and of r."""
    u, new = x[1], ybar[1, 1:-1]
    weighted = r[1:-1] * new
    xbar, rbar = np.zeros_like(x), np.zeros_like(r)
    xbar[0, 1:-1] = -new
    xbar[1] = ybar[0]
    xbar[1, 1:-1] += 2 * (new - weighted)
    xbar[1, 2:] += weighted
    xbar[1, :-2] += weighted
    rbar[1:-1] = new * (u[2:] - 2 * u[1:-1] + u[:-2])
    return xbar, {"r": rbar}


@dataclass(frozen=True, slots=True)
class Survey:
    """A string, a pulse on it, and what was recorded of it."""

    start: np.ndarray
    """The first state: shape (2, points)."""
    truth: np.ndarray
    """r at each point as it is."""
    guess: np.ndarray
    """r at each point as it is assumed to be."""
    record: np.ndarray
    """What passed the receivers after 0, 1, ..., n steps: shape (n + 1, receivers)."""
    at: slice
    """Where the receivers are."""

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return len(self.record) - 1

    def misfit(self, x: np.ndarray, i: int) -> tuple[float, np.ndarray]:
        """Half the squared difference from the record after i steps, and its adjoint."""
        off = x[1, self.at] - self.record[i]
        bar = np.zeros_like(x)
        bar[1, self.at] = off
        return float(off @ off) / 2, bar


def survey(steps: int, points: int) -> Survey:
    """A pulse on the left, receivers all along, and two places that are slower."""
    x = np.linspace(0, 1, points)
    guess = np.full(points, 0.25)
    slower = 0.12 * np.exp(-(((x - 0.45) / 0.04) ** 2)) + 0.2 * np.exp(-(((x - 0.7) / 0.03) ** 2))
    truth = guess * (1 - slower)
    pulse = np.exp(-(((x - 0.2) / 0.03) ** 2))
    start = np.stack([pulse, pulse])
    at = slice(points // 20, points, points // 10)
    record = np.empty((steps + 1, len(guess[at])))
    state, spare = start.copy(), start.copy()
    for i in range(steps + 1):
        record[i] = state[1, at]
        step(state, spare, truth)
        state, spare = spare, state
    return Survey(start, truth, guess, record, at)


def gradient(s: Survey, **budget: Any) -> Any:
    """The misfit of the guess and its gradient, by a plan for a budget."""
    run = rvm.pebble.iterate(step, s.steps, adjoint=step_adjoint, writes="out", **budget)
    return run.gradient(s.start, running=s.misfit, constants={"r": s.guess})


def storing(s: Survey) -> tuple[float, np.ndarray, np.ndarray]:
    """The same with all states kept: the misfit, its gradient by r and by the first state."""
    states = [s.start]
    for _ in range(s.steps):
        states.append(np.empty_like(s.start))
        step(states[-2], states[-1], s.guess)
    value, bar = s.misfit(states[-1], s.steps)
    rbar = np.zeros_like(s.guess)
    for i in range(s.steps - 1, -1, -1):
        bar, more = step_adjoint(states[i], bar, s.guess)
        rbar += more["r"]
        term, own = s.misfit(states[i], i)
        value, bar = value + term, bar + own
    return value, rbar, bar


def budgets(s: Survey) -> list[tuple[str, dict[str, Any]]]:
    """From 24 states in memory to 1000, and a disk."""
    state = s.start.nbytes
    disk = {"strategy": "multistage", "disk": 10, "write": 20, "read": 20}
    return [
        ("24 states", {"memory": 24 * state}),
        ("100 states", {"memory": 100 * state}),
        ("1,000 states", {"memory": 1000 * state}),
        ("24 states, 10 on disk", {"memory": 24 * state, **disk}),
    ]


def compare(s: Survey) -> list[np.ndarray]:
    """Print what the gradient takes under each budget; the gradients by r."""
    every = s.start.nbytes * s.steps
    print(f"{s.steps:,} steps of {size(s.start.nbytes)}: all states are {size(every)}\n")
    rows: list[list[str]] = []
    found: list[np.ndarray] = []
    for name, budget in budgets(s):
        m = measured(lambda budget=budget: gradient(s, **budget))
        g, cost = m.result, m.result.plan.cost
        assert (g.played.moves, g.played.peak) == (cost.moves, cost.peak)
        found.append(g.constants["r"])
        disk = f"{g.played.writes:,} / {g.played.reads:,}" if g.played.writes else "-"
        counts = [f"{cost.moves:,.0f}", f"{cost.moves / s.steps:.2f}", disk]
        memory = [size(cost.peak * s.start.nbytes), size(m.memory)]
        rows.append([name, g.plan.strategy, *counts, *memory, f"{m.seconds:.1f} s"])
    counted = ["moves", "per step", "written / read"]
    print(table(["budget", "plan", *counted, "pebbles", "RSS grew", "time"], rows))
    worst = max(error(r, found[0]) for r in found)
    print(f"\nthe gradients differ by {worst:.1e}")
    return found


def check(points: int = 120, steps: int = 400) -> tuple[float, float]:
    """How far the gradient is from one that keeps all states, and from a central difference."""
    s = survey(steps, points)
    g = gradient(s, pebbles=8)
    value, rbar, bar = storing(s)
    off = max(error(g.constants["r"], rbar), error(g.state, bar), abs(g.value / value - 1))
    rng = np.random.default_rng(1)
    way, h = rng.normal(size=points) * 1e-2, 1e-4

    def at(r: np.ndarray) -> float:
        return float(storing(Survey(s.start, s.truth, r, s.record, s.at))[0])

    central = (at(s.guess + h * way) - at(s.guess - h * way)) / (2 * h)
    return off, abs(central / (rbar @ way) - 1)


def find(s: Survey, rounds: int) -> tuple[Survey, list[float]]:
    """The string that makes the record, by so many steps downhill; the misfits on the way."""
    r, moments, seen = {"r": s.guess.copy()}, {}, []
    for k in range(1, rounds + 1):
        g = gradient(replace(s, guess=r["r"]), pebbles=40, progress=False)
        seen.append(g.value)
        r = adam(r, g.constants, moments, k, 4e-3 * (1 - k / (rounds + 1)))
    return replace(s, guess=r["r"]), seen


def draw(s: Survey, rounds: int) -> svg.Sheet:
    """The wave at some moments, and the string as it is and as it is found."""
    found, seen = find(s, rounds)
    print(f"\n{rounds} steps downhill: the misfit from {seen[0]:.3g} to {seen[-1]:.3g}")
    x = np.linspace(0, 1, len(s.guess))
    sheet = svg.Sheet(900, 340, "A wave on a string, and where the string is slower")
    left = svg.Panel(sheet, (60, 45, 360, 235), (0, 1), (-0.4, 4.4))
    left.frame("the wave, from below to above", "place", "time")
    moments = np.linspace(0, s.steps, 8).astype(int)
    state, spare = s.start.copy(), s.start.copy()
    for i in range(s.steps + 1):
        if i in moments:
            up = 0.5 * int(np.searchsorted(moments, i))
            left.line(np.column_stack([x, state[1] * 0.6 + up]), svg.BLUE)
        step(state, spare, s.truth)
        state, spare = spare, state
    left.dots([(at, -0.25) for at in x[s.at]], svg.RED, 5)
    right = svg.Panel(sheet, (500, 45, 360, 235), (0, 1), (0.19, 0.26))
    right.frame("r, which is the square of the speed", "place")
    right.ticks(ys=(0.2, 0.22, 0.24))
    right.line(np.column_stack([x, s.truth]), svg.GREEN, 3.5, stroke_opacity="0.45")
    right.line(np.column_stack([x, found.guess]), svg.ORANGE, 1.5)
    sheet.text(510, 232, "as it is", 12, svg.GREEN)
    sheet.text(510, 250, f"as found in {rounds} steps downhill", 12, svg.ORANGE)
    sheet.text(60, 300, "receivers", 11, svg.RED)
    return sheet


def report(steps: int, points: int) -> tuple[Survey, np.ndarray]:
    """Print checks of the gradient on a short run, and what a long one takes."""
    off, by_difference = check()
    print(f"against one that keeps all states: {off:.1e}")
    print(f"against a central difference:      {by_difference:.1e}\n")
    s = survey(steps, points)
    return s, compare(s)[0]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10_000, help="of time (10000)")
    parser.add_argument("--points", type=int, default=500, help="of the string (500)")
    parser.add_argument("--picture", action="store_true", help="write docs/pictures/wave.svg")
    options = parser.parse_args()
    surveyed, by_r = report(options.steps, options.points)
    if options.picture:
        draw(survey(600, 200), 120).write(PICTURES / "wave.svg")
