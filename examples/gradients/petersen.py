"""Embeds the Petersen graph: loss, gradient, Hessian, and training until it fits.

    python examples/gradients/petersen.py [--picture] [--dimensions 5] [--seed 0]

A perfect embedding has all neighbours at one distance and all others at another, greater one.
In five dimensions there is one, where the two are as 1 to √2.  SciPy's BFGS finds it with gradients
from the program run back, and Newton's method with its Hessian makes it exact.  `--picture` draws
it to `docs/pictures/petersen.svg`.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import svg
from common import (
    PICTURES,
    Gradient,
    complex_step,
    costs,
    differentiate,
    error,
    hessian,
    program,
    table,
)

RING = [(i, (i + 1) % 5) for i in range(5)]
STAR = [(5 + i, 5 + (i + 2) % 5) for i in range(5)]
SPOKES = [(i, 5 + i) for i in range(5)]
NEAR = {tuple(sorted(pair)) for pair in RING + STAR + SPOKES}
FAR = set(combinations(range(10), 2)) - NEAR


def distances(x: np.ndarray, pairs: set[tuple[int, int]]) -> np.ndarray:
    """The distances of pairs of points (of complex coordinates too, as an analytic function)."""
    i, j = np.transpose(sorted(pairs))
    return np.sqrt(((x[i] - x[j]) ** 2).sum(1))


def numpy_loss(x: np.ndarray) -> complex:
    """The loss, written once more with NumPy."""
    near, far = distances(x, NEAR), distances(x, FAR)
    spread = sum(((d - d.mean()) ** 2).sum() / (len(d) - 1) for d in (near, far))
    lack = near.mean() - far.mean() + 0.1
    return spread + (np.exp(lack) - 1 if lack.real > 0 else 0)


def start(k: int, seed: int = 0) -> np.ndarray:
    """Ten random points in k dimensions."""
    return np.random.default_rng(seed).normal(size=(10, k))


def gradient(x: np.ndarray) -> Gradient:
    """The loss and its gradient."""
    return differentiate(program("petersen").loss, "y", y=0.0, x=x)


def second(x: np.ndarray) -> np.ndarray:
    """The Hessian, of ten times k rows."""
    return hessian(program("petersen").loss, "y", "x", y=0.0, x=x)


@dataclass(frozen=True, slots=True)
class Training:
    """An embedding and how the loss came down to it."""

    x: np.ndarray
    losses: tuple[float, ...]
    """After each step of BFGS, then of Newton's method."""
    by_bfgs: int
    evaluations: int

    @property
    def ratio(self) -> float:
        """The mean distance of others over that of neighbours."""
        return float(distances(self.x, FAR).mean() / distances(self.x, NEAR).mean())


def train(x: np.ndarray, steps: int = 400, newton: int = 3) -> Training:
    """Make the loss small from a start; needs SciPy."""
    try:
        from scipy.optimize import minimize
    except ImportError:
        raise SystemExit('training needs SciPy: python -m pip install ".[scipy]"') from None

    f = program("petersen").loss

    def value_and_grad(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, grad = f.value_and_grad(loss="y", wrt=["x"], y=0.0, x=flat.reshape(x.shape))
        return value, grad.x.ravel()

    losses = [value_and_grad(x.ravel())[0]]
    found = minimize(
        value_and_grad,
        x.ravel(),
        jac=True,
        method="BFGS",
        options={"gtol": 1e-12, "maxiter": steps},
        callback=lambda intermediate_result: losses.append(float(intermediate_result.fun)),
    )
    flat, count = found.x, len(losses)
    for _ in range(newton):
        # Moves and turns of the whole do not change the loss, so the Hessian has a null space.
        h = second(flat.reshape(x.shape))
        flat = flat - np.linalg.lstsq(h, value_and_grad(flat)[1], rcond=1e-10)[0]
        losses.append(value_and_grad(flat)[0])
    return Training(flat.reshape(x.shape), tuple(losses), count - 1, found.nfev)


def report(k: int, seed: int) -> Training:
    """Print derivatives for some dimensions, and a training."""
    rows = []
    for dimensions in (1, 2, 5, 10):
        x = start(dimensions)
        g, h = gradient(x), second(x)
        want = complex_step(numpy_loss, x)
        change = np.random.default_rng(1).normal(size=x.shape)
        along = gradient(x + 1e-5 * change).grad.x - gradient(x - 1e-5 * change).grad.x
        rows.append((
            dimensions, g.loss, error(g.loss, numpy_loss(x).real), error(g.grad.x, want),
            error(h @ change.ravel(), along.ravel() / 2e-5), error(h, h.T), g.ratio,
        ))  # fmt: skip
    print(table(("k", "loss", "its error", "gradient's", "Hessian's", "asymmetry", "ratio"), rows))
    print(costs(gradient(start(k))))
    t = train(start(k, seed))
    shown = [*range(0, t.by_bfgs, max(1, t.by_bfgs // 8)), t.by_bfgs, *range(t.by_bfgs + 1,
             len(t.losses))]  # fmt: skip
    print(f"\ntraining in {k} dimensions:")
    print(table(
        ("step", "by", "loss"),
        [(n, "BFGS" if n <= t.by_bfgs else "Newton", f"{t.losses[n]:.2e}") for n in shown],
    ))  # fmt: skip
    print(f"{t.evaluations} gradients; far/near = {t.ratio:.15f}, √2 = {2**0.5:.15f}")
    return t


def draw(begin: np.ndarray, t: Training) -> svg.Sheet:
    """The points before and after, and the loss.

    They are seen along the plane in which the embedding's fivefold symmetry is a turn.
    """
    x = t.x - t.x.mean(0)
    around = np.exp(2j * np.pi * np.arange(5) / 5)
    way = around @ (x[:5] - x[5:])
    frame = np.linalg.qr(np.transpose([way.real, way.imag]))[0]
    sheet = svg.Sheet(960, 360, "Training an embedding of the Petersen graph in five dimensions")
    for k, points in enumerate((begin - begin.mean(0), x)):
        view = points @ frame
        reach = 1.15 * np.abs(view).max()
        box = (20 + 310 * k, 40, 290, 290)
        panel = svg.Panel(sheet, box, (-reach, reach), (-reach, reach))
        panel.lines(((view[i], view[j]) for i, j in sorted(FAR)), svg.FAINT, 0.4)
        for pairs, colour in ((RING, svg.BLUE), (STAR, svg.ORANGE), (SPOKES, svg.GREEN)):
            panel.lines(((view[i], view[j]) for i, j in pairs), colour, 2.0)
        panel.dots(view[:5], svg.BLUE, 11)
        panel.dots(view[5:], svg.ORANGE, 11)
        title = ("ten random points in five dimensions", "trained: neighbours 1, others √2 apart")
        sheet.text(165 + 310 * k, 28, title[k], 14, svg.INK, "middle")
    n = len(t.losses) - 1
    panel = svg.Panel(sheet, (690, 40, 250, 270), (0, n), (-32, 2))
    panel.frame("loss by step", f"{t.by_bfgs} steps of BFGS, {n - t.by_bfgs} of Newton's method")
    panel.ticks(range(0, n, 20), (0, -10, -20, -30))
    panel.line(list(enumerate(np.log10(t.losses))), svg.PURPLE, 1.8)
    sheet.text(655, 175, "log10", 12, svg.FAINT, "middle", -90)
    return sheet


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dimensions", type=int, default=5, metavar="K")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", action="store_true", help="write docs/pictures/petersen.svg")
    options = parser.parse_args()
    training = report(options.dimensions, options.seed)
    if options.picture:
        draw(start(options.dimensions, options.seed), training).write(PICTURES / "petersen.svg")
