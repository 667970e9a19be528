"""Where a function has no derivative: the choices made, in programs, on both engines."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from gradients.agreeing import ENGINES, agree
from rvm_tools.isa_page import members
from sizes import sized, thin, wide

import rvm
from rvm.engines import executing

pytestmark = sized

each_engine = pytest.mark.parametrize("engine", ENGINES)
inf, nan = math.inf, math.nan


def slopes(call: str, engine: str, t: str = "f64", **at: float) -> list[float]:
    params = ", ".join(f"{n}: {t}" for n in at)
    f = rvm.assemble(f"func f(y: {t}, {params})\n    add y, {call}\n").f
    g = f.with_options(engine=engine).grad(loss="y", y=0.0, **at)
    return [g[n] for n in at]


@thin
@each_engine
@pytest.mark.parametrize(
    ("call", "at", "want"),
    [
        ("abs(a)", {"a": 0.0}, [0.0]),
        ("abs(a)", {"a": -0.0}, [0.0]),
        ("abs(a)", {"a": -2.0}, [-1.0]),
        ("relu(a)", {"a": 0.0}, [0.0]),
        ("min(a, b)", {"a": 1.0, "b": 1.0}, [0.0, 1.0]),
        ("max(a, b)", {"a": 1.0, "b": 1.0}, [1.0, 0.0]),
        ("max(a, 0.0)", {"a": 0.0}, [1.0]),
        ("max(0.0, a)", {"a": 0.0}, [0.0]),
        ("min(a, a)", {"a": 2.0}, [1.0]),
        ("hypot(a, b)", {"a": 0.0, "b": 0.0}, [0.0, 0.0]),
        ("sqrt(a)", {"a": 0.0}, [inf]),
        ("a // b", {"a": 7.5, "b": 2.0}, [0.0, 0.0]),
        ("a % b", {"a": 7.5, "b": 2.0}, [1.0, -3.0]),
        ("a % b", {"a": -7.5, "b": 2.0}, [1.0, 4.0]),
        ("floor(a) * a", {"a": 2.0}, [2.0]),
        ("sign(a) * a", {"a": -2.0}, [-1.0]),
        ("a * (a // 1.0)", {"a": 2.5}, [2.0]),
        # powers
        ("a ** b", {"a": 0.0, "b": 2.0}, [0.0, 0.0]),
        ("a ** b", {"a": 0.0, "b": 1.0}, [1.0, 0.0]),
        ("a ** b", {"a": 0.0, "b": 0.0}, [0.0, 0.0]),
        ("a ** b", {"a": 0.0, "b": 0.5}, [inf, 0.0]),
        ("a ** b", {"a": 2.0, "b": 0.0}, [0.0, math.log(2.0)]),
        ("a ** b", {"a": -2.0, "b": 3.0}, [12.0, 0.0]),
        ("a ** b", {"a": -2.0, "b": 0.0}, [0.0, 0.0]),
        ("a ** b", {"a": -2.0, "b": -1.0}, [-0.25, 0.0]),
        ("a ** 2", {"a": -3.0}, [-6.0]),
        ("a ** 3", {"a": -3.0}, [27.0]),
        ("a ** 2.0", {"a": -3.0}, [-6.0]),
        ("a ** -2", {"a": -2.0}, [0.25]),
        ("a ** 0", {"a": 0.0}, [0.0]),
        ("a ** 1", {"a": 0.0}, [1.0]),
    ],
)
def test_choices(call: str, at: dict[str, float], want: list[float], engine: str) -> None:
    assert slopes(call, engine, **at) == pytest.approx(want, rel=1e-15)


@thin
@each_engine
def test_a_power_of_a_negative_number_that_is_not_whole_is_not_a_number(engine: str) -> None:
    f = rvm.assemble("func f(y: f64, a: f64, b: f64)\n    add y, a ** b\n").f
    pull = f.with_options(engine=engine).pullback(y=0.0, a=-2.0, b=0.5)
    pull.seed("y")
    assert math.isnan(pull.value("y"))
    with pytest.raises(rvm.InvertibilityError) as caught:
        f.with_options(engine=engine).grad(loss="y", y=0.0, a=-2.0, b=0.5)
    assert caught.value.code == "R017", "y does not come back from NaN"
    g = pull(check=False)
    assert math.isnan(g.a) and math.isnan(g.b)


@each_engine
def test_select_and_branches_at_a_pole(engine: str) -> None:
    """`select` computes both sides, and 0 times infinity is not a number; an `if` does not."""
    assert math.isnan(slopes("select(a > 0.0, sqrt(a), 0.0)", engine, a=0.0)[0])
    f = rvm.assemble(
        "func f(y: f64, a: f64)\n    if a > 0.0\n        add y, sqrt(a)\n    end\n"
    ).f.with_options(engine=engine)
    assert f.grad(loss="y", y=0.0, a=0.0).a == 0.0
    assert f.grad(loss="y", y=0.0, a=4.0).a == 0.25


@each_engine
def test_the_choices_hold_in_arrays(engine: str) -> None:
    f = rvm.assemble(
        """
func f(y: f64[n], x: f64[n], k: f64[n])
    add y, abs(x) + max(x, k) + x ** k + relu(x)
"""
    ).f.with_options(engine=engine)
    g = f.vjp({"y": np.ones(3)}, y=np.zeros(3), x=np.array([0.0, -2.0, 0.0]), k=np.zeros(3))
    # abs: 0, -1, 0; max: 1 where it is the first of equals, 0, 1; power and relu: 0
    assert g.x.tolist() == [1.0, -1.0, 1.0]
    assert g.k.tolist() == [0.0, 1.0, 0.0]


@each_engine
def test_the_first_of_the_greatest_and_the_last_of_the_least_get_all(engine: str) -> None:
    f = rvm.assemble("func f(y: f64, x: f64[n])\n    add y, amax(x) + 10.0 * amin(x)\n").f
    x = np.array([1.0, 3.0, 1.0, 3.0])
    g = f.with_options(engine=engine).grad(loss="y", y=0.0, x=x)
    assert g.x.tolist() == [0.0, 1.0, 10.0, 0.0]


QUOTIENTS: dict[str, tuple[str, dict[str, float], list[list[float]]]] = {
    "a quotient": ("add y, a / b", {"a": 1e-110, "b": 1e-200}, [[0.0, -inf], [-inf, inf]]),
    "tiny over tiny": ("add y, a / b", {"a": 1e-300, "b": 1e-100}, [[0.0, -1e200], [-1e200, 2.0]]),
    "divided": ("div a, b; add y, a", {"a": 1e-300, "b": 1e-100}, [[0.0, -1e200], [-1e200, 2.0]]),
    "a sum": ("add y, log(a) + b * b", {"a": 1e-300, "b": 1.0}, [[-inf, 0.0], [0.0, 2.0]]),
}
POWERS: dict[str, tuple[str, dict[str, float], list[list[float]]]] = {
    "beyond": (
        "add y, a ** b",
        {"a": 2.0, "b": 1020.0},
        [[inf, inf], [inf, 5.398169279654121e306]],
    ),
    "a root": (
        "add y, a ** b",
        {"a": 1e-300, "b": 0.5},
        [[-inf, -3.443877639491068e152], [-3.443877639491068e152, 4.771708299430558e-145]],
    ),
    "a factor": ("add y, a ** -2.0 * b", {"a": 1e-120, "b": 1.0}, [[inf, -inf], [-inf, 0.0]]),
    "lgamma": ("add y, lgamma(a) * b", {"a": 1e-200, "b": 1.0}, [[inf, -1e200], [-1e200, 0.0]]),
    "unused": ("add z, a ** -1.5; add y, a * b", {"a": 1e-200, "b": 1.0}, [[0, 1], [1, 0]]),
    "arrays": ("add v, a ** -1.5; add y, a * b", {"a": 1e-200, "b": 1.0}, [[0, 1], [1, 0]]),
    "erf": ("add y, erf(a) * b", {"a": 1e308, "b": 1.0}, [[0.0, 0.0], [0.0, 0.0]]),
}


def curved(body: str, at: dict[str, float]) -> Any:
    lines = "".join(f"    {line}\n" for line in body.split("; "))
    return rvm.assemble(f"func f(y: f64, z: f64, v: f64[2], a: f64, b: f64)\n{lines}").f, {
        "y": 0.0,
        "z": 0.0,
        "v": np.zeros(2),
        **at,
    }


@pytest.mark.parametrize("method", ["taylor", "forward-over-reverse"])
@pytest.mark.parametrize("case", QUOTIENTS)
def test_divisors_whose_square_is_not_a_number(case: str, method: str) -> None:
    body, at, want = QUOTIENTS[case]
    f, inputs = curved(body, at)
    h = f.hessian(loss="y", wrt=["a", "b"], method=method, **inputs)
    assert [[h[i][j] for j in "ab"] for i in "ab"] == [pytest.approx(row) for row in want]


def test_tangents_of_quotients_with_such_divisors() -> None:
    for case, (body, at, _) in QUOTIENTS.items():
        f, inputs = curved(body, at)
        gradient = f.grad(loss="y", wrt=["a", "b"], **inputs)
        for n in "ab":
            assert f.jvp({n: 1.0}, **inputs)[1].y == pytest.approx(gradient[n]), case


@pytest.mark.parametrize("method", ["taylor", "forward-over-reverse"])
@pytest.mark.parametrize("case", POWERS)
def test_nothing_passes_through_what_is_too_large(case: str, method: str) -> None:
    body, at, want = POWERS[case]
    f, inputs = curved(body, at)
    h = f.hessian(loss="y", wrt=["a", "b"], method=method, **inputs)
    found = [[h[i][j] for j in "ab"] for i in "ab"]
    assert found == [pytest.approx(row) for row in want]


UNUSED = {
    "a ** -1.5": 1e-200,
    "a ** -2": 1e-110,
    "a ** 1020.0": 2.0,
    "lgamma(a)": 1e-310,
    "digamma(a)": -1e-160,
    "polygamma(1.0, a)": 1e-120,
    "log(a)": 1e-310,
    "log2(a)": 1e-310,
    "log10(a)": 1e-310,
    "1.0 / a": 1e-200,
    "atan2(a, 0.0)": 1e-310,
    "versor(1e-310, a)": 1e-310,
}
"""Calls, and arguments at which a derivative is too large for a float."""


@wide
@pytest.mark.parametrize("engine", executing())
def test_what_is_not_asked_for_passes_nothing(engine: str) -> None:
    """Nor does the tangent of what does not change."""
    for call, a in UNUSED.items():
        on_arrays = re.sub(r"\ba\b", "w", call)
        f = rvm.assemble(
            f"""
            func f(y: f64, z: f64, v: f64[2], a: f64, w: f64[2], b: f64)
                add z, {call}
                add v, {on_arrays}
                add y, b * b
            """
        ).f.with_options(engine=engine)
        at = {"y": 0.0, "z": 0.0, "v": np.zeros(2), "a": a, "w": np.array([a, 1.0]), "b": 3.0}
        g = f.grad(loss="y", **at)
        assert (g.a, g.w.tolist(), g.b) == (0.0, [0.0, 0.0], 6.0), call
        h = f.hvp({"b": 1.0}, loss="y", **at)
        assert (h.a, h.w.tolist(), h.b) == (0.0, [0.0, 0.0], 2.0), call
        dots = f.jvp({"b": 1.0}, **at)[1]
        assert (dots.y, dots.z, dots.v.tolist()) == (6.0, 0.0, [0.0, 0.0]), call


@pytest.mark.parametrize("engine", executing())
@pytest.mark.parametrize("t", members("real"))
def test_a_scaled_number(t: str, engine: str) -> None:
    f = rvm.assemble(f"func f(y: {t}, a: {t}, b: {t}, c: {t})\n    add y, scaled(a, b, c)\n").f
    f = f.with_options(engine=engine)
    for a, b, c in ((1.5, -2.5, 0.0), (0.0, 2.0, 1.0), (1.0, 0.0, -1.0), (3.0, 0.5, 1.0)):
        assert float(f(0.0, a, b, c).y) == a * b
        g = f.grad(loss="y", y=0.0, a=a, b=b, c=c)
        assert (g.a, g.b, g.c) == (b, a, 0.0)
    if t == "fixed":
        return
    for a, b in ((0.0, inf), (-inf, 0.0), (0.0, nan), (-0.0, inf)):
        assert math.isnan(f(0.0, a, b, 0.0).y)
        assert f(0.0, a, b, 5e-324 if t == "f64" else 1e-45).y == 0.0
    assert f(0.0, 1.0, inf, 1.0).y == inf


def test_unused_quotients_pass_nothing() -> None:
    """To second derivatives, in the walk, which knows that from zeros that were computed."""
    f, inputs = curved("add z, b / a; add y, a * b", {"a": 1e-200, "b": 1.0})
    h = f.hessian(loss="y", wrt=["a", "b"], method="taylor", **inputs)
    assert [[h[i][j] for j in "ab"] for i in "ab"] == [[0.0, 1.0], [1.0, 0.0]]


def test_zeros_that_were_computed_meet_infinity() -> None:
    """sqrt(x) ** 4 is x ** 2, whose second derivative is not 0."""
    for text in ("add y, sqrt(x) ** 4", "alloc r: f64 = sqrt(x); add y, r ** 4; free r = sqrt(x)"):
        lines = "".join(f"    {line}\n" for line in text.split("; "))
        f = rvm.assemble(f"func f(y: f64, x: f64)\n{lines}").f
        for method in ("taylor", "forward-over-reverse"):
            assert math.isnan(f.hessian(loss="y", method=method, y=0.0, x=0.0)["x"]["x"])


@each_engine
def test_a_product_with_zeros(engine: str) -> None:
    f = rvm.assemble("func f(y: f64, x: f64[n])\n    add y, prod(x)\n").f.with_options(
        engine=engine
    )
    assert f.grad(loss="y", y=0.0, x=np.array([2.0, 0.0, 5.0])).x.tolist() == [0.0, 10.0, 0.0]
    assert f.grad(loss="y", y=0.0, x=np.array([0.0, 0.0, 5.0])).x.tolist() == [0.0, 0.0, 0.0]
    h = f.hessian(loss="y", wrt=["x"], y=0.0, x=np.array([0.0, 0.0, 5.0])).x.x
    assert h.tolist() == [[0.0, 5.0, 0.0], [5.0, 0.0, 0.0], [0.0, 0.0, 0.0]]


@each_engine
def test_complex_moduli_at_zero(engine: str) -> None:
    f = rvm.assemble("func f(y: f64, z: c128)\n    add y, abs(z)\n").f.with_options(engine=engine)
    assert f.grad(loss="y", y=0.0, z=0j).z == 0
    f = rvm.assemble("func f(y: f64, z: c128)\n    add y, abs2(z)\n").f.with_options(engine=engine)
    assert f.grad(loss="y", y=0.0, z=3 - 4j).z == 6 - 8j


@each_engine
def test_integers_carry_nothing(engine: str) -> None:
    f = rvm.assemble(
        """
func f(y: f64, x: f64, n: i64, m: i64)
    add n, i64(x * 10.0)
    add y, f64(n // m) * x + f64(n % m) + x ** n
"""
    ).f.with_options(engine=engine)
    g = f.grad(loss="y", y=0.0, x=0.55, n=2, m=2)
    assert set(g) == {"y", "x"}
    # n = 7: y = 3 x + 1 + x⁷, the 3 and the 7 held
    assert g.x == pytest.approx(3 + 7 * 0.55**6, rel=1e-14)


@each_engine
@pytest.mark.parametrize("t", ["fixed", "f32"])
def test_choices_on_other_numbers(t: str, engine: str) -> None:
    assert slopes("abs(a)", engine, t, a=0.0) == [0.0]
    assert slopes("max(a, b)", engine, t, a=1.0, b=1.0) == [1.0, 0.0]
    assert slopes("a ** 2", engine, t, a=-3.0) == [-6.0]
    assert slopes("a // b", engine, t, a=7.5, b=2.0) == [0.0, 0.0]


LOSSES: list[tuple[str, dict[str, Any]]] = [
    ("x[2]", {"x": [0.0, 0.0, 1.0], "y": 0.0}),
    ("x[0]", {"x": [1.0, 0.0, 0.0], "y": 2 * 1.5}),
    ("y", {"x": [0.0, 0.0, 0.0], "y": 1.0}),
]


@each_engine
@pytest.mark.parametrize(("loss", "want"), LOSSES)
def test_any_scalar_place_is_a_loss(loss: str, want: dict[str, Any], engine: str) -> None:
    f = rvm.assemble("func f(x: f64[n], y: f64)\n    add x[0], y ** 2\n").f
    inputs = {"x": np.zeros(3), "y": 1.5}
    agree(f, inputs, loss)
    g = f.with_options(engine=engine).grad(loss=loss, **inputs)
    assert (g.x.tolist(), g.y) == (want["x"], want["y"])


@thin
@each_engine
def test_fields_and_parts_are_losses(engine: str) -> None:
    f = rvm.assemble(
        """
record P
    m: f64
    vel: f64[2, 2]
    z: c128[2]
end

func f(p: P)
    add p.m, p.vel[1, 0] ** 2
    add p.z[1], p.z[0] * p.z[0]
    mul p.vel[0, 1], p.m
"""
    ).f.with_options(engine=engine)
    p = {"m": 0.5, "vel": np.array([[1.0, 2.0], [3.0, 4.0]]), "z": np.array([1 + 2j, 0j])}
    g = f.grad(loss="p.vel[0, 1]", p=p).p
    # v01 = v01 (m + v10²)
    assert (g.m, g.vel.tolist()) == (2.0, [[0.0, 9.5], [12.0, 0.0]])
    assert f.grad(loss="p.z[1].im", p=p).p.z.tolist() == [1j * (2 * (1 + 2j)).conjugate(), 1j]
    for loss in ("p.m", "p.vel[0, 1]", "p.z[1].re", "p.z[1].im", "p.z[0].im"):
        agree(f, {"p": p}, loss)


@pytest.mark.parametrize("bad", ["p", "x", "x[3]", "x[0, 0]", "n", "q", "z", "y.re", "s", "x[-1]"])
def test_what_is_not_a_loss_is_refused(bad: str) -> None:
    f = rvm.assemble(
        "func f(x: f64[k], y: f64, n: i64, z: c128, s: stack[f64], p: P)\n    inc n\n\n"
        "record P\n    m: f64\nend\n"
    ).f
    with pytest.raises(rvm.InputError) as caught:
        f.grad(loss=bad, x=np.zeros(3), y=1.0, n=2, z=1j, s=[1.0], p={"m": 1.0})
    assert caught.value.code == "I008"
    with pytest.raises(rvm.InputError, match=r"`z.re`, `z.im`"):
        f.grad(loss="z.real", x=np.zeros(3), y=1.0, n=2, z=1j, s=[1.0], p={"m": 1.0})


@pytest.mark.parametrize("engine", executing())
def test_what_is_detached_is_a_constant(engine: str) -> None:
    f = rvm.assemble(
        """
        func f(y: f64, x: f64, z: f64, v: f64[n])
            add y, detach(x) * z + x * detach(z * z) + sum(detach(v) * v)
            add y, detach(exp(x))
        """
    ).f.with_options(engine=engine)
    inputs = {"y": 0.0, "x": 2.0, "z": 3.0, "v": np.array([1.0, 2.0])}
    value, found = f.value_and_grad(loss="y", **inputs)
    assert value == pytest.approx(2 * 3 + 2 * 9 + 5 + np.exp(2.0), rel=1e-15)
    assert (found.x, found.z, found["v"].tolist()) == (9.0, 2.0, [1.0, 2.0])
    assert f.jvp({"x": 1.0, "z": 10.0}, **inputs)[1].y == 9.0 + 20.0
    assert not np.any(f.hessian(loss="y", **inputs)["v"]["v"])
