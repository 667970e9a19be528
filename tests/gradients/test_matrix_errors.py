"""The errors of Hessians, products with them, and Jacobians: against mpmath, and as results."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gradients.estimated import program
from gradients.hard import HARD, Hard
from gradients.lost import program as lost
from sizes import thin, wide

import rvm
from rvm.engines import executing

NAMED = {name: h for name, h in HARD.items() if h.n <= 60}
ALL = {
    **NAMED,
    **{f"random {seed}": program(seed) for seed in range(60)},
    **{f"lost {seed}": lost(seed) for seed in range(30)},
}
METHODS = ("forward-over-reverse", "taylor")
ENGINES = [e for e in executing() if e != "native"]


def at(h: Hard) -> dict[str, Any]:
    return {"y": 0.0, "x": h.x, "p": h.p, "n": h.n}


def untold(h: Hard, method: str) -> Iterator[Any]:
    """The second derivatives whose errors are more than ten times what is told."""
    f = h.handle().with_options(engine="python", tolerance=math.inf)
    try:
        found = f.hessian(at(h), loss="y", wrt=["x", "p"], method=method)
    except rvm.RvmError:
        return
    error = found.info.error
    for (a, b), truth in h.second().items():
        off = abs(found[a][b] - truth)
        # The differences of mpmath have an error of their own.
        if math.isfinite(found[a][b]) and off > 1e-55 and not 0.1 * off <= error[a][b]:
            yield a, b, found[a][b], float(truth), error[a][b]


@thin
@pytest.mark.parametrize("name", ["relax 20", "friction 10", "random 3", "lost 0", "lost 4"])
def test_errors_of_hessians(name: str) -> None:
    assert not list(untold(ALL[name], "forward-over-reverse"))


@pytest.mark.deep
@pytest.mark.parametrize("method", METHODS)
def test_errors_of_hessians_of_more_than_a_hundred_programs(method: str) -> None:
    assert len(ALL) > 100
    found = {name: list(untold(h, method)) for name, h in ALL.items()}
    assert not {name: bad for name, bad in found.items() if bad}


@wide
def test_errors_are_useful() -> None:
    """Where all is well they are some units in the last place."""
    h = HARD["pendulum 10"]
    for method in METHODS:
        found = h.handle().hessian(at(h), loss="y", wrt=["x", "p"], method=method)
        for a in "xp":
            for b in "xp":
                assert found.info.error[a][b] <= 1e-13 * max(1.0, abs(found[a][b]))


def test_a_hessian_that_has_lost_its_values_says_so() -> None:
    h = HARD["relax 40"]
    f = h.handle().with_options(tolerance=math.inf)
    (truth,) = (float(v) for k, v in h.second().items() if k == ("x", "p"))
    found = f.hessian(at(h), loss="y", wrt=["x", "p"])
    assert found.info.error.x.p >= 0.1 * abs(found.x.p - truth) > 0
    strict = f.with_options(strict=True).hessian(at(h), loss="y", wrt=["x", "p"])
    assert 0.1 * abs(strict.x.p - truth) <= strict.info.error.x.p <= 1e-13


PARTS = """
record P
    a: f64
    z: c128
end
func f(p: P, x: f64[n], s: stack[f64], y: f64)
    mul p.a, 1.1
    add y, sum(sin(x)) * p.a * p.a + real(p.z * p.z) * x[0]
    alloc t: f64
    pop t, s
    add y, t * t * p.a
    push t, s
    free t
"""


@wide
@pytest.mark.parametrize("engine", ENGINES)
def test_errors_have_the_form_of_the_derivatives(engine: str) -> None:
    f = rvm.assemble(PARTS).f.with_options(engine=engine)
    given = {"p": {"a": 1.0, "z": 1 + 2j}, "x": np.linspace(1, 2, 3), "s": [1.0, 2.0], "y": 0.1}
    for method in METHODS:
        h = f.hessian(given, loss="y", method=method)
        e = h.info.error
        assert list(e) == list(h) and list(e.p) == ["a", "z"]
        assert e.p.z.x.shape == h.p.z.x.shape == (2, 3) and np.shape(e.s.s) == (2, 2)
        assert 0 < e.p.a.p.a < 1e-13 and 0 < e.p.z.p.z[0, 0] < 1e-13 and e.y.y == 0
        for kept in (pickle.loads(pickle.dumps(h)), copy.deepcopy(h)):
            assert kept.info.error.x.x.tolist() == e.x.x.tolist()
    product = f.hvp({"p": {"a": 1.0}}, given, loss="y")
    e = product.info.error
    assert list(e) == list(product) and e.x.shape == (3,) and 0 < e.x[0] < 1e-13
    before = e.x.copy()
    again = f.hvp({"p": {"a": 1.0}}, given, loss="y")
    given["x"][:], again.x[:] = 7.0, 8.0
    assert again.info.error.x.tolist() == before.tolist(), "it is of copies"


TWO = """
func f(x: f64[2], z: f64, n: i64)
    for i = 1 to n
        mul x[0], 0.5
        add x[0], 0.3
        add z, x[0] * x[1]
        add x[1], x[0] * x[0]
    end
"""


@thin
@pytest.mark.parametrize("n", [3, 20, 60])
@pytest.mark.parametrize("of", [["z"], ["x", "z"]])
def test_errors_of_jacobians(n: int, of: list[str]) -> None:
    """By rows and by columns, and where nothing comes back."""
    f = rvm.assemble(TWO).f.with_options(engine="python")
    given = {"x": np.array([1.1, 0.7]), "z": 0.0, "n": n}
    j = f.jacobian(given, of=of, wrt=["x", "z"])
    e = j.info.error
    want = exact(given)
    for out in of:
        for name in ("x", "z"):
            off = np.abs(np.array(want[out, name]) - j[out][name])
            assert np.shape(e[out][name]) == np.shape(j[out][name])
            assert np.all(0.1 * off <= e[out][name]), (out, name)
            if n != 20:
                assert np.all(np.array(e[out][name]) <= 1e-12 * n)


def exact(given: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """The derivatives of what `TWO` does, by the chain rule in mpmath."""
    import mpmath

    with mpmath.workdps(60):
        a, b = map(mpmath.mpf, given["x"].tolist())
        da, db, dz = ([mpmath.mpf(i == k) for i in range(3)] for k in range(3))
        for _ in range(given["n"]):
            a, da = a / 2 + mpmath.mpf(0.3), [v / 2 for v in da]
            dz = [z + a * q + b * p for z, p, q in zip(dz, da, db, strict=True)]
            b, db = b + a * a, [q + 2 * a * p for p, q in zip(da, db, strict=True)]
        rows = {"x": [[*map(float, da)], [*map(float, db)]], "z": [*map(float, dz)]}
    return {
        ("x", "x"): [r[:2] for r in rows["x"]],
        ("x", "z"): [r[2] for r in rows["x"]],
        ("z", "x"): rows["z"][:2],
        ("z", "z"): rows["z"][2],
    }


@pytest.mark.parametrize("held", [(0, 2), (2, 0), (0, 0)])
def test_matrices_of_arrays_and_stacks_without_elements(held: tuple[int, int]) -> None:
    n, m = held
    f = rvm.assemble("""
        func f(y: f64, x: f64[n], s: stack[f64])
            for i = 0 to n - 1
                mul x[i], 1.1
                add y, x[i] ** 3
            end
    """).f
    given = {"y": 0.0, "x": np.ones(n), "s": [1.0] * m}
    for found in (f.jacobian(given), *(f.hessian(given, loss="y", method=way) for way in METHODS)):
        for of, part in found.items():
            for wrt, values in part.items():
                assert np.shape(values) == np.shape(found.info.error[of][wrt])
    curved = f.hessian(given, loss="y", tolerance=1e-8)
    assert np.allclose(curved.x.x, 6 * 1.1**3 * np.eye(n))
