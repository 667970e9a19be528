"""Box and Muller's map with the logarithm of its determinant.

    python examples/gradients/box_muller.py

The map takes (u, v), uniform in the unit square, to normal (x, y), in place.  Its derivative is a
2 by 2 matrix for each pair, whose rows are two runs back; its determinant must be -2 pi / u.  The
uniform density 1 becomes 1 / |det|, which is the normal density.
"""

from __future__ import annotations

import numpy as np
from common import Gradient, costs, differentiate, error, program, table


def inputs(n: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of uniform numbers."""
    rng = np.random.default_rng(seed)
    return 1 - rng.random(n), rng.random(n)


def jacobians(u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, Gradient]:
    """The matrices [[dx/du, dx/dv], [dy/du, dy/dv]] of all pairs, and the last run back.

    Pairs do not mix, so that one run back gives a row of every matrix.
    """
    f, rows = program("box_muller").box_muller, []
    for name in ("u", "v"):
        g = differentiate(f, {name: np.ones(len(u))}, u=u, v=v)
        rows.append([g.grad.u, g.grad.v])
    return np.transpose(rows, (2, 0, 1)), g


def inverse_jacobians(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The matrices of the inverse map, by the gradient of the inverse program."""
    f, rows = ~program("box_muller").box_muller, []
    for name in ("u", "v"):
        g = f.vjp({name: np.ones(len(x))}, u=x, v=y)
        rows.append([g.u, g.v])
    return np.transpose(rows, (2, 0, 1))


def log_det(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """log |det| of each pair's matrix."""
    return np.linalg.slogdet(jacobians(u, v)[0])[1]


def report() -> None:
    """Print determinants beside the formula, and the density beside the normal one."""
    u, v = inputs(1000)
    j, g = jacobians(u, v)
    got = np.linalg.slogdet(j)[1]
    x, y = g.result.u, g.result.v
    rows = [
        (*(float(a[k]) for a in (u, v, x, y, got)), float(np.log(2 * np.pi / u[k])))
        for k in range(4)
    ]
    print(table(("u", "v", "x", "y", "log det", "log(2 pi / u)"), rows))
    normal = -(x**2 + y**2) / 2 - np.log(2 * np.pi)
    print(f"{len(u)} pairs: error of log det {error(got, np.log(2 * np.pi / u)):.1e}, "
          f"of the normal density {error(-got, normal):.1e}")  # fmt: skip
    product = inverse_jacobians(x, y) @ j
    print(f"derivative of the inverse times derivative: off the identity by "
          f"{np.abs(product - np.eye(2)).max():.1e}")  # fmt: skip
    print(f"mean {x.mean():+.3f}, {y.mean():+.3f}; deviation {x.std():.3f}, {y.std():.3f}")
    print(costs(g))


if __name__ == "__main__":
    report()
