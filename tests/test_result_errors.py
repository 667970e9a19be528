"""The estimate of how far a call's results are off: against mpmath, and as a result."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from rvm_tools.isa_page import members
from sizes import thin
from undone import WAYS, Undone, program

import rvm
from rvm.engines import executing

ENGINES = [e for e in executing() if e != "native"]
"""Those that need not compile code for each of some runs."""


def assert_told(h: Undone) -> None:
    """No result is further off than ten times its estimate."""
    truth = h.truth()
    out = h.function()(**h.arguments(), error=True, tolerance=math.inf)
    for k, exact in truth.items():
        if math.isfinite(out[k]):
            assert 0.1 * float(abs(out[k] - exact)) <= out.info.error[k], (h.text(), k, out[k])
        assert out.info.error[k] > 0 or out[k] == exact


@thin
@pytest.mark.parametrize("seed", range(20))
def test_no_result_is_further_off_than_ten_times_its_estimate(seed: int) -> None:
    assert_told(program(seed))


@pytest.mark.deep
def test_estimates_of_two_hundred_programs() -> None:
    for seed in range(200):
        assert_told(program(seed))


LIBRARY = rvm.assemble("""
record P
    a: f64
    z: c128
    k: i64
end

func half(x: f64)
    mul x, 0.5
    add x, 0.3

func double(x: f64)
    sub x, 0.3
    div x, 0.5

func lost(y: f64, x: f64, n: i64)
    for i = 1 to n
        call half(x)
    end
    add y, x
    for i = 1 to n
        call double(x)
    end

func mixed(p: P, x: f64[n], s: stack[f64], w: f32, y: f64)
    mul p.a, 1.1
    add p.k, i64(p.a * 1e17)
    add x[0], sin(x[1])
    add w, f32(p.a)
    alloc t: f64
    pop t, s
    add t, p.z.re / 3.0
    push t, s
    free t
    mul p.z, 1.1

func endless(x: f64, k: i64)
    from k == 0
        mul x, 3.0
        add k, 1
    until x == 8.100000000000001 or k > 1_000_000
    extern forward
        callback seen, x
    end

func given(error: f64, y: f64)
    add y, error * 1.1
""")
AT = {"y": 0.0, "x": 1.1, "n": 60}


@pytest.mark.parametrize("engine", ENGINES)
def test_an_error_is_a_result_of_the_same_form(engine: str) -> None:
    f = LIBRARY.mixed.with_options(engine=engine)

    def at() -> dict[str, Any]:
        p = {"a": 1.0 / 3.0, "z": 1 + 1j, "k": 0}
        return {"p": p, "x": np.array([1.0, 2.0, 3.0]), "s": [1.0, 2.5], "w": 0.1, "y": 5.0}

    plain = f(**at())
    assert plain.info.error is None
    given = at()
    out = f(**given, error=True)
    assert out.x is given["x"] and given["s"] == out.s
    assert all(np.array_equal(out[k], plain[k]) for k in "xswy") and out.p == plain.p
    error = out.info.error
    assert list(error) == list(out) and list(error.p) == ["a", "z", "k"]
    assert 0 < error.p.a < 1e-14 and type(error.p.z) is float and 0 < error.p.z < 1e-14
    # An integer that depends on rounding is told, and what nothing rounds is exact.
    assert error.p.k > 1 and error.y == 0 and error.s[0] == 0
    assert error.x.tolist()[1:] == [0, 0] and 0 < error.x[0] < 1e-14
    assert 0 < error.s[1] < 1e-14 and 1e-9 < error.w < 1e-6
    assert pickle.loads(pickle.dumps(out)).info.error.p == error.p


def test_the_option_is_taken_wherever_derivatives_take_it() -> None:
    f = LIBRARY.lost.with_options(error=True)
    out, ordinary = f(**AT), LIBRARY.lost(**AT)
    assert out == ordinary and abs(out.x - 1.1) <= 10 * out.info.error.x
    # In strict mode the values are the same, and the way back by the log is exact.
    strict = f(**AT, strict=True)
    assert strict == out and strict.info.error == out.info.error
    assert (~f)(strict) == AT and (~f)(strict).info.error == {"y": 0, "x": 0, "n": 0}
    back = (~f)(**out)
    assert abs(back.x - 1.1) <= 10 * back.info.error.x
    # A parameter called so stays one.
    given = LIBRARY.given(error=3.0, y=0.0)
    assert given.info.error is None
    assert 0 < LIBRARY.given.with_options(error=True)(error=3.0, y=0.0).info.error.y < 1e-14
    short = {"y": 0.0, "x": 1.1, "n": 5}
    values, tangents = f.jvp({"x": 1.0}, short)
    assert values.info.error == f(**short).info.error and 0 < tangents.info.error.x < 1e-14
    assert LIBRARY.lost.jvp({"x": 1.0}, short)[0].info.error is None
    for found in (f.jacobian(short), f.hessian(short, loss="y"), f.grad(short, loss="y")):
        assert "error" in vars(found.info.judge)
    for made in (f.machine, lambda **at: rvm.Machine(LIBRARY, "lost", **at, error=True)):
        with pytest.raises(rvm.UsageError) as caught:
            made(**AT)
        assert caught.value.code == "U004"


@pytest.mark.parametrize("engine", ENGINES)
def test_errors_of_lanes_are_those_of_single_calls(engine: str) -> None:
    f = LIBRARY.lost.with_options(engine=engine, error=True)
    xs, ns = np.array([1.1, 0.6, 2.0]), np.array([10, 20, 60])
    found = f.map(y=0.0, x=xs, n=ns)
    singles = [f(y=0.0, x=x, n=n) for x, n in zip(xs.tolist(), ns.tolist(), strict=True)]
    for k in ("x", "y", "n"):
        assert found.info.error[k].tolist() == [s.info.error[k] for s in singles]
    assert LIBRARY.lost.map(y=0.0, x=xs, n=ns).info.error is None
    mixed = LIBRARY.mixed.with_options(engine=engine)
    one = {"p": {"a": 0.3, "z": 1j, "k": 0}, "s": [1.0, 2.5], "w": 0.1, "y": 5.0}
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    lanes = mixed.map(**one, x=x, error=True).info.error
    for lane in range(2):
        single = mixed(**one | {"s": [1.0, 2.5]}, x=x[lane].copy(), error=True).info.error
        assert lanes.x[lane].tolist() == single.x.tolist() and lanes.s[lane] == single.s
        assert lanes.p.a[lane] == single.p.a and lanes.p.z[lane] == single.p.z


def test_what_other_roundings_do_not_end_may_be_off_by_anything() -> None:
    """And what a program tells others is told once."""
    seen: list[float] = []
    at = {"x": 0.1, "k": 0, "callbacks": {"seen": seen.append}}
    out = LIBRARY.endless(**at, error=True)
    assert out.info.error.x == math.inf and len(seen) == 1
    lanes = LIBRARY.endless.map(x=np.array([0.1, 0.1]), k=0, callbacks=at["callbacks"], error=True)
    assert lanes.info.error.x.tolist() == [math.inf] * 2


def test_a_failed_estimate_leaves_arguments_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rvm.derive.result_errors.run_errors", interrupted)
    f, x = rvm.assemble("func f(x: f64[n])\n    add x, 1.5\n").f, np.array([1.0, 2.0])
    with pytest.raises(KeyboardInterrupt):
        f(x=x, error=True)
    assert x.tolist() == [1.0, 2.0]


SUMS = {
    "sum(x)": False,
    "dot(x, z)": True,
    "x @ z": True,
    "sum(matvec(outer(o, x), z))": True,
    "sum(matmul(outer(o, x), outer(z, o)))": True,
    "sum(select(last, scan_left(x), 0 * x))": False,
    "sum(scatter(x, k, 1))": False,
    "sum(sum_like(outer(x, o), o))": False,
}
"""Sums of `x`, or of products of `x` and `z`, where `o` is the vector of a 1."""


@thin
@pytest.mark.parametrize("t", members("inexact"))
@pytest.mark.parametrize("call", SUMS)
def test_partial_sums_round_too(call: str, t: str) -> None:
    """Sums that cancel, against fractions; whole numbers, in any unit, have no error."""
    head = f"y: {t}, x: {t}[n], z: {t}[n], o: {t}[1], k: i64[n], last: bool[n]"
    f = rvm.assemble(f"func f({head})\n    add y, {call}\n").f.with_options(error=True)
    rng = np.random.default_rng(len(call))
    dtype = {"f64": np.float64, "f32": np.float32, "c128": np.complex128}[t]

    def run(x: Any, z: Any) -> Any:
        k, last = np.zeros(len(x), np.int64), np.arange(len(x)) == len(x) - 1
        one = {"o": np.ones(1, dtype), "k": k, "last": last, "y": dtype(0).item()}
        return f(x=x.astype(dtype), z=z.astype(dtype), **one)

    for spread in (0, 4, 16):
        some = rng.normal(size=20) * 10 ** rng.uniform(0, spread, 20)
        x = np.concatenate([some, -some, rng.normal(size=7)])
        rng.shuffle(x)
        z = 10 ** rng.uniform(-3, 3, 47) if SUMS[call] else np.ones(47)
        x, z = (x / z).astype(dtype), z.astype(dtype)
        got = run(x, z)
        pairs = zip(x.real.tolist(), z.real.tolist(), strict=True)
        exact = sum(Fraction(a) * Fraction(b) for a, b in pairs)
        assert abs(Fraction(complex(got.y).real) - exact) <= 2 * Fraction(got.info.error.y)
        assert 0 < got.info.error.y <= 1e-5 * np.abs(x).sum() * np.abs(z).max()
    # A product is taken to round.
    for unit in () if "outer" in call else (1.0, 2.0**-40, 2.0**20):
        x, z = unit * rng.integers(-99, 99, 40), rng.integers(-99, 99, 40)
        x = np.concatenate([x, -x])
        got = run(x, np.concatenate([z, z]) if SUMS[call] else np.ones(80))
        assert got.y == 0 and got.info.error.y == 0


def test_each_way_is_among_the_sample() -> None:
    assert {program(seed).way for seed in range(20)} == set(WAYS)
