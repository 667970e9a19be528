"""The elementary functions: how exact they are, by mpmath; every target gives their bits."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import elementary_tables
import mpmath
import numpy as np
import pytest
from sizes import sample, thin

import rvm
from rvm.engines import LAW, executing
from rvm.leaf.python import on_arrays, on_numbers
from rvm.numbers.elementary import TEXTS, tables, text

REAL = {
    "exp": mpmath.exp,
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "expm1": mpmath.expm1,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "log": mpmath.log,
    "log2": lambda x: mpmath.log(x, 2),
    "log10": mpmath.log10,
    "log1p": mpmath.log1p,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "lgamma": lambda x: mpmath.loggamma(x).real,
    "digamma": mpmath.digamma,
}
PAIRS = {
    "pow": mpmath.power,
    "atan2": mpmath.atan2,
    "hypot": mpmath.hypot,
    "log_add": lambda a, b: mpmath.log(mpmath.exp(a) + mpmath.exp(b)),
    "log_sub": lambda a, b: mpmath.log(mpmath.exp(a) - mpmath.exp(b)),
}
ULPS = {"sin": 0.8, "cos": 0.8, "tan": 0.9, "log_sub": 1.0, "erf": 0.7, "erfc": 4.0}
ULPS |= {"lgamma": 1.0, "digamma": 0.6}
"""Units in the last place that a result may be off by; 0.51 where nothing is said."""
GROWING = ("exp", "exp2", "expm1", "sinh", "cosh", "softplus", "sigmoid", "erfc")
"""Functions whose results far out are infinite, or 0."""
EDGES = [
    *(0.0, 5e-324, 2.2e-308, 1e-300, 1e-20, 2.0**-54, 2.0**-27, 0.5, 1.0, 1.5, 2.0, 22.0, 40.0),
    *(600.0, 660.0, 708.0, 709.7, 709.8, 745.0, 746.0, 1e6, 2.0**20, 2.0**53, 1e22, 1e300, 1.7e308),
    *(math.inf, 1 - 2.0**-53, 1 + 2.0**-52, math.pi / 2, math.pi, 6381956970095103 * 2.0**797),
]
SIGNED = [s * x for x in EDGES for s in (1, -1)] + [math.nan]


def domain(name):
    """Whether a number is within a function's domain, and its result a number."""
    return {
        "log": lambda x: x > 0,
        "log2": lambda x: x > 0,
        "log10": lambda x: x > 0,
        "log1p": lambda x: x > -1,
        "asin": lambda x: abs(x) <= 1,
        "acos": lambda x: abs(x) <= 1,
        "acosh": lambda x: x >= 1,
        "atanh": lambda x: abs(x) < 1,
        # Below 0: `test_gamma_functions_below_0`.
        "lgamma": lambda x: x > 0,
        "digamma": lambda x: x > 0,
    }.get(name, lambda x: True)


def draws(name, n=150):
    rng = np.random.default_rng(sum(map(ord, name)))
    wide = rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-300, 300, n)
    near = [rng.uniform(-2, 2, n), rng.uniform(-40, 40, n), rng.uniform(-1, 1, n) * 1e-3]
    found = np.concatenate([wide, *near, rng.uniform(-745, 710, n), 1 + near[0] * 1e-6])
    return [float(x) for x in found]


def off_by(got, want):
    """How many units in the last place of the true value a result is off by; 0 if it is rounded."""
    nearest = float(want)
    if got == nearest:
        return 0.0
    return abs(mpmath.mpf(got) - want) / math.ulp(nearest if math.isfinite(nearest) else 1.7e308)


@thin
@pytest.mark.parametrize("name", REAL)
def test_a_function_of_one_number(name):
    f, fits = on_numbers(text(name)), domain(name)
    limit = ULPS.get(name, 0.51)
    with mpmath.workprec(1300 if name in ("sin", "cos", "tan") else 200):
        for x in [*draws(name), *filter(math.isfinite, SIGNED)]:
            if not fits(x) or (abs(x) > 2000 and name in GROWING):
                continue
            want = REAL[name](mpmath.mpf(x))
            assert off_by(f(x), want) <= limit, (x, f(x), want)


@thin
@pytest.mark.parametrize("name", PAIRS)
def test_a_function_of_two_numbers(name):
    f, limit = on_numbers(text(name)), ULPS.get(name, 0.51)
    xs, ys = draws(name), draws(f"{name} again")
    with mpmath.workprec(2300 if name == "log_sub" else 400):
        for x, y in zip(xs, ys, strict=True):
            if name.startswith("log_"):
                x, y = max(x, y), min(x, y)
                if abs(x) > 700 or abs(y) > 700 or x == y:
                    continue
            if name == "pow":
                x = abs(x)
                y = y / max(1.0, abs(y) * abs(math.log(x)) / 700) if x != 1 else y
            want = PAIRS[name](mpmath.mpf(x), mpmath.mpf(y))
            if abs(want) < 5e-324 or abs(want) > 1.7e308:
                continue
            assert off_by(f(x, y), want) <= limit, (x, y, f(x, y), want)


NEAR_ZEROS = {
    "lgamma": [1 + 2.0**-52, 1 - 2.0**-53, 2 + 2.0**-51, 2 - 2.0**-52, 0.9999, 1.01, 1.98, 2.1],
    "digamma": [1.4616321449683622, 1.4616321449683625, 1.46163214, 1.4617, 1.4],
}


@pytest.mark.parametrize("name", NEAR_ZEROS)
def test_gamma_functions_near_their_zeros(name):
    f = on_numbers(text(name))
    with mpmath.workprec(400):
        for x in NEAR_ZEROS[name]:
            want = REAL[name](mpmath.mpf(x))
            assert off_by(f(x), want) <= 0.6, (x, f(x), want)
    assert name == "digamma" or bits(f(1.0)) == bits(f(2.0)) == bits(0.0)


@pytest.mark.parametrize("name", NEAR_ZEROS)
def test_gamma_functions_below_0(name):
    """Within 2 units, and 2**-52, or those of pi cot(pi x) for digamma, of the next zero."""
    f = on_numbers(text(name))
    rng = np.random.default_rng(3)
    near = [-n + s * 10.0 ** -rng.uniform(1, 14) for n in range(1, 30) for s in (1, -1)]
    zeros = [-2.4570247382208005, -2.7476826467274127, -3.955294284858598, -0.5040830082644554]
    near += [z * (1 + s * 10.0**-k) for z in zeros for k in range(2, 16) for s in (1, -1)]
    with mpmath.workprec(400):
        for x in [*near, *(-rng.uniform(0, 40, 200)), -5e-324, -1e-310, -1e-20, -1234567.3]:
            exact = mpmath.mpf(x)
            poles = mpmath.inf if abs(x) < 1e-308 else mpmath.gamma(exact)
            want = mpmath.log(abs(poles)) if name == "lgamma" else mpmath.digamma(exact)
            if abs(x) < 1e-308:
                want = -mpmath.log(-exact) if name == "lgamma" else mpmath.inf
                assert f(x) == float(want)
                continue
            size = 1 if name == "lgamma" else 2 + mpmath.log(1 - exact)
            off = abs(f(x) - want) - 2 * math.ulp(float(want))
            assert off <= size * mpmath.mpf(2) ** -52, (x, f(x), want)
    assert f(-math.inf) == math.inf or math.isnan(f(-math.inf))


@thin
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7, 12])
def test_polygamma(n):
    f = on_numbers(text("polygamma"))
    rng = np.random.default_rng(n)
    spread = 290 / (n + 1)
    xs = [*rng.uniform(0, 30, 60), *10.0 ** rng.uniform(-spread, spread, 40)]
    below = -rng.uniform(0, 20, 60)
    with mpmath.workprec(400):
        for x in map(float, [*xs, *below]):
            want = mpmath.polygamma(n, mpmath.mpf(x))
            if x > 0:
                limit = 0.6 if n == 0 else 2 + 1.5 * n
                assert off_by(f(float(n), x), want) <= limit, (x, f(float(n), x), want)
            else:
                # What stands for the two next poles may cancel.
                terms = abs(want) + math.factorial(n) / abs(x - round(x)) ** (n + 1) + 2
                assert abs(f(float(n), x) - want) <= (4 + n) * terms * mpmath.mpf(2) ** -53
    for other in (-1.0, 0.5, 13.0, 1e300, math.inf, math.nan):
        assert math.isnan(f(other, 1.5))


def c99(name, *args):
    """What the C library gives, as far as Python's `math` tells."""
    try:
        return getattr(math, name)(*args)
    except OverflowError:
        negative = args[0] < 0 and (name in ("sinh",) or math.fmod(args[-1], 2) in (1, -1))
        return -math.inf if negative and name in ("sinh", "pow") else math.inf
    except ValueError:
        x = args[0]
        if name == "pow" and x == 0:
            odd = math.fmod(args[1], 2) in (1, -1)
            return math.copysign(math.inf, x) if odd else math.inf
        if name == "lgamma":
            return math.inf
        if name == "atanh" and abs(x) == 1:
            return math.copysign(math.inf, x)
        poles = {"log": 0.0, "log2": 0.0, "log10": 0.0, "log1p": -1.0}
        return -math.inf if poles.get(name) == x else math.nan


SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e300, -1e300, 0.5, -2.0, 3.0]


def bits(x):
    return "nan" if x != x else struct.pack(">d", x).hex()


@pytest.mark.parametrize("name", [n for n in REAL if hasattr(math, n)])
def test_special_values_are_those_of_the_c_standard(name):
    f = on_numbers(text(name))
    for x in SPECIAL:
        want, got = c99(name, x), f(x)
        if want in (0.0, 1.0, -1.0) or not math.isfinite(want):
            assert bits(got) == bits(want), x
        else:
            assert got == pytest.approx(want, rel=1e-15)


@pytest.mark.parametrize("name", ["pow", "atan2", "hypot"])
def test_special_pairs_are_those_of_the_c_standard(name):
    f = on_numbers(text(name))
    more = [*SPECIAL, 5e-324, -5e-324, 2.0**53, 2.0**53 - 1, 1 - 2.0**-53]
    for x in more:
        for y in more:
            want, got = c99(name, x, y), f(x, y)
            if want in (0.0, 1.0, -1.0) or not math.isfinite(want):
                assert bits(got) == bits(want), (x, y)
            else:
                assert got == pytest.approx(want, rel=1e-15), (x, y)


def arguments(name):
    f = text(name)
    one = [*draws(name), *SIGNED]
    if name == "polygamma":
        orders = np.array([*range(14), -1.0, 0.5, math.nan, math.inf])
        return orders[np.arange(len(one)) * 5 % len(orders)], np.array(one)
    if len(f.params) == 1:
        return (np.array(one),)
    pairs = [(a, b) for a in SIGNED[::2] for b in SIGNED[1::3]]
    pairs += list(zip(one, reversed(one), strict=True))
    return tuple(np.array(column) for column in zip(*pairs, strict=True))


@pytest.mark.parametrize("name", TEXTS)
def test_arrays_give_the_bits_of_numbers(name):
    f, args = on_numbers(text(name)), arguments(name)
    found = on_arrays(text(name))(*args)
    want = [f(*row) for row in zip(*(a.tolist() for a in args), strict=True)]
    assert [bits(v) for v in found.tolist()] == [bits(v) for v in want]


def program(name):
    infix = {"pow": "x[i] ** z[i]", "log_add": "x[i] + z[i]", "log_sub": "x[i] - z[i]"}
    two = len(text(name).params) == 2
    call = infix.get(name) or (f"{name}(x[i], z[i])" if two else f"{name}(x[i])")
    op, t = ("mul", "log64") if name.startswith("log_") else ("add", "f64")
    return rvm.assemble(f"""
        func loop(y: {t}[n], x: {t}[n], z: {t}[n])
            for i = 0 to n - 1
                {op} y[i], {call}
            end
        func one(y: {t}, x: {t}, z: {t})
            {op} y, {call.replace("[i]", "")}
    """)


@thin
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("engine", [n for n in executing() if n != LAW])
@sample
def test_engines_give_the_bits_of_the_law(name, engine):
    made = program(name)
    args = arguments(name)
    x, z = args if len(args) == 2 else (args[0], np.zeros(len(args[0])))
    if name.startswith("log_"):
        # What a product of log64 takes: neither 0 nor infinite.
        fine = np.isfinite(on_arrays(text(name))(x, z))
        x, z = x[fine], z[fine]
    start = np.zeros(len(x))
    want = made.loop(y=start.copy(), x=x, z=z, engine="reference").y
    found = made.loop(y=start.copy(), x=x, z=z, engine=engine).y
    assert [bits(v) for v in found.tolist()] == [bits(v) for v in want.tolist()]
    lanes = made.one.map(y=start, x=x, z=z, engine=engine).y
    assert [bits(v) for v in lanes.tolist()] == [bits(v) for v in want.tolist()]


def test_the_tables_are_those_of_the_generator():
    held = Path(tables.__file__).with_suffix(".txt").read_text(encoding="ascii")
    assert held == elementary_tables.text()
