"""Gradient programs leave values as they were given, whatever rounding made of them on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sizes import sample

import rvm
from rvm.engines import executing

TEXT = """
func main(x: f64[n], z: c128, y: f64, k: i64)
    for i = 1 to k
        mul x, 0.5
        add x, 0.3
        sub z, 0.1
    end
    add y, sum(x ** 2)
    add y, z.re
"""


def _given(k: int) -> dict[str, Any]:
    return {
        "x": np.array([1.0, 1 / 3]),
        "z": 0.7 - 0.2j,
        "y": 1e-20,
        "k": k,
        "x_bar": np.zeros(2),
        "z_bar": 0j,
        "y_bar": 1.0,
    }


@sample
@pytest.mark.parametrize("k", [3, 60])
@pytest.mark.parametrize("options", [{}, {"error": True}], ids=str)
@pytest.mark.parametrize("engine", executing())
def test_values_are_as_given_after_a_gradient_program(
    engine: str, options: dict[str, Any], k: int
) -> None:
    """60 steps forget x, whose adjoint is right all the same: the sum reads x at its end."""
    program = rvm.assemble(TEXT).main.gradient_program
    given = _given(k)
    x, before = given["x"], _given(k)
    found = program[program.program.entry](**given, engine=engine, **options)
    for name in ("x", "z", "y", "k"):
        assert np.array_equal(found[name], before[name]), name
    assert found["x"] is x
    ends = 0.6 + (before["x"] - 0.6) * 0.5**k
    assert np.allclose(found["x_bar"], 2 * ends * 0.5**k, rtol=1e-12, atol=0)
    if "error" in options:
        assert not np.any(found.info.error["x"])
        assert found.info.error["z"] == 0


def test_values_of_lanes_are_as_given() -> None:
    program = rvm.assemble(TEXT).main.gradient_program
    given = _given(60)
    lanes = given | {"x": np.array([[1.0, 1 / 3], [2.0, -0.1]]), "z": np.array([0.7j, 0.3])}
    lanes["x_bar"] = np.zeros((2, 2))
    before = {name: np.array(v) for name, v in lanes.items()}
    found = program[program.program.entry].map(**lanes)
    for name in ("x", "z", "y"):
        assert np.array_equal(found[name], np.broadcast_to(before[name], np.shape(found[name])))
