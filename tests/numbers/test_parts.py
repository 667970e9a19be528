"""Functions of complex numbers by their parts: how exact they are, by mpmath; at edges; `cis`."""

from __future__ import annotations

import cmath
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest

import rvm
from rvm.isa.implementation import array_value, value
from rvm.types import C128, F64

REFERENCE: dict[str, Callable[[Any], Any]] = {
    "log2": lambda z: mpmath.log(z, 2),
    "expm1": mpmath.expm1,
    "log1p": mpmath.log1p,
}
ULPS = 5.0
"""Units of 2**-53 times the modulus that a result may be off by."""


def draws(name: str, n: int = 600) -> Iterator[complex]:
    """Numbers of all sizes, and near where the logarithms are 0."""
    rng, far = random.Random(name), 2.8 if name == "expm1" else 300.0
    for _ in range(n):
        x, y = (
            rng.choice((-1, 1))
            * 10 ** (rng.uniform(-12, 2) if rng.random() < 0.7 else rng.uniform(-300, far))
            for _ in range(2)
        )
        yield complex(x, y)
        size = 1 + rng.choice((-1, 1)) * 10 ** rng.uniform(-16, -1)
        yield cmath.rect(size, rng.uniform(-3, 3)) - (name == "log1p")


@pytest.mark.parametrize("name", REFERENCE)
def test_they_are_exact_to_a_few_units(name: str) -> None:
    f, many = value(name, (C128,)), list(draws(name))
    with mpmath.workprec(400):
        for z in many:
            want, got = REFERENCE[name](mpmath.mpc(z)), f(z)
            assert abs(mpmath.mpc(got) - want) <= ULPS * 2.0**-53 * abs(want), z
    with np.errstate(all="ignore"):
        arrays = array_value(name, (C128,))(np.array(many))
    assert arrays.tolist() == [f(z) for z in many]


def test_edges() -> None:
    expm1, log1p, log2 = (value(f, (C128,)) for f in ("expm1", "log1p", "log2"))
    assert expm1(complex(-math.inf, 0.0)) == -1 and expm1(complex(math.inf, 0.0)).real == math.inf
    assert repr(expm1(complex(0.0, -0.0))) == "-0j"
    assert log1p(complex(-1.0, 0.0)).real == -math.inf and log1p(0j) == 0
    assert log2(0j).real == -math.inf and log2(8 + 0j) == 3
    below = log2(complex(-2.0, -0.0))
    assert below.real == 1 and below.imag == pytest.approx(-math.pi / math.log(2), rel=1e-15)
    assert cmath.isnan(log1p(complex(math.nan, 1.0)))


TEXT = """
func turned(y: f64, x: f64)
    add y, real(cis(x)) * imag(cis(2.0 * x))

func softest(y: f64, x: f64[n])
    add y, logsumexp(x)
"""


def test_cis_is_cosine_and_sine_with_derivatives() -> None:
    for x in (0.3, -2.0, 1e6):
        want = complex(value("cos", (F64,))(x), value("sin", (F64,))(x))
        assert value("cis", (F64,))(x) == want
    f, x = rvm.assemble(TEXT).turned, 0.3
    slope = math.cos(x) * 2 * math.cos(2 * x) - math.sin(x) * math.sin(2 * x)
    assert f.grad(loss="y", y=0.0, x=x).x == pytest.approx(slope, rel=1e-14)
    second = -5 * math.cos(x) * math.sin(2 * x) - 4 * math.sin(x) * math.cos(2 * x)
    assert f.hessian(loss="y", y=0.0, x=x)["x"]["x"] == pytest.approx(second, rel=1e-13)


def test_logsumexp() -> None:
    f = rvm.assemble(TEXT).softest
    x = np.array([1000.0, 1001.0, 998.5, 1000.0])
    with mpmath.workprec(200):
        want = float(mpmath.log(mpmath.fsum(mpmath.exp(v) for v in x.tolist())))
    assert f(y=0.0, x=x).y == pytest.approx(want, rel=1e-15)
    p = np.exp(x - want)
    assert f.grad(loss="y", y=0.0, x=x).x == pytest.approx(p, rel=1e-12)
    hessian = f.hessian(loss="y", y=0.0, x=x)["x"]["x"]
    assert hessian == pytest.approx(np.diag(p) - np.outer(p, p), rel=1e-11, abs=1e-14)
    for edge, found in (([-np.inf] * 2, -np.inf), ([np.inf, 0.0], np.inf)):
        assert f(y=0.0, x=np.array(edge)).y == found
