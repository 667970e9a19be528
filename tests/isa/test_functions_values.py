"""Values and partial derivatives of every elementwise function against mpmath."""

from __future__ import annotations

import math
import random

import mpmath
import pytest
from isa.evaluating import evaluate, place
from oracles import DOMAIN, REAL_FUNCTIONS, true
from sizes import thin

from rvm.expr import Apply, Const, Place
from rvm.isa.derivatives import gains
from rvm.isa.implementation import value
from rvm.isa.rows import FUNCTIONS
from rvm.isa.typing import typed
from rvm.types import C128, F64

MP = mpmath.mp.clone() if hasattr(mpmath.mp, "clone") else mpmath.mp
ROWS = [FUNCTIONS[name] for name in REAL_FUNCTIONS]
SMOOTH = [r for r in ROWS if r.partials is not None]
COMPLEX = [
    r.name
    for r in SMOOTH
    if r.arity == 1
    and r.name in ("exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
                   "tanh", "sqrt", "square", "neg", "identity", "leg", "sech")
]  # fmt: skip


def reference(row):
    f = true(row.name)
    return lambda *xs: mpmath.mpmathify(f(*xs))


def draws(row, count=60):
    rng = random.Random(row.name)
    for _ in range(count):
        yield tuple(rng.uniform(lo, hi) for lo, hi in DOMAIN[row.name])


def test_every_real_function_has_a_reference():
    without = {n for n, r in FUNCTIONS.items() if r.partials and n not in REAL_FUNCTIONS}
    conversions = {"f32", "f64", "c128", "fixed", "log64"}
    # Those of integers and fixed-point numbers have `tests/numbers/test_lifting.py`.
    lifting = {"checked_add", "checked_sub", "turned", "shear", "lift_tan", "lift_sin"}
    # That of `cis` is complex, that of `polygamma` has a whole number for its first argument:
    # `tests/numbers/test_parts.py` and `test_elementary.py` have them. `scaled` is a product.
    assert without == {"select", "detach", "cis", "polygamma", "scaled", *conversions, *lifting}


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_value(row):
    f, exact = value(row.name, (F64,) * row.arity), reference(row)
    with mpmath.workdps(40):
        for xs in draws(row):
            want = exact(*map(mpmath.mpf, xs))
            got = f(*xs)
            assert abs(got - want) <= 4e-16 * abs(want) + 1e-320, (xs, got, want)


@thin
@pytest.mark.parametrize("row", SMOOTH, ids=lambda r: r.name)
def test_partials(row):
    args = tuple(place(k, F64) for k in range(row.arity))
    partials = [None if p is None else typed(p, F64) for p in row.partials(*args)]
    exact = reference(row)
    with mpmath.workdps(60):
        for xs in draws(row):
            points = tuple(map(mpmath.mpf, xs))
            for k, p in enumerate(partials):
                assert p is not None and p.type == F64
                order = tuple(int(j == k) for j in range(row.arity))
                want = mpmath.diff(exact, points, order, h=mpmath.mpf(10) ** -25)
                got = evaluate(p, dict(enumerate(xs)))
                size = max(abs(want), mpmath.mpf(10) ** -12)
                assert abs(got - want) <= 3e-15 * size, (xs, k, got, want)


def reverse(node, seed, out):
    """Add to `out` the derivatives of an expression by its places, one function at a time."""
    if isinstance(node, Place):
        out[node.reg] = out[node.reg] + seed if node.reg in out else seed
    elif isinstance(node, Apply):
        for arg, gain in zip(node.args, gains(node.fn, node.args, typed(seed)), strict=True):
            if gain is not None:
                reverse(arg, gain, out)


@pytest.mark.parametrize("row", SMOOTH, ids=lambda r: r.name)
def test_second_derivatives(row):
    """The derivative rules can be differentiated by the same rules."""
    args = tuple(place(k, F64) for k in range(row.arity))
    exact = reference(row)
    for k, p in enumerate(row.partials(*args)):
        second = {}
        reverse(typed(p, F64), Const(1.0, F64), second)
        for j in range(row.arity):
            order = tuple((i == k) + (i == j) for i in range(row.arity))
            with mpmath.workdps(60):
                for xs in draws(row, 10):
                    want = mpmath.diff(
                        exact, tuple(map(mpmath.mpf, xs)), order, h=mpmath.mpf(10) ** -18
                    )
                    got = evaluate(typed(second[j]), dict(enumerate(xs))) if j in second else 0.0
                    assert abs(got - want) <= 1e-13 * max(abs(want), 1), (xs, k, j)


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_value_and_derivative(name):
    row = FUNCTIONS[name]
    f, exact = value(name, (C128,)), reference(row)
    if name == "identity":
        exact = mpmath.mpmathify
    (p,) = row.partials(place(0, C128))
    p = typed(p, C128)
    rng = random.Random(name)
    with mpmath.workdps(50):
        for _ in range(40):
            z = complex(rng.uniform(-2, 2), rng.choice((-1, 1)) * rng.uniform(0.1, 2))
            want = exact(mpmath.mpc(z))
            assert abs(f(z) - want) <= 1e-15 * abs(want), z
            slope = mpmath.diff(exact, mpmath.mpc(z), h=mpmath.mpf(10) ** -20)
            got = evaluate(p, {0: z})
            assert abs(got - slope) <= 4e-15 * max(abs(slope), 1e-3), (z, got, slope)


def partial(name, *xs, k=0, t=F64):
    args = tuple(place(j, t) for j in range(len(xs)))
    p = FUNCTIONS[name].partials(*args)[k]
    return evaluate(typed(p, t), dict(enumerate(xs)))


def test_derivatives_at_the_edges():
    assert partial("abs", 0.0) == 0.0
    assert partial("relu", 0.0) == 0.0
    assert partial("sqrt", 0.0) == math.inf
    assert (partial("min", 2.0, 2.0, k=0), partial("min", 2.0, 2.0, k=1)) == (0.0, 1.0)
    assert (partial("max", 2.0, 2.0, k=0), partial("max", 2.0, 2.0, k=1)) == (1.0, 0.0)
    assert (partial("max", 1.0, 2.0, k=0), partial("max", 1.0, 2.0, k=1)) == (0.0, 1.0)
    assert partial("hypot", 0.0, 0.0) == 0.0


def test_powers_at_the_edges():
    assert partial("**", 0.0, 0.0, k=0) == 0.0
    assert partial("**", 0.0, 0.0, k=1) == 0.0
    assert partial("**", 0.0, 1.0, k=0) == 1.0
    assert partial("**", 0.0, 2.0, k=0) == 0.0
    assert partial("**", -2.0, 3.0, k=0) == 12.0
    assert partial("**", -2.0, 3.0, k=1) == 0.0
    assert partial("**", 2.0, 3.0, k=1) == pytest.approx(5.545177444479562, abs=1e-14)
    x, n = place(0, F64), typed(Apply("i64", (place(1, F64),)))
    by_x, by_n = FUNCTIONS["**"].partials(x, n)
    assert by_n is None, "an integer exponent carries no derivative"
    assert evaluate(typed(by_x, F64), {0: -2.0, 1: 3.0}) == 12.0
    assert evaluate(typed(by_x, F64), {0: 0.0, 1: 0.0}) == 0.0


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("sqrt", (2.0,), (0.3535533906,)),
        ("exp", (2.0,), (7.389056099,)),
        ("sin", (2.0,), (-0.4161468365,)),
        ("cos", (2.0,), (-0.9092974268,)),
        ("sinh", (2.0,), (3.762195691,)),
        ("cosh", (2.0,), (3.626860408,)),
        ("tan", (2.0,), (5.774399204,)),
        ("tanh", (2.0,), (0.07065082485,)),
        ("asin", (0.2,), (1.020620726,)),
        ("acos", (0.2,), (-1.020620726,)),
        ("atan", (-2.0,), (0.2,)),
        ("atan2", (-2.0, 1.5), (0.24, 0.32)),
        ("**", (2.0, 3.0), (12.0, 5.545177444)),
        ("/", (2.0, 4.0), (0.25, -0.125)),
    ],
)
def test_published_derivatives(name, args, expected):
    got = [partial(name, *args, k=k) for k in range(len(args))]
    assert got == pytest.approx(expected, rel=2e-10)
