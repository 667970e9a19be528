"""`x ** 2` is `x * x` and `x ** -1` is `1 / x`, to the bit: in lanes, arrays and loops, too."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from rvm_tools.isa_page import members
from sizes import wide

import rvm
from rvm.engines import executing
from rvm.expr import Apply, walk
from rvm.image import image_of
from rvm.isa.implementation import value
from rvm.stmt import Update
from rvm.types import F64

pytest.importorskip("llvmlite")

ENGINES = executing()
TEXT = """
func written(y: {t}, x: {t})
    add y, x ** 2

func given(y: {t}, x: {t}, k: {t})
    add y, x ** k

func whole(y: {t}, x: {t}, k: i64)
    add y, x ** k

func arrays(y: {t}[n], x: {t}[n])
    add y, x ** 2

func looped(y: {t}[n], x: {t}[n])
    for i = 0 to n - 1
        add y[i], x[i] ** 2
    end
"""
EDGES = [0.0, -0.0, 1.0, -1.5, 1e-200, -1e-160, 1e200, 1.5e154, math.inf, -math.inf, math.nan]


def numbers(t: str) -> list[float]:
    rng = np.random.default_rng(5)
    many = (rng.uniform(-2, 2, 40_000) * 2.0 ** rng.integers(-30, 30, 40_000)).tolist()
    # Those of which C's own power is another number come first.
    power = value("**", (F64, F64))
    many.sort(key=lambda x: power(x, 2.0) == x * x and math.pow(x, 2.0) == x * x)
    found = [*EDGES, *many[:2_000]]
    return [float(np.float32(x)) for x in found] if t == "f32" else found


@wide
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("k", [2, -1])
@pytest.mark.parametrize("t", members("float"))
def test_plain_powers_of_floats_are_arithmetic_on_every_engine(t: str, k: int) -> None:
    program, xs = rvm.assemble(TEXT.replace("** 2", f"** {k}").format(t=t)), numbers(t)
    dtype = np.dtype(np.float32 if t == "f32" else np.float64)
    with np.errstate(all="ignore"):
        many = np.array(xs, dtype)
        want = 0 + (many * many if k == 2 else 1 / many)
    for engine in ENGINES:
        for name in ("arrays", "looped"):
            out = program[name](y=np.zeros_like(many), x=many, engine=engine).y
            assert np.array_equal(out, want, equal_nan=True), (engine, name)
        f = {n: program[n].with_options(engine=engine) for n in program}
        for x, y in list(zip(xs, want.tolist(), strict=True))[:150]:
            found = f["written"](y=0.0, x=x).y
            assert found == y or (found != found and y != y), (engine, x)
            powers = f["given"](y=0.0, x=x, k=float(k)).y, f["whole"](y=0.0, x=x, k=k).y
            for power in powers:
                assert power == pytest.approx(y, rel=3e-16 if t == "f64" else 1e-7, nan_ok=True)
        out = f["written"].map(y=np.zeros_like(many), x=many).y
        assert np.array_equal(out, want, equal_nan=True), engine


@pytest.mark.parametrize("t", members("int"))
def test_squares_of_integers_wrap_as_products_do(t: str) -> None:
    program = rvm.assemble(TEXT.format(t=t).replace("k: i64", f"k: {t}"))
    bits = int(t[1:])
    low = -(1 << bits - 1) if t[0] == "i" else 0
    xs = sorted(
        {low, low + 1, 0, 1, 2, 3, (1 << bits // 2) - 1, 1 << bits // 2, low + (1 << bits) - 1}
    )
    for engine, x in itertools.product(ENGINES, xs):
        want = (x * x - low) % (1 << bits) + low
        found = (
            program.written(y=0, x=x, engine=engine).y,
            program.given(y=0, x=x, k=2, engine=engine).y,
        )
        assert found == (want, want), (engine, x)


def test_other_powers_are_the_same_too() -> None:
    program = rvm.assemble(TEXT.format(t="f64"))
    for k in (3.0, 0.5, -2.0, 1.9999999999999998):
        for x in (1.7, 2.5e-3, 123.456):
            found = {program.given(y=0.0, x=x, k=k, engine=engine).y for engine in ENGINES}
            assert len(found) == 1
            assert found.pop() == pytest.approx(math.pow(x, k), rel=1e-15)


@pytest.mark.parametrize("k", [2, -1])
def test_no_engine_is_given_a_plain_power_to_compute(k: int) -> None:
    image = image_of(rvm.assemble(TEXT.replace("** 2", f"** {k}").format(t="f64")).program)
    for name in ("written", "arrays", "looped"):
        for undo in (False, True):
            code = image.code(name, undo)
            values = [
                s.value for pc in range(len(code)) for s in code.stmts(pc) if isinstance(s, Update)
            ]
            assert not any(isinstance(n, Apply) and n.fn == "**" for v in values for n in walk(v))


def test_gradients_of_squares() -> None:
    program = rvm.assemble(TEXT.format(t="f64"))
    for engine in ENGINES:
        f = program.written.with_options(engine=engine)
        assert f.grad(loss="y", y=0.0, x=1.7).x == 3.4
        assert f.hessian(loss="y", y=0.0, x=1.7)["x"]["x"] == 2.0


def test_gradients_of_reciprocals() -> None:
    """-1 / x ** 2 and 2 / x ** 3, by exact fractions; nothing is NaN where they are too large."""
    program = rvm.assemble(TEXT.replace("** 2", "** -1").format(t="f64"))
    for engine in ENGINES:
        f = program.written.with_options(engine=engine)
        for x in (1.7, -3e-5, 123.456, 1e100):
            exact = Fraction(x)
            first = f.grad(loss="y", y=0.0, x=x).x
            second = f.hessian(loss="y", y=0.0, x=x)["x"]["x"]
            assert first == pytest.approx(float(-1 / exact**2), rel=4e-16)
            assert second == pytest.approx(float(2 / exact**3), rel=8e-16)
        assert f.grad(loss="y", y=0.0, x=1e-200).x == -math.inf
        assert f.grad(loss="y", y=0.0, x=1e300).x == 0
        assert f.hessian(loss="y", y=0.0, x=1e-200)["x"]["x"] == math.inf
        assert f.hessian(loss="y", y=0.0, x=1e300)["x"]["x"] == 0


def test_code_that_is_kept_by_its_text_knows_its_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of either sign are the same instructions; what comes of them is read by type."""
    monkeypatch.setattr("rvm.engines.native.keys.environment", lambda: "")
    for t, want in (("i8", -31), ("u8", 225), ("i8", -31)):
        program = rvm.assemble(f"func f(y: {t}, x: {t})\n    add y, x ** 2\n")
        assert program.f(0, 15, engine="native").y == want
