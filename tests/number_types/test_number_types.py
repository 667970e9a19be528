"""Number types in files of their own: entered, and everything knows them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from number_types import bf16, trop, u16
from rvm_asm import disassemble
from sizes import sample, thin

import rvm
from rvm.codec import decode, encode
from rvm.engines import LAW, executing, having
from rvm.faults import DefinitionError
from rvm.isa import FUNCTIONS, number_type
from rvm.isa.number_types import forget
from rvm.isa.rules import CLASSES
from rvm.numbers import system
from rvm.types import SCALARS, TYPES, Scalar, integer

NEW = {"u16": u16, "bf16": bf16, "trop": trop}


@pytest.fixture(autouse=True, scope="module")
def entered() -> Iterator[None]:
    added = [module for name, module in NEW.items() if name not in TYPES]
    for module in added:
        number_type(module.ROW, module.MAKE)  # type: ignore[attr-defined]
    yield
    for module in added:
        forget(module.ROW.name)  # type: ignore[attr-defined]


def test_a_shipped_integer_is_a_row_and_nothing_else() -> None:
    assert TYPES["u16"] == u16.ROW and u16.MAKE is None


TEXTS = {
    "u16": """
func f(x: u16, y: u16[n], s: stack[u16], k: i64)
    for i = 0 to k - 1
        add x, y[i % n] * (y[(i + 1) % n] + 1) + u16(i * 4099)
        xor y[i % n], x >> 3 | ~x & 5
        rol x, 3
        sub y[(i + 1) % n], x // 7 + x % 11
        swap y[0], y[1]
        push x, s
    end
    add x, sum(y) + u16(y @ y) + amax(y)
    add y, x
""",
    "bf16": """
func f(x: bf16, y: bf16[n], s: stack[bf16], k: i64)
    for i = 0 to k - 1
        add x, y[i % n] * 0.125 + sin(y[(i + 1) % n])
        mul y[i % n], 1.5
        add y[(i + 1) % n], bf16(i) / 64 - exp(-x * x)
        rot x, y[0], 0.25
        div y[0], -3.0
    end
    add x, sum(y) * 0.01 + max(y[0] * 3, amin(y))
    add y, sqrt(abs(x))
""",
    "trop": """
func f(x: trop, y: trop[n], s: stack[trop], k: i64)
    for i = 0 to k - 1
        mul x, y[i % n] + y[(i + 1) % n] * 3
        div y[i % n], x * -2 + y[(i + 1) % n] / 5
        swap y[0], y[1]
    end
    mul x, sum(y) * min(y[0], y[1])
    div y, x
""",
}
VALUES: dict[str, Any] = {
    "u16": (65000, [60000, 3, 77, 41], np.uint16),
    "bf16": (1.0, [0.5, 0.25, 1.0, -0.75], np.float32),
    "trop": (7, [1, -2, 3, 40], np.int64),
}


def inputs(name: str, scale: int = 1) -> dict[str, Any]:
    x, y, dtype = VALUES[name]
    return {"x": x, "y": np.array(y, dtype) * dtype(scale), "s": [], "k": 9}


def plain(result: Any) -> tuple[Any, ...]:
    return result.x, result.y.tobytes(), tuple(result.s)


@thin
@pytest.mark.parametrize("name", NEW)
def test_every_engine_runs_programs_there_and_back(name: str) -> None:
    f = rvm.assemble(TEXTS[name]).f
    want = plain(f(**inputs(name), engine=LAW))
    for engine in executing():
        there = f(**inputs(name), engine=engine)
        assert plain(there) == want, engine
        back = (~f)(**there, engine=engine)
        if SCALARS[name].is_exact:
            assert (back.x, back.y.tolist(), back.s) == (*VALUES[name][:2], [])
        exactly = f(**inputs(name), engine=engine, strict=True)
        assert plain(exactly) == want, engine


@pytest.mark.parametrize("name", NEW)
def test_a_file_of_bytecode_and_a_text_hold_programs(name: str) -> None:
    program = rvm.assemble(TEXTS[name])
    data = program.program if hasattr(program, "program") else program
    assert decode(encode(data)) == data
    again = rvm.assemble(disassemble(data))
    assert plain(again.f(**inputs(name))) == plain(program.f(**inputs(name)))


@thin
@pytest.mark.parametrize("name", NEW)
@pytest.mark.parametrize("engine", having("lanes"))
@sample
def test_lanes_are_single_runs(name: str, engine: str) -> None:
    text = TEXTS[name].replace(f", s: stack[{name}]", "").replace("        push x, s\n", "")
    f = rvm.assemble(text).f
    x, y, dtype = VALUES[name]
    many = np.array([np.array(y, dtype) * dtype(k) for k in range(1, 20)])
    found = f.map(x=x, y=many, k=9, engine=engine)
    for k, row in enumerate(many):
        one = f(x=x, y=row.copy(), k=9, engine=LAW)
        assert found.x[k] == (one.x if not hasattr(one.x, "item") else one.x.item())
        assert found.y[k].tobytes() == one.y.tobytes()


def test_u16_wraps_as_numpy_does() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(0, 1 << 16, 60, np.uint16) for _ in range(2))
    f = rvm.assemble("func f(y: u16[n], a: u16[n], b: u16[n])\n    add y, a * b - (a ^ b) << 3\n").f
    for engine in executing():
        out = f(y=np.zeros(60, np.uint16), a=a, b=b, engine=engine)
        assert np.array_equal(out.y, (a * b - (a ^ b)) << np.uint16(3))


def nearest(value: Any) -> float:
    """A number of mpmath in eight bits: an oracle for numbers that are not small."""
    with mpmath.workprec(8):
        return float(+mpmath.mpf(value))


def test_bf16_rounds_each_result_once() -> None:
    rng = np.random.default_rng(2)
    a, b = (np.array([nearest(v) for v in rng.normal(0, 9, 80)], np.float32) for _ in range(2))
    f = rvm.assemble(
        "func f(p: bf16[n], q: bf16[n], r: bf16[n], a: bf16[n], b: bf16[n])\n"
        "    add p, a * b\n    add q, a / b\n    add r, a + b\n"
    ).f
    zero = {n: np.zeros(80, np.float32) for n in "pqr"}
    for engine in executing():
        out = f(**{n: v.copy() for n, v in zero.items()}, a=a, b=b, engine=engine)
        for k in range(80):
            x, y = mpmath.mpf(float(a[k])), mpmath.mpf(float(b[k]))
            with mpmath.workprec(200):
                exact = x * y, x / y, x + y
            assert (out.p[k], out.q[k], out.r[k]) == tuple(map(nearest, exact)), (engine, k)


def nearest_bf16(x: float) -> float:
    """The nearest bf16 by Python's own rounding, ties to even."""
    if not x:
        return x
    unit = 2.0 ** max(math.frexp(x)[1] - 8, -133)
    found = round(Fraction(x) / Fraction(unit)) * Fraction(unit)
    return math.copysign(math.inf if abs(found) >= 2**128 else float(abs(found)), x)


@pytest.mark.parametrize(
    "value",
    [0.0, -0.0, 2.0**-133, 3 * 2.0**-134, 2.0**-134, 5e-324, 2.0**-126, 3.3895e38, 3.4e38, 1e300],
)
def test_bf16_at_its_edges_is_the_same_on_every_engine(value: float) -> None:
    f = rvm.assemble("func f(y: bf16, x: f64)\n    add y, bf16(x) * 1\n").f
    for sign in (1, -1):
        seen = {repr(f(y=-0.0, x=sign * value, engine=e).y) for e in executing()}
        assert seen == {repr(nearest_bf16(sign * value))}


def test_gradients_of_bf16_are_those_of_f64_but_for_rounding() -> None:
    text = """
func f(e: bf16, x: bf16[n])
    for i = 0 to n - 1
        add e, sin(x[i]) * x[(i + 1) % n]
    end
"""
    x = np.array([0.5, -0.75, 1.25], np.float32)
    want = rvm.assemble(text.replace("bf16", "f64")).f.grad(loss="e", e=0.0, x=x.astype(float)).x
    for engine in executing():
        found = rvm.assemble(text).f.grad(loss="e", e=0.0, x=x, engine=engine).x
        np.testing.assert_allclose(found, want, rtol=0.05, atol=0.02)


def test_trop_finds_longest_paths() -> None:
    """A step of max-plus is a step along the heaviest edge."""
    text = """
func walk(after: trop[n], before: trop[n], w: trop[n, n])
    for i = 0 to n - 1
        mul after[i], sum(w[i] * before)
    end
"""
    rng = np.random.default_rng(3)
    w, before = rng.integers(-50, 50, (5, 5)), rng.integers(-50, 50, 5)
    walk = rvm.assemble(text).walk
    for engine in executing():
        out = walk(after=np.zeros(5, int), before=before, w=w, engine=engine)
        assert np.array_equal(out.after, (w + before).max(axis=1))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (trop.Greedy, "`add` on maxplus cannot be undone: `+` has no inverse"),
        (trop.Lossy, "`add` on maxplus cannot be undone: "),
    ],
)
def test_an_update_without_an_inverse_is_refused_where_the_type_is_entered(
    make: Any, says: str
) -> None:
    with pytest.raises(DefinitionError) as refused:
        number_type(replace(trop.ROW, name="maxplus"), make)
    assert refused.value.code == "D014" and says in refused.value.message
    assert "maxplus" not in TYPES and "maxplus" not in SCALARS
    with pytest.raises(ValueError, match="no type 'maxplus'"):
        Scalar("maxplus")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("add y, x", "accumulates by `mul` and `div`"),
        ("mul y, x - x", "`-` does not take a value of type trop"),
        ("mul y, sin(x)", "does not take a value of type trop"),
        ("mul y, trop(k)", "does not convert to trop"),
        ("add k, i64(x)", "trop does not convert"),
        ("xor y, x", "trop"),
        ("mul y, prod(v)", "does not take a value of type trop"),
        ("mul y, v @ v", "does not"),
    ],
)
def test_what_a_type_does_not_offer_is_refused(line: str, says: str) -> None:
    text = f"func f(y: trop, x: trop, v: trop[n], k: i64)\n    {line}\n"
    with pytest.raises(rvm.AssemblyError) as refused:
        rvm.assemble(text)
    assert says in str(refused.value)


def test_classes_hold_what_a_number_system_offers() -> None:
    held = {name: {c for c, holds in CLASSES.items() if holds(SCALARS[name])} for name in SCALARS}
    assert held["u16"] == held["u32"] and held["bf16"] == held["f32"]
    only = {"any", "exact", "value", "ordered", "multiplies", "multiplied", "analytic"}
    assert held["trop"] == only


@pytest.mark.parametrize(
    "row",
    [
        integer("u8"),
        replace(integer("u16"), name="sin"),
        replace(integer("u16"), name="stack"),
        replace(integer("u16"), name="two words"),
        replace(integer("u16"), name="u17", letter="b"),
        replace(integer("u16"), name="odd", kind="posit"),
        replace(integer("i32"), name="i24", bits=24),
        replace(integer("i32"), name="narrow", llvm="i16"),
        replace(integer("u32"), name="signed", letter="i"),
        replace(integer("i32"), name="swapped", dtype=">i4"),
        replace(integer("i64"), name="rounding", exact=False),
        replace(TYPES["bool"], name="byte", dtype="u1", llvm="i8", letter="B"),
        replace(TYPES["f64"], name="half", dtype="f2", llvm="half", letter="e", bits=16),
        replace(TYPES["f64"], name="other", derivative="none"),
        replace(TYPES["log64"], name="log32", dtype="f4", llvm="float", letter="f", bits=32),
        replace(TYPES["fixed"], name="fixed32", dtype="i4", llvm="i32", letter="i", bits=32),
        replace(TYPES["c128"], name="c64", dtype="c8", llvm="float", letter="f", bits=64),
    ],
    ids=lambda row: row.name,
)
def test_rows_that_are_wrong_are_refused(row: Any) -> None:
    with pytest.raises(DefinitionError) as refused:
        number_type(row)
    assert refused.value.code == "D014"


@pytest.mark.parametrize("name", ["i8", "i16"])
def test_other_integers_are_rows(name: str) -> None:
    bits = SCALARS[name].bits
    text = TEXTS["u16"].replace("u16", name).replace("4099", "99")
    f = rvm.assemble(text).f
    dtype = system(SCALARS[name]).dtype
    given = {"x": -(1 << bits - 1), "k": 9}
    y = np.array([5, -128, 127, 3], dtype)
    want = plain(f(**given, s=[], y=y.copy(), engine=LAW))
    for engine in executing():
        there = f(**given, s=[], y=y.copy(), engine=engine)
        assert plain(there) == want
        back = (~f)(**there, engine=engine)
        assert back.x == given["x"] and np.array_equal(back.y, y)


@pytest.mark.parametrize("name", NEW)
def test_a_storage_row_is_numpy_s(name: str) -> None:
    row = TYPES[name]
    assert system(SCALARS[name]).dtype.itemsize == row.bytes
    # The conversion of a type that is entered is made on demand.
    assert name in FUNCTIONS and (name in list(FUNCTIONS)) == (name == "u16")


def test_machine_code_of_a_new_type_is_not_kept() -> None:
    """Nothing tells whether a type of this name is the same in another process."""
    from rvm.engines.native.keys import fingerprint

    lines = ("x: u16", "x: bf16", "x: f64 | f64(bf16(x))"), (True, False, False)
    for line, kept in zip(*lines, strict=True):
        params, _, value = line.partition(" | ")
        text = f"func f({params}, y: {params[3:]})\n    add y, {value or 'x'}\n"
        program = rvm.assemble(text)
        assert bool(fingerprint(getattr(program, "program", program))) == kept
