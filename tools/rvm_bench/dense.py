"""Workloads of vectors and dense matrices, and their counterparts in libraries."""

from __future__ import annotations

from math import cos, sin
from typing import Any

import numpy as np

from rvm_bench import libraries
from rvm_bench.ccode import Packed, c_peers, packed
from rvm_bench.contest import GRADIENT, Values, Workload

# ---------------------------------------------------------------- a matrix product


def _matrices(n: int) -> Values:
    rng = np.random.default_rng(1)
    return {"C": np.zeros((n, n)), "A": rng.normal(size=(n, n)), "B": rng.normal(size=(n, n))}


def _matrix_seed(n: int) -> Any:
    return np.random.default_rng(2).normal(size=(n, n))


def _of_C(v: Values) -> Values:  # noqa: N802
    return {"C": _matrix_seed(len(v["C"]))}


def _product(C: Any, A: Any, B: Any) -> Any:  # noqa: N803
    for row, out in zip(A, C, strict=True):
        for a, other in zip(row, B, strict=True):
            for j, b in enumerate(other):
                out[j] += a * b
    return (C,)


def _product_numba(C: Any, A: Any, B: Any) -> Any:  # noqa: N803
    m, n = A.shape
    p = B.shape[1]
    for i in range(m):
        for k in range(n):
            for j in range(p):
                C[i, j] += A[i, k] * B[k, j]
    return (C,)


def _product_numpy(C: Any, A: Any, B: Any) -> Values:  # noqa: N803
    C += A @ B  # noqa: N806
    return {"C": C}


def _product_numpy_back(C: Any, A: Any, B: Any) -> Values:  # noqa: N803
    seed = _matrix_seed(len(C))
    C += A @ B  # noqa: N806
    return {"A": seed @ B.T, "B": A.T @ seed}


def _product_model(_: Any, v: dict[str, Any]) -> Values:
    return {"C": v["C"] + v["A"] @ v["B"]}


MATMUL = Workload(
    "matmul",
    "a matrix product by three loops (libraries: BLAS)",
    "product",
    (4, 16, 48, 128),
    _matrices,
    ("C",),
    (
        *c_peers("matmul", packed("C A B #C #C #C", "C"), ("A", "B"), _of_C),
        libraries.python(_product, ("C",)),
        libraries.numpy(_product_numpy),
        libraries.numpy(_product_numpy_back, GRADIENT),
        libraries.numba(_product_numba, ("C",)),
        *libraries.jax(_product_model, _of_C, ("A", "B")),
        *libraries.torch(_product_model, _of_C, ("A", "B")),
    ),
    _of_C,
    ("A", "B"),
    work=lambda n: n**3,
)

# ---------------------------------------------------------------- a unitary matrix × vector


def _rotations(n: int) -> Values:
    rng = np.random.default_rng(5)
    return {"x": rng.normal(size=n), "t": rng.uniform(0, 6, n * (n - 1) // 2)}


def _of_x(v: Values) -> Values:
    return {"x": np.cos(np.arange(len(v["x"])) * 1.0)}


def _pairs(n: int) -> Any:
    return np.array([i for j in range(n) for i in range(n - 2, j - 1, -1)])


def _rotated(x: Any, t: Any) -> Any:
    k = 0
    for j in range(len(x)):
        for i in range(len(x) - 2, j - 1, -1):
            c, s = cos(t[k]), sin(t[k])
            x[i], x[i + 1] = x[i] * c - x[i + 1] * s, x[i] * s + x[i + 1] * c
            k += 1
    return (x,)


def _rotated_jax(jnp: Any, v: dict[str, Any]) -> Values:
    from jax import lax

    def step(x: Any, at: Any) -> Any:
        i, c, s = at
        pair = lax.dynamic_slice(x, (i,), (2,))
        a, b = pair
        return lax.dynamic_update_slice(x, jnp.stack([a * c - b * s, a * s + b * c]), (i,)), None

    x, t = v["x"], v["t"]
    return {"x": lax.scan(step, x, (_pairs(len(x)), jnp.cos(t), jnp.sin(t)))[0]}


def _rotated_torch(torch: Any, v: dict[str, Any]) -> Values:
    x, c, s = list(v["x"].unbind()), torch.cos(v["t"]).unbind(), torch.sin(v["t"]).unbind()
    for k, i in enumerate(_pairs(len(x)).tolist()):
        x[i], x[i + 1] = x[i] * c[k] - x[i + 1] * s[k], x[i] * s[k] + x[i + 1] * c[k]
    return {"x": torch.stack(x)}


GIVENS = Workload(
    "givens",
    "a unitary matrix by Givens rotations, times a vector",
    "rotation",
    (10, 30, 100),
    _rotations,
    ("x",),
    (
        *c_peers("givens", packed("x t #x", "x"), ("x", "t"), _of_x),
        *libraries.loops(_rotated, ("x",)),
        *libraries.jax(_rotated_jax, _of_x, ("x", "t")),
        *libraries.torch(_rotated_torch, _of_x, ("x", "t")),
    ),
    _of_x,
    ("x", "t"),
    work=lambda n: n * (n - 1) // 2,
    core=False,
)

# ---------------------------------------------------------------- QR


def _square(n: int) -> Values:
    a = np.random.default_rng(6).normal(size=(n, n)) + 2 * np.eye(n)
    return {"Q": np.zeros((n, n)), "R": np.zeros((n, n)), "A": a}


def _of_QR(v: Values) -> Values:  # noqa: N802
    n = len(v["A"])
    return {"Q": _matrix_seed(n), "R": np.triu(_matrix_seed(n))}


def _qr_numpy(Q: Any, R: Any, A: Any) -> Values:  # noqa: N803
    q, r = np.linalg.qr(A)
    sign = np.sign(np.diag(r))
    return {"Q": Q + q * sign, "R": R + sign[:, None] * r}


def _qr_with(lib: Any, v: dict[str, Any]) -> Values:
    q, r = lib.linalg.qr(v["A"])
    sign = lib.sign(lib.diag(r))
    return {"Q": v["Q"] + q * sign, "R": v["R"] + sign[:, None] * r}


def _qr_c(v: dict[str, Any]) -> Packed:
    """Columns in a row, as suits the method."""
    n = len(v["A"])
    q, r, a = np.zeros((n, n)), np.zeros((n, n)), np.ascontiguousarray(v["A"].T)
    return (q, r, a, n, n, np.zeros(n)), lambda: {"Q": q.T, "R": r.T}


QR = Workload(
    "qr",
    "A = QR by Gram and Schmidt (libraries: LAPACK)",
    "call",
    (4, 8, 16, 32),
    _square,
    ("Q", "R"),
    (
        *c_peers("qr", _qr_c),
        libraries.numpy(_qr_numpy),
        *libraries.jax(_qr_with, _of_QR, ("A",)),
        *libraries.torch(_qr_with, _of_QR, ("A",)),
    ),
    _of_QR,
    ("A",),
    work=lambda n: n**3,
    core=False,
)
