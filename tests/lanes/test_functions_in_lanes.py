"""Functions over lanes: bits for exact arithmetic, units in the last place for the others."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes.singles import agree, in_lanes, ulps
from sizes import examples, thin

import rvm

BOUND = 4
"""Units in the last place that `docs/engines.md` promises for transcendental functions."""
FUNCTIONS = {
    "exp": (-700.0, 700.0),
    "log": (1e-300, 1e300),
    "log2": (1e-300, 1e300),
    "expm1": (-30.0, 700.0),
    "log1p": (-0.999, 1e300),
    "sin": (-1e5, 1e5),
    "cos": (-1e5, 1e5),
    "tan": (-1e3, 1e3),
    "asin": (-1.0, 1.0),
    "acos": (-1.0, 1.0),
    "atan": (-1e10, 1e10),
    "sinh": (-700.0, 700.0),
    "cosh": (-700.0, 700.0),
    "tanh": (-30.0, 30.0),
}


@thin
@pytest.mark.parametrize("name", FUNCTIONS)
def test_transcendental_functions_are_within_the_bound(name: str) -> None:
    """Against mpmath, for numbers of all sizes; and against single runs."""
    low, high = FUNCTIONS[name]
    rng = np.random.default_rng(11)
    size = 1500
    x = rng.uniform(low, high, size)
    tiny = max(low, -1.0) + (min(high, 1.0) - max(low, -1.0)) * rng.random(size) ** 8
    x = np.concatenate([x, tiny[(tiny > low) & (tiny < high)]])
    f = rvm.assemble(f"func f(y: f64, x: f64)\n    add y, {name}(x)\n").f
    found = f.map(y=0.0, x=x, engine="vector").y
    mp: Any = {
        "log2": lambda v: mpmath.log(v, 2),
        **{n: getattr(mpmath, n) for n in FUNCTIONS if n != "log2"},
    }[name]
    with mpmath.workprec(120):
        worst = max(
            ulps(float(a), float(mp(mpmath.mpf(float(v))))) for a, v in zip(found, x, strict=True)
        )
    assert worst <= BOUND
    single = getattr(math, name)
    assert max(ulps(float(a), single(float(v))) for a, v in zip(found, x, strict=True)) <= BOUND


@pytest.mark.parametrize("name", ["atan2", "hypot", "**"])
def test_functions_of_two_are_within_the_bound(name: str) -> None:
    rng = np.random.default_rng(12)
    x, y = rng.uniform(0.01, 50.0, 2000), rng.uniform(-20.0, 20.0, 2000)
    text = "x ** y" if name == "**" else f"{name}(x, y)"
    f = rvm.assemble(f"func f(r: f64, x: f64, y: f64)\n    add r, {text}\n").f
    found = f.map(r=0.0, x=x, y=y, engine="vector").r
    single = math.pow if name == "**" else getattr(math, name)
    assert max(ulps(float(a), single(p, q)) for a, p, q in zip(found, x, y, strict=True)) <= BOUND


EDGES = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 5e-324, -1e308, 1e308, 0.1, 3.0]
FLOATS = st.one_of(st.sampled_from(EDGES), st.floats())
EDGES32 = [*(v for v in EDGES if not 1e-9 > abs(v) > 0 and abs(v) != 1e308), 1e-45, -3e38, 3e38]
NUMBERS = {"f64": FLOATS, "f32": st.one_of(st.sampled_from(EDGES32), st.floats(width=32))}
"""What each type holds: a finite number beyond the largest f32 is refused."""
ARITHMETIC = """
func f(s: T, d: T, p: T, q: T, r: T, m: T, k: T, x: T, y: T)
    add s, x + y
    add d, x - y
    add p, x * y
    add q, x / y
    add r, sqrt(x)
    add m, min(x, y) + max(y, x) - abs(x) + sign(y) + floor(x) + relu(y)
    add k, x // y + x % y
    neg s
    swap d, p
"""


@examples(60)
@given(st.sampled_from(sorted(NUMBERS)), st.data())
def test_float_arithmetic_has_the_same_bits(t: str, data: st.DataObject) -> None:
    numbers = st.tuples(NUMBERS[t], NUMBERS[t])
    pairs = data.draw(st.lists(numbers, min_size=1, max_size=9))
    program = rvm.assemble(ARITHMETIC.replace("T", t))
    zeros = dict.fromkeys("sdpqrmk", 0.0)
    lanes = [zeros | {"x": x, "y": y} for x, y in pairs]
    agree(program.program, "f", lanes, in_lanes(program.program, "f", lanes))


COMPLEX = """
func f(s: c128, p: c128, q: c128, x: c128, y: c128, u: f64)
    add s, x + y * u
    add p, x * y - x
    add q, x / y
    add s.re, abs2(x)
    add s.im, real(y) - imag(x)
    conj p
"""


@examples(60)
@given(
    st.lists(
        st.tuples(FLOATS, FLOATS, FLOATS, FLOATS).map(
            lambda v: (complex(v[0], v[1]), complex(v[2], v[3]))
        ),
        min_size=1,
        max_size=9,
    )
)
def test_complex_arithmetic_has_the_same_bits(pairs: list[tuple[complex, complex]]) -> None:
    program = rvm.assemble(COMPLEX)
    lanes = [{"s": 0j, "p": 0j, "q": 0j, "x": x, "y": y, "u": x.imag} for x, y in pairs]
    agree(program.program, "f", lanes, in_lanes(program.program, "f", lanes))


INTEGERS = """
func f(a: T, b: T, c: T, d: T, e: T, x: T, y: T, k: i64)
    add a, x * y - (x + y)
    xor a, (x & y) | ~x
    add b, x // y
    add c, x % y
    add d, (x << k) + (y >> k) - rotl(x, k) + rotr(y, k)
    rol d, k
    add e, min(x, y) + max(x, y) + abs(x) + sign(y) - -x
    add e, select(x < y, x ** 3, y)
    not b
    inc c
"""
BITS = {"i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1)}
BITS |= {"u8": (0, 255), "u32": (0, 2**32 - 1), "u64": (0, 2**64 - 1)}


@examples(60)
@given(st.sampled_from(sorted(BITS)), st.data())
def test_integers_wrap_and_fail_alike(t: str, data: st.DataObject) -> None:
    low, high = BITS[t]
    numbers = st.one_of(
        st.sampled_from([low, high, 0, 1, 2, high // 3]), st.integers(max(low, -9), 9)
    ).filter(lambda v: low <= v <= high)
    program = rvm.assemble(INTEGERS.replace("T", t))
    zeros = dict.fromkeys("abcde", 0)
    lanes = [
        zeros | {"x": data.draw(numbers), "y": data.draw(numbers), "k": data.draw(COUNTS)}
        for _ in range(data.draw(st.integers(1, 6)))
    ]
    agree(program.program, "f", lanes, in_lanes(program.program, "f", lanes))


COUNTS = st.integers(-1, 70)
FIXED = """
func f(a: fixed, b: fixed, c: fixed, x: fixed, y: fixed)
    add a, x * y + sqrt(abs(x))
    sub b, x / y
    add c, sin(x) * exp(y) - atan2(x, y) + fixed(f64(x) * 2.0)
    add c, floor(x) + x ** 3 - square(y) + x % y
    neg a
"""


@examples(60)
@given(st.lists(st.tuples(st.floats(-40, 40), st.floats(-12, 12)), min_size=1, max_size=8))
def test_fixed_point_numbers_have_the_same_bits(pairs: list[tuple[float, float]]) -> None:
    """Functions that are rounded from floats too, where NumPy's may be others than C's."""
    program = rvm.assemble(FIXED)
    lanes = [{"a": 0, "b": 0, "c": 0, "x": x, "y": y} for x, y in pairs]
    agree(program.program, "f", lanes, in_lanes(program.program, "f", lanes))


LOGS = """
func f(a: log64, b: log64, x: log64, y: log64, t: f64)
    mul a, x * y / (x ** 0.5)
    div a, sqrt(y)
    mul b, x + y
    add t, log(x) + f64(y)
"""


def test_logarithms() -> None:
    program = rvm.assemble(LOGS)
    rng = np.random.default_rng(3)
    lanes = [
        {"a": 1, "b": 2, "x": rvm.LogNumber(u), "y": rvm.LogNumber(v), "t": 0.0}
        for u, v in rng.uniform(-20, 20, (40, 2))
    ]
    run = in_lanes(program.program, "f", lanes)
    assert run.alone == ()
    agree(program.program, "f", lanes, run, 1e-14)


ARRAYS = """
func f(s: E, d: E, g: E[k], e: E[n], r: E[n], x: E[n], A: E[n, m], y: E[m], idx: i64[k], i: i64)
    add s, sum(x) + sum(A[:, 1]) - sum(A.T)
    add d, sum(A) + sum(A[:, 1:5]) + sum(A[3:7, :])
    add s, amin(x) * amax(A[i, :])
    add d, sum(x[0:i]) + A[i, i]
    add g, gather(x, idx)
    add e, scan_left(x) - scan_right(x)
    add e[i], x[0] * y[i]
    add r, A[:, i] * x + y[1]
    sub r, scatter(g, idx, n)
    swap e[0], e[i + 1]
    swap r[0:i], r[i:i + i]
"""


@pytest.mark.parametrize("t", ["f64", "i64", "f32", "fixed"])
def test_arrays_and_indices_by_lane(t: str) -> None:
    program = rvm.assemble(ARRAYS.replace(": E", f": {t}"))
    rng = np.random.default_rng(5)
    dtype = {"f64": np.float64, "i64": np.int64, "f32": np.float32, "fixed": np.int64}[t]
    scale = 2**43 if t == "fixed" else 9

    def some(*shape: int) -> Any:
        return (rng.standard_normal(shape) * scale).astype(dtype)

    lanes = []
    for lane in range(12):
        lanes.append(
            {
                "s": 0,
                "d": 0,
                "g": some(3),
                "e": some(20),
                "r": some(20),
                "x": some(20),
                "A": some(20, 11),
                "y": some(11),
                "idx": np.array([20 if lane == 7 else 3, *rng.integers(0, 20, 2)]),
                "i": int(rng.integers(-1, 11)),
            }
        )
    run = in_lanes(program.program, "f", lanes)
    assert set(run.alone) == set(run.errors) and 7 in run.errors and len(run.errors) < 8
    agree(program.program, "f", lanes, run)
