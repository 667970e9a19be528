"""Gradients of sparse products: a dot product by a merge, and a matrix times a vector or matrix.

    python examples/gradients/sparse.py

The gradient of a sparse thing is sparse: it has the same places.  The merge runs back along the
path that it came, without a record of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from common import Gradient, costs, differentiate, error, program, table


@dataclass(frozen=True, slots=True)
class Sparse:
    """A vector's nonzero numbers and their places, in ascending order."""

    places: np.ndarray
    values: np.ndarray
    length: int

    def dense(self) -> np.ndarray:
        """All of the vector."""
        out = np.zeros(self.length)
        out[self.places] = self.values
        return out


def vector(rng: np.random.Generator, length: int, density: float) -> Sparse:
    """A random sparse vector."""
    places = np.flatnonzero(rng.random(length) < density)
    return Sparse(places, rng.normal(size=len(places)), length)


def dot_gradient(a: Sparse, b: Sparse) -> Gradient:
    """The dot product and its gradient."""
    return differentiate(
        program("sparse_dot").sparse_dot,
        "s", s=0.0, p=a.places, x=a.values, q=b.places, y=b.values,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix by compressed rows."""

    start: np.ndarray
    column: np.ndarray
    value: np.ndarray
    shape: tuple[int, int]

    def dense(self) -> np.ndarray:
        """All of the matrix."""
        out = np.zeros(self.shape)
        out[np.repeat(np.arange(self.shape[0]), np.diff(self.start)), self.column] = self.value
        return out

    @property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows and columns of its numbers."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.start)), self.column


def matrix(rng: np.random.Generator, shape: tuple[int, int], density: float) -> Matrix:
    """A random sparse matrix."""
    mask = rng.random(shape) < density
    start = np.concatenate([[0], np.cumsum(mask.sum(1))])
    return Matrix(start, np.nonzero(mask)[1].copy(), rng.normal(size=int(mask.sum())), shape)


def product_adjoints(a: Matrix, x: np.ndarray, seed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The adjoints of A's numbers and of x, given that of y = A x (vectors, or matrices)."""
    many = x.ndim == 2
    f = program("sparse_matvec").matmul if many else program("sparse_matvec").matvec
    y, x_name = ("Y", "X") if many else ("y", "x")
    out = f.vjp(
        {y: seed},
        **{y: np.zeros(seed.shape), x_name: x},
        start=a.start, column=a.column, value=a.value,
    )  # fmt: skip
    return out.value, out[x_name]


def report() -> None:
    """Print errors and costs."""
    rng = np.random.default_rng(1)
    a, b = vector(rng, 2000, 0.05), vector(rng, 2000, 0.05)
    g = dot_gradient(a, b)
    rows = [
        ("dot product", g.loss, error(g.loss, a.dense() @ b.dense())),
        ("  by x", float(np.sum(g.grad.x)), error(g.grad.x, b.dense()[a.places])),
        ("  by y", float(np.sum(g.grad.y)), error(g.grad.y, a.dense()[b.places])),
    ]
    m = matrix(rng, (40, 30), 0.1)
    for name, shape in (("A x", (30,)), ("A X", (30, 4))):
        x = rng.normal(size=shape)
        seed = rng.normal(size=(40, *shape[1:]))
        by_a, by_x = product_adjoints(m, x, seed)
        dense = np.multiply.outer(seed, x) if x.ndim == 1 else seed @ x.T
        rows += [
            (f"{name}, by A", float(np.sum(by_a)), error(by_a, dense[m.places])),
            (f"{name}, by {name[-1]}", float(np.sum(by_x)), error(by_x, m.dense().T @ seed)),
        ]
    print(table(("gradient of", "its sum", "error"), rows))
    print(f"dot product of {len(a.places)} and {len(b.places)} numbers: {costs(g)}")


if __name__ == "__main__":
    report()
