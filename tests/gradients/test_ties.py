"""Where arguments are equal, and where a factor of a derivative is 0, by every route."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from gradients.agreeing import ENGINES
from rvm_tools.isa_page import members
from sizes import thin

import rvm

SUMS = {
    "add y, max(a, b) + min(a, b)": (1.0, 1.0),
    "add y, max(a, b)": (1.0, 0.0),
    "add y, min(a, b)": (0.0, 1.0),
    "add y, amax(v) + amin(v)": (1.0, 1.0),
    "add y, amax(v)": (1.0, 0.0),
    "add y, amin(v)": (0.0, 1.0),
}
NAMES = ("native", *ENGINES)


def program(line: str, t: str = "f64") -> Any:
    """A function of a and b, which are the elements of a vector v as well."""
    return rvm.assemble(f"""func main(y: {t}, a: {t}, b: {t})
    alloc v: {t}[2]
    swap v[0], a
    swap v[1], b
    {line.replace("(a, b)", "(v[0], v[1])")}
    swap v[0], a
    swap v[1], b
    free v
""").main


def by_gradient(f: Any, engine: str) -> tuple[float, float]:
    g = f.with_options(engine=engine).grad(loss="y", y=0.0, a=2.0, b=2.0)
    return g.a, g.b


def by_tangents(f: Any, engine: str) -> tuple[float, float]:
    f = f.with_options(engine=engine)
    dots = ({"a": 1.0}, {"b": 1.0})
    one, two = (f.jvp(d, y=0.0, a=2.0, b=2.0)[1].y for d in dots)
    return one, two


def in_lanes(f: Any, engine: str) -> tuple[float, float]:
    f = f.with_options(engine=engine)
    g = f.map.grad(loss="y", y=0.0, a=np.array([2.0, 5.0]), b=np.array([2.0, 1.0]))
    return g.a[0].item(), g.b[0].item()


@thin
@pytest.mark.parametrize("line", SUMS)
@pytest.mark.parametrize("t", members("float"))
def test_of_equal_arguments(line: str, t: str) -> None:
    f = program(line, t)
    for name in NAMES:
        for route in (by_gradient, by_tangents, in_lanes):
            if t == "f32" and route is in_lanes:
                continue
            assert route(f, name) == SUMS[line], (route.__name__, name)


@pytest.mark.parametrize("line", ["max(v[0], v[1])", "min(v[0], v[1])", "amax(v)", "amin(v)"])
@pytest.mark.parametrize("method", ["taylor", "forward-over-reverse"])
def test_squares_of_extremes(line: str, method: str) -> None:
    """The Hessian follows the same choice: that of the square of one argument."""
    first = "max" in line
    f = program(f"add y, {line} * {line}")
    h = f.hessian(loss="y", wrt=["a", "b"], method=method, y=0.0, a=3.0, b=3.0)
    assert (h.a.a, h.b.b) == ((2.0, 0.0) if first else (0.0, 2.0))
    assert h.a.b == h.b.a == 0.0


def test_logarithms() -> None:
    for line, want in SUMS.items():
        f = program(line.replace("+", "*").replace("add", "mul"), "log64")
        g = f.grad(loss="y", y=1.0, a=2.0, b=2.0)
        assert (g.a, g.b) == want


# ---------------------------------------------------------------- factors of zero


def second(call: str, method: str, **at: float) -> dict[tuple[str, str], float]:
    params = ", ".join(f"{n}: f64" for n in at)
    f = rvm.assemble(f"func f(y: f64, {params})\n    add y, {call}\n").f
    h = f.hessian(loss="y", wrt=list(at), method=method, y=0.0, **at)
    return {(m, n): h[m][n] for m in at for n in at}


CASES: list[tuple[str, dict[str, float], dict[tuple[str, str], float]]] = [
    ("a ** b", {"a": 2.0, "b": 0.0}, {("a", "a"): 0.0, ("a", "b"): 0.5}),
    ("a ** b", {"a": 2.0, "b": 1.0}, {("a", "a"): 0.0, ("a", "b"): 1 + math.log(2.0)}),
    ("a ** 1", {"a": 2.0}, {("a", "a"): 0.0}),
    ("a ** 2", {"a": 0.0}, {("a", "a"): 2.0}),
    ("tanh(a)", {"a": 800.0}, {("a", "a"): 0.0}),
    ("tanh(a)", {"a": 300.0}, {("a", "a"): -8 * math.exp(-600.0)}),
    ("asin(a)", {"a": 1e-9}, {("a", "a"): 1e-9}),
    ("acos(a)", {"a": 1e-9}, {("a", "a"): -1e-9}),
    ("hypot(a, b)", {"a": 3e-308, "b": 4e-308}, {("a", "b"): -0.48 / 5e-308}),
    ("atan2(a, b)", {"a": 3e-120, "b": 4e-120}, {("a", "a"): -0.96 / 25e-240}),
]


@pytest.mark.parametrize(("call", "at", "want"), CASES)
@pytest.mark.parametrize("method", ["taylor", "forward-over-reverse"])
def test_second_derivatives(
    call: str, at: dict[str, float], want: dict[tuple[str, str], float], method: str
) -> None:
    found = second(call, method, **at)
    for pair, value in want.items():
        assert found[pair] == pytest.approx(value, rel=1e-13), pair


@thin
@pytest.mark.parametrize("call", ["a ** b", "b ** a"])
@pytest.mark.parametrize("k", [0.0, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("method", ["taylor", "forward-over-reverse"])
def test_third_derivatives_of_powers(call: str, k: float, method: str) -> None:
    """The Hessian of the gradient program."""
    f = rvm.assemble(f"func f(y: f64, a: f64, b: f64)\n    add y, {call}\n").f
    base, power = ("a", "b") if call == "a ** b" else ("b", "a")
    g = f.gradient_program
    at = {"y": 0.0, base: 1.7, power: k, "y_bar": 1.0, "a_bar": 0.0, "b_bar": 0.0}
    for loss in ("a", "b"):
        h = g[g.program.entry].hessian(loss=f"{loss}_bar", wrt=["a", "b"], method=method, **at)
        for one, two in (("a", "a"), ("a", "b"), ("b", "b")):
            orders = [(loss, one, two).count(n) for n in (base, power)]
            with mpmath.workdps(40):
                want = mpmath.diff(mpmath.power, (mpmath.mpf(1.7), mpmath.mpf(k)), tuple(orders))
            assert h[one][two] == pytest.approx(float(want), rel=1e-13, abs=1e-13)
