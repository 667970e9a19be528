"""A NICE flow learns two moons: its likelihood by the reversible gradient, its samples backwards.

    python examples/gradients/nice.py [--picture] [--steps N]

`nice.rasm` turns points into normal ones, and the same program run backwards turns normal ones into
new points.  Training is Adam, in plain NumPy, on the gradient of the mean log-likelihood.  As the
density of the moons is known here, so is the best that can be reached.  `--picture` draws data,
their normal images and samples to `docs/pictures/flow.svg`.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np
import svg
from common import (
    PICTURES,
    Gradient,
    adam,
    complex_step,
    costs,
    differentiate,
    error,
    program,
    table,
)

Parameters = dict[str, np.ndarray]
NOISE = 0.1


def moons(n: int, rng: np.random.Generator) -> np.ndarray:
    """Points around two half circles that reach into each other, n x 2; the upper ones first."""
    t = np.pi * rng.random(n)
    upper = np.arange(n) < rng.binomial(n, 0.5)
    x = np.where(upper, np.cos(t), 1 - np.cos(t))
    y = np.where(upper, np.sin(t), 0.5 - np.sin(t))
    return np.transpose([x, y]) - [0.5, 0.25] + rng.normal(scale=NOISE, size=(n, 2))


def log_density(points: np.ndarray) -> np.ndarray:
    """The logarithm of the density that `moons` draws from, as an integral along the circles."""
    t = np.pi * (np.arange(400) + 0.5) / 400
    upper = np.transpose([np.cos(t) - 0.5, np.sin(t) - 0.25])
    centres = np.concatenate([upper, -upper])
    d2 = ((points[:, None] - centres) ** 2).sum(2) / NOISE**2
    return np.log(np.exp(-d2 / 2).mean(1)) - np.log(2 * np.pi * NOISE**2)


def parameters(layers: int = 8, width: int = 32, seed: int = 1) -> Parameters:
    """Random first weights and zero last ones, so that the flow begins as a scaling."""
    rng = np.random.default_rng(seed)
    return {
        "A": rng.normal(scale=2, size=(layers, width)),
        "B": rng.normal(size=(layers, width)),
        "C": np.zeros((layers, width)),
        "s": np.zeros(2),
    }


def gradient(p: Parameters, points: np.ndarray) -> Gradient:
    """Minus the mean log-likelihood of points, and its gradient."""
    u, v = np.ascontiguousarray(points.T)
    return differentiate(program("nice").surprise, "y", y=0.0, u=u, v=v, **p)


def forwards(p: Parameters, points: np.ndarray) -> np.ndarray:
    """Points as the flow makes them normal."""
    u, v = np.array(points.T, order="C")
    out = program("nice").flow(u=u, v=v, **p)
    return np.transpose([out.u, out.v])


def backwards(p: Parameters, normal: np.ndarray) -> np.ndarray:
    """Normal points as the flow, run backwards, makes them samples."""
    u, v = np.array(normal.T, order="C")
    out = (~program("nice").flow)(u=u, v=v, **p)
    return np.transpose([out.u, out.v])


def numpy_surprise(p: dict[str, Any], points: np.ndarray) -> Any:
    """Minus the mean log-likelihood, written once more with NumPy; numbers may be complex."""
    u, v = points.T
    for a, b, c in zip(p["A"], p["B"], p["C"], strict=True):
        u, v = v, u + (np.tanh(v[:, None] * a + b) * c).sum(1)
    u, v = u * np.exp(p["s"][0]), v * np.exp(p["s"][1])
    return (u * u + v * v).mean() / 2 + np.log(2 * np.pi) - p["s"].sum()


def expected(p: Parameters, points: np.ndarray, name: str) -> np.ndarray:
    """The gradient of the NumPy version by one parameter, by complex steps."""
    return complex_step(lambda value: numpy_surprise(p | {name: value}, points), p[name])


@dataclass(frozen=True, slots=True)
class Training:
    """Parameters found, and the log-likelihood of points kept aside, now and then."""

    parameters: Parameters
    seen: tuple[tuple[int, float], ...]


def train(steps: int = 1500, batch: int = 256, rate: float = 0.02, seed: int = 1) -> Training:
    """Adam on new points at each step."""
    rng = np.random.default_rng(seed)
    aside, p, moments, seen = moons(2000, rng), parameters(seed=seed), {}, []
    for step in range(1, steps + 1):
        if (step - 1) % max(1, steps // 10) == 0:
            seen.append((step - 1, -gradient(p, aside).loss))
        g = gradient(p, moons(batch, rng)).grad
        down = rate * 0.5 * (1 + np.cos(np.pi * step / steps))
        p = adam(p, {k: g[k] for k in p}, moments, step, down)
    seen.append((steps, -gradient(p, aside).loss))
    return Training(p, tuple(seen))


def report(steps: int) -> Training:
    """Print the gradient's errors and costs, and a training."""
    rng = np.random.default_rng(2)
    points, p = moons(20, rng), parameters(4, 5)
    p["C"] = rng.normal(size=p["C"].shape)
    g = gradient(p, points)
    rows = [(name, p[name].size, error(g.grad[name], expected(p, points, name))) for name in p]
    print(table(("gradient by", "numbers", "error"), rows))
    print(costs(g))
    t = train(steps)
    print("\nmean log-likelihood of 2000 points kept aside:")
    print(table(("step", "log-likelihood"), [(n, f"{v:.4f}") for n, v in t.seen]))
    aside = moons(2000, np.random.default_rng(1))
    print(f"the best possible: {log_density(aside).mean():.4f}")
    normal = forwards(t.parameters, aside)
    off = np.abs(backwards(t.parameters, normal) - aside).max()
    print(f"there and back, points are off by {off:.1e}")
    new = backwards(t.parameters, np.random.default_rng(3).normal(size=(2000, 2)))
    rare = np.mean(log_density(new) < np.quantile(log_density(aside), 0.01))
    print(f"samples where but 1% of the data are: {rare:.1%}")
    return t


def draw(p: Parameters, n: int = 400) -> svg.Sheet:
    """Data, their images, normal numbers and the samples they become."""
    rng = np.random.default_rng(5)
    data, normal = moons(n, rng), rng.normal(size=(n, 2))
    # Either half keeps its colour, to show where it goes; of the normal numbers left and right.
    normal = normal[np.argsort(normal[:, 0])]
    sheet = svg.Sheet(960, 320, "A normalizing flow: data to normal numbers, and backwards")
    views = (
        ("data", data, 1.9), ("their normal images", forwards(p, data), 3.5),
        ("normal numbers", normal, 3.5), ("their images: samples", backwards(p, normal), 1.9),
    )  # fmt: skip
    for k, (name, points, reach) in enumerate(views):
        box = (20 + 235 * k, 50, 215, 215)
        panel = svg.Panel(sheet, box, (-reach, reach), (-reach, reach))
        panel.frame(name)
        for half, colour in ((points[: n // 2], svg.BLUE), (points[n // 2 :], svg.ORANGE)):
            panel.dots(half, colour, 3)
    sheet.text(245, 296, "the flow, run forwards →", 13, svg.FAINT, "middle")
    sheet.text(715, 296, "the same program, run backwards →", 13, svg.FAINT, "middle")
    return sheet


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500, help="of training (1500)")
    parser.add_argument("--picture", action="store_true", help="write docs/pictures/flow.svg")
    options = parser.parse_args()
    training = report(options.steps)
    if options.picture:
        draw(training.parameters).write(PICTURES / "flow.svg")
