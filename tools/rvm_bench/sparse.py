"""Workloads of sparse vectors and matrices, and their counterparts in libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from rvm_bench import libraries
from rvm_bench.ccode import c_peers, packed
from rvm_bench.contest import FORWARD, GRADIENT, Fresh, Go, Peer, Read, Values, Workload

# ---------------------------------------------------------------- sparse matrix × vector

DENSITY = 0.05


def _sparse(n: int) -> Values:
    rng = np.random.default_rng(3)
    counts = rng.binomial(n, DENSITY, n)
    column = np.concatenate([np.sort(rng.choice(n, size, False)) for size in counts])
    return {
        "y": np.zeros(n),
        "start": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        "column": column.astype(np.int64),
        "value": rng.normal(size=len(column)),
        "x": rng.normal(size=n),
    }


def _of_y(v: Values) -> Values:
    return {"y": np.cos(np.arange(len(v["y"])) * 1.0)}


def _rows_times_vector(y: Any, start: Any, column: Any, value: Any, x: Any) -> Any:
    for i in range(len(y)):
        s = y[i]
        for k in range(start[i], start[i + 1]):
            s += value[k] * x[column[k]]
        y[i] = s
    return (y,)


def _rows(start: Any) -> Any:
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


def _scipy_matvec(task: str) -> Peer:
    """SciPy's compressed rows; a hand-written gradient, with the transposed matrix."""

    def make(values: Values) -> Fresh:
        from scipy.sparse import csr_array

        n, x = len(values["y"]), values["x"]
        matrix = csr_array((values["value"], values["column"], values["start"]), shape=(n, n))
        transposed, rows = matrix.T.tocsr(), _rows(values["start"])
        seed, column = _of_y(values)["y"], values["column"]

        def forward() -> Any:
            return {"y": values["y"] + matrix @ x}

        def gradient() -> Any:
            forward()
            return {"value": seed[rows] * x[column], "x": transposed @ seed}

        def fresh() -> tuple[Go, Read]:
            return forward if task == FORWARD else gradient, lambda r: r

        return fresh

    return Peer("SciPy", task, make, "scipy")


def _matvec_jax(_: Any, v: dict[str, Any]) -> Values:
    import jax

    products = v["value"] * v["x"][v["column"]]
    rows = _rows(v["start"])
    sums = jax.ops.segment_sum(products, rows, len(v["start"]) - 1, indices_are_sorted=True)
    return {"y": v["y"] + sums}


def _matvec_torch(torch: Any, v: dict[str, Any]) -> Values:
    rows, column = torch.from_numpy(_rows(v["start"])), torch.from_numpy(v["column"])
    return {"y": v["y"].index_add(0, rows, v["value"] * v["x"][column])}


MATVEC = Workload(
    "matvec",
    f"a sparse matrix (density {DENSITY}) times a vector",
    "entry",
    (30, 100, 300, 1_000),
    _sparse,
    ("y",),
    (
        *c_peers("matvec", packed("y start column value x #y", "y"), ("value", "x"), _of_y),
        *libraries.loops(_rows_times_vector, ("y",)),
        _scipy_matvec(FORWARD),
        _scipy_matvec(GRADIENT),
        *libraries.jax(_matvec_jax, _of_y, ("value", "x")),
        *libraries.torch(_matvec_torch, _of_y, ("value", "x")),
    ),
    _of_y,
    ("value", "x"),
    work=lambda n: round(DENSITY * n * n),
)

# ---------------------------------------------------------------- sparse · sparse


def _sparse_pair(n: int) -> Values:
    """Vectors as long as n n with a density of 0.05."""
    rng = np.random.default_rng(4)
    size = round(DENSITY * n * n)
    p, q = (np.sort(rng.choice(n * n, size, False)).astype(np.int64) for _ in range(2))
    return {"s": 0.0, "p": p, "x": rng.normal(size=size), "q": q, "y": rng.normal(size=size)}


def _merged(s: Any, p: Any, x: Any, q: Any, y: Any) -> Any:
    i = j = 0
    while i < len(p) and j < len(q):
        if p[i] == q[j]:
            s += x[i] * y[j]
            i += 1
            j += 1
        elif p[i] < q[j]:
            i += 1
        else:
            j += 1
    return (s,)


def _merge_numpy(s: float, p: Any, x: Any, q: Any, y: Any) -> Values:
    _, i, j = np.intersect1d(p, q, assume_unique=True, return_indices=True)
    return {"s": s + x[i] @ y[j]}


def _merge_jax(_: Any, v: dict[str, Any]) -> Values:
    """With the common places found in advance, since they do not change: an easier task."""
    _, i, j = np.intersect1d(v["p"], v["q"], assume_unique=True, return_indices=True)
    return {"s": v["s"] + v["x"][i] @ v["y"][j]}


def _of_s(_: Values) -> Values:
    return {"s": 1.0}


SPARSE_DOT = Workload(
    "sparse_dot",
    "two sparse vectors multiplied (JAX: common places known)",
    "entry",
    (30, 100, 300, 1_000),
    _sparse_pair,
    ("s",),
    (
        *c_peers("sparse_dot", packed("s p x #p q y #q", "s"), ("x", "y")),
        *libraries.loops(_merged, ("s",)),
        libraries.numpy(_merge_numpy),
        *libraries.jax(_merge_jax, _of_s, ("x", "y")),
    ),
    _of_s,
    ("x", "y"),
    work=lambda n: 2 * round(DENSITY * n * n),
    core=False,
)
