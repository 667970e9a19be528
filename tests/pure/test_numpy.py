"""Expressions in NumPy, traced: their values are NumPy's, and their derivatives the differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sizes import some

import rvm

rng = np.random.default_rng(5)
VALUES: dict[str, Any] = {
    "u": rng.normal(size=6),
    "v": rng.normal(size=6),
    "s": rng.normal(size=3),
    "w": rng.normal(size=(3, 6)),
    "z": rng.normal(size=(3, 6)),
    "q": rng.normal(size=(6, 6)),
    "t": rng.normal(size=(2, 3, 6)),
    "f": rng.normal(size=(3, 6)),
    "g": rng.normal(size=6),
    "p": rng.normal(size=3),
    "c": rng.normal(size=6) + 1j * rng.normal(size=6),
}
TYPES = {
    "u": "f64[n]",
    "v": "f64[n]",
    "s": "f64[m]",
    "w": "f64[m, n]",
    "z": "f64[m, n]",
    "q": "f64[n, n]",
    "t": "f64[k, m, n]",
    "f": "f64[3, 6]",
    "g": "f64[6]",
    "p": "f64[3]",
    "c": "c128[n]",
}

EXPRESSIONS = """
w.sum(axis=1, keepdims=True) * w
w / np.max(w, axis=0, keepdims=True)
w - w.mean(axis=-1, keepdims=True) + np.sum(w, keepdims=True)
t.sum(axis=(0, 2), keepdims=True) * t + t.min((1, 2), keepdims=True)
u - u.sum(axis=0, keepdims=True)
u[:, None] - v[None, :]
u[:, np.newaxis] * v + u[np.newaxis]
np.sum((w[:, None, :] - w[None, :, :]) ** 2, axis=-1)
w[..., 0] + t[..., 1:, 2].sum(axis=0)[0]
w[..., None][0, :, 0]
f.reshape(6, 3) @ f
np.reshape(f, (2, 9)) + g[0]
g.reshape(2, -1) + g.reshape((2, 3))
u.reshape(-1, 1) * u
w.reshape(w.shape[1], w.shape[0]) @ w
w.reshape(-1)
w.ravel() * np.ravel(z) + w.flatten()
t.reshape(t.shape[0], -1)
w.T @ z + np.transpose(w) @ w
np.transpose(t, (2, 0, 1)) + 1
t.transpose(1, 0, 2) * t.T.T.swapaxes(0, 1)
np.moveaxis(t, 0, -1)
np.swapaxes(w, 0, 1)
w[np.argmax(s)] + u[u.argmin()]
np.argmax(w, axis=1) + np.argmin(z, axis=1)
np.argmax(w, axis=0, keepdims=True)
np.argmax(w) + u.argmax(axis=0)
np.einsum("ij,j->i", w, u)
np.einsum("i,i->", u, v) + np.einsum("i,i", u, u)
np.einsum("ij,kj->ik", w, z) + np.einsum("ij,jk", w, z.T)
np.einsum("ij,kj->ki", w, z)
np.einsum("ii", q) + np.einsum("ii->i", q)
np.einsum("ij->ji", w)
np.einsum("i,j->ji", u, v)
np.einsum("i,ij,j->", u, q, v)
np.einsum("ij->j", w) + np.einsum("ij->", w)
np.einsum("bij,bkj->bik", t, t)
np.var(w, axis=0) + np.std(w, axis=(0,), keepdims=True)
np.var(u, ddof=1) * np.std(w, axis=1)
(w - w.mean(axis=1, keepdims=True)) / np.sqrt(w.var(-1, keepdims=True) + 1e-5) * u
np.where(w > 0, u, 0)
np.clip(w, -0.5, u)
w / np.linalg.norm(w, axis=1, keepdims=True)
np.linalg.norm(u, 1) + np.linalg.norm(u, np.inf) + np.linalg.norm(w, "fro")
np.linalg.norm(w, -np.inf, 1)
np.stack([u, v], axis=1) @ np.stack([u, v])
np.stack([u[0], 1, v[2]])
np.vstack([u, v, w]) + np.hstack([u, 2]).sum()
np.concatenate([w, z], axis=1)
np.concatenate([w, z[:1]], axis=-2)
np.append(u, 1.0) + np.append(v, u[:1])
u[::2] * v[1::2] + u[-2::-2]
u[1:-1:3]
u[3::-1] + u[::-1][:4] + u[4:0:-1]
w[::2][:, ::-1]
w[::-1, ::2] * w[::-1, 1::2]
w[1:, 1:] - w[:-1, :-1]
w[-1] + w[:, -1].sum() + w[-1, -2] + u[-3:].sum() + u[:-3].prod()
w * s[:, None] + u
t + u + w
t * w[:, :1] + w[:1]
(u > v) * 1.0 + (u <= v) * u
np.sum(u > v) + np.mean(u > 0) + np.count_nonzero(w > 0)
np.where(np.any(w > 1, axis=1), s, 2 * s) + np.all(w > -9)
np.maximum(u, v) * np.minimum(w, 0) ** 2
np.square(u) + np.power(v, 3) + u**2 + 2.0**v
np.cumsum(w, axis=1) + np.cumsum(w, axis=0) + np.cumprod(w, axis=-1)
np.cumsum(w)
t @ q + (q @ t.swapaxes(1, 2)).swapaxes(1, 2)
np.matmul(t, t.swapaxes(1, 2))
np.tensordot(u, v, axes=1) * np.tensordot(w, q, 1)
t.sum(axis=1) + t.mean(0)[0]
np.amax(t, axis=(1, 2))
np.add.reduce(w, axis=1) + np.maximum.reduce(w, axis=1)
np.multiply.outer(u, v) + np.subtract.outer(u, v)
np.expand_dims(u, 0) + np.expand_dims(v, -1)
np.squeeze(u[None]) + np.squeeze(w[:1])
np.diag(q) @ np.diag(u)
np.tril(w) - np.triu(z, 1)
f * np.eye(3, 6) + np.arange(6) + np.zeros(6)
np.array([[1.0, -2.0, 0.5], [0.0, 1.0, 3.0]]) @ p
u * np.arange(3).sum() + np.full(2, 3.0)[0]
np.tile(u, 2) * np.repeat(v, 2)
np.repeat(w, 2, axis=1)
np.full_like(u, 2.0) * np.zeros_like(v) + np.ones_like(u)
np.broadcast_to(g, (3, 6)) * f
np.ptp(w, axis=0) + np.average(w, axis=0) + np.average(w, 0, np.abs(w))
np.cross(p, p[::-1])
np.trapezoid(u, dx=0.1) + np.trapezoid(u, v)
np.roll(w, 1, axis=0) + np.roll(w, -2, axis=1) + np.flip(w) + np.flip(w, 0)
np.diff(w, axis=0)[0] + np.diff(u, 2)[0]
sum(a for a in g) * len(g) + [x for x in p][1]
u.copy()[[0, 2, 5]] * w[:, np.array([1, 3, 0])]
w[np.array([0, 2]), np.array([5, 1])] + w[np.array([1, 1]), 0]
u % 2 + v // 0.3 + np.sign(u) + np.floor(v)
c.real**2 + c.imag * np.abs(c) + np.angle(c) + np.real(c)
np.vdot(c, c) + np.sum(np.conj(c) * c.conj())
np.linalg.norm(c) + np.var(c)
np.select([u > 1, u > 0], [u, 2 * v], 0.5)
np.log(np.sum(np.exp(w - w.max(axis=1, keepdims=True)), axis=1)) + w.max(-1)
np.exp(w - w.max(-1, keepdims=True)) / np.exp(w - w.max(-1, keepdims=True)).sum(-1, keepdims=True)
np.take(w, [1, 0], axis=1) + w.take(3)
np.outer(w[:2], s)
u.astype(np.int64) * 2 + u.astype(int).sum()
"""
LINES = [line for line in EXPRESSIONS.splitlines() if line]
DISCRETE = ("arg", "> v) +", "//", "astype", "any(", "np.conj")


def made(text: str, more: str = "{}") -> tuple[Any, dict[str, str], list[Any]]:
    """A function of the variables in an expression, their types and values."""
    code = compile(text, "<expression>", "eval")
    inner = [k for k in code.co_consts if hasattr(k, "co_names")]
    used = {n for k in (code, *inner) for n in k.co_names}
    names = [n for n in TYPES if n in used]
    f = eval(f"lambda {', '.join(names)}: {more.format(text)}", {"np": np, "rvm": rvm})
    return f, {n: TYPES[n] for n in names}, [VALUES[n] for n in names]


@pytest.mark.parametrize("text", LINES)
def test_values_are_those_of_numpy(text: str) -> None:
    f, types, values = made(text)
    want = f(*values)
    have = rvm.pure(f, **types)(*values)
    assert np.shape(have) == np.shape(want)
    np.testing.assert_allclose(have, want, rtol=1e-12, atol=1e-13)
    assert np.asarray(have).dtype == np.asarray(want).dtype


@some
@pytest.mark.parametrize("text", [t for t in LINES if not any(d in t for d in DISCRETE)])
def test_derivatives_are_differences(text: str) -> None:
    """Of a sum of all parts, weighted, in a random direction."""
    f, types, values = made(text, "np.sum(np.sin({}))")
    if "c" in types:
        f, types, values = made(text, "np.sum(np.sin(np.real({})))")
    by = rvm.pure(f, **types).by("rasm").grad(*values)
    found = by if isinstance(by, tuple) else (by,)
    directions = [np.random.default_rng(k).normal(size=v.shape) for k, v in enumerate(values)]
    step = 1e-6

    def at(h: float) -> Any:
        return f(*(v + h * d for v, d in zip(values, directions, strict=True)))

    want = (at(step) - at(-step)) / (2 * step)
    have = sum(np.sum(np.real(g) * d) for g, d in zip(found, directions, strict=True))
    assert have == pytest.approx(want, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize(
    "text",
    [
        "np.concatenate([u[:1], u[2:]])",
        "np.concatenate([[5.0], u[2:]])",
        "np.append(u[3:], u[2:])",
        "np.hstack([u[2:], [u[0], 2.0]])",
        "np.concatenate([u[1:-1], u[2:]])",
        "np.tile(u[2:], 2)",
    ],
)
def test_parts_that_short_arrays_do_not_have_are_empty(text: str) -> None:
    """The type's n - 2 elements are none for n = 1."""
    function = eval(f"lambda u: {text}", {"np": np})
    pure = rvm.pure(function, u=rvm.f64["n"])
    for n in (1, 2, 3, 5):
        u = np.arange(1.0, n + 1)
        np.testing.assert_array_equal(pure(u), function(u), strict=True)
