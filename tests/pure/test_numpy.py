"""Expressions in NumPy, traced: their values are NumPy's, and their derivatives the differences."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
import pytest
from sizes import part, sized, some, thin

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


@thin(2)
@pytest.mark.parametrize("text", LINES)
def test_values_are_those_of_numpy(text: str) -> None:
    f, types, values = made(text)
    want = f(*values)
    have = rvm.pure(f, **types)(*values)
    assert np.shape(have) == np.shape(want)
    np.testing.assert_allclose(have, want, rtol=1e-12, atol=1e-13)
    assert np.asarray(have).dtype == np.asarray(want).dtype


@thin(2)
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


DTYPES = {
    **{name: np.dtype(f"{name[0]}{int(name[1:]) // 8}") for name in ("i8", "i16", "i32", "i64")},
    **{name: np.dtype(f"{name[0]}{int(name[1:]) // 8}") for name in ("u8", "u16", "u32", "u64")},
    "bool": np.dtype("?"),
    "f32": np.dtype("f4"),
    "f64": np.dtype("f8"),
    "c128": np.dtype("c16"),
}
MIXED = """
a + b; a - b; a * b; a / b; a // b; a % b; a ** b; divmod(a, b)[0]; divmod(7, b)[1]; +a; -a; ~a;
a < b; a == b; a != b; a >= 2.0; a == 2**53 + 1; a & b; a | b; a ^ b; a & 1; ~((a > b) & 1);
a + 1; a * 2.0; 2.0**a; 2**a; a - 0.0; a + 2.5; 7 // a; a % 2.5; a + 300; a * 2**40; a + True;
1j * a; a + np.float32(1); np.int64(1) + a; a * np.uint8(200); np.float64(2) * a; a * np.sqrt(2);
np.bool_(1) + a; np.int8([1, 2, 3]) * a; np.array([1, 2, 3]) * a; np.float32([1.5, 2, 3]) * a;
[1, 2, 3] + a; a * [2.5, 1, 0]; a - (1, 2, 3); [True, False, True] * a; np.maximum(a, [1, 2, 3]);
np.minimum(a, 2.5); np.clip(a, 0, b); np.where(a > b, a, b); np.where(a > b, a, 2.5);
np.where(a > b, a, 2); np.select([a > b], [a], 1.5); np.fabs(a); np.float_power(a, b);
np.float_power(a, 2); np.abs(a); np.square(a); np.power(a, 3); a.sum(); a.prod(); a.mean();
np.mean(a) * b; a.var(); a.std(); np.linalg.norm(a); a.max() + b; np.ptp(a);
np.linalg.norm(a, 1); np.average(a, weights=[1, 2, 3]); np.average(a, weights=b); np.cumsum(a);
np.cumprod(a); np.stack([a, b]); np.stack([a, b])[0] * b; np.hstack([a, 1]); np.append(a, 2.5);
np.concatenate([b, [1, 2], a]); np.stack([a[0], 1, b[0]]); np.full_like(a, 2.7);
np.full_like(a, 300); np.full_like(a, b[0]); np.zeros_like(a) + b; np.ones_like(a) * b;
np.zeros_like(a, dtype=np.float32) + b; np.zeros_like(a[0]) + b; a / a.size; a * a.shape[0];
a - (a.size - 1); a / (a.size / 2); np.sum(a) + b; np.sum(a > b) * a; np.outer(a, b); a @ b;
np.diff(a) * b[1:]
"""


def of_type(t: str, rng: np.random.Generator) -> Any:
    """Three numbers of a type, its greatest and least ones among them."""
    dtype = DTYPES[t]
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        some = [0, 1, 2, 3, 7, ends.max, ends.max - 1, ends.min, ends.max // 2]
        return np.array([some[k] for k in rng.integers(0, len(some), 3)], dtype)
    if dtype.kind == "b":
        return rng.random(3) < 0.5
    real = rng.choice([0.0, 1.0, -1.0, 2.5, -0.5, 3.0, rng.normal(), 2.0**53], 3)
    return (real + 1j * rng.normal(size=3) if dtype.kind == "c" else real).astype(dtype)


@sized
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("text", [t for t in map(str.strip, MIXED.split(";")) if t])
def test_types_are_mixed_as_numpy_mixes_them(text: str) -> None:
    """The same numbers of the same type, or a refusal: never another number."""
    rng = np.random.default_rng(crc32(text.encode()))
    f = eval(f"lambda a, b: {text}", {"np": np})
    for _ in range(part(80)):
        ta, tb = rng.choice(list(DTYPES), 2)
        a, b = of_type(ta, rng), of_type(tb, rng)
        try:
            have = rvm.pure(f, a=f"{ta}[3]", b=f"{tb}[3]")(a, b)
        except rvm.RvmError as error:
            # Division by zero, powers that are no whole numbers, what cannot be traced.
            assert error.code in ("U060", "R005", "R009", "R015"), error
            continue
        try:
            want = f(a, b)
        except (ValueError, OverflowError):
            assert "**" in text or "power" in text  # of 1, which NumPy refuses with those of others
            continue
        close = 1e-4 if "f32" in (ta, tb) or "float32" in text else 1e-12
        np.testing.assert_allclose(have, want, rtol=close, atol=close, err_msg=f"{ta} {tb} {a} {b}")
        if not np.iscomplexobj(want) and np.asarray(want).dtype.kind != "f":
            np.testing.assert_array_equal(have, want, err_msg=f"{ta} {tb} {a} {b}")
        assert np.asarray(have).dtype == np.asarray(want).dtype, (ta, tb)
