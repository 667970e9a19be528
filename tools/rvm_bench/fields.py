"""Workloads of many bodies and of a string, as arrays, and their counterparts in libraries."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from rvm_bench import libraries
from rvm_bench.ccode import c_peers, packed
from rvm_bench.contest import GRADIENT, Values, Workload

# ---------------------------------------------------------------- nine bodies

_AXES = (0.0, 0.387, 0.723, 1.0, 1.524, 5.203, 9.537, 19.19, 30.07)
"""Distances of the planets from the Sun in astronomical units."""
_MASSES = (1.0, 1.66e-7, 2.448e-6, 3.04e-6, 3.227e-7, 9.546e-4, 2.858e-4, 4.366e-5, 5.151e-5)
"""Their masses in the Sun's."""


def _bodies_inputs(steps: int) -> Values:
    """Circular orbits with phases at random; units: AU, years, and G the Sun's mass is 4 π²."""
    phase = np.random.default_rng(1).uniform(0, 2 * np.pi, 9)
    a = np.array(_AXES)
    x = np.stack([a * np.cos(phase), a * np.sin(phase), 0.02 * a * np.sin(2 * phase)], 1)
    speed = 2 * np.pi / np.sqrt(np.where(a > 0, a, np.inf))
    v = np.stack([-speed * np.sin(phase), speed * np.cos(phase), 0 * a], 1)
    m = 4 * np.pi**2 * np.array(_MASSES)
    return {"e": 0.0, "x": x, "v": v, "m": m, "steps": steps, "h": 1e-4}


def _bodies(e: Any, x: Any, v: Any, m: Any, steps: Any, h: Any) -> Any:
    n, half = len(m), 0.5 * h
    for _ in range(steps):
        for i in range(n):
            a, b = x[i], v[i]
            for k in range(3):
                a[k] += half * b[k]
        for i in range(n - 1):
            p, u = x[i], v[i]
            for j in range(i + 1, n):
                q, w = x[j], v[j]
                dx, dy, dz = p[0] - q[0], p[1] - q[1], p[2] - q[2]
                r = dx * dx + dy * dy + dz * dz
                g = h / (r * sqrt(r))
                gi, gj = m[i] * g, m[j] * g
                u[0] -= gj * dx
                u[1] -= gj * dy
                u[2] -= gj * dz
                w[0] += gi * dx
                w[1] += gi * dy
                w[2] += gi * dz
        for i in range(n):
            a, b = x[i], v[i]
            for k in range(3):
                a[k] += half * b[k]
    for i in range(n):
        e += 0.5 * m[i] * (v[i][0] ** 2 + v[i][1] ** 2 + v[i][2] ** 2)
    return e, x, v


def _pulls(x: Any, m: Any, eye: Any) -> Any:
    """Accelerations, with arrays of all pairs at once."""
    d = x[:, None] - x[None]
    r = (d * d).sum(2) + eye
    return -((m / (r * r**0.5))[:, :, None] * d).sum(1)


def _bodies_numpy(e: float, x: Any, v: Any, m: Any, steps: int, h: float) -> Values:
    eye, half = np.eye(len(m)), 0.5 * h
    for _ in range(steps):
        x += half * v
        v += h * _pulls(x, m, eye)
        x += half * v
    return {"e": e + 0.5 * (m[:, None] * v * v).sum(), "x": x, "v": v}


def _bodies_jax(jnp: Any, v: dict[str, Any]) -> Values:
    from jax import lax

    m, h = v["m"], v["h"]
    eye, half = jnp.eye(len(m)), 0.5 * h

    def step(_: Any, q: Any) -> Any:
        x, u = q
        x = x + half * u
        u = u + h * _pulls(x, m, eye)
        return x + half * u, u

    x, u = lax.fori_loop(0, v["steps"], step, (v["x"], v["v"]))
    return {"e": v["e"] + 0.5 * (m[:, None] * u * u).sum(), "x": x, "v": u}


def _bodies_torch(torch: Any, v: dict[str, Any]) -> Values:
    x, u, m, h = v["x"], v["v"], v["m"], v["h"]
    eye, half = torch.eye(len(m), dtype=torch.float64), 0.5 * h
    for _ in range(v["steps"]):
        x = x + half * u
        u = u + h * _pulls(x, m, eye)
        x = x + half * u
    return {"e": v["e"] + 0.5 * (m[:, None] * u * u).sum(), "x": x, "v": u}


def _of_e(_: Values) -> Values:
    return {"e": 1.0}


BODIES = Workload(
    "bodies",
    "the Sun and eight planets",
    "step",
    (1, 10, 100, 1_000, 10_000),
    _bodies_inputs,
    ("e", "x", "v"),
    (
        *c_peers("bodies", packed("e x v m steps h #m", "e x v"), ("x", "v", "m", "h")),
        *libraries.loops(_bodies, ("e", "x", "v")),
        libraries.numpy(_bodies_numpy),
        *libraries.jax(_bodies_jax, _of_e, ("x", "v", "m", "h")),
        *libraries.torch(_bodies_torch, _of_e, ("x", "v", "m", "h")),
    ),
    _of_e,
    ("x", "v", "m", "h"),
)

# ---------------------------------------------------------------- a string

POINTS = 1_000


def _string_inputs(steps: int) -> Values:
    at = np.linspace(0, 1, POINTS)
    return {"u": np.exp(-100 * (at - 0.3) ** 2), "v": np.zeros(POINTS), "steps": steps, "k": 0.2}


def _string(u: Any, v: Any, steps: Any, k: Any) -> Any:
    n = len(u)
    for _ in range(steps):
        for i in range(1, n - 1):
            v[i] += k * (u[i - 1] - 2.0 * u[i] + u[i + 1])
        for i in range(n):
            u[i] += v[i]
    return u, v


def _string_numpy(u: Any, v: Any, steps: int, k: float) -> Values:
    w = np.empty(len(u) - 2)
    for _ in range(steps):
        np.multiply(u[1:-1], 2.0, out=w)
        np.subtract(u[:-2], w, out=w)
        np.add(w, u[2:], out=w)
        np.multiply(w, k, out=w)
        v[1:-1] += w
        u += v
    return {"u": u, "v": v}


def _string_numpy_back(u: Any, v: Any, steps: int, k: float) -> Values:
    """By hand: forwards, then back, undoing and passing the adjoints on."""
    _string_numpy(u, v, steps, k)
    ub, vb, kb = _seed(len(u)), np.zeros(len(v)), 0.0
    for _ in range(steps):
        u -= v
        vb += ub
        w = u[:-2] - 2.0 * u[1:-1] + u[2:]
        v[1:-1] -= k * w
        kb += vb[1:-1] @ w
        g = k * vb[1:-1]
        ub[:-2] += g
        ub[1:-1] -= 2.0 * g
        ub[2:] += g
    return {"u": ub, "v": vb, "k": kb}


def _string_jax(_: Any, v: dict[str, Any]) -> Values:
    from jax import lax

    def step(_: Any, q: Any) -> Any:
        u, w = q
        w = w.at[1:-1].add(v["k"] * (u[:-2] - 2.0 * u[1:-1] + u[2:]))
        return u + w, w

    u, w = lax.fori_loop(0, v["steps"], step, (v["u"], v["v"]))
    return {"u": u, "v": w}


def _string_torch(torch: Any, v: dict[str, Any]) -> Values:
    u, w = v["u"], v["v"]
    for _ in range(v["steps"]):
        w = w + torch.nn.functional.pad(v["k"] * (u[:-2] - 2.0 * u[1:-1] + u[2:]), (1, 1))
        u = u + w
    return {"u": u, "v": w}


def _seed(n: int) -> Any:
    return np.cos(np.arange(n) * 0.1)


def _of_u(v: Values) -> Values:
    return {"u": _seed(len(v["u"]))}


STRING = Workload(
    "string",
    f"a string of {POINTS:,} points, as arrays",
    "point",
    (1, 10, 100, 1_000),
    _string_inputs,
    ("u", "v"),
    (
        *c_peers("string", packed("u v #u steps k", "u v"), ("u", "v", "k"), _of_u),
        *libraries.loops(_string, ("u", "v")),
        libraries.numpy(_string_numpy),
        libraries.numpy(_string_numpy_back, GRADIENT),
        *libraries.jax(_string_jax, _of_u, ("u", "v", "k")),
        *libraries.torch(_string_torch, _of_u, ("u", "v", "k")),
    ),
    _of_u,
    ("u", "v", "k"),
    work=lambda steps: POINTS * steps,
)
