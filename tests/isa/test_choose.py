"""`choose(c, a, b)`: what it does not take is not evaluated, on any engine, nor differentiated."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
from rvm_asm import disassemble
from sizes import thin

import rvm
from rvm.engines import ENGINES

TEXT = """
func slope(y: f64, x: f64)
    add y, choose(x > 0.0, log(x) * x, 0.0)

func nested(y: f64, x: f64)
    add y, choose(x > 0.0, choose(x > 1.0, sqrt(x - 1.0), log(x)), 1.0 / (x - 1.0))

func quotients(y: i64, n: i64)
    for i = -5 to n
        add y, choose(i != 0, 100 // i, -1)
    end

func inside(y: f64[m], x: f64[n])
    for i = 0 to m - 1
        add y[i], choose(i < n, x[i] * 2.0, 0.5)
        add y[i], choose(x[0] > 3.0, 1.0, choose(i == 1, 7.0, x[0]))
    end

func turned(y: c128, x: f64)
    add y, choose(x > 1.0, c128(x) * 1j, 2.0 + 0j)

func reciprocal(y: fixed, x: fixed)
    add y, choose(x > 0.0, 1.0 / x, 3.0)

func logs(y: log64, x: log64)
    mul y, choose(x > 1, x * x, x + 1)

func roots(y: f64[n], x: f64[n], c: i64)
    add y, choose(c > 1, sqrt(x), 2.0 * x)

func total(y: f64, x: f64[n], c: bool)
    add y, choose(c, sum(log(x)), dot(x, x))
"""
PROGRAM = rvm.assemble(TEXT)
SOME = np.array([0.0, -1.0, 2.0, 0.5] * 10)


def numbers(result: Any) -> Any:
    """An outcome as what is to be compared."""
    return result.log if hasattr(result, "log") else result


ONES: list[tuple[str, dict[str, Any], Any]] = [
    ("slope", {"y": 1.0, "x": 0.0}, 1.0),
    ("slope", {"y": 1.0, "x": -2.0}, 1.0),
    ("slope", {"y": 0.0, "x": 2.0}, 2 * math.log(2)),
    ("nested", {"y": 0.0, "x": 5.0}, 2.0),
    ("nested", {"y": 0.0, "x": 0.5}, math.log(0.5)),
    ("nested", {"y": 0.0, "x": -1.0}, -0.5),
    ("quotients", {"y": 0, "n": 6}, sum(100 // i for i in range(-5, 7) if i) - 1),
    ("inside", {"y": np.zeros(4), "x": np.array([1.0, 2.0])}, [3.0, 11.0, 1.5, 1.5]),
    ("turned", {"y": 0j, "x": 3.0}, 3j),
    ("turned", {"y": 0j, "x": 0.5}, 2 + 0j),
    ("reciprocal", {"y": 0, "x": 0}, 3),
    ("reciprocal", {"y": 0, "x": 0.25}, 4),
    ("logs", {"y": 1, "x": 3.0}, math.log(9)),
    ("roots", {"y": np.zeros(2), "x": np.array([4.0, 9.0]), "c": 2}, [2.0, 3.0]),
    ("roots", {"y": np.zeros(2), "x": np.array([-4.0, 9.0]), "c": 1}, [-8.0, 18.0]),
]


@thin
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("name", "inputs", "want"), ONES)
def test_every_engine_takes_one_there_and_back(
    engine: str, name: str, inputs: dict[str, Any], want: Any
) -> None:
    f = PROGRAM[name]
    out = f(**copy.deepcopy(inputs), engine=engine)
    assert np.allclose(numbers(out.y), want, rtol=1e-12, atol=0)
    law = f(**copy.deepcopy(inputs), engine="reference")
    assert np.array_equal(np.asarray(numbers(law.y)), np.asarray(numbers(out.y)))
    back = (~f)(**out, engine=engine)
    start = 0.0 if name == "logs" else inputs["y"]
    assert np.array_equal(np.asarray(numbers(back.y)), np.asarray(start))


@thin
@pytest.mark.parametrize("engine", ENGINES)
def test_lanes_take_different_ones(engine: str) -> None:
    def run(name: str, **inputs: Any) -> Any:
        return PROGRAM[name].with_options(engine=engine).map(**inputs).y

    for name in ("slope", "nested"):
        ones = [PROGRAM[name](y=0.0, x=x, engine="reference").y for x in SOME.tolist()]
        assert np.array_equal(run(name, y=np.zeros(40), x=SOME), ones)
    counts = np.arange(40) - 7
    sums = [PROGRAM.quotients(y=0, n=n, engine="reference").y for n in counts.tolist()]
    assert np.array_equal(run("quotients", y=np.zeros(40, int), n=counts), sums)
    turned = [PROGRAM.turned(y=0j, x=x, engine="reference").y for x in SOME.tolist()]
    assert np.array_equal(run("turned", y=np.zeros(40, complex), x=SOME), turned)
    rows = run("roots", y=np.zeros((40, 2)), x=np.full((40, 2), 4.0), c=np.arange(40))
    assert np.array_equal(rows, np.where(np.arange(40)[:, None] > 1, 2.0, np.full((40, 2), 8.0)))


@pytest.mark.parametrize(
    ("name", "x", "first", "second"),
    [
        ("slope", 0.0, 0.0, 0.0),
        ("slope", -1.0, 0.0, 0.0),
        ("slope", 2.0, math.log(2) + 1, 0.5),
        ("nested", 1.0, 1.0, -1.0),
        ("nested", 5.0, 0.25, -1 / 32),
        ("nested", 0.0, -1.0, -2.0),
    ],
)
def test_derivatives_are_those_of_what_it_takes(
    name: str, x: float, first: float, second: float
) -> None:
    f = PROGRAM[name]
    for engine in ENGINES:
        assert f.grad(loss="y", y=0.0, x=x, engine=engine).x == pytest.approx(first, rel=1e-14)
    for method in ("taylor", "forward-over-reverse"):
        found = f.hessian(loss="y", y=0.0, x=x, method=method)["x"]["x"]
        assert found == pytest.approx(second, rel=1e-13)
    assert f.jvp({"x": 1.0}, y=0.0, x=x)[1].y == pytest.approx(first, rel=1e-14)
    assert f.map.grad(loss="y", y=np.zeros(2), x=np.array([x, 0.5])).x[0] == pytest.approx(
        first, rel=1e-14
    )


def test_arrays_that_it_does_not_take_give_no_nan() -> None:
    x = np.array([0.0, 1.0, -2.0])
    assert PROGRAM.total.grad(loss="y", y=0.0, x=x, c=False).x.tolist() == [0.0, 2.0, -4.0]
    for method in ("taylor", "forward-over-reverse"):
        found = PROGRAM.total.hessian(loss="y", y=0.0, x=x, c=False, method=method)["x"]["x"]
        assert np.array_equal(found, 2 * np.eye(3))
    logs = PROGRAM.total.grad(loss="y", y=0.0, x=np.array([4.0, 2.0]), c=True).x
    assert logs.tolist() == [0.25, 0.5]
    assert PROGRAM.reciprocal.grad(loss="y", y=0, x=0).x == 0.0


def test_its_text_is_read_back() -> None:
    assert rvm.assemble(disassemble(PROGRAM.program)).program == PROGRAM.program
    strict = rvm.assemble(disassemble(PROGRAM.program))
    assert strict.nested(y=0.0, x=-1.0).y == -0.5


@pytest.mark.parametrize(
    "text",
    ["choose(x, 1.0, 2.0)", "choose(x > 0.0, z, 2.0)", "choose(x > 0.0, 1.0, true)"],
)
def test_types_that_do_not_go_together_are_refused(text: str) -> None:
    source = f"func f(y: f64, x: f64, z: f64[3])\n    add y, {text}\n"
    with pytest.raises(rvm.AssemblyError):
        rvm.assemble(source)


def test_a_condition_of_literals_beside_values_of_another_type() -> None:
    text = "func f(y: f64, x: f64)\n    add y, choose(2 > 1 or 3 < 0, x, 2 * x)\n"
    assert rvm.assemble(text).f(y=0.0, x=1.5).y == 1.5
