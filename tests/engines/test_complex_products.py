"""Products of complex arrays have the same bits on every engine, in lanes and in gradients too."""

from __future__ import annotations

import numpy as np
import pytest
from sizes import thin, wide

import rvm
from rvm.engines import LAW, executing

TEXT = """
func f(m: c128[n, n], v: c128[n], z: c128, a: c128[n], b: c128[n], x: c128[n, n], k: i64)
    for i = 1 to k
        add m, outer(a, b)
        add m, x @ x.T
        add v, x @ a
        add v, b @ x
        add z, dot(a, b) + prod(a) + sum(a * b / (1 + abs2(v)))
        mul z, 0.5
    end

func g(l: f64, y: c128[n], x: c128[n, n], a: c128[n])
    add y, x @ a
    add l, sum(abs2(y))
"""
NAMES = ("m", "v", "z", "a", "b", "x")


def inputs(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)

    def drawn(*shape: int) -> np.ndarray:
        return rng.normal(size=shape) + 1j * rng.normal(size=shape)

    n = 2 + seed % 9
    zero = {"m": np.zeros((n, n), complex), "v": np.zeros(n, complex)}
    return {**zero, "a": drawn(n), "b": drawn(n), "x": drawn(n, n)}


@thin
@pytest.mark.parametrize("engine", executing())
@pytest.mark.parametrize("seed", range(6))
def test_runs_give_the_same_bits(engine: str, seed: int) -> None:
    f = rvm.assemble(TEXT).f
    found, want = (f(**inputs(seed), z=1j, k=7, engine=e) for e in (engine, LAW))
    for name in NAMES:
        assert np.asarray(found[name]).tobytes() == np.asarray(want[name]).tobytes(), name


@wide
@pytest.mark.parametrize("engine", executing())
def test_lanes_give_the_same_bits(engine: str) -> None:
    f = rvm.assemble(TEXT).f
    one = inputs(4)
    many = {k: np.tile(v, (40, *[1] * v.ndim)) for k, v in one.items()}
    found = f.map(**many, z=1j, k=3, engine=engine)
    want = f(**inputs(4), z=1j, k=3, engine=LAW)
    for name in ("m", "v", "z"):
        assert np.asarray(found[name])[17].tobytes() == np.asarray(want[name]).tobytes(), name


@pytest.mark.parametrize("engine", executing())
def test_gradients_give_the_same_bits(engine: str) -> None:
    g = rvm.assemble(TEXT).g
    given = {k: v for k, v in inputs(5).items() if k in ("x", "a")}
    y = np.zeros(len(given["a"]), complex)
    found, want = (
        g.with_options(engine=e).grad(loss="l", l=0.0, y=y, **given) for e in (engine, LAW)
    )
    for name in ("x", "a", "y"):
        assert found[name].tobytes() == want[name].tobytes(), name
