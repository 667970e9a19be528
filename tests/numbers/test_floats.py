"""IEEE 754: f64, f32 against NumPy's float32 bit for bit, complex numbers, NaN and infinities."""

from __future__ import annotations

import math
import random
import struct
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvm.faults import MachineError
from rvm.isa.implementation import value
from rvm.numbers import system
from rvm.types import BOOL, C128, F32, F64, I32, I64, U8, U64

INF, NAN = math.inf, math.nan
F1, F2 = (F64,), (F64, F64)
singles = st.floats(width=32)
LARGEST32 = float(np.finfo(np.float32).max)


def same(a, b):
    return (a != a and b != b) or (a == b and math.copysign(1, a) == math.copysign(1, b))


@pytest.mark.parametrize(
    ("f", "args", "expected"),
    [
        ("/", (1.0, 0.0), INF),
        ("/", (1.0, -0.0), -INF),
        ("/", (-1.0, 0.0), -INF),
        ("/", (0.0, 0.0), NAN),
        ("+", (INF, -INF), NAN),
        ("*", (1e200, 1e200), INF),
        ("*", (0.0, INF), NAN),
        ("//", (1.0, 0.0), INF),
        ("//", (-7.0, 2.0), -4.0),
        ("%", (-7.0, 2.0), 1.0),
        ("%", (1.0, 0.0), NAN),
        ("**", (0.0, -1.0), INF),
        ("**", (-0.0, -3.0), -INF),
        ("**", (-0.0, -2.0), INF),
        ("**", (-8.0, 1 / 3), NAN),
        ("**", (10.0, 400.0), INF),
        ("**", (-10.0, 401.0), -INF),
        ("**", (NAN, 0.0), 1.0),
        ("**", (1.0, INF), 1.0),
        ("log", (0.0,), -INF),
        ("log", (-1.0,), NAN),
        ("log2", (0.0,), -INF),
        ("log1p", (-1.0,), -INF),
        ("sqrt", (-1.0,), NAN),
        ("sqrt", (-0.0,), -0.0),
        ("exp", (1000.0,), INF),
        ("exp", (-INF,), 0.0),
        ("expm1", (1000.0,), INF),
        ("sin", (INF,), NAN),
        ("tan", (-INF,), NAN),
        ("asin", (2.0,), NAN),
        ("acos", (-2.0,), NAN),
        ("cosh", (-1000.0,), INF),
        ("sinh", (-1000.0,), -INF),
        ("tanh", (INF,), 1.0),
        ("atan", (-INF,), -math.pi / 2),
        ("atan2", (0.0, -0.0), math.pi),
        ("hypot", (INF, NAN), INF),
        ("hypot", (1e300, 1e300), math.sqrt(2) * 1e300),
        ("min", (1.0, NAN), NAN),
        ("min", (NAN, 1.0), NAN),
        ("max", (NAN, 1.0), NAN),
        ("min", (0.0, -0.0), 0.0),
        ("max", (-0.0, 0.0), -0.0),
        ("sign", (-0.0,), 0.0),
        ("sign", (NAN,), NAN),
        ("sign", (-INF,), -1.0),
        ("relu", (-0.0,), 0.0),
        ("relu", (NAN,), NAN),
        ("floor", (-0.5,), -1.0),
        ("floor", (-0.0,), -0.0),
        ("floor", (INF,), INF),
        ("floor", (2.0**60 + 256,), 2.0**60 + 256),
        ("abs", (-0.0,), 0.0),
        ("neg", (0.0,), -0.0),
    ],
)
def test_edges(f, args, expected):
    got = value(f, (F64,) * len(args))(*args)
    assert isinstance(got, float)
    assert same(got, expected), (f, args, got)


BINARY = ("+", "-", "*", "/", "min", "max", "hypot", "**", "//", "%")


@given(st.sampled_from(BINARY), singles, singles)
def test_f32_is_numpys_float32(f, a, b):
    got = value(f, (F32, F32))(a, b)
    assert got != got or got == float(np.float32(got)), "an f32 holds an f32"
    if f in "+-*/":
        with np.errstate(all="ignore"):
            x, y = np.float32(a), np.float32(b)
            want = {"+": x + y, "-": x - y, "*": x * y, "/": x / y}[f]
        assert same(got, float(want))


@given(singles)
def test_f32_functions_round_the_f64_result(x):
    for f in ("sqrt", "exp", "log", "sin", "atan", "expm1", "square", "neg", "abs"):
        exact = value(f, F1)(x)
        with np.errstate(all="ignore"):
            assert same(value(f, (F32,))(x), float(np.float32(exact)))
    if x >= 0:
        assert same(value("sqrt", (F32,))(x), float(np.sqrt(np.float32(x))))


@given(st.integers(-(2**63), 2**64 - 1))
def test_integers_to_floats_round_once(n):
    t = I64 if n < 2**63 else U64
    assert value("f64", (t,))(n) == float(n)
    single = value("f32", (t,))(n)
    assert single == float(np.array(n, system(t).dtype).astype(np.float32))


@pytest.mark.parametrize(
    ("x", "t", "expected"),
    [
        (2.9, I64, 2),
        (-2.9, I64, -2),
        (-0.5, U8, 0),
        (255.9, U8, 255),
        (-(2.0**63), I64, -(2**63)),
        (2.0**31 - 0.5, I32, 2**31 - 1),
    ],
)
def test_floats_to_integers_drop_the_fraction(x, t, expected):
    assert value(t.name, F1)(x) == expected


@pytest.mark.parametrize(
    ("x", "t"),
    [(256.0, U8), (-1.0, U8), (2.0**63, I64), (NAN, I64), (INF, I32), (2.0**64, U64)],
)
def test_floats_that_do_not_fit_an_integer(x, t):
    with pytest.raises(MachineError) as info:
        value(t.name, F1)(x)
    assert info.value.code == "R009"


def test_floats_to_bool():
    f = value("bool", F1)
    assert [f(0.0), f(-0.0), f(1e-300), f(NAN)] == [False, False, True, True]
    assert value("f64", (BOOL,))(True) == 1.0


def test_complex_edges():
    f = value("/", (C128, C128))(1 + 1j, 0j)
    assert math.isinf(f.real) or math.isnan(f.real)
    assert value("log", (C128,))(0j).real == -INF
    assert value("exp", (C128,))(1000 + 0j).real == INF
    assert value("sqrt", (C128,))(-4 + 0j) == 2j
    assert value("abs", (C128,))(3 + 4j) == 5.0
    assert value("angle", (C128,))(-1 + 0j) == math.pi
    assert value("angle", (C128,))(complex(-1.0, -0.0)) == -math.pi
    z = value("complex", F2)(-0.0, INF)
    assert (math.copysign(1, z.real), z.imag) == (-1.0, INF)
    assert value("conj", (C128,))(1 + 2j) == 1 - 2j
    assert value("abs2", (C128,))(3 + 4j) == 25.0


def bits(x):
    return struct.pack("d", x)


@given(st.floats())
def test_text_reads_back_to_the_same_bits(x):
    for t in (F64, F32):
        sys = system(t)
        if t == F32 and math.isfinite(x) and abs(x) > LARGEST32:
            continue
        raw = sys.from_python(x)
        again = sys.literal(float(sys.text(raw)))
        assert again != again or bits(again) == bits(raw)


def test_text_is_short():
    assert system(F64).text(0.1) == "0.1"
    assert system(F32).text(system(F32).literal(0.1)) == "0.1"
    assert system(C128).text(complex(-0.0, -2.5)) == "-0.0-2.5j"


def test_literals():
    assert system(F64).literal(Decimal("0.1")) == 0.1
    assert system(F64).literal(3) == 3.0
    assert system(F32).literal(0.1) == float(np.float32(0.1))
    assert system(F64).literal(INF) == INF
    for t, bad in ((F32, 1e39), (F64, 10**400), (F64, Decimal("1e999")), (F64, True), (F64, 1j)):
        with pytest.raises(ValueError):
            system(t).literal(bad)
    for bad in ("1.0", None, 1j, True):
        with pytest.raises(TypeError):
            system(F64).from_python(bad)
    assert system(C128).from_python(np.complex64(1j)) == 1j
    with pytest.raises(TypeError):
        system(C128).from_python("1")


def test_same_is_bitwise():
    sys = system(F64)
    assert sys.same(NAN, -NAN) and not sys.same(0.0, -0.0) and sys.same(1.0, 1.0)
    assert sys.same(np.array([NAN, 1.0]), np.array([NAN, 1.0]))
    assert not sys.same(np.array([0.0]), np.array([-0.0]))
    assert not sys.same(np.zeros(2), np.zeros(3))
    assert not system(C128).same(0j, complex(0.0, -0.0))


def test_close():
    sys = system(F64)
    assert sys.close(1e-9, 0.0, 1e-8) and not sys.close(2e-8, 0.0, 1e-8)
    assert sys.close(1e9 + 1, 1e9, 1e-8) and not sys.close(1e9 + 11, 1e9, 1e-8)
    assert not sys.close(NAN, NAN, 1.0) and not sys.close(1.0, NAN, 1.0)
    assert sys.close(INF, INF, 1e-8)
    assert not sys.close(INF, -INF, 1e-8) and not sys.close(1.0, INF, 1e-8)
    x = np.array([0.0, 1.0, INF])
    assert sys.close(x + 1e-9, x, 1e-8)
    assert not sys.close(np.array([0.0, NAN, INF]), x, 1e-8)
    assert not sys.close(np.array([0.0, 1.0, 1.0]), x, 1e-8)
    assert system(C128).close(1 + 1e-9j, 1, 1e-8)
    assert not system(C128).close(complex(NAN, 0), 0, 1e-8)


def test_pow_agrees_with_python_where_python_has_a_value():
    rng = random.Random(1)
    for _ in range(200):
        x, y = rng.uniform(0, 10), rng.uniform(-20, 20)
        assert value("**", F2)(x, y) == x**y
    assert value("**", (F64, I64))(-2.0, 3) == -8.0
    assert value("**", (F64, I64))(0.0, -1) == INF
