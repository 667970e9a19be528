"""The gradient of a Gaussian mixture's posterior density, as ADBench states it, and a fit.

    python examples/gradients/gmm.py

The points are generated.  Gradients (`gmm.rasm`) are compared with those of the formula in NumPy
by complex steps.  A few hundred steps of Adam find the clusters that the points were drawn from.
"""

from __future__ import annotations

from math import lgamma
from typing import Any

import numpy as np
from common import Gradient, adam, complex_step, costs, differentiate, error, program, table

PARAMETERS = ("alphas", "means", "icf")
Values = dict[str, Any]


def centres(d: int, k: int, seed: int = 1) -> np.ndarray:
    """The centres that points are drawn around."""
    return np.random.default_rng(seed).normal(scale=4, size=(k, d))


def inputs(n: int, d: int, k: int, seed: int = 1) -> Values:
    """Points around k centres, parameters at random, and the prior's two numbers."""
    rng = np.random.default_rng(seed + 1)
    return {
        "alphas": rng.normal(size=k),
        "means": rng.normal(size=(k, d)),
        "icf": rng.normal(scale=0.3, size=(k, d * (d + 1) // 2)),
        "x": centres(d, k, seed)[rng.integers(k, size=n)] + rng.normal(size=(n, d)),
        "gamma": 1.0,
        "m": 0,
    }


def gradient(values: Values) -> Gradient:
    """The logarithm of the density, and its gradient."""
    return differentiate(program("gmm").gmm, "y", y=0.0, **values)


def formula(v: Values) -> Any:
    """The same logarithm with NumPy; parameters may be complex."""
    x, icf = v["x"], v["icf"]
    (n, d), (k, _) = x.shape, icf.shape
    below = np.transpose([(i, j) for j in range(d) for i in range(j + 1, d)]).astype(int)
    q = np.zeros((k, d, d), np.result_type(icf, float))
    q[:, range(d), range(d)] = np.exp(icf[:, :d])
    if d > 1:
        q[:, below[0], below[1]] = icf[:, d:]
    z = np.einsum("kij,knj->kni", q, x - v["means"][:, None])
    terms = (v["alphas"] + icf[:, :d].sum(1))[:, None] - (z * z).sum(2) / 2
    y = _log_sum_exp(terms).sum() - n * (_log_sum_exp(v["alphas"]) + d / 2 * np.log(2 * np.pi))
    gamma, m = v["gamma"], v["m"]
    y += gamma**2 / 2 * (q * q).sum() - m * icf[:, :d].sum()
    free = d + m + 1
    scale = free * d * (np.log(gamma) - np.log(2) / 2) - d * (d - 1) / 4 * np.log(np.pi)
    return y - k * (scale - sum(lgamma((free + 1 - j) / 2) for j in range(1, d + 1)))


def _log_sum_exp(v: np.ndarray) -> Any:
    top = v.real.max(0)
    return top + np.log(np.exp(v - top).sum(0))


def expected(values: Values, name: str) -> np.ndarray:
    """The gradient of the formula by one parameter, by complex steps."""
    return complex_step(lambda p: formula(values | {name: p}), np.asarray(values[name]))


def fit(values: Values, steps: int = 150) -> tuple[Values, list[float]]:
    """Make the density greater; the parameters found, and the logarithm a point after each step."""
    values, n, seen = dict(values), len(values["x"]), []
    moments: dict[str, Any] = {}
    for step in range(1, steps + 1):
        g = gradient(values)
        seen.append(g.loss / n)
        change = {k: -g.grad[k] / n for k in PARAMETERS}
        values |= adam({k: values[k] for k in PARAMETERS}, change, moments, step, rate=0.1)
    return values, seen


def report() -> None:
    """Print errors and costs for some sizes, and a fit."""
    rows = []
    for n, d, k in ((10, 1, 2), (50, 2, 3), (100, 4, 5)):
        values = inputs(n, d, k)
        g = gradient(values)
        wrong = [error(g.grad[name], expected(values, name)) for name in (*PARAMETERS, "x")]
        rows.append((n, d, k, g.loss, error(g.loss, formula(values)), *wrong, g.ratio))
    header = ("n", "d", "k", "log density", "error", *PARAMETERS, "x", "ratio")
    print(table(header, rows))
    print(costs(g))
    # ADBench's prior grows with the precision; a small gamma keeps it from mattering.
    values = inputs(100, 2, 3, seed=8)
    values |= {"means": values["x"][:3].copy(), "alphas": np.zeros(3), "icf": np.zeros((3, 3))}
    found, seen = fit(values | {"gamma": 0.01})
    print(f"\nfit: log density a point {seen[0]:.3f}, after {len(seen)} steps {seen[-1]:.3f}")
    weights = np.exp(found["alphas"]) / np.exp(found["alphas"]).sum()
    rows = []
    for mean, weight in zip(found["means"], weights, strict=True):
        centre = min(centres(2, 3, seed=8), key=lambda c, mean=mean: np.linalg.norm(c - mean))
        rows.append([f"{v:.3f}" for v in (weight, *mean, *centre)])
    print(table(("weight", "mean", "", "nearest centre", ""), rows))


if __name__ == "__main__":
    report()
