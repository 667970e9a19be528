"""Workloads of numbers in long loops, and their counterparts in libraries."""

from __future__ import annotations

from math import isqrt, sqrt
from typing import Any

import numpy as np

from rvm_bench import libraries
from rvm_bench.ccode import Packed, c_peers, cell, packed
from rvm_bench.contest import Values, Workload

_DECADES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)

# ---------------------------------------------------------------- one number added


def _added(x: Any, n: Any, one: Any) -> Any:
    for _ in range(n):
        x += one
    return (x,)


def _added_jax(_: Any, v: dict[str, Any]) -> Values:
    from jax import lax

    return {"x": lax.fori_loop(0, v["n"], lambda _, x: x + v["one"], v["x"])}


def _added_loop(_: Any, v: dict[str, Any]) -> Values:
    x = v["x"]
    for _ in range(v["n"]):
        x = x + v["one"]
    return {"x": x}


def _added_c_back(v: dict[str, Any]) -> Packed:
    bar = np.array([1.0, 0.0])
    return (cell(v["x"]), v["n"], v["one"], bar), lambda: {"x": bar[0], "one": bar[1]}


def _of_x(_: Values) -> Values:
    return {"x": 1.0}


LOOP = Workload(
    "loop",
    "a number added n times",
    "addition",
    _DECADES,
    lambda n: {"x": 0.0, "n": n, "one": 0.1},
    ("x",),
    (
        *c_peers("loop", packed("x n one", "x"), back=_added_c_back),
        *libraries.loops(_added, ("x",)),
        *libraries.jax(_added_jax, _of_x, ("x", "one")),
        *libraries.torch(_added_loop, _of_x, ("x", "one")),
        libraries.autograd(_added_loop, _of_x, ("x", "one")),
    ),
    _of_x,
    ("x", "one"),
)

# ---------------------------------------------------------------- a planet

_ORBIT = ("x", "y", "u", "v")


def _orbit(x: Any, y: Any, u: Any, v: Any, n: Any, h: Any) -> Any:
    half = 0.5 * h
    for _ in range(n):
        x += half * u
        y += half * v
        r = x * x + y * y
        g = h / (r * sqrt(r))
        u -= g * x
        v -= g * y
        x += half * u
        y += half * v
    return x, y, u, v


def _step(q: Any, h: Any) -> Any:
    x, y, u, v = q
    half = 0.5 * h
    x, y = x + half * u, y + half * v
    r = x * x + y * y
    g = h / (r * r**0.5)
    u, v = u - g * x, v - g * y
    return x + half * u, y + half * v, u, v


def _orbit_jax(_: Any, v: dict[str, Any]) -> Values:
    from jax import lax

    q = tuple(v[k] for k in _ORBIT)
    q = lax.fori_loop(0, v["n"], lambda _, q: _step(q, v["h"]), q)
    return dict(zip(_ORBIT, q, strict=True))


def _orbit_checkpointed(_: Any, v: dict[str, Any]) -> Values:
    """√n stretches, of which only the beginnings are kept, and the remaining steps."""
    import jax
    from jax import lax

    h, n = v["h"], v["n"]
    inner = isqrt(n)

    @jax.checkpoint  # type: ignore[untyped-decorator]
    def stretch(q: Any, _: Any) -> Any:
        return lax.fori_loop(0, inner, lambda _, q: _step(q, h), q), None

    q = tuple(v[k] for k in _ORBIT)
    q, _ = lax.scan(stretch, q, None, length=n // inner)
    q = lax.fori_loop(0, n % inner, lambda _, q: _step(q, h), q)
    return dict(zip(_ORBIT, q, strict=True))


def _orbit_loop(_: Any, v: dict[str, Any]) -> Values:
    q = tuple(v[k] for k in _ORBIT)
    for _ in range(v["n"]):
        q = _step(q, v["h"])
    return dict(zip(_ORBIT, q, strict=True))


def _orbit_c(v: dict[str, Any]) -> Packed:
    q = np.array([v[k] for k in _ORBIT])
    return (q, v["n"], v["h"]), lambda: dict(zip(_ORBIT, q, strict=True))


def _orbit_c_back(v: dict[str, Any]) -> Packed:
    q, bar = np.array([v[k] for k in _ORBIT]), np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    return (q, v["n"], v["h"], bar), lambda: dict(zip((*_ORBIT, "h"), bar, strict=True))


LEAPFROG = Workload(
    "leapfrog",
    "a planet's orbit",
    "step",
    _DECADES,
    lambda n: {"x": 1.0, "y": 0.0, "u": 0.0, "v": 1.1, "n": n, "h": 0.001},
    _ORBIT,
    (
        *c_peers("leapfrog", _orbit_c, back=_orbit_c_back),
        *libraries.loops(_orbit, _ORBIT),
        *libraries.jax(_orbit_jax, _of_x, (*_ORBIT, "h")),
        *libraries.jax(_orbit_checkpointed, _of_x, (*_ORBIT, "h"), name="JAX jit, checkpoints"),
        *libraries.torch(_orbit_loop, _of_x, (*_ORBIT, "h")),
        libraries.autograd(_orbit_loop, _of_x, (*_ORBIT, "h")),
    ),
    _of_x,
    (*_ORBIT, "h"),
)
