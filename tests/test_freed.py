"""What calls give back is freed with it: nothing waits for the garbage collector."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sizes import sample, thin

import rvm
from rvm.engines import ENGINES

PROGRAM = rvm.assemble(
    """
    record pair
        u: f64[n]
        v: f64
    end
    func f(y: f64, x: f64[n], p: pair)
        add y, sum(x * x) + dot(p.u, x) * p.v
        add p.u, x * 2.0
    """
)
SEEDS = {"y": 1.5, "x": np.arange(4.0), "p": {"u": np.ones(4), "v": 2.0}}


def given() -> dict[str, Any]:
    return {"y": 0.0, "x": np.arange(4.0), "p": {"u": np.ones(4), "v": 0.5}}


CALLS: dict[str, Callable[[Any], Any]] = {
    "call": lambda f: f(given()["y"], np.arange(4.0), given()["p"]),
    "grad": lambda f: f.grad(given(), loss="y"),
    "grad with its error": lambda f: f.with_options(error=True).grad(given(), loss="y"),
    "value_and_grad": lambda f: f.value_and_grad(given(), loss="y"),
    "vjp": lambda f: f.vjp(SEEDS, given()),
    "jvp": lambda f: f.jvp(SEEDS, given()),
    "jacobian": lambda f: f.jacobian(given()),
    "hessian": lambda f: f.hessian(given(), loss="y"),
    "hvp": lambda f: f.hvp(SEEDS, given(), loss="y"),
    "map": lambda f: f.map(y=np.zeros(3), x=np.ones((3, 4)), p=given()["p"]),
    "map.grad": lambda f: f.map.grad(y=np.zeros(3), x=np.ones((3, 4)), p=given()["p"], loss="y"),
}


def arrays(found: Any) -> list[np.ndarray[Any, Any]]:
    if isinstance(found, np.ndarray):
        return [found]
    if isinstance(found, tuple):
        return [a for part in found for a in arrays(part)]
    return [a for v in found.values() for a in arrays(v)] if hasattr(found, "values") else []


@sample
@thin
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CALLS)
def test_results_are_freed_at_once(name: str, engine: str) -> None:
    f = PROGRAM.f.with_options(engine=engine)
    call = CALLS[name]
    call(f)
    gc.collect()
    gc.disable()
    try:
        found = call(f)
        left = [weakref.ref(a) for a in arrays(found)]
        assert left
        del found
        assert not any(ref() is not None for ref in left)
    finally:
        gc.enable()
