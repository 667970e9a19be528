"""The gradient of the QR decomposition by Gram and Schmidt.

    python examples/gradients/qr.py

The loss is a sum of all elements of Q and R with random weights, so that all parts of the
derivative count.  It is compared with the known formula for QR and with central differences.
"""

from __future__ import annotations

import numpy as np
from common import Gradient, central, costs, differentiate, error, program, table


def inputs(n: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A random matrix, and weights for Q and R."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n)), rng.normal(size=(n, n)), np.triu(rng.normal(size=(n, n)))


def gradient(a: np.ndarray, on_q: np.ndarray, on_r: np.ndarray) -> Gradient:
    """d(sum of on_q Q + on_r R) / dA."""
    zeros = {"Q": np.zeros(on_q.shape), "R": np.zeros(on_r.shape)}
    return differentiate(program("qr").qr, {"Q": on_q, "R": on_r}, A=a, **zeros)


def formula(q: np.ndarray, r: np.ndarray, on_q: np.ndarray, on_r: np.ndarray) -> np.ndarray:
    """The adjoint of A: (Q̄ + Q sym(R R̄ᵀ - Q̄ᵀ Q)) R⁻ᵀ, where sym takes the lower half for both.

    Source: M. Seeger et al., "Auto-Differentiating Linear Algebra" (2017).
    """
    m = r @ on_r.T - on_q.T @ q
    return np.linalg.solve(r, (on_q + q @ (np.tril(m) + np.tril(m, -1).T)).T).T


def loss(a: np.ndarray, on_q: np.ndarray, on_r: np.ndarray) -> float:
    """The loss by LAPACK's decomposition, with signs as Gram and Schmidt choose them."""
    q, r = np.linalg.qr(a)
    s = np.sign(np.diag(r))
    return float(np.sum(on_q * q * s) + np.sum(on_r * (r.T * s).T))


def report() -> None:
    """Print errors and costs for a few sizes."""
    rows = []
    for n in (3, 6, 10):
        a, on_q, on_r = inputs(n)
        g = gradient(a, on_q, on_r)
        want = formula(g.result.Q, g.result.R, on_q, on_r)
        near = central(lambda x, on_q=on_q, on_r=on_r: loss(x, on_q, on_r), a)
        rows.append(
            (n, error(g.result.Q @ g.result.R, a), error(g.grad.A, want), error(g.grad.A, near))
        )
    print(table(("n", "QR - A", "gradient - formula", "gradient - differences"), rows))
    print(f"{n} x {n}: {costs(g)}")


if __name__ == "__main__":
    report()
