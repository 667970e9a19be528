"""Matrix products in machine code: elements that are computed together, to the bit."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import rvm
from rvm.engines import LAW

TEXT = """
func products(y: {t}[n], z: {t}[m], c: {t}[n, k], W: {t}[n, m], x: {t}[m], v: {t}[n], \\
              u: {t}[m, k], r: {t}[k, m], e: {t}[2])
    add y, W @ x
    add z, v @ W
    sub z, transpose(W) @ v
    add z, W.T @ v
    add c, W @ u
    sub c, W @ r.T
    alloc s: {t}[n] = (W @ x) * (W @ (x + x))
    add y, s
    free s = (W @ x) * (W @ (x + x))
    add e[0], (W @ x) @ v + sum(x)
    sub e[1], sum(v @ W)
"""
wide = pytest.mark.wide
LENGTHS = 1, 7, 8, 9, 31, 32, 33, 64, 65, 107


def arrays(t: str, n: int, m: int, k: int) -> dict[str, Any]:
    """Numbers whose sums depend on the order of additions, some of them infinite or NaN."""
    rng = np.random.default_rng(n * 1000 + m)
    shapes = {
        "y": n,
        "z": m,
        "c": (n, k),
        "W": (n, m),
        "x": m,
        "v": n,
        "u": (m, k),
        "r": (k, m),
        "e": 2,
    }
    found = {}
    for name, shape in shapes.items():
        values = rng.normal(size=shape) * 10.0 ** rng.integers(-8, 8, shape)
        values = np.where(rng.random(shape) < 0.1, -0.0, values)
        if name == "W" and n == m:
            values[-1, 0] = np.inf
        found[name] = values.astype({"f64": np.float64, "f32": np.float32, "c128": complex}[t])
        if t == "c128":
            found[name] += 1j * rng.normal(size=shape)
    return found


@pytest.mark.parametrize("t", ["f64", *(pytest.param(t, marks=wide) for t in ("f32", "c128"))])
def test_every_length_has_the_bits_of_the_reference(t: str) -> None:
    f = rvm.assemble(TEXT.format(t=t))["products"].with_options(tolerance=float("inf"))
    pairs = {*zip(LENGTHS, reversed(LENGTHS), strict=True), (64, 64), (9, 9), (1, 1), (40, 0)}
    sizes = [(n, m, 10) for n, m in sorted(pairs)]
    # Of long rows all elements are summed at once, eight terms at a time.
    for n, m, k in (*sizes, (9, 600, 1), (17, 513, 3), (0, 70, 2), (8, 65, 1), (3, 2, 130)):
        found = []
        for engine in (LAW, "native"):
            out = f.with_options(engine=engine)(**arrays(t, n, m, k))
            found.append({k: np.nan_to_num(v, nan=7.0).tobytes() for k, v in out.items()})
        assert found[0] == found[1], (n, m, k)


def test_whole_numbers_are_exact() -> None:
    text = "func g(y: i64[n], a: i64[n, m], x: i64[m])\nadd y, a @ x\nsub y, x @ transpose(a)\n"
    f = rvm.assemble(text)["g"].with_options(engine="native")
    for n, m in product((0, 3, 8, 70), (0, 1, 33)):
        a, y = np.arange(n * m).reshape(n, m) - 5, np.arange(n)
        assert (f(y=y.copy(), a=a, x=np.arange(m)).y == y).all()
