"""The examples that call gradients: by hand-written formulas, differences, and other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sizes import some, wide

import rvm
from rvm.engines import executing

EXAMPLES = Path(__file__).parents[2] / "examples"
HERE = EXAMPLES / "derivatives"


@wide
@pytest.mark.parametrize("engine", executing())
@some
def test_gauss_and_newton_find_the_least_squares(engine: str) -> None:
    rng = np.random.default_rng(3)
    t = np.linspace(0, 3, 9)
    d = 4 * np.exp(-0.7 * t) + rng.normal(scale=0.05, size=9)
    fit = rvm.load(HERE / "gauss_newton.rasm").fit.with_options(engine=engine)
    found = fit(q=np.zeros(2), p=np.array([3.0, 1.0]), t=t, d=d)
    a, b = found.q
    e = a * np.exp(-b * t) - d
    # At the least squares the gradient is zero.
    assert np.sum(e * np.exp(-b * t)) == pytest.approx(0, abs=1e-12)
    assert np.sum(e * a * t * np.exp(-b * t)) == pytest.approx(0, abs=1e-12)
    assert found.p.tolist() == [3.0, 1.0]


def trained(h: complex, m: complex, x: Any, d: Any, others: Any, there: Any, steps: int) -> complex:
    """The formula; numbers may be complex."""
    w, v = np.zeros(2), np.zeros(2)
    for _ in range(steps):
        e = w[0] + w[1] * x - d
        v = m * v - h * 2 * np.array([np.mean(e), np.mean(e * x)])
        w = w + v
    return complex(np.mean((w[0] + w[1] * others - there) ** 2))


@pytest.mark.parametrize("engine", executing())
@some
def test_a_training_is_differentiated_by_its_rate_and_momentum(engine: str) -> None:
    rng = np.random.default_rng(5)
    x, others = rng.normal(size=8), rng.normal(size=5)
    data = {"x": x, "d": 1 + 2 * x + rng.normal(scale=0.1, size=8)}
    data |= {"others": others, "there": 1 + 2 * others, "steps": 12}
    f = rvm.load(HERE / "bilevel.rasm").trained.with_options(engine=engine)
    value, g = f.value_and_grad(
        loss="y", wrt=["h", "m"], y=0.0, w=np.zeros(2), v=np.zeros(2), h=0.1, m=0.6, **data
    )
    assert value == pytest.approx(trained(0.1, 0.6, **data).real, rel=1e-12)
    # An imaginary step has no rounding: the derivative is exact.
    by_h = trained(0.1 + 1e-30j, 0.6, **data).imag / 1e-30
    by_m = trained(0.1, 0.6 + 1e-30j, **data).imag / 1e-30
    assert (g.h, g.m) == pytest.approx((by_h, by_m), rel=1e-9)


@pytest.mark.parametrize("engine", executing(loops=False))
@some
def test_rows_are_those_of_the_other_program(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES / "gradients"))
    import bundle

    values = bundle.inputs(2, 3)
    cams = np.hstack([np.reshape(values["cams"][n], (-1, k)) for n, k in bundle.FIELDS.items()])
    scene = {name: values[name] for name in ("X", "w", "which", "seen")}
    f = rvm.load(HERE / "jacobian.rasm").jacobian.with_options(engine=engine)
    found = f(rows=np.zeros((len(values["w"]), 2, 17)), cams=cams, **scene).rows
    for k in range(len(values["w"])):
        for axis in range(2):
            assert found[k, axis, :15] == pytest.approx(bundle.row(values, k, axis), rel=1e-10)
