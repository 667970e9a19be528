"""Laws of the integers and of bool, against Python's unbounded integers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvm.isa.implementation import array_value, value
from rvm.numbers import NumberFault, system
from rvm.types import BOOL, I32, I64, U8, U32, U64

pytestmark = pytest.mark.smoke

INTEGERS = [I32, I64, U8, U32, U64]


def limits(t):
    if t.name[0] == "i":
        return -(2 ** (t.bits - 1)), 2 ** (t.bits - 1) - 1
    return 0, 2**t.bits - 1


def wrap(n, t):
    """The representative of n modulo 2**bits in the type's range."""
    low, _ = limits(t)
    return (n - low) % 2**t.bits + low


def raws(t):
    low, high = limits(t)
    edges = [v for v in (low, low + 1, -1, 0, 1, 2, high - 1, high) if low <= v <= high]
    return st.one_of(st.sampled_from(edges), st.integers(low, high))


@st.composite
def pairs(draw):
    t = draw(st.sampled_from(INTEGERS))
    return t, draw(raws(t)), draw(raws(t))


@st.composite
def shifts(draw):
    t = draw(st.sampled_from(INTEGERS))
    return t, draw(raws(t)), draw(st.integers(0, 200))


@given(pairs())
def test_ring_operations_are_those_of_the_integers_modulo_the_width(case):
    t, a, b = case
    assert value("+", (t, t))(a, b) == wrap(a + b, t)
    assert value("-", (t, t))(a, b) == wrap(a - b, t)
    assert value("*", (t, t))(a, b) == wrap(a * b, t)
    assert value("neg", (t,))(a) == wrap(-a, t)
    assert value("square", (t,))(a) == wrap(a * a, t)
    assert value("abs", (t,))(a) == wrap(abs(a), t)


@given(pairs())
def test_what_is_added_can_be_subtracted(case):
    t, a, b = case
    assert value("-", (t, t))(value("+", (t, t))(a, b), b) == a
    assert value("+", (t, t))(value("-", (t, t))(a, b), b) == a
    assert value("^", (t, t))(value("^", (t, t))(a, b), b) == a
    assert value("~", (t,))(value("~", (t,))(a)) == a


@given(pairs())
def test_quotient_and_remainder(case):
    t, a, b = case
    if b == 0:
        for f in ("//", "%"):
            with pytest.raises(NumberFault, match="division by zero") as info:
                value(f, (t, t))(a, b)
            assert info.value.code == "R005"
        return
    q, r = value("//", (t, t))(a, b), value("%", (t, t))(a, b)
    assert wrap(q * b + r, t) == a
    assert r == 0 or (0 < r < b if b > 0 else b < r < 0)


@pytest.mark.parametrize("t", [I32, I64], ids=str)
def test_the_least_integer_divided_by_minus_one_wraps(t):
    low, _ = limits(t)
    assert value("//", (t, t))(low, -1) == low
    with np.errstate(all="ignore"):
        array = array_value("//", (t, t))(np.array([low], system(t).dtype), -1)
    assert array.tolist() == [low]
    assert value("%", (t, t))(low, -1) == 0
    assert value("abs", (t,))(low) == low


@given(pairs())
def test_bits(case):
    t, a, b = case
    mask = 2**t.bits - 1
    for f, expected in (("&", a & b), ("|", a | b), ("^", a ^ b)):
        got = value(f, (t, t))(a, b)
        assert got & mask == expected & mask
        assert limits(t)[0] <= got <= limits(t)[1]
    assert value("~", (t,))(a) & mask == ~a & mask


@given(shifts())
def test_shifts_and_rotations(case):
    t, a, k = case
    assert value("<<", (t, I64))(a, k) == wrap(a << k, t)
    assert value(">>", (t, I64))(a, k) == a >> k
    left = value("rotl", (t, I64))
    right = value("rotr", (t, I64))
    digits = format(a & 2**t.bits - 1, f"0{t.bits}b")
    n = k % t.bits
    assert left(a, k) == wrap(int(digits[n:] + digits[:n], 2), t)
    assert right(left(a, k), k) == a
    assert left(a, -k) == right(a, k)


def test_a_shift_by_a_negative_count_is_an_error():
    for f in ("<<", ">>"):
        with pytest.raises(NumberFault) as info:
            value(f, (U8, I64))(1, -1)
        assert info.value.code == "R015"


@given(st.sampled_from(INTEGERS), st.integers(-300, 300), st.integers(0, 300))
def test_powers_wrap(t, x, n):
    x = wrap(x, t)
    assert value("**", (t, t))(x, wrap(n, t)) == wrap(x ** wrap(n, t), t) if wrap(n, t) >= 0 else 1
    assert value("**", (I64, I64))(3, 10**15) == wrap(pow(3, 10**15, 2**64), I64)


def test_negative_powers():
    f = value("**", (I64, I64))
    assert [f(1, -3), f(-1, -3), f(-1, -4)] == [1, -1, 1]
    with pytest.raises(NumberFault) as info:
        f(0, -1)
    assert info.value.code == "R005"
    with pytest.raises(NumberFault) as info:
        f(2, -1)
    assert info.value.code == "R015"


@given(pairs(), st.sampled_from(INTEGERS))
def test_integers_convert_by_wrapping(case, to):
    t, a, _ = case
    assert value(to.name, (t,))(a) == wrap(a, to)


@given(st.integers(-50, 50), st.integers(-50, 50), st.sampled_from([-7, -3, -2, -1, 1, 2, 3, 7]))
def test_the_end_of_a_loop(a, b, s):
    visited = list(range(a, b + 1 if s > 0 else b - 1, s))
    assert value("for_end", (I64, I64, I64))(a, b, s) == a + len(visited) * s


def test_the_end_of_a_loop_wraps_and_needs_a_step():
    f = value("for_end", (I64, I64, I64))
    assert f(2**63 - 3, 2**63 - 1, 1) == -(2**63)
    with pytest.raises(NumberFault, match="step 0") as info:
        f(1, 2, 0)
    assert info.value.code == "R015"


def test_bool():
    table = {
        "&": lambda a, b: a and b,
        "|": lambda a, b: a or b,
        "^": lambda a, b: a != b,
        "and": lambda a, b: a and b,
        "or": lambda a, b: a or b,
        "==": lambda a, b: a == b,
        "!=": lambda a, b: a != b,
    }
    for (f, law), a, b in itertools.product(table.items(), (False, True), (False, True)):
        assert value(f, (BOOL, BOOL))(a, b) is law(a, b)
    assert value("not", (BOOL,))(True) is False
    assert value("~", (BOOL,))(False) is True


def test_and_or_do_not_evaluate_what_they_need_not():
    from rvm.isa.implementation import implementation
    from rvm.numbers import fill

    code = fill(implementation("and", (BOOL, BOOL)).python, "False", "1 // 0")
    assert eval(code) is False
    code = fill(implementation("or", (BOOL, BOOL)).python, "True", "1 // 0")
    assert eval(code) is True


@pytest.mark.parametrize("t", INTEGERS, ids=str)
def test_literals_and_arguments(t):
    low, high = limits(t)
    sys = system(t)
    assert sys.literal(3.0) == sys.from_python(3.0) == 3 and sys.from_python(np.int16(5)) == 5
    assert [sys.text(v) for v in (low, high)] == [str(low), str(high)]
    for bad in (low - 1, high + 1, 2.5, float("nan"), float("inf"), True, 1j):
        with pytest.raises(ValueError):
            sys.literal(bad)
        with pytest.raises((TypeError, ValueError)):
            sys.from_python(bad)
    for bad in ("3", 3j, None, True):
        with pytest.raises(TypeError, match="expected an integer"):
            sys.from_python(bad)
    with pytest.raises(ValueError, match="does not fit"):
        sys.from_python(high + 1)
    assert sys.same(low, low) and not sys.same(low, high)
    assert sys.close(high, high, 1e9) and not sys.close(high, high - 1, 1e9)


def test_bool_literals():
    sys = system(BOOL)
    assert sys.literal(1) is True and sys.literal(False) is False
    assert sys.text(True) == "true"
    assert sys.from_python(np.True_) is sys.from_python(1) is True
    for take in (sys.literal, sys.from_python):
        with pytest.raises(ValueError):
            take(2)
    with pytest.raises(TypeError):
        sys.from_python(1.0)
