"""The gradient through many steps of the solar system, in constant memory.

    python examples/gradients/solar.py [--picture] [--steps N]

How does a place of Saturn depend on where the giants were, and how fast, many years before?
Leapfrog (`leapfrog.rasm`) is run back with adjoints; they can be looked at on the way, at any time.
What a small push does grows with time, but slowly: orbits drift apart along their ways.
Memory does not grow with the number of steps.  `--steps 1000000` goes through 10^6 of them.
`--picture` draws the orbits, and the pushes that would have helped, to `docs/pictures/orbits.svg`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import svg
from common import (
    PICTURES,
    Gradient,
    complex_step,
    costs,
    differentiate,
    error,
    frozen,
    program,
    table,
)

Bodies = dict[str, np.ndarray]
NAMES = ("Sun", "Jupiter", "Saturn", "Uranus", "Neptune")
STEP = 0.1
"""Years; Jupiter's is 12."""
SATURN = 2
LOSS = f"b.x[{SATURN}, 0]"
COLOURS = (svg.INK, svg.ORANGE, svg.BLUE, svg.GREEN, svg.PURPLE)


def giants() -> Bodies:
    """The Sun and the giants at the start, by the program that makes them."""
    empty = {"x": np.zeros((5, 3)), "v": np.zeros((5, 3)), "m": np.zeros(5)}
    return dict(program("leapfrog").solar_system(b=empty).b)


def gradient(steps: int, b: Bodies | None = None, h: float = STEP) -> Gradient:
    """The derivatives of Saturn's x after some steps."""
    f = program("leapfrog").leapfrog
    return differentiate(f, LOSS, b=b or giants(), h=h, steps=steps)


def numpy_leapfrog(b: dict[str, Any], h: float, steps: int) -> dict[str, Any]:
    """The same motion, written once more with NumPy; coordinates may be complex."""
    x, v, m = (np.array(b[k]) for k in ("x", "v", "m"))

    def pull() -> np.ndarray:
        d = x[None] - x[:, None]
        r2 = (d * d).sum(2) + np.eye(len(m))
        return (m[None, :, None] * d / (r2 * np.sqrt(r2))[:, :, None]).sum(1)

    v = v + h / 2 * pull()
    for n in range(steps):
        x = x + h * v
        v = v + (h if n < steps - 1 else h / 2) * pull()
    return {"x": x, "v": v, "m": m}


def numpy_gradient(steps: int, part: str, h: float = STEP) -> np.ndarray:
    """dLoss/d(part) of the NumPy program, by complex steps."""
    start = giants()

    def loss(value: np.ndarray) -> Any:
        return numpy_leapfrog(start | {part: value}, h, steps)["x"][SATURN, 0]

    return complex_step(loss, start[part])


@dataclass(frozen=True, slots=True)
class Moment:
    """Bodies and adjoints of the loss by them, some steps before its time."""

    before: int
    b: Bodies
    adjoint: Bodies


def back(steps: int, every: int) -> Iterator[Moment]:
    """Run forwards, then back with adjoints, and look every few steps.

    The adjoint is a program of its own, `leapfrog[f64]_adjoint`: this calls it for a few steps at a
    time.  Nothing is stored; what is seen is where the program has come back to.
    """
    f = program("leapfrog").leapfrog
    b = giants()
    f(b=b, h=STEP, steps=steps)
    bar = {k: np.zeros_like(v) for k, v in b.items()}
    bar["x"][SATURN, 0] = 1.0
    adjoint = f.of(b=b, h=STEP, steps=steps).gradient_program["leapfrog[f64]_adjoint"]
    h_bar = 0.0
    for done in range(0, steps + 1, every):
        yield Moment(done, frozen(b), frozen(bar))
        if done + every <= steps:
            h_bar = adjoint(b=b, h=STEP, steps=every, b_bar=bar, h_bar=h_bar).h_bar


def report(steps: int) -> None:
    """Print gradients through more and more steps."""
    rows = []
    counts = [n for n in (10, 100, 1000, 10_000, 100_000) if n < steps] + [steps]
    for n in counts:
        began = perf_counter()
        g = gradient(n)
        seconds = perf_counter() - began
        wrong = error(g.grad.b["v"], numpy_gradient(n, "v")) if n <= 1000 else None
        rows.append((
            n, f"{n * STEP:,.0f}", *(float(np.linalg.norm(g.grad.b["v"][k])) for k in (1, 2, 3, 4)),
            "not compared" if wrong is None else f"{wrong:.1e}", g.bytes, f"{g.ratio:.2f}",
            f"{seconds:.1f}",
        ))  # fmt: skip
    print("|d(Saturn's x) / d(velocity)|, years, at the start of a run of some steps:")
    header = ("steps", "years", *NAMES[1:], "error", "bytes", "ratio", "seconds")
    print(table(header, rows))
    print(costs(g))


def draw(years: int = 60, orbit: int = 29, every: int = 2) -> svg.Sheet:
    """Orbits with the pushes that move Saturn to the right, and how these grow with time."""
    moments = list(back(round(years / STEP), every))
    path = np.array([m.b["x"] for m in moments])[:, :, :2]
    push = np.array([m.adjoint["v"] for m in moments])
    sheet = svg.Sheet(960, 480, "The adjoint of Saturn's place along the giants' orbits")
    panel = svg.Panel(sheet, (10, 60, 410, 410), (-12.5, 12.5), (-12.5, 12.5))
    seen = slice(0, round(orbit / STEP / every) + 1)
    for k, scale in ((1, 2.0), (SATURN, 0.05)):
        panel.line(path[seen, k], COLOURS[k], 0.8, opacity="0.6")
        yearly = slice(0, seen.stop, round(1 / STEP / every))
        panel.arrows(path[yearly, k], push[yearly, k, :2] * scale, COLOURS[k], 1.4)
    panel.dots([path[0, 0]], "#e8b100", 16)
    panel.dots([path[0, 1]], COLOURS[1], 11)
    panel.dots([path[0, SATURN]], COLOURS[SATURN], 11)
    for k in (1, SATURN):
        x, y = panel.at(path[0, k])
        sheet.text(x - 10, y + 16, NAMES[k], 12, COLOURS[k], "end")
    sheet.text(20, 28, "Which push, how long before, moves Saturn most to the right?", 15)
    sheet.text(
        20, 46, f"{orbit} years of arrows; Jupiter's are drawn 40 times longer", 12, svg.FAINT
    )
    panel = svg.Panel(sheet, (510, 60, 420, 360), (0, years), (-3.5, 2.7))
    panel.frame(below="years before", beside="AU by a push of 1 AU a year, log10")
    panel.ticks(range(0, years + 1, 10), (-3, -2, -1, 0, 1, 2))
    for k in (1, 2, 3, 4):
        size = np.log10(np.linalg.norm(push[1:, k], axis=1))
        points = [(m.before * STEP, s) for m, s in zip(moments[1:], size, strict=True)]
        points = [p for p in points if panel.has(p)]
        panel.line(points[:: 1 if k == 1 else 3], COLOURS[k], 1.6)
        x, y = panel.at(points[-1])
        sheet.text(x - 4, y - (18 if k == 1 else 9), NAMES[k], 12, COLOURS[k], "end")
    return sheet


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000, help="of the longest run (1000)")
    parser.add_argument("--picture", action="store_true", help="write docs/pictures/orbits.svg")
    options = parser.parse_args()
    report(options.steps)
    if options.picture:
        draw().write(PICTURES / "orbits.svg")
