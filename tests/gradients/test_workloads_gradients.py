"""Gradients with known numbers: from NiLang's tables (Liu and Zhao 2020), and from formulas."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np
import pytest
from sizes import sample, thin

import rvm
from rvm.engines import executing

ENGINES = executing()
each_engine = pytest.mark.parametrize("engine", ENGINES)
near = pytest.approx


@each_engine
def test_norm(engine: str) -> None:
    f = rvm.load("examples/norm.rasm").length.with_options(engine=engine)
    x = np.array([1.0, 2.0, 3.0])
    value, g = f.value_and_grad(r=0.0, y=0.0, x=x, loss="r")
    assert value == near(3.7416573867739413, rel=1e-15)
    assert g.y == near(0.1336306209562122, rel=1e-14)
    assert g.x.tolist() == near([0.2672612419, 0.5345224838, 0.8017837257], rel=1e-9)
    assert x.tolist() == [1.0, 2.0, 3.0]


@each_engine
def test_fma(engine: str) -> None:
    f = rvm.assemble(
        """
func f(s: f64, a: f64, x: f64[n], y: f64[n], z: f64[n])
    add s, dot(z, a * x + y)
"""
    ).f.with_options(engine=engine)
    x, y, z = np.array([1.0, 2, 3]), np.ones(3), np.array([3.0, 2, 1])
    value, g = f.value_and_grad(s=0.0, a=2.0, x=x, y=y, z=z, loss="s")
    assert value == 26
    assert g.a == 10
    assert (g.x.tolist(), g.y.tolist(), g.z.tolist()) == ([6, 4, 2], [3, 2, 1], [3, 5, 7])


@thin
@each_engine
@pytest.mark.parametrize(
    ("call", "at", "partials"),
    [
        ("sqrt(x)", (2.0,), (0.3535533906,)),
        ("exp(x)", (2.0,), (7.389056099,)),
        ("sin(x)", (2.0,), (-0.4161468365,)),
        ("cos(x)", (2.0,), (-0.9092974268,)),
        ("sinh(x)", (2.0,), (3.762195691,)),
        ("cosh(x)", (2.0,), (3.626860408,)),
        ("tan(x)", (2.0,), (5.774399204,)),
        ("tanh(x)", (2.0,), (0.07065082485,)),
        ("asin(x)", (0.2,), (1.020620726,)),
        ("acos(x)", (0.2,), (-1.020620726,)),
        ("atan(x)", (-2.0,), (0.2,)),
        ("atan2(x, y)", (-2.0, 1.5), (0.24, 0.32)),
        ("x ** y", (2.0, 3.0), (12.0, 5.545177444)),
        ("x / y", (2.0, 4.0), (0.25, -0.125)),
    ],
)
@sample
@sample
def test_partials(engine: str, call: str, at: tuple[float, ...], partials: Any) -> None:
    names = ("x", "y")[: len(at)]
    params = ", ".join(f"{n}: f64" for n in names)
    for op, sign in (("add", 1), ("sub", -1)):
        f = rvm.assemble(f"func f(z: f64, {params})\n    {op} z, {call}\n").f
        g = f.with_options(engine=engine).grad(z=0.0, loss="z", **dict(zip(names, at, strict=True)))
        assert [sign * g[n] for n in names] == near(list(partials), rel=1e-9)


@each_engine
def test_rotation(engine: str) -> None:
    f = rvm.assemble("func f(a: f64, b: f64, t: f64)\n    rot a, b, t\n").f
    g = f.with_options(engine=engine).grad(a=1.0, b=2.0, t=2.0, loss="a")
    assert (g.a, g.b, g.t) == (
        near(-0.4161468365, rel=1e-9),
        near(-0.9092974268, rel=1e-9),
        near(-0.0770037537, rel=1e-8),
    )


@each_engine
def test_chain(engine: str) -> None:
    f = rvm.assemble(
        """
func f(x: f64, y: f64, z: f64)
    add y, cos(1.0 / x)
    add z, tan(y + 4.0)
    add z, y / (-x - 0.5)
    add z, sin(1.0 / x)
"""
    ).f.with_options(engine=engine)
    value, g = f.value_and_grad(x=0.8, y=0.5, z=0.2, loss="z")
    assert value == near(-9.158872354, rel=1e-9)
    assert (g.y, g.x) == (near(93.94644921, rel=1e-9), near(139.2924595, rel=1e-9))


@each_engine
def test_fixed_and_logarithmic(engine: str) -> None:
    f = rvm.assemble("func f(y: fixed, x: fixed)\n    add y, exp(x)\n").f
    out = f.with_options(engine=engine).grad(y=0, x=3.5, loss="y")
    assert out.x == near(33.1154519577, rel=1e-10)
    k = rvm.assemble("func k(x: log64, y: log64, z: log64)\n    mul x, y + z\n").k
    x, y, z = (rvm.LogNumber(v) for v in (7.0, 2.0, 3.0))
    result = k(x=x, y=y, z=z, engine=engine).x
    assert result.log == near(10.313261687518223, rel=1e-15)
    g = k.with_options(engine=engine).grad(x=x, y=y, z=z, loss="x")
    share = 1 / (1 + math.e)
    assert (g.x, g.y, g.z) == (1.0, near(share, rel=1e-14), near(1 - share, rel=1e-14))


@each_engine
def test_complex(engine: str) -> None:
    f = rvm.assemble("func f(y: c128, x: c128)\n    add y, exp(x)\n").f
    g = f.with_options(engine=engine).grad(y=0j, x=2 - 2.3j, loss="y.re")
    assert g.x == near(-4.923150899 + 5.510057646j, rel=1e-9)
    assert g.x == near(cmath.exp(2 - 2.3j).conjugate(), rel=1e-14)
    f = rvm.assemble("func f(y: f64, x: c128)\n    add y, abs(x)\n").f
    g = f.with_options(engine=engine).grad(y=0.0, x=2 - 2.3j, loss="y")
    assert g.x == near(0.6561787149 - 0.7546055222j, rel=1e-9)


@thin
@each_engine
def test_hessian(engine: str) -> None:
    f = rvm.assemble(
        """
func f(a: f64, b: f64, c: f64, d: f64)
    add a, b * c
    add a, b ** d
    add c, b / d
    rot a, c, d
    add b, d ** 2
    add a, c * d
"""
    ).f.with_options(engine=engine)
    at = {"a": 0.0, "b": 2.0, "c": 1.0, "d": 3.0}
    want = {
        "bb": -6.799590,
        "bc": -0.566632,
        "bd": -45.384796,
        "ad": -2.969977,
        "cd": -6.363315,
        "dd": -44.807533,
    }
    h = f.hessian(loss="a", **at)
    twice = f.gradient_program
    again = twice[twice.program.entry].with_options(engine=engine)
    bars = {"a_bar": 1.0, "b_bar": 0.0, "c_bar": 0.0, "d_bar": 0.0}
    for i in at:
        row = again.grad(loss=f"{i}_bar", wrt=list(at), **at, **bars)
        for j in at:
            expected = want.get(i + j, want.get(j + i, 0.0))
            assert h[i][j] == near(expected, abs=1e-6)
            assert row[j] == near(h[i][j], rel=1e-11, abs=1e-11)


@each_engine
def test_an_ancilla_that_begins_as_a_variable(engine: str) -> None:
    f = rvm.assemble(
        """
func f(y: f64, z: f64)
    alloc t: f64 = y
    add z, t * t
    free t = y
"""
    ).f.with_options(engine=engine)
    assert f.grad(y=3.0, z=0.0, loss="z").y == 6.0


@each_engine
@pytest.mark.parametrize("n", [1_000, 1_000_000])
def test_memory_does_not_grow_with_the_number_of_steps(engine: str, n: int) -> None:
    if engine == "reference":
        n //= 100
    f = rvm.assemble(
        """
func f(x: f64, one: f64, n: i64)
    for i = 1 to n
        add x, one
    end
"""
    ).f.with_options(engine=engine)
    pull = f.pullback(x=0.0, one=1.0, n=n)
    forward = pull.ticks
    pull.seed("x")
    assert pull() == {"x": 1.0, "one": float(n)}
    assert pull.machine.state.account.peak_bytes <= 64
    assert pull.ticks <= 2.5 * forward


def test_what_carries_no_derivative_is_refused_or_zero() -> None:
    f = rvm.assemble("func f(y: f64, x: f64, n: i64)\n    add y, f64(n // 2) * floor(x)\n").f
    g = f.grad(y=0.0, x=1.5, n=3, loss="y")
    assert set(g) == {"y", "x"}
    assert g.x == 0.0
    for bad in ("n", "q", "y[0]", "y.re"):
        with pytest.raises(rvm.InputError) as caught:
            f.grad(y=0.0, x=1.5, n=3, loss=bad)
        assert caught.value.code == "I008"


@pytest.mark.parametrize(
    ("call", "x", "want"),
    [
        ("abs(x)", 0.0, 0.0),
        ("x ** 2", -3.0, -6.0),
        ("x ** 3.0", -2.0, 12.0),
        ("max(x, 1.0)", 1.0, 1.0),
        ("relu(x)", 0.0, 0.0),
        ("x ** 0", 0.0, 0.0),
    ],
)
def test_choices_at_the_edges(call: str, x: float, want: float) -> None:
    f = rvm.assemble(f"func f(y: f64, x: f64)\n    add y, {call}\n").f
    assert f.grad(y=0.0, x=x, loss="y").x == want


def test_a_gradient_whose_values_do_not_come_back_is_refused() -> None:
    f = rvm.assemble(
        """
func f(x: f64, y: f64, n: i64)
    for i = 1 to n
        mul x, 0.5
        add x, 0.3
        add y, x ** 2
    end
"""
    ).f
    assert f.grad(x=1.0, y=0.0, n=10, loss="y").y == 1.0
    with pytest.raises(rvm.InvertibilityError) as caught:
        f.grad(x=1.0, y=0.0, n=100, loss="y")
    assert caught.value.code == "R017"
