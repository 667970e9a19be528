"""A limit on memory counts the inputs, in every kind of run, whether or not it allocates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rvm
from rvm.engines import executing, having

N = 1000
INPUTS = 8 * (N + 1)
"""The bytes of a number and an array."""
TEXT = """
func only_reads(y: f64, x: f64[n])
    add y, sum(x)
func allocates(y: f64, x: f64[n])
    alloc t: f64[n] = x
    add y, sum(t)
    free t = x
func pops(y: f64, x: stack[f64])
    pop y, x
"""
LIBRARY = rvm.assemble(TEXT)
TAKES = {"only_reads": INPUTS, "allocates": INPUTS + 8 * N, "pops": INPUTS}
"""The bytes that a run holds at most."""


def inputs(name: str, lanes: int = 0) -> dict[str, Any]:
    if name == "pops":
        return (
            {"y": np.zeros(lanes), "x": [[1.0] * N] * lanes}
            if lanes
            else {"y": 0.0, "x": [1.0] * N}
        )
    return {"y": np.zeros(lanes) if lanes else 0.0, "x": np.ones((lanes, N) if lanes else N)}


def passes(run: Callable[..., object], **given: Any) -> bool:
    """Whether a run ends within its limit."""
    try:
        run(**given)
    except rvm.RvmError as error:
        assert error.code == "R011"
        return False
    return True


def run_to_the_end(at: str, **given: Any) -> None:
    rvm.Machine(LIBRARY, at, **given).run()


@pytest.mark.parametrize("name", TAKES)
@pytest.mark.parametrize("engine", ("auto", *executing()))
def test_a_run_and_a_call_hold_their_inputs(engine: str, name: str) -> None:
    f = LIBRARY[name]
    for limit in (0, INPUTS - 1, INPUTS, TAKES[name] - 1, TAKES[name]):
        want = limit >= TAKES[name]
        made: dict[str, Any] = {"engine": engine, "max_memory": limit}
        for _ in range(2):  # the second call may go straight to machine code
            assert passes(f.with_options(**made), **inputs(name)) == want, limit
        assert passes(run_to_the_end, at=name, **made, **inputs(name)) == want


@pytest.mark.parametrize("name", TAKES)
@pytest.mark.parametrize("engine", ("auto", *having("lanes")))
def test_a_lane_holds_its_inputs(engine: str, name: str) -> None:
    for lanes in (3, 40):
        for limit in (INPUTS - 1, INPUTS, TAKES[name] - 1, TAKES[name]):
            f = LIBRARY[name].with_options(engine=engine, max_memory=limit)
            found = passes(f.map, **inputs(name, lanes))
            assert found == (limit >= TAKES[name]), (lanes, limit)


@pytest.mark.parametrize("engine", executing())
def test_a_gradient_holds_the_adjoints_too(engine: str) -> None:
    for name in ("only_reads", "allocates"):
        for limit in (TAKES[name], 2 * TAKES[name] - 1, 2 * TAKES[name] + 1024):
            f = LIBRARY[name].with_options(engine=engine, max_memory=limit)
            found = passes(f.grad, loss="y", **inputs(name))
            assert found == (limit > 2 * TAKES[name]), (name, limit)


def test_data_is_as_before() -> None:
    x = np.ones(N)
    f = rvm.assemble("func f(x: f64[n])\n    mul x, 2.0\n").f
    with pytest.raises(rvm.LimitError) as caught:
        f(x=x, max_memory=100)
    assert (x == 1).all()
    assert "the inputs are larger than the memory limit" in str(caught.value)
