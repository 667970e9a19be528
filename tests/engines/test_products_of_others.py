"""For each element the product of all others: in machine code where it fills an array.

Held against whole numbers, whose products are exact, and bit by bit against the other engines.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from sizes import sample, thin

import rvm
from rvm.engines import executing
from rvm.image import image_of
from rvm.ir.function import plan_of

TEXT = """
func held(y: T[SHAPE], x: T[SHAPE])
    alloc t: T[DIMS] = prod_others(x)
    add y, t
    free t = prod_others(x)

func made(y: T[SHAPE], x: T[SHAPE])
    alloc t: T[DIMS] = prod_others(2.0 * x)
    for i = 1 to 2
        add y, t
        swap y, t
        swap y, t
    end
    free t = prod_others(2.0 * x)

func grown(y: T, x: T[SHAPE])
    add y, prod(x) * x[AT]
"""
SHAPES = {
    "(n)": ("n", "n", "0", (7,)),
    "(2, 3)": ("n, m", "n, m", "0, 0", (2, 3)),
    "(1)": ("n", "n", "0", (1,)),
    "(3, 0)": ("n, m", "n, m", "0, 0", (3, 0)),
    "(0)": ("n", "n", "0", (0,)),
}
VALUES = {
    "whole": [3.0, -2.0, 5.0, 7.0, -1.0, 4.0, 9.0],
    "a zero": [3.0, 0.0, 5.0, 7.0, -1.0, 4.0, 9.0],
    "zeros": [3.0, 0.0, 5.0, -0.0, -1.0, 4.0, 9.0],
    "infinite": [3.0, math.inf, 0.5, 0.0, -1.0, 4.0, 9.0],
    "no number": [3.0, 2.0, math.nan, 0.0, -1.0, 4.0, 9.0],
    "large": [1e200, 1e-200, 1e200, 1e150, -1e-300, 1e10, 3.0],
}


@cache
def library(t: str, shape: str) -> Any:
    names, dims, at, _ = SHAPES[shape]
    text = TEXT.replace("SHAPE", names).replace("DIMS", dims).replace("AT", at)
    return rvm.assemble(text.replace("T", t))


def given(t: str, shape: str, values: str) -> Any:
    size = SHAPES[shape][3]
    with np.errstate(all="ignore"):
        found = np.array(VALUES[values], np.dtype(np.float32 if t == "f32" else np.float64))
    return found[: math.prod(size)].reshape(size)


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_the_product(shape: str) -> None:
    x = given("f64", shape, "whole")
    flat = [Fraction(v) for v in x.ravel()]
    want = [math.prod(flat[:k] + flat[k + 1 :]) for k in range(len(flat))]
    y = library("f64", shape).held.with_options(engine="native")(y=np.zeros(x.shape), x=x).y
    assert y.ravel().tolist() == [float(v) for v in want]


@sample
@thin
@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("t", ["f64", "f32"])
def test_all_engines_have_the_same_bits(t: str, shape: str, values: str) -> None:
    lib, x = library(t, shape), given(t, shape, values)
    found: dict[str, Any] = {}
    for engine in executing():
        out = found[engine] = []
        for name in ("held", "made", "grown"):
            f = lib[name].with_options(engine=engine)
            y = 1.0 if name == "grown" else np.ones_like(x)
            seed = 1.5 if name == "grown" else np.full_like(x, 1.5)
            for run in (
                lambda f=f, y=y: f(y=np.copy(y)[()], x=x.copy()).y,
                lambda f=f, y=y: f.machine(y=np.copy(y)[()], x=x.copy()).run()["y"],
                lambda f=f, y=y, seed=seed: f.vjp({"y": seed}, y=y, x=x).x,
            ):
                try:
                    out.append(np.asarray(run()).tobytes())
                except rvm.RvmError as error:
                    out.append(error.code)
    assert all(out == found["reference"] for out in found.values())


def test_machine_code_is_not_left_for_it() -> None:
    lib = library("f64", "(n)")
    gradient = lib.grown.gradient_program.program
    for program, name in ((lib.program, "held"), (gradient, "grown_adjoint")):
        for undo in (False, True):
            code = image_of(program).code(name, undo)
            assert not plan_of(code, True, 0).flow.apart


def test_lanes_and_strict_runs_have_it_too() -> None:
    f = library("f64", "(n)").grown.with_options(engine="native")
    xs = np.random.default_rng(1).normal(size=(9, 5))
    found = f.map.grad(y=np.zeros(9), x=xs, loss="y").x
    singly = [f.grad(y=0.0, x=x, loss="y").x for x in xs]
    strict = [f.with_options(strict=True).grad(y=0.0, x=x, loss="y").x for x in xs]
    assert np.array_equal(found, singly)
    assert np.array_equal(strict, singly)
