"""A function is one place: what this file enters in the table works everywhere."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import rvm
from rvm.engines import ENGINES
from rvm.isa.functions.formulas import const, enter, fn
from rvm.isa.implementation import implementation, value
from rvm.isa.rows import FUNCTIONS
from rvm.isa.rules import elementwise
from rvm.leaf import Node, select
from rvm.types import F32, F64, SCALARS

FIXED = SCALARS["fixed"]
TEXT = """
func one(y: f64, x: f64)
    add y, lorentz(x)

func looped(y: f64[n], x: f64[n])
    for i = 0 to n - 1
        add y[i], lorentz(x[i])
    end

func whole(y: f64[n], x: f64[n])
    add y, lorentz(x)
"""


def _lorentz(x: Node) -> Node:
    """1 / (1 + x**2), and 0 far out, where the square overflows."""
    near = ~((x >= 1e150) | (x <= -1e150))
    inside = select(near, x, 0.0)
    return select(near, 1.0 / (inside * inside + 1.0), 0.0)


@pytest.fixture(scope="module", autouse=True)
def entered() -> Iterator[None]:
    enter(
        "lorentz x",
        elementwise("real"),
        "1 / (1 + x * x)",
        partials=lambda x: (const(-2, x) * x * fn("square", fn("lorentz", x)),),
        body=_lorentz,
    )
    yield
    del FUNCTIONS["lorentz"]


XS = np.array([0.0, -0.0, 0.5, -1.75, 3.0, 1e-200, 1e160, -np.inf, np.nan, 7.25, -0.1])


def expected() -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.where(np.abs(XS) >= 1e150, 0.0, 1 / (1 + XS * XS))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_computes_it(engine: str) -> None:
    program, want = rvm.assemble(TEXT), expected()
    for name in ("looped", "whole"):
        out = program[name](y=np.zeros_like(XS), x=XS, engine=engine)
        assert np.array_equal(out.y, want, equal_nan=True)
        back = (~program[name])(y=out.y, x=XS, engine=engine)
        assert np.array_equal(back.y[np.isfinite(want)], np.zeros(np.isfinite(want).sum()))
    ones = [program["one"](y=0.0, x=x, engine=engine).y for x in XS.tolist()]
    assert np.array_equal(ones, want, equal_nan=True)
    many = program["one"].with_options(engine=engine).map(y=np.zeros_like(XS), x=XS).y
    assert np.array_equal(many, want, equal_nan=True)


def test_it_has_derivatives() -> None:
    f = rvm.assemble(TEXT)["one"]
    for x in (0.25, -1.5, 2.0):
        assert f.grad(loss="y", y=0.0, x=x).x == pytest.approx(-2 * x / (1 + x * x) ** 2, rel=1e-14)
        second = (6 * x * x - 2) / (1 + x * x) ** 3
        assert f.hessian(loss="y", y=0.0, x=x)["x"]["x"] == pytest.approx(second, rel=1e-13)
    some = np.array([0.25, -1.5, 2.0])
    slopes = f.map.grad(loss="y", y=np.zeros(3), x=some).x
    assert slopes == pytest.approx(-2 * some / (1 + some * some) ** 2, rel=1e-14)


def test_other_types_of_real_numbers_go_through_f64() -> None:
    assert value("lorentz", (F64,))(0.5) == 0.8
    assert value("lorentz", (F32,))(0.5) == float(np.float32(0.8))
    assert value("lorentz", (FIXED,))(1 << 42) == round(0.8 * 2**43)
    assert all(implementation("lorentz", (t,)).is_native for t in (F64, F32, FIXED))
