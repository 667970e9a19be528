"""What a result says of rounding: the same on every engine and by every way to a result."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from sizes import some, wide

import rvm
from rvm.engines import executing
from rvm.run.results import Info

LIB = rvm.assemble("""
func unordered(x: f64, y: f64, out: f64)      ; t is taken back in another order
    alloc t: f64
    add t, x
    add t, y
    add out, t
    sub t, x
    sub t, y
    free t

func many(x: f64[n], y: f64, out: f64)
    for i = 0 to n - 1
        alloc t: f64
        add t, x[i]
        add t, y
        add out, t
        sub t, x[i]
        sub t, y
        free t
    end

func arrays(x: f64[n], y: f64, out: f64)
    alloc t: f64[n]
    add t, x
    add t, y
    add out, sum(t)
    sub t, x
    sub t, y
    free t

func passes(x: f64, y: f64, out: f64)
    call there_and_back(abs(x + y), y, out)

func there_and_back(t: f64, y: f64, out: f64)
    add t, y
    add t, 0.7
    add out, t
    sub t, y
    sub t, 0.7

func exact(info: i64, erased_bits: i64)
    add info, erased_bits

record Point
    info: f64
    drift: f64
end

func of_records(p: Point)
    add p.info, p.drift
""")
X, Y = 2.3, 0.7
MANY = np.random.default_rng(7).uniform(0.1, 9, 3_000)


def expected(x: float, y: float) -> tuple[int, float]:
    """The bits that `unordered` erases, and its drift: of ε n S, with n = 4 and S = x + y."""
    left = x + y - x - y
    return 64 * (left != 0), abs(left) / (2.0**-52 * 4 * (x + y))


def told(result: Any) -> tuple[int, float]:
    return result.info.erased_bits, pytest.approx(result.info.drift, rel=1e-12)


@pytest.mark.parametrize("engine", executing())
@some
def test_a_result_says_what_rounding_did(engine: str) -> None:
    lib = rvm.Library(LIB)
    each = [expected(x, Y) for x in MANY]
    bits, worst = sum(b for b, _ in each), max(d for _, d in each)
    assert bits and worst
    given = {"y": Y, "out": 0.0, "engine": engine}
    for x in MANY[:5].tolist():
        for _ in range(2):
            assert told(lib.unordered(x=x, **given)) == expected(x, Y)
    assert told(lib.many(x=MANY, **given)) == (bits, worst)
    found = lib.arrays(x=MANY, **given).info
    largest = MANY.max() + Y
    worst_left = max(abs(x + Y - x - Y) for x in MANY)
    assert found.erased_bits == bits
    assert found.drift == pytest.approx(worst_left / (2.0**-52 * 4 * largest))
    mapped = lib.unordered.map(x=MANY, **given)
    assert told(mapped) == (bits, worst) and mapped.erased_bits.sum() == bits
    short = lib.unordered.map(x=MANY[:3], **given)
    assert told(short) == (sum(b for b, _ in each[:3]), max(d for _, d in each[:3]))


@pytest.mark.parametrize("engine", executing())
@some
def test_what_calls_were_passed_counts(engine: str) -> None:
    f = LIB.passes.with_options(engine=engine)
    seen = set()
    for x in MANY[:200].tolist():
        t = x + Y
        back = t + Y + 0.7 - Y - 0.7
        info = f(x=x, y=Y, out=0.0).info
        assert info.erased_bits == 64 * (back != t)
        assert info.drift == pytest.approx(abs(back - t) / (64 * 2.0**-52 * max(t, back)))
        seen.add(info.drift > 0)
    assert seen == {True, False}
    info = f.map(x=MANY[:200], y=Y, out=0.0).info
    singles = [f(x=x, y=Y, out=0.0).info for x in MANY[:200].tolist()]
    assert info == Info.of(*singles)


@wide
@pytest.mark.parametrize("engine", executing())
@some
def test_derivatives_report_it_of_all_their_runs(engine: str) -> None:
    f = LIB.unordered.with_options(engine=engine)
    given = {"x": X, "y": Y, "out": 0.0}
    there, back = f(**given), (~f)(**f(**given))
    both = Info.of(there.info, back.info)
    found = [f.grad(loss="out", **given) for _ in range(2)]
    pull = f.pullback(**given)
    assert pull.result.info == there.info
    found.append(f.vjp({"out": 1.0}, **given))
    assert all(g.info.drift == both.drift for g in found), both
    assert len({g.info for g in found}) == 1
    values, tangents = f.jvp({"x": 1.0}, **given)
    assert values.info.drift == tangents.info.drift == there.info.drift
    mapped = f.map.grad(loss="out", x=MANY, y=Y, out=0.0)
    singles = [f.grad(loss="out", x=x, y=Y, out=0.0).info for x in MANY[:40].tolist()]
    few = f.map.grad(loss="out", x=MANY[:40], y=Y, out=0.0)
    assert few.info.drift == Info.of(*singles).drift
    assert mapped.info.drift >= few.info.drift > 0
    for method in ("taylor", "forward-over-reverse"):
        assert f.hessian(loss="out", method=method, **given).info.drift >= both.drift
    assert f.jacobian(**given).info.drift >= there.info.drift
    assert f.hvp({"x": 1.0}, loss="out", **given).info.drift >= both.drift


def test_lanes_that_fail_do_not_count() -> None:
    lib = rvm.assemble("""
func f(x: f64, y: f64)
    alloc t: f64
    add t, x
    add t, 0.7
    sub t, x
    sub t, 0.7
    free t
    alloc u: f64 = x
    add u, y
    free u = x
""")
    x, y = MANY[:200].copy(), np.zeros(200)
    y[3] = 1.0
    for engine in executing():
        found = lib.f.map.with_options(engine=engine, on_error="return")(x=x, y=y)
        assert list(found.errors) == [3]
        each = [expected(v, 0.7) for k, v in enumerate(x) if k != 3]
        assert told(found) == (sum(b for b, _ in each), max(d for _, d in each)), engine


@pytest.mark.parametrize("engine", executing())
@some
def test_parameters_of_the_names_stay_parameters(engine: str) -> None:
    for _ in range(2):
        out = LIB.exact(info=3, erased_bits=4, engine=engine)
        assert dict(out) == {"info": 7, "erased_bits": 4} and out.erased_bits == 4
        assert out["info"] == 7 and out.info == Info(0, 0.0)
        assert "info" in out and list(out) == ["info", "erased_bits"]
    point = LIB.of_records(p={"info": 1.0, "drift": 2.0}, engine=engine)
    assert point.p.info == 3.0 and point.p.drift == 2.0 and point.info == Info(0, 0.0)
    with pytest.raises(AttributeError, match="no `info`"):
        _ = type(point.p)({"x": 1}).info


@pytest.mark.parametrize("engine", executing())
@some
def test_it_is_not_an_item_and_survives_copies(engine: str) -> None:
    for out in (
        LIB.unordered(x=X, y=Y, out=0.0, engine=engine),
        LIB.unordered.grad(loss="out", x=X, y=Y, out=0.0, engine=engine),
        LIB.unordered.map(x=MANY, y=Y, out=0.0, engine=engine),
    ):
        copies = [pickle.loads(pickle.dumps(out)), copy.copy(out), copy.deepcopy(out)]
        assert [c.info for c in copies] == [out.info] * 3 and out.info.drift
        assert "info" not in out and "info" not in dict(out)
    plain = LIB.unordered(x=X, y=Y, out=0.0, engine=engine)
    assert plain == dict(plain) and "info" not in repr(plain)
    with pytest.raises(AttributeError):
        plain.info.drift = 1.0
