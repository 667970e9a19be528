"""log64: arithmetic on logarithms against mpmath, and its edges."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvm.isa.implementation import array_value, value
from rvm.numbers import LogNumber, system
from rvm.types import F64, FIXED, I64, LOG64

INF, NAN = math.inf, math.nan
L1, L2 = (LOG64,), (LOG64, LOG64)
logs = st.floats(-1e5, 1e5)


def exact(f, *args):
    with mpmath.workdps(60):
        return mpmath.log(f(*(mpmath.exp(mpmath.mpf(a)) for a in args)))


@given(st.floats(-50, 50), st.floats(-50, 50))
def test_sums_and_differences(a, b):
    want = exact(lambda x, y: x + y, a, b)
    assert abs(value("+", L2)(a, b) - want) <= 4e-16 * max(1, abs(want))
    if a - b > 1e-9:
        want = exact(lambda x, y: x - y, a, b)
        # The logarithms themselves are rounded: near a = b that error grows as 1/(a - b).
        assert abs(value("-", L2)(a, b) - want) <= 1e-14 * max(1, abs(want), abs(a))


@given(logs, logs, st.floats(-100, 100))
def test_products_are_sums_of_logarithms(a, b, y):
    assert value("*", L2)(a, b) == a + b
    assert value("/", L2)(a, b) == a - b
    assert value("**", (LOG64, F64))(a, y) == (a * y if a and y else 0.0)
    assert value("sqrt", L1)(a) == a / 2
    assert value("square", L1)(a) == 2 * a
    assert value("neg", L1)(a) == -a
    assert value("log", L1)(a) == a
    assert value("exp_log64", (F64,))(a) == a


@given(logs, logs)
def test_order_and_laws(a, b):
    assert value("<", L2)(a, b) is (a < b)
    assert value("+", L2)(a, b) == value("+", L2)(b, a)
    assert value("+", L2)(a, b) >= max(a, b)
    assert value("min", L2)(a, b) == min(a, b)
    assert value("-", L2)(a, a) == -INF
    assert value("+", L2)(a, -INF) == a and value("-", L2)(a, -INF) == a


@pytest.mark.parametrize(
    ("f", "args", "expected"),
    [
        ("-", (1.0, 2.0), NAN),
        ("-", (-INF, 0.0), NAN),
        ("-", (-INF, -INF), -INF),
        ("-", (INF, INF), NAN),
        ("+", (-INF, -INF), -INF),
        ("+", (INF, 1.0), INF),
        ("+", (NAN, 1.0), NAN),
        ("*", (-INF, INF), NAN),
        ("/", (-INF, -INF), NAN),
        ("/", (0.0, -INF), INF),
    ],
)
def test_edges(f, args, expected):
    got = value(f, L2)(*args)
    assert got == expected or (got != got and expected != expected)
    with np.errstate(all="ignore"):
        array = array_value(f, L2)(*(np.array([a]) for a in args)).item()
    assert array == expected or (array != array and expected != expected)


def test_powers_at_zero_and_one():
    f = value("**", (LOG64, F64))
    assert f(-INF, 0.0) == 0.0 and f(0.0, INF) == 0.0 and f(-INF, 2.0) == -INF


def test_conversions():
    assert value("log64", (F64,))(math.e) == 1.0
    assert value("log64", (F64,))(0.0) == -INF
    assert math.isnan(value("log64", (F64,))(-1.0))
    assert value("f64", L1)(0.0) == 1.0
    assert value("f64", L1)(1000.0) == INF
    assert value("f64", L1)(-INF) == 0.0
    assert value("i64", L1)(math.log(10.5)) == 10
    assert value("fixed", L1)(0.0) == 2**43
    assert value("log64", (FIXED,))(2**44) == math.log(2)
    assert value("log64", (I64,))(3) == math.log(3)
    assert value("bool", L1)(-INF) is False and value("bool", L1)(-1e9) is True


def test_the_number_that_was_measured():
    # x *= y + z where 7, 2, 3 are the stored logarithms
    x = value("*", L2)(7.0, value("+", L2)(2.0, 3.0))
    assert x == 10.313261687518223


def test_the_python_number():
    sys = system(LOG64)
    x = sys.to_python(1.0)
    assert isinstance(x, LogNumber)
    assert x.log == 1.0 and float(x) == math.e
    assert x == LogNumber(1.0) and x != LogNumber(2.0) and hash(x) == hash(LogNumber(1.0))
    assert repr(x) == "LogNumber(log=1.0)"
    assert float(LogNumber(1e4)) == INF
    # One of NumPy is one of Python, whose comparisons the functions are made of.
    assert type(LogNumber(np.float64(1.0)).log) is float
    assert sys.from_python(x) == 1.0
    assert sys.from_python(1) == 0.0 and sys.from_python(0.0) == -INF
    assert sys.literal(10**400) == pytest.approx(400 * math.log(10))
    assert sys.text(0.5) == "0.5'log64"
    with pytest.raises(ValueError, match="negative"):
        sys.from_python(-1.0)
    with pytest.raises(TypeError):
        sys.from_python("1")


def test_reductions():
    x = np.array([0.5, -1.0, 2.0])
    assert array_value("sum", L1)(x) == pytest.approx(float(exact(lambda *v: sum(v), *x)))
    assert array_value("prod", L1)(x) == 1.5
    assert array_value("sum", L1)(np.array([])) == -INF
    assert array_value("amax", L1)(x) == 2.0
