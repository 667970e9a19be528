"""Of an array that is brought back and lives on only what code changes of it is copied."""

from __future__ import annotations

from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from sizes import first_and_another, sample, sized, thin

import rvm
from rvm.engines import executing
from rvm.run.machine import Machine
from rvm.state import Options

ENGINES = executing(loops=False)
HELPERS = """
func shrink(x: f64)
    for i = 1 to 60
        mul x, 0.5
        add x, 0.3
    end

func at(x: f64[n], k: i64)
    call shrink(x[k])

func diagonal(x: f64[n, m], k: i64)
    call at(x[k, :], k)

func next(x: f64[n], k: i64)
    call at(x, k + 1)
"""
CHANGES = {
    "element": "call shrink(x[k])",
    "two elements": "call shrink(x[k]); call shrink(x[j])",
    "callee": "call at(x, k)",
    "index of an index": "call shrink(x[p[k]])",
    "computed index": "call next(x, k - 1)",
    "slice": "mul x[k : k + 2], 1e-30; add x[k : k + 2], 0.3",
    "loop": "for i = 1 to 60; mul x[k], 0.5; add x[k], 0.3; end",
    "choice": "if k > 0; call shrink(x[k]); end",
    "row": "mul x[k, :], 1e-30; add x[k, :], 0.3",
    "chain": "call shrink(x[k, :][j])",
    "callees": "call diagonal(x, k)",
    "part": "call shrink(x[k].re)",
}
RANKS = {"row": 2, "chain": 2, "callees": 2}


@cache
def program(form: str) -> rvm.Library:
    t = "c128[n]" if form == "part" else "f64[n, m]" if form in RANKS else "f64[n]"
    lines = "\n        ".join(CHANGES[form].split("; "))
    total = "sum(real(x))" if form == "part" else "sum(x)"
    power = "sum(real(x * x * x))" if form == "part" else "sum(x * x * x)"
    return rvm.assemble(f"""{HELPERS}
func f(y: f64, x: {t}, k: i64, j: i64, p: i64[q])
    routine r
        {lines}
    end
    add y, {total}
    undo r
    add y, {power}
""")


def given(form: str, n: int = 6) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(n, n) if form in RANKS else n)
    if form == "part":
        x = x + 1j * rng.normal(size=n)
    return {"y": 0.0, "x": x, "k": 1, "j": 4, "p": np.array([2, 3, 1])}


def wanted(form: str, x: Any) -> tuple[float, Any]:
    """The value, and its gradient by x, of what shrinks to 0.6 or to 0.3 with no slope."""
    hit, to = np.zeros(x.shape, bool), 0.6
    match form:
        case "two elements":
            hit[[1, 4]] = True
        case "index of an index":
            hit[3] = True
        case "slice":
            hit[1:3], to = True, 0.3
        case "row":
            hit[1], to = True, 0.3
        case "chain":
            hit[1, 4] = True
        case "callees":
            hit[1, 1] = True
        case _:
            hit[1] = True
    y = mpmath.fsum(np.where(hit, to, x.real).ravel()) + mpmath.fsum((x**3).real.ravel())
    square = 3 * np.conj(x * x)
    return float(y), np.where(hit, square, 1 + square)


@thin
@pytest.mark.parametrize("form", CHANGES)
@sized
def test_what_is_brought_back_is_what_it_was_and_so_are_gradients(form: str) -> None:
    f = program(form).f
    before = given(form)["x"].tobytes()
    want, slope = wanted(form, given(form)["x"])
    for engine in first_and_another(ENGINES, form):
        for strict in (False, True):
            options = {"engine": engine, "strict": strict}
            out = f(**given(form), **options)
            assert out.x.tobytes() == before, (engine, strict)
            assert out.y == pytest.approx(want, rel=1e-13)
            back = (~f)(out) if strict else (~f)(**out, **options)
            assert back.x.tobytes() == before
            assert back.y == 0.0 if strict else abs(back.y) < 1e-14
    found = f.grad(**given(form), loss="y").x
    assert found == pytest.approx(slope, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("form", CHANGES)
def test_memory_is_that_of_the_part(form: str) -> None:
    """Whatever the array's length is: a row has that of a row."""
    more = []
    for n in (6, 60):
        at = given(form, n)
        held = at["x"].nbytes
        m = Machine.start(program(form).program, "f", at, Options())
        before = m.state.account.live_bytes
        assert before >= held
        m.run()
        row = held // n if form == "row" else 0
        more.append(m.state.account.peak_bytes - before - row)
    assert more[0] == more[1]


def test_parts_that_lie_on_each_other() -> None:
    f = program("two elements").f
    for k, j in [(0, 0), (5, 5), (2, 3)]:
        at = given("two elements") | {"k": k, "j": j}
        before = at["x"].copy()
        out = f(**at)
        assert out.x.tobytes() == before.tobytes()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("strict", [False, True])
@sample
def test_an_index_that_is_never_used_may_be_anything(engine: str, strict: bool) -> None:
    lib = rvm.assemble("""
func f(y: f64, x: f64[n], k: i64, m: i64)
    routine r
        for i = 1 to m
            mul x[k], 1e-30
            add x[k], 0.3
        end
    end
    add y, sum(x)
    undo r
    add y, sum(x)
""")
    f = lib.f.with_options(engine=engine, strict=strict)
    for k in (-1, 3, 1 << 62):
        assert f(y=0.0, x=np.ones(3), k=k, m=0).y == 6.0
        with pytest.raises(rvm.MachineError, match="R003"):
            f(y=0.0, x=np.ones(3), k=k, m=1)
    assert f(y=0.0, x=np.ones(3), k=1, m=1).x.tolist() == [1.0] * 3


WHOLE = {
    "its index is changed": "mul x[k], 1e-30; add k, 1",
    "its index is an ancilla": "for i = 0 to n - 1; mul x[i], 1e-30; add x[i], 0.3; end",
    "a callee changes all of it": "call all(x)",
    "a callee that calls itself": "call again(x, k)",
}


@pytest.mark.parametrize("what", WHOLE)
def test_all_of_it_is_copied_where(what: str) -> None:
    lines = "\n        ".join(WHOLE[what].split("; "))
    lib = rvm.assemble(f"""
func all(x: f64[n])
    mul x, 1e-30
    add x, 0.3

func again(x: f64[n], k: i64)
    mul x[k], 1e-30
    add x[k], 0.3
    if k > 0
        call again(x, k - 1)
    end

func f(y: f64, x: f64[n], k: i64)
    routine r
        {lines}
    end
    add y, sum(x)
    undo r
    add y, sum(x)
""")
    x = np.random.default_rng(1).normal(size=5)
    out = lib.f(y=0.0, x=x.copy(), k=2)
    assert out.x.tobytes() == x.tobytes()
    assert any(r.name == "x.kept" and r.dims for r in lib.program.function("f").registers)


PASSED = {
    "a sum": "call there(y, x + b)",
    "a product": "call there(y, 3.1 * x)",
    "a place": "add x, b; call there(y, x); sub x, b",
    "through another": "add x, b; call through(y, x); sub x, b",
    "an element": "mul z[k], b; call there(y, z[k]); div z[k], b",
    "in a loop": "for i = 0 to n - 1; call there(y, z[i] + b); end",
}


@thin
@pytest.mark.parametrize("way", PASSED)
def test_what_a_call_leaves_as_it_was_is_left_so_around_it(way: str) -> None:
    lines = "\n    ".join(PASSED[way].split("; "))
    lib = rvm.assemble(f"""{HELPERS}
func there(y: f64, x: f64)
    call shrink(x)
    add y, x
    uncall shrink(x)

func through(y: f64, x: f64)
    mul x, 1.7
    call there(y, x)
    div x, 1.7

func f(y: f64, x: f64, b: f64, z: f64[n], k: i64)
    {lines}
""")
    rng = np.random.default_rng(5)
    for engine in ENGINES:
        f = lib.f.with_options(engine=engine)
        for _ in range(20):
            x, b = (rng.normal(size=2) * 2.0 ** rng.integers(-20, 20, 2)).tolist()
            z = rng.normal(size=3)
            out = f(y=0.0, x=x, b=b, z=z.copy(), k=1)
            assert (out.x, out.z.tobytes()) == (x, z.tobytes())
            assert out.y == pytest.approx(0.6 * (3 if way == "in a loop" else 1))
            assert out.info.drift == 0.0
