"""Workloads of short functions, in which calls dominate, and their counterparts in libraries."""

from __future__ import annotations

from math import sin
from typing import Any

from rvm_bench import libraries
from rvm_bench.ccode import c_peers, packed
from rvm_bench.contest import Values, Workload

# ---------------------------------------------------------------- one call


def _called(r: Any, x: Any, y: Any) -> Any:
    return (r + (x * y + sin(x) / (1.0 + y * y) - x * x),)


def _called_with(lib: Any, v: dict[str, Any]) -> Values:
    x, y = v["x"], v["y"]
    return {"r": v["r"] + (x * y + lib.sin(x) / (1.0 + y * y) - x * x)}


def _of_r(_: Values) -> Values:
    return {"r": 1.0}


CALL = Workload(
    "call",
    "eight operations, called from Python",
    "call",
    (1,),
    lambda n: {"r": 0.0, "x": 0.7, "y": 1.3},
    ("r",),
    (
        *libraries.loops(_called, ("r",)),
        *libraries.jax(_called_with, _of_r, ("x", "y")),
        *libraries.torch(_called_with, _of_r, ("x", "y")),
        libraries.autograd(_called_with, _of_r, ("x", "y")),
    ),
    _of_r,
    ("x", "y"),
)

# ---------------------------------------------------------------- exp by its series


def _series(y: Any, x: Any) -> Any:
    total, term, k = 1.0, 1.0, 0
    while abs(term) > 1e-16:
        k += 1
        term = term * x / k
        total += term
    return (y + total,)


_TERMS = 22
"""The number of terms needed for x = 1.6."""


def _series_jax(_: Any, v: dict[str, Any]) -> Values:
    from jax import lax

    def step(k: Any, q: Any) -> Any:
        total, term = q
        term = term * v["x"] / (k + 1)
        return total + term, term

    return {"y": v["y"] + lax.fori_loop(0, _TERMS, step, (1.0, 1.0))[0]}


def _of_y(_: Values) -> Values:
    return {"y": 1.0}


EXP = Workload(
    "exp",
    "the exponential by its series",
    "call",
    (1,),
    lambda n: {"y": 0.0, "x": 1.6},
    ("y",),
    (
        *c_peers("exp", packed("y x", "y"), ("x",)),
        *libraries.loops(_series, ("y",)),
        *libraries.jax(_series_jax, _of_y, ("x",), hessian="y"),
    ),
    _of_y,
    ("x",),
    hessian="y",
    core=False,
)
