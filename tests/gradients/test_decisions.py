"""Gradients where the run back decides otherwise than the run forwards: right, or refused.

With h = 1.1, (3 + h) - h is less than 3.  What is wanted are derivatives by tangents, which run
forwards only; the forward run's own decision is asserted by its value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sizes import first_and_another, sample, sized, thin

import rvm
from rvm.derive.decisions import decides
from rvm.engines import executing
from rvm.faults import InvertibilityError

R017 = "R017"
LIB = rvm.assemble("""
func branch(y: f64, a: f64[2], x: f64, h: f64)
    if x >= 3.0
        add y, a[0]
    else
        add y, a[1]
    end
    add x, h

func equal(y: f64, a: f64[2], x: f64, h: f64)
    if x == 3.0
        add y, a[0]
    end
    add x, h

func index(y: f64, a: f64[4], x: f64, h: f64)
    add y, a[i64(x)]
    add x, h

func whole(y: f64, a: f64[1], x: f64, h: f64)
    add y, a[0] * floor(x) + a[0] * (x // 1.0)
    add x, h

func remainder(y: f64, a: f64[1], x: f64, h: f64)
    add y, a[0] * (x % 1.0)
    add x, h

func chosen(y: f64, a: f64[2], x: f64, h: f64)
    add y, select(x >= 3.0, a[0], a[1])
    add x, h

func kink(y: f64, a: f64[1], x: f64, h: f64)
    add y, abs(x - 3.0)
    add x, h

func loops(y: f64, a: f64[1], x: f64, h: f64)
    for k = 1 to i64(x)
        add y, a[0]
    end
    add x, h

func elsewhere(y: f64, a: f64[2], x: f64, h: f64)
    alloc t: f64
    add t, x
    call branch(y, a, t, h)
    add x, h
    sub t, x
    free t

func late(y: f64, a: f64[2], x: f64, h: f64)
    alloc t: f64[2]
    add t[1], 2.0 * x
    if t[1] >= 6.0
        add y, a[0]
    else
        add y, a[1]
    end
    sub t[1], 2.0 * x
    free t
    add x, h

func largest(y: f64, a: f64[2], x: f64, h: f64)
    routine
        alloc v: f64[2]
        add v[0], 2.9999999999999996 + a[0]
        add v[1], x + a[1]
    result
        add y, amax(v)
    end
    add x, h

func smallest(y: f64, a: f64[2], x: f64, h: f64)
    routine
        alloc v: f64[2]
        add v[0], -2.9999999999999996 + a[0]
        add v[1], a[1] - x
    result
        add y, amin(v[1::-1])
    end
    add x, h

func inside(y: f64, a: f64[2], x: f64, h: f64)
    routine
        alloc u: f64
        alloc t: f64
        add t, h
        if t >= 1.1
            add u, a[0]
        else
            add u, a[1]
        end
        add t, 3.0
    result
        add y, u + x
    end

func summed(t: f64, h: f64, k: i64)
    add t, 3.0 * f64(k)
    add t, h

func between(y: f64, a: f64[2], x: f64, h: f64)
    routine
        alloc t: f64
        for k = 1 to 2
            call summed(t, h, k)
        end
    result
        for k = 1 to 2
            if t >= 3.0 + h + 6.0 + h
                add y, a[0] * x
            else
                add y, a[k - 1]
            end
        end
    end
    add x, h

func steady(y: f64, a: f64[2], x: f64, h: f64)
    if h >= 1.0
        add y, a[0] * x
    end
    alloc t: f64
    add t, h * h
    if t >= 1.0
        add y, a[1] * x
    end
    sub t, h * h
    free t
    add x, h
""")
CERTAIN = {"between", "steady", "summed"}
DECIDING = sorted(set(LIB) - CERTAIN)

Door = Callable[[rvm.FunctionHandle, dict[str, Any]], Any]


def program(f: rvm.FunctionHandle, at: dict[str, Any]) -> Any:
    library = f.gradient_program
    bars = {"y_bar": 1.0, "a_bar": np.zeros_like(at["a"]), "x_bar": 0.0, "h_bar": 0.0}
    return library[library.program.entry](**at, **bars).a_bar


DOORS: dict[str, Door] = {
    "grad": lambda f, at: f.grad(at, loss="y").a,
    "vjp": lambda f, at: f.vjp({"y": 1.0}, at).a,
    "jacobian": lambda f, at: f.jacobian(at, of=["y"]).y.a,
    "hessian": lambda f, at: f.hessian(at, loss="y") and f.grad(at, loss="y").a,
    "lanes": lambda f, at: f.map.grad(**{**at, "y": np.zeros(2)}, loss="y").a / 2,
    "program": program,
}


def inputs(name: str) -> dict[str, Any]:
    n = {"index": 4, "whole": 1, "remainder": 1, "kink": 1, "loops": 1}.get(name, 2)
    return {"y": 0.0, "a": np.zeros(n), "x": 3.0, "h": 1.1}


def by_tangents(f: rvm.FunctionHandle, at: dict[str, Any]) -> Any:
    units = np.eye(len(at["a"]))
    return [f.jvp({"a": unit}, at)[1].y for unit in units]


@sample
@thin(2)
@sized
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", sorted(set(LIB) - {"summed"}))
def test_every_door_is_right_or_refuses(name: str, door: str) -> None:
    at = inputs(name)
    for engine in first_and_another(executing(), (name, door)):
        for options in ({}, {"strict": True}):
            f = LIB[name].with_options(engine=engine, **options)
            try:
                found = DOORS[door](f, {**at, "a": at["a"].copy()})
            except (InvertibilityError, rvm.LaneErrors) as error:
                assert error.code == R017 and name not in CERTAIN, (engine, options)
                # A gradient program is one run, whose half that goes back has no log.
                assert not options or door == "program"
            else:
                assert found == pytest.approx(by_tangents(f, at), rel=1e-15), (engine, options)


@pytest.mark.parametrize("name", sorted(LIB))
def test_functions_that_decide_by_what_is_rounded_are_known(name: str) -> None:
    assert decides(LIB.program, name) == (name in DECIDING)


def test_a_part_of_a_complex_number_is_not_excused_by_the_other() -> None:
    f = rvm.assemble("""
func f(y: f64, z: c128, w: f64)
    add y, z.re ** 2
    add z.re, w
""").f
    lost: dict[str, Any] = {"y": 1e12, "z": 0.3 + 1e14j, "w": 1e17}
    with pytest.raises(InvertibilityError, match=R017):
        f.grad(**lost, loss="y")
    assert f.jacobian(**lost, of=["y"]).y.z.tolist() == [0.6, 0.0]
    assert f.grad(y=1e12, z=0.3 + 1e14j, w=1.0, loss="y").z == pytest.approx(0.6)


def test_a_jacobian_goes_by_tangents_where_the_run_back_stops() -> None:
    f = rvm.assemble("""
func f(y: f64, a: f64[2], n: i64, x: f64, h: f64)
    if x >= 3.0, n == 1
        add y, a[0]
        add n, 1
    else
        add y, a[1]
    end
    add x, h
""").f
    at = {"y": 0.0, "a": np.zeros(2), "n": 0, "x": 3.0, "h": 1.1}
    with pytest.raises(InvertibilityError, match="R002"):
        f.grad(at, loss="y")
    assert f.jacobian(at, of=["y"]).y.a.tolist() == [1.0, 0.0]


def test_steps_of_a_schedule_are_judged_by_adjoints_that_do_not_cancel() -> None:
    step = rvm.assemble("""
func step(y: f64[2], x: f64[2], p: f64, q: f64)
    add y, x
    alloc t: f64 = 0.3
    add t, 100.1
    sub t, 100.0
    sub t, 0.1
    if t >= 0.3
        add y[0], p
        sub y[1], p
    else
        add y[0], q
        sub y[1], q
    end
    free t = 0.3
""").step
    run = rvm.pebble.iterate(step, 5, pebbles=3)
    with pytest.raises(InvertibilityError, match=R017):
        run.gradient(
            np.array([0.5, 0.25]),
            lambda s: (s[0], np.array([1.0, 0.0])),
            constants={"p": 0.1, "q": 0.2},
        )
