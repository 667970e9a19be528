"""Fixed-point numbers against exact fractions."""

from __future__ import annotations

import copy
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvm.isa.implementation import array_value, value
from rvm.numbers import Fixed, NumberFault, system
from rvm.types import F64, FIXED, I32, I64, U64, fixed

FRACS = st.sampled_from([0, 1, 8, 30, 43, 62])
RAWS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**32), 2**32),
    st.sampled_from([-(2**63), -(2**63) + 1, -1, 0, 1, 2**62, 2**63 - 1]),
)


def wrap(n):
    return (n + 2**63) % 2**64 - 2**63


def outcome(f, *args):
    """What a function gives, or the code of its fault; of arrays as a list."""
    try:
        found = f(*args)
    except NumberFault as fault:
        return fault.code
    return found.tolist() if isinstance(found, np.ndarray) else found


def fitting(exact):
    """A whole number, or the fault where it does not fit."""
    return exact if -(2**63) <= exact < 2**63 else "R009"


def nearest(x):
    """Round half to even, which is what Fraction does."""
    return fitting(round(x))


def both(x):
    """What an array of two such results is."""
    return x if x == "R009" else [x, x]


@given(FRACS, RAWS, RAWS)
def test_sums_restore_every_bit(frac, a, b):
    t = fixed(frac)
    total = value("+", (t, t))(a, b)
    assert total == wrap(a + b)
    assert value("-", (t, t))(total, b) == a


@given(FRACS, RAWS, RAWS)
def test_products_and_quotients_are_rounded_once(frac, a, b):
    t, unit = fixed(frac), 2**frac
    x, y = Fraction(a, unit), Fraction(b, unit)
    arrays = [np.array([v, v]) for v in (a, b)]
    product = nearest(x * y * unit)
    assert outcome(value("*", (t, t)), a, b) == product
    assert outcome(array_value("*", (t, t)), *arrays) == both(product)
    assert outcome(value("square", (t,)), a) == nearest(x * x * unit)
    if b == 0:
        for f in (value("/", (t, t)), value("//", (t, t)), value("%", (t, t))):
            with pytest.raises(NumberFault) as info:
                f(a, b)
            assert info.value.code == "R005"
        return
    quotient = nearest(x / y * unit)
    assert outcome(value("/", (t, t)), a, b) == quotient
    assert outcome(array_value("/", (t, t)), *arrays) == both(quotient)
    whole = fitting(math.floor(x / y) * unit)
    assert outcome(value("//", (t, t)), a, b) == whole
    assert outcome(array_value("//", (t, t)), *arrays) == both(whole)
    assert value("%", (t, t))(a, b) == (x - math.floor(x / y) * y) * unit


@given(FRACS, RAWS)
def test_floor_abs_sign(frac, a):
    t, unit = fixed(frac), 2**frac
    assert value("floor", (t,))(a) == math.floor(Fraction(a, unit)) * unit
    assert outcome(value("abs", (t,)), a) == fitting(abs(a))
    assert outcome(array_value("abs", (t,)), np.array([a, a])) == both(fitting(abs(a)))
    assert value("sign", (t,))(a) == wrap(((a > 0) - (a < 0)) * unit)


@given(FRACS, FRACS, RAWS)
def test_from_one_fraction_to_another(a, b, raw):
    f = value(str(fixed(b)), (fixed(a),))
    exact = round(Fraction(raw, 2**a) * 2**b)
    if -(2**63) <= exact < 2**63:
        assert f(raw) == exact
        assert array_value(str(fixed(b)), (fixed(a),))(np.array([raw])).tolist() == [exact]
        return
    with pytest.raises(NumberFault) as info:
        f(raw)
    assert info.value.code == "R009"
    with pytest.raises(NumberFault):
        array_value(str(fixed(b)), (fixed(a),))(np.array([raw]))


@given(FRACS, RAWS)
def test_to_integers_and_floats(frac, raw):
    t, exact = fixed(frac), Fraction(raw, 2**frac)
    assert value("i64", (t,))(raw) == math.trunc(exact)
    assert array_value("i64", (t,))(np.array([raw])).tolist() == [math.trunc(exact)]
    assert value("f64", (t,))(raw) == float(exact)
    assert value("bool", (t,))(raw) is (raw != 0)
    fits = -(2**31) <= math.trunc(exact) < 2**31
    if fits:
        assert value("i32", (t,))(raw) == math.trunc(exact)
    else:
        with pytest.raises(NumberFault):
            value("i32", (t,))(raw)


@given(st.floats(-1e6, 1e6))
def test_from_floats(x):
    raw = value("fixed", (F64,))(x)
    assert raw == round(Fraction(x) * 2**43)
    assert system(FIXED).literal(x) == raw


def test_from_integers():
    assert value("fixed", (I64,))(-5) == -5 * 2**43
    for t, n in ((I64, 2**20), (U64, 2**64 - 1), (I64, -(2**20) - 1)):
        with pytest.raises(NumberFault) as info:
            value("fixed", (t,))(n)
        assert info.value.code == "R009"
    assert value("fixed", (I32,))(2**20 - 1) == (2**20 - 1) * 2**43
    for bad in (math.nan, math.inf, 2.0**20):
        with pytest.raises(NumberFault):
            value("fixed", (F64,))(bad)


@given(FRACS, RAWS)
def test_text_reads_back_to_the_same_bits(frac, raw):
    sys = system(fixed(frac))
    assert sys.literal(Decimal(sys.text(raw))) == raw
    assert sys.from_python(sys.to_python(raw)) == raw


def test_text_is_short():
    assert system(FIXED).text(system(FIXED).literal(Decimal("0.1"))) == "0.1"
    assert system(FIXED).text(-(2**42)) == "-0.5"


def test_the_python_number():
    x = Fixed(3 * 2**42)
    assert (x, x.raw, x.frac, float(x)) == (Fraction(3, 2), 3 * 2**42, 43, 1.5)
    assert x + 1 == 2.5 and 2 * x == 3 and x < 2 and x == 1.5 and -x == -1.5
    assert str(x) == "1.5" and repr(x) == f"Fixed({3 * 2**42}, 43)"
    again = pickle.loads(pickle.dumps(x))
    assert (again.raw, again.frac) == (x.raw, x.frac)
    assert copy.deepcopy(x) == x and hash(x) == hash(1.5)


def test_arguments():
    sys = system(FIXED)
    assert sys.from_python(np.float32(0.5)) == 2**42
    assert sys.from_python(Fixed(1, 1)) == 2**42
    with pytest.raises(ValueError, match="does not fit"):
        sys.from_python(2**20)
    with pytest.raises(ValueError):
        sys.literal(math.nan)
    for bad in ("1", None, True, 1j):
        with pytest.raises(TypeError):
            sys.from_python(bad)


def test_products_of_arrays_sum_rounded_products():
    t = fixed(8)
    a, b = np.array([[3, 5], [7, 11]]), np.array([100, 200])
    expected = [sum(round(Fraction(x * y, 256)) for x, y in zip(r, b, strict=True)) for r in a]
    assert array_value("matvec", (t, t))(a, b).tolist() == expected
    assert array_value("@", (t, t))(b, b) == round(Fraction(100**2, 256)) + round(
        Fraction(200**2, 256)
    )
    assert array_value("outer", (t, t))(b, b).tolist() == [
        [round(Fraction(x * y, 256)) for y in b.tolist()] for x in b.tolist()
    ]
    assert array_value("prod", (t,))(b) == round(Fraction(100 * 200, 256))
