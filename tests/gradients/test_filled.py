"""Adjoints in memory that was used before: what a run back fills, it fills whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sizes import sample, thin

import rvm
from rvm.derive import direct_gradient
from rvm.engines import LAW

TERMS = {
    "greatest": "amax(x)",
    "least": "amin(x)",
    "sum": "sum(x)",
    "product": "prod(x)",
    "square": "dot(x, x)",
    "matrix": "sum(A @ x)",
    "element": "x[1]",
    "part": "sum(x[1:])",
    "softplus": "logsumexp(x)",
}


SEEDS = (1.0, -0.0, np.inf)


def _vector(n: int) -> np.ndarray[Any, Any]:
    return np.array([1.0, 3.0, 1.0, 3.0, -2.0])[:n]


@sample
@thin
@pytest.mark.parametrize("tolerance", [None, np.inf])
@pytest.mark.parametrize("second", TERMS)
@pytest.mark.parametrize("first", TERMS)
def test_adjoints_do_not_hold_what_was_in_their_memory(
    first: str, second: str, tolerance: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every first update of an adjoint, and a second, with other numbers in fresh memory."""

    def used(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        return np.full(shape, 7, dtype)

    value = f"{TERMS[first]} + 10.0 * {TERMS[second]}"
    text = f"func f(y: f64, x: f64[n], A: f64[n, n])\n    add y, {value}\n"
    f = rvm.assemble(text).f
    at = {"y": 0.0, "x": _vector(5), "A": np.arange(25.0).reshape(5, 5)}
    wants = [
        f.with_options(engine=LAW, tolerance=np.inf).vjp({"y": seed}, dict(at)) for seed in SEEDS
    ]
    monkeypatch.setattr(direct_gradient, "empty", used)
    g = f.with_options(engine="native", tolerance=tolerance)
    gradient = g.grad(at, loss="y")
    for seed, want in zip(SEEDS, wants, strict=True):
        found = g.vjp({"y": seed}, dict(at))
        for name in ("x", "A"):
            assert np.array_equal(found[name], want[name], equal_nan=True), seed
            assert seed != 1 or np.array_equal(gradient[name], want[name])
