"""A gradient is a program that can be undone, and be differentiated by running back once more.

Adjoints of ancillas are forgotten when they are dropped.  What remains must not depend on what was
forgotten: undone, the adjoints given come out again, and second derivatives are right.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sizes import thin

import rvm
from rvm.library.handle import FunctionHandle

EXAMPLES = Path(__file__).parents[2] / "examples"
HELD = """
func f(y: f64, x: f64)          ; freed as a value
    alloc t: f64 = x ** 3
    add y, t
    free t = x ** 3

func passed(y: f64, x: f64)     ; a value is passed
    call square(y, x * x)

func twice(y: f64, x: f64)      ; a place is passed twice
    call product(y, x, x)

func made(y: f64, x: f64)       ; computed and uncomputed
    routine r
        alloc t: f64
        add t, x ** 3
    end
    add y, t
    undo r

func changed(y: f64, x: f64)    ; freed as another value than it was made of
    alloc t: f64 = x
    mul t, x
    add t, sin(x)
    add y, t * x
    free t = x ** 2 + sin(x)

func square(y: f64, z: f64)
    add y, z ** 2

func product(y: f64, a: f64, b: f64)
    add y, a ** 2 * b
"""


def gradient_of(f: FunctionHandle) -> FunctionHandle:
    return f.gradient_program[f.gradient_program.program.entry]


@thin
@pytest.mark.parametrize(
    ("name", "second"),
    (
        ("f", 6 * 1.7),
        ("passed", 12 * 1.7**2),
        ("twice", 6 * 1.7),
        ("made", 6 * 1.7),
        ("changed", 6 * 1.7 + 2 * np.cos(1.7) - 1.7 * np.sin(1.7)),
    ),
)
def test_scalars(name: str, second: float) -> None:
    f = rvm.assemble(HELD)[name]
    g = gradient_of(f)
    there = g(y=0.0, x=1.7, y_bar=2.0, x_bar=0.5)
    back = (~g)(**there)
    assert dict(back) == pytest.approx({"y": 0.0, "x": 1.7, "y_bar": 2.0, "x_bar": 0.5}, abs=1e-13)
    again = g.vjp({"x_bar": 1.0}, y=0.0, x=1.7, y_bar=1.0, x_bar=0.0)
    assert again.x == pytest.approx(second, rel=1e-13)
    assert again.y_bar == pytest.approx(f.grad(loss="y", y=0.0, x=1.7).x, rel=1e-13)


def test_a_series_uncomputed_arithmetically() -> None:
    f = rvm.load(EXAMPLES / "exp_taylor.rasm").iexp
    g = gradient_of(f)
    back = (~g)(**g(y=0.0, x=1.6, y_bar=1.0, x_bar=0.0))
    assert dict(back) == pytest.approx({"y": 0, "x": 1.6, "y_bar": 1, "x_bar": 0}, abs=1e-13)
    again = g.vjp({"x_bar": 1.0}, y=0.0, x=1.6, y_bar=1.0, x_bar=0.0)
    assert again.x == pytest.approx(np.exp(1.6), rel=1e-12)


@pytest.mark.deep
@pytest.mark.parametrize("k", (0, 7))
def test_an_embedding(k: int) -> None:
    f = rvm.load(EXAMPLES / "petersen.rasm").loss
    x = np.random.default_rng(1).normal(size=(10, 2))
    seed = np.zeros((10, 2))
    seed.flat[k] = 1
    again = gradient_of(f).vjp({"x_bar": seed}, y=0.0, x=x, y_bar=1.0, x_bar=np.zeros((10, 2)))
    rows = f.hessian(loss="y", wrt=["x"], y=0.0, x=x)["x"]["x"].reshape(20, 20)
    assert again.x.ravel() == pytest.approx(rows[k], abs=1e-12)


@thin
@pytest.mark.parametrize(
    "expression",
    (
        "sum(x ** 3)",
        "sum((x - sum(x)) ** 3)",
        "sum((x * x[0]) ** 2)",
        "sum(x) ** 3",
        "sum(exp(A - x[1])) + sum(A @ x * 2)",
        "sum((A + x) ** 3)",
        "sum((A * sum(A + x)) ** 2) * x[0]",
        "prod(x) + dot(x, x / sum(x))",
    ),
)
def test_sums_and_broadcasting(expression: str) -> None:
    """Second derivatives by running back twice, and by tangents of the gradient."""
    f = rvm.assemble(f"func f(y: f64, x: f64[n], A: f64[m, n])\n    add y, {expression}\n").f
    rng = np.random.default_rng(2)
    inputs = {"y": 0.0, "x": rng.normal(size=3), "A": rng.normal(size=(2, 3))}
    bars = {"y_bar": 1.0, "x_bar": np.zeros(3), "A_bar": np.zeros((2, 3))}
    rows = f.hessian(loss="y", wrt=["x", "A"], **inputs)
    for k in range(3):
        again = gradient_of(f).vjp({"x_bar": np.eye(3)[k]}, **inputs, **bars)
        assert again.x == pytest.approx(rows["x"]["x"][k], abs=1e-11)
        assert np.abs(again.A - rows["x"]["A"][k]).max() < 1e-11
