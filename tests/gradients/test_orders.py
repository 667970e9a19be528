"""Every function of the table to the third order, by every route of programs, against mpmath.

`tests/isa/test_derivatives.py` has the formulas that the routes are made of, at more arguments.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import mpmath
import pytest
from gradients.orders import Routes, tried
from isa.test_derivatives import (
    DIGITS,
    LEAST,
    MOST,
    NEAR,
    POLES,
    SMOOTH,
    beyond,
    difference,
    error,
    points,
)
from isa.test_derivatives import wanted as by_table
from sizes import part, sized, some, thin, wide

import rvm
from rvm.isa.rows import FUNCTIONS, FunctionRow

PAGE = Path(__file__).parents[2] / "docs" / "gradients.md"

Exact = Callable[[Any, Any], Any]
m = mpmath
OTHERS: dict[str, tuple[str, Exact]] = {
    "sum": ("sum(v ** 3.0)", lambda a, b: a**3 + b**3),
    "prod": ("prod(v * v)", lambda a, b: a**2 * b**2),
    "amin": ("amin(v) ** 3.0", lambda a, b: min(a, b) ** 3),
    "amax": ("amax(v) ** 3.0", lambda a, b: max(a, b) ** 3),
    "logsumexp": ("logsumexp(v)", lambda a, b: m.log(m.exp(a) + m.exp(b))),
    "dot": ("dot(v, v * v)", lambda a, b: a**3 + b**3),
    "@": ("v @ (v * v)", lambda a, b: a**3 + b**3),
    "outer": ("sum(outer(v, v * v))", lambda a, b: (a + b) * (a**2 + b**2)),
    "matvec": ("sum(matvec(outer(v, v), v))", lambda a, b: (a + b) * (a**2 + b**2)),
    "matmul": ("sum(matmul(outer(v, v), outer(v, v)))", lambda a, b: (a**2 + b**2) * (a + b) ** 2),
    "scan_left": ("sum(scan_left(v) ** 3.0)", lambda a, b: a**3 + (a + b) ** 3),
    "scan_right": ("sum(scan_right(v) ** 3.0)", lambda a, b: b**3 + (a + b) ** 3),
    "gather": ("dot(gather(v, k), v * v)", lambda a, b: b * a**2 + a * b**2),
    "scatter": ("dot(scatter(v, k, 2), v * v)", lambda a, b: b * a**2 + a * b**2),
    "transpose": ("sum(transpose(outer(v, v * v)) @ v)", lambda a, b: (a**2 + b**2) ** 2),
    "sum_like": ("sum(sum_like(outer(v, v * v), v))", lambda a, b: (a + b) * (a**2 + b**2)),
    "spread_like": ("sum(spread_like(v, outer(v, v)) ** 3.0)", lambda a, b: 2 * (a**3 + b**3)),
    "select": ("select(a > b, a * a * b, exp(b))", lambda a, b: a * a * b if a > b else m.exp(b)),
    "choose": ("choose(a > b, a * a * b, exp(b))", lambda a, b: a * a * b if a > b else m.exp(b)),
    "real": (
        "real(complex(a, b) * complex(a, b) * complex(a, b))",
        lambda a, b: a**3 - 3 * a * b**2,
    ),
    "imag": (
        "imag(complex(a, b) * complex(a, b) * complex(a, b))",
        lambda a, b: 3 * a**2 * b - b**3,
    ),
    "complex": ("real(exp(complex(a, b)))", lambda a, b: m.exp(a) * m.cos(b)),
    "conj": (
        "real(conj(complex(a, b)) * complex(a, b) * complex(a, b))",
        lambda a, b: a * (a**2 + b**2),
    ),
    "angle": ("angle(complex(a, b))", lambda a, b: m.atan2(b, a)),
    "cis": ("imag(cis(a) * cis(b))", lambda a, b: m.sin(a + b)),
    "f64": ("f64(a) ** 3.0 * b", lambda a, b: a**3 * b),
    "c128": ("real(c128(a) ** 3 * c128(b))", lambda a, b: a**3 * b),
    "log64": ("f64(log64(a) * log64(a) * log64(b))", lambda a, b: a**2 * b),
    "exp_log64": ("f64(exp_log64(a) * exp_log64(b))", lambda a, b: m.exp(a + b)),
    "polygamma": ("polygamma(1.0, a) * polygamma(2.0, b)", lambda a, b: m.psi(1, a) * m.psi(2, b)),
    "scaled": ("scaled(a, b * b, a)", lambda a, b: a * b**2),
    "detach": ("a ** 3.0 * b + detach(b * 0.0)", lambda a, b: a**3 * b),
}
"""Functions that are not of real numbers alone: a call, and the same for mpmath."""
OF_INTEGERS = {"checked_add", "checked_sub", "turned", "shear", "lift_tan", "lift_sin"}
"""`test_rotations` has these."""
WITHOUT = {"f32": "rounds what it differentiates", "fixed": "the same"} | dict.fromkeys(
    ("prod_others", "prod_others_1", "prod_others_2"), "these are derivatives of `prod`"
)
AT = [(0.75, 1.25), (1.5, 0.625)]


def test_every_function_with_a_derivative_is_here() -> None:
    made = {
        name
        for name, row in FUNCTIONS.items()
        if row.partials or row.vjp or row.formula is not None or name == "choose"
    }
    missing = made - {row.name for row in SMOOTH} - set(OTHERS) - OF_INTEGERS - set(WITHOUT)
    assert not missing, "give the function `mp` and `domain`, or a call in OTHERS"


@thin
@pytest.mark.parametrize("name", OTHERS)
@some
def test_functions_of_arrays_and_of_complex_numbers(name: str) -> None:
    call, exact = OTHERS[name]
    routes = Routes(call, 2)
    for at in AT:
        with mpmath.workdps(90):
            held = [mpmath.mpf(x) for x in at]
            step = [mpmath.mpf(10) ** -15] * 2

            def want(by: tuple[int, ...], held: Any = held, step: Any = step) -> Any:
                return difference(exact, held, [by.count(k) for k in (0, 1)], step)

            for order, route, by, got, value in tried(routes, at, (1, 2, 3), want, MOST):
                off = abs(mpmath.mpf(got) - value)
                assert off <= NEAR[order] * max(1, abs(value)), (route, by, at, got, value)


def applied(row: FunctionRow) -> str:
    if row.symbol and row.arity == 2:
        return f"a {row.symbol} b"
    return f"{row.symbol or row.name}({', '.join('ab'[: row.arity])})"


def measured(row: FunctionRow) -> list[float]:
    """The worst error of each order in units of the last place of what is wanted."""
    routes, worst = Routes(applied(row), row.arity), [0.0, 0.0, 0.0]
    for at in points(row):
        orders = [n for n in (1, 2, 3) if not beyond(row, n, at)]

        def want(by: tuple[int, ...], at: Any = at) -> Any:
            with mpmath.workdps(DIGITS):
                return mpmath.re(by_table(row, by, at, mpmath.mpf))

        for order, route, by, got, value in tried(routes, at, orders, want, MOST):
            if abs(value) > MOST:
                assert not abs(got) < MOST, (route, by, at, got, value)
                continue
            assert error(got, value) <= NEAR[order], (route, by, at, got, value)
            if abs(value) > 1e-290:
                with mpmath.workdps(40):
                    off = abs(mpmath.mpf(got) - value) / math.ulp(float(value))
                worst[order - 1] = max(worst[order - 1], float(off))
    return worst


def bound(ulps: float) -> float:
    """The least of 0.5, 1, 2, 5, 10, 20, 50, … that is not smaller."""
    return next(
        b * 10.0**k for k in range(-1, 9) for b in (1, 2, 5) if b * 10.0**k >= max(ulps, 0.5)
    )


def row_of(name: str, worst: list[float]) -> str:
    return f"| `{name}` | " + " | ".join(f"{bound(w):g}" for w in worst) + " |"


@thin
@pytest.mark.parametrize("row", SMOOTH, ids=lambda r: r.name)
@some
def test_functions_of_real_numbers(row: FunctionRow) -> None:
    """And the page's table has what is found."""
    line = row_of(row.name, measured(row))
    assert line in PAGE.read_text(encoding="utf-8").splitlines(), line


ARGUMENTS = (0.0, 5e-324, -1e-310, 1e-300, -1e-300, 0.5, -0.5, 1.0, -1.0, 1 - 2**-53, 1 + 2**-52)
ARGUMENTS += (-2.0, 1e300, -1e300)
EXPONENTS = (0.0, 1.0, -1.0, 2.0, 3.0, 0.5, -2.5, 1e-300, -1e-5, 1020.0)
KINKED = ("min", "max", "abs", "relu", "%")
CANCEL = {"**": 1, "hypot": 2, "versor": 1, "atan2": 1}
"""Functions whose derivatives, from an order on, may be NaN where terms of them are too large."""


def edges(row: FunctionRow) -> list[tuple[float, ...]]:
    """The arguments at which a function is smooth."""
    second = EXPONENTS if row.name == "**" else ARGUMENTS
    pairs = [(x,) for x in ARGUMENTS] if row.arity == 1 else list(product(ARGUMENTS, second))
    return [at for at in pairs if is_smooth(row, at)]


def is_smooth(row: FunctionRow, at: Sequence[float]) -> bool:
    x, last = at[0], at[-1]
    if row.name in ("hypot", "versor", "atan2"):
        # mpmath's steps would lead across the cut of `atan2`.
        return any(at) and not (row.name == "atan2" and last < 0 and abs(x) < 1e-200 * -last)
    if row.name == "**":
        return x > 0
    if row.name == "/":
        return last != 0
    if row.name in ("lgamma", "digamma") and (x > 1e200 or (x <= 0 and x == math.floor(x))):
        return False
    try:
        value = mpmath.mpmathify(by_table(row, (), at, mpmath.mpf))
    except (ValueError, ArithmeticError):
        return False
    return value.imag == 0 and abs(value) < MOST and not set(at) & set(POLES.get(row.name, ()))


@wide
@thin
@pytest.mark.parametrize("row", [r for r in SMOOTH if r.name not in KINKED], ids=lambda r: r.name)
@sized
@some
def test_arguments_at_edges(row: FunctionRow) -> None:
    """Derivatives that a float has are found where others are too large; those are never a number.

    Where those of a lower order are too large, others may be NaN.  A term of derivatives may be too
    small: what is wanted is measured by the largest of its order.
    """
    routes, found = Routes(applied(row), row.arity), edges(row)
    for at in random.Random(row.name).sample(found, part(min(len(found), 40))):

        def want(by: tuple[int, ...], at: Any = at) -> Any:
            with mpmath.workdps(2 * DIGITS):
                return mpmath.re(by_table(row, by, at, mpmath.mpf))

        tiny = min((abs(x) for x in at if x), default=1.0) < 1e-290
        results = list(tried(routes, at, (1, 2, 3), want, MOST))
        for order, route, by, got, value in results:
            told = (row.name, at, route, by, got, mpmath.nstr(value, 17))
            if abs(value) > MOST:
                assert not abs(got) < MOST, told
                continue
            if tiny and order >= CANCEL.get(row.name, 4) and not math.isfinite(got):
                continue
            lower = max(1, order - 1)
            if not math.isfinite(got) and any(abs(w) > MOST for n, *_, w in results if n <= lower):
                continue
            if (row.name, order) == ("**", 3) and tiny:
                # x ** y is too small for a float, and its multiples by 1 / x are not.
                continue
            size = max(abs(w) for n, _, _, _, w in results if n == order and abs(w) <= MOST)
            off = abs(mpmath.mpf(got) - value)
            assert off <= max(NEAR[order] * max(abs(value), row.arity > 1 and size), LEAST), told


def test_the_table_has_no_other_rows() -> None:
    lines = re.findall(
        r"^\| `(\S+)` \| [\d.e+]+ \| [\d.e+]+ \| [\d.e+]+ \|$", PAGE.read_text(), re.M
    )
    assert sorted(lines) == sorted(row.name for row in SMOOTH)


@wide
def test_rotations() -> None:
    """Those of fixed-point numbers have the derivatives of the rotation."""

    def made(t: str) -> Any:
        return rvm.assemble(f"""
            func f(y: {t}, a: {t}, b: {t}, t: {t})
                rot a, b, t
                hadamard a, b
                add y, a * a * b
                hadamard a, b
                irot a, b, t
        """).f.with_options(engine="python")

    fixed, floats = made("fixed"), made("f64")
    for t in (0.5, 2.5, -1.875, 7.0):
        at = {"y": 0.0, "a": 0.75, "b": -0.5, "t": t}
        one, two = fixed.grad(loss="y", **at), floats.grad(loss="y", **at)
        for n in "abt":
            assert one[n] == pytest.approx(two[n], abs=1e-11)
        for method in ("taylor", "forward-over-reverse"):
            h, g = (f.hessian(loss="y", method=method, **at) for f in (fixed, floats))
            for n in "abt":
                assert [h[n][k] for k in "abt"] == pytest.approx(
                    [g[n][k] for k in "abt"], abs=1e-11
                )


PAIRS = [row for row in SMOOTH if row.arity == 2]
GRID = (-2.0, -1.5, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0)


@thin
@pytest.mark.parametrize("row", PAIRS, ids=lambda row: row.name)
def test_hessians_are_symmetric_wherever_they_are_finite(row: FunctionRow) -> None:
    """At zeros, kinks and negative numbers too, where derivatives are a matter of convention."""
    f = rvm.assemble(f"func f(y: f64, a: f64, b: f64)\n    add y, {applied(row)}\n").f
    for a, b in product(GRID, GRID):
        at = {"y": 0.0, "a": a, "b": b}
        mixed = []
        try:
            for method in ("forward-over-reverse", "taylor"):
                h = f.hessian(at, loss="y", method=method)
                mixed += [float(h["a"]["b"]), float(h["b"]["a"])]
            mixed += [f.hvp({"b": 1.0}, at, loss="y").a, f.hvp({"a": 1.0}, at, loss="y").b]
        except (rvm.MachineError, rvm.InvertibilityError):
            continue
        if all(map(math.isfinite, mixed)):
            assert mixed == pytest.approx([mixed[0]] * 6, rel=1e-12, abs=1e-300), (a, b)
