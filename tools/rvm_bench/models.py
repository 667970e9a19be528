"""Workloads from models: Gaussian mixtures, bundle adjustment and its Jacobian, an embedding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rvm_bench import libraries
from rvm_bench.ccode import FUSED, Packed, c, c_peers, cell, packed
from rvm_bench.contest import FORWARD, Peer, Values, Workload

_Formula = Callable[[Any, dict[str, Any]], Any]
"""A function of a library with NumPy's functions, and inputs."""


def _of_y(_: Values) -> Values:
    return {"y": 1.0}


def _everywhere(formula: _Formula, wrt: tuple[str, ...], hessian: str = "") -> tuple[Peer, ...]:
    """A formula of whole arrays with NumPy and all libraries that differentiate."""

    def model(lib: Any, v: dict[str, Any]) -> Values:
        return {"y": v["y"] + formula(lib, v)}

    return (
        libraries.numpy(lambda **v: model(np, v)),
        *libraries.jax(model, _of_y, wrt, hessian=hessian),
        *libraries.torch(model, _of_y, wrt),
        *libraries.torch(model, _of_y, wrt, compile=True),
        libraries.autograd(model, _of_y, wrt),
    )


# ---------------------------------------------------------------- Gaussian mixture

D, K = 10, 5


def _mixture(n: int) -> Values:
    rng = np.random.default_rng(1)
    centres = rng.normal(scale=4, size=(K, D))
    return {
        "y": 0.0,
        "alphas": rng.normal(size=K),
        "means": rng.normal(size=(K, D)),
        "icf": rng.normal(scale=0.3, size=(K, D * (D + 1) // 2)),
        "x": centres[rng.integers(K, size=n)] + rng.normal(size=(n, D)),
    }


def _below(d: int) -> Any:
    """The position of a triangle's number at (a, b), column by column; the end if there is none."""
    at = np.full((d, d), d * (d - 1) // 2)
    k = 0
    for b in range(d):
        for a in range(b + 1, d):
            at[a, b] = k
            k += 1
    return at


_BELOW = _below(D)


def _log_sum(lib: Any, t: Any) -> Any:
    """The logarithm of the sum of exponentials of rows."""
    top = t.max(1)
    top = getattr(top, "values", top)
    return top + lib.log(lib.exp(t - top[:, None]).sum(1))


def _density(lib: Any, v: dict[str, Any]) -> Any:
    icf, x = v["icf"], v["x"]
    d = x.shape[1]
    diagonal = lib.exp(icf[:, :d])
    lower = lib.concatenate([icf[:, d:], 0 * icf[:, :1]], 1)[:, _BELOW]
    centred = x[:, None] - v["means"]
    z = lib.einsum("kab,nkb->nka", lower, centred) + diagonal * centred
    t = v["alphas"] + icf[:, :d].sum(1) - 0.5 * (z * z).sum(2)
    y = _log_sum(lib, t).sum() - x.shape[0] * _log_sum(lib, v["alphas"][None, :])[0]
    return y + 0.5 * (diagonal * diagonal).sum() + 0.5 * (icf[:, d:] * icf[:, d:]).sum()


def _density_c(v: dict[str, Any]) -> Packed:
    y = cell(v["y"])
    arrays = tuple(v[k] for k in ("alphas", "means", "icf", "x"))
    return (y, *arrays, len(v["x"]), *v["means"].shape), lambda: {"y": y[0]}


_PARAMETERS = ("alphas", "means", "icf")
GMM = Workload(
    "gmm",
    f"a mixture of {K} Gaussians in {D} dimensions",
    "point",
    (10, 100, 1_000),
    _mixture,
    ("y",),
    (
        *c_peers("gmm", _density_c, ("alphas", "means", "icf", "x")),
        *_everywhere(_density, _PARAMETERS),
    ),
    _of_y,
    _PARAMETERS,
    core=False,  # its gradient takes LLVM some seconds
)

# ---------------------------------------------------------------- bundle adjustment


def _scene(points: int) -> Values:
    """Points that ten cameras see."""
    rng = np.random.default_rng(2)
    n = 10
    cams = np.concatenate(
        [
            rng.normal(scale=0.1, size=(n, 3)),
            rng.normal(scale=0.5, size=(n, 3)) - [0, 0, 8],
            np.full((n, 1), 500.0),
            np.tile([320.0, 240.0], (n, 1)),
            np.tile([0.05, 0.01], (n, 1)),
        ],
        1,
    )
    which = np.array([(k, p) for p in range(points) for k in range(n)], np.int64)
    return {
        "y": 0.0,
        "cams": cams,
        "X": rng.normal(size=(points, 3)),
        "w": 1 + rng.normal(scale=0.05, size=n * points),
        "which": which,
        "seen": rng.normal([320, 240], 50, size=(n * points, 2)),
    }


def _sights(lib: Any, v: dict[str, Any]) -> Any:
    k, p = v["which"][:, 0], v["which"][:, 1]
    cam = v["cams"][k]
    turn, way = cam[:, :3], v["X"][p] - cam[:, 3:6]
    angle = lib.sqrt((turn * turn).sum(1))[:, None]
    a, cos, sin = turn / angle, lib.cos(angle), lib.sin(angle)
    along = (a * way).sum(1)[:, None] * (1.0 - cos)
    across = a[:, [1, 2, 0]] * way[:, [2, 0, 1]] - a[:, [2, 0, 1]] * way[:, [1, 2, 0]]
    r = way * cos + across * sin + a * along
    q = r[:, :2] / r[:, 2:]
    far = (q * q).sum(1)
    scale = cam[:, 6] * (1.0 + cam[:, 9] * far + cam[:, 10] * far * far)
    e = v["w"][:, None] * (scale[:, None] * q + cam[:, 7:9] - v["seen"])
    ew = 1.0 - v["w"] * v["w"]
    return 0.5 * ((e * e).sum() + (ew * ew).sum())


BUNDLE = Workload(
    "bundle",
    "bundle adjustment: ten cameras that see every point",
    "observation",
    (1, 10, 100, 1_000),
    _scene,
    ("y",),
    (
        *c_peers("bundle", packed("y cams X w which seen #w", "y"), ("cams", "X", "w", "seen")),
        *_everywhere(_sights, ("cams", "X", "w")),
    ),
    _of_y,
    ("cams", "X", "w"),
    work=lambda points: 10 * points,
)


def _rows(points: int) -> Values:
    values = dict(_scene(points))
    del values["y"]
    return {"rows": np.zeros((len(values["w"]), 2, 17)), **values}


_ROWS = packed("rows cams X w which seen #w", "rows")
JACOBIAN = Workload(
    "jacobian",
    "bundle adjustment's sparse Jacobian, by two gradients an observation (C: by formulas)",
    "observation",
    (1, 10, 100, 3_184),
    _rows,
    ("rows",),
    (
        *c_peers("jacobian", _ROWS),
        Peer("C, fused", FORWARD, c("jacobian", "forward", _ROWS, FUSED), "cc"),
    ),
    work=lambda points: 10 * points,
    core=False,
)

# ---------------------------------------------------------------- the Petersen graph

_PAIRS = [(i, j) for i in range(10) for j in range(i + 1, 10)]


def _neighbours(i: int, j: int) -> bool:
    ring = j < 5 and j - i in (1, 4)
    star = i >= 5 and j - i in (2, 3)
    return ring or star or j - i == 5


_NEAR = np.array([p for p in _PAIRS if _neighbours(*p)]).T
_FAR = np.array([p for p in _PAIRS if not _neighbours(*p)]).T


def _embedding(lib: Any, v: dict[str, Any]) -> Any:
    x = v["x"]
    near = lib.sqrt(((x[_NEAR[0]] - x[_NEAR[1]]) ** 2).sum(1))
    far = lib.sqrt(((x[_FAR[0]] - x[_FAR[1]]) ** 2).sum(1))
    gap = near.mean() - far.mean() + 0.1
    spread = ((near - near.mean()) ** 2).sum() / 14 + ((far - far.mean()) ** 2).sum() / 29
    return spread + lib.exp(0.5 * (gap + lib.abs(gap))) - 1.0


PETERSEN = Workload(
    "petersen",
    "the loss of a graph's embedding in ten dimensions",
    "call",
    (1,),
    lambda n: {"y": 0.0, "x": np.random.default_rng(3).normal(size=(10, 10))},
    ("y",),
    _everywhere(_embedding, ("x",), hessian="y"),
    _of_y,
    ("x",),
    hessian="y",
    core=False,
)
