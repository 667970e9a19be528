"""The gradient of a unitary matrix, made of Givens rotations, times a vector.

    python examples/gradients/givens.py

There are n (n-1) / 2 angles; all of their derivatives come from one run back in place, with no more
memory than the vector and its adjoint.
"""

from __future__ import annotations

import numpy as np
from common import Gradient, costs, differentiate, error, program, table


def inputs(n: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """A random vector and angles."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.uniform(0, 2 * np.pi, n * (n - 1) // 2)


def gradient(x: np.ndarray, t: np.ndarray) -> Gradient:
    """The derivatives of the first element of U(t) x."""
    return differentiate(program("givens").umv, "x[0]", x=x, t=t)


def rotations(n: int) -> list[tuple[int, int]]:
    """The planes of the rotations, in order."""
    return [(i, i + 1) for j in range(n) for i in range(n - 2, j - 1, -1)]


def matrix(n: int, t: np.ndarray, changed: int = -1) -> np.ndarray:
    """U(t) as a product of matrices; of rotation `changed`, if any, its derivative by the angle."""
    u = np.eye(n)
    for k, (i, j) in enumerate(rotations(n)):
        c, s = np.cos(t[k]), np.sin(t[k])
        r = np.eye(n)
        if k == changed:
            r = np.zeros((n, n))
            c, s = -s, c
        r[[i, i, j, j], [i, j, i, j]] = c, -s, s, c
        u = r @ u
    return u


def expected(x: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same by the rule for products of matrices: of x, and of t."""
    n = len(x)
    by_t = np.array([(matrix(n, t, k) @ x)[0] for k in range(len(t))])
    return matrix(n, t)[0], by_t


def report() -> None:
    """Print errors and costs for a few sizes."""
    rows = []
    for n in (2, 5, 12):
        x, t = inputs(n)
        g = gradient(x, t)
        by_x, by_t = expected(x, t)
        rows.append((n, len(t), error(g.grad.x, by_x), error(g.grad.t, by_t), g.ratio))
    print(table(("n", "angles", "error by x", "error by t", "ratio"), rows))
    g = differentiate(program("givens").umv, "x[0]", x=np.array([1.0, 2.0]), t=np.array([2.0]))
    print(f"rot(1, 2, 2), first output: gradient {g.grad.x.tolist()}, by the angle {g.grad.t[0]}")
    x, t = inputs(100)
    print(f"n = 100: {costs(gradient(x, t))}")


if __name__ == "__main__":
    report()
