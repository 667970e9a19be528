"""What is brought back and lives on is what it was, to the bit, whatever the code between does."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from rvm_asm.disassemble import disassemble
from sizes import sample, wide

import rvm
from rvm.codec import encode
from rvm.engines import executing
from rvm.faults import InvertibilityError

ENGINES = executing(loops=False)
SHRINK = """
func shrink(x: f64, p: f64, n: i64)
    for i = 1 to n
        mul x, 0.5
        add x, 0.3 * p
        add x, 0.1 * sin(p)
    end
"""
FORMS = {
    "call": "call shrink(x, p, n)",
    "routine": """routine r
        for i = 1 to n
            mul x, 0.5
            add x, 0.3 * p
            add x, 0.1 * sin(p)
        end
    end""",
}
UNDOES = {"call": "uncall shrink(x, p, n)", "routine": "undo r"}


def source(form: str, where: str) -> str:
    """A function that contracts x, reads it, undoes that, and goes on to use x."""
    ancilla = where == "an ancilla"
    name = "z" if ancilla else "x"
    begin, end = ("alloc x: f64 = z", "free x = z") if ancilla else ("", "")
    return f"""{SHRINK}
func f(y: f64, {name}: f64, p: f64, n: i64)
    {begin}
    {FORMS[form]}
    add y, x ** 2
    {UNDOES[form]}
    add y, x ** 3
    {end}
"""


def value(x: Any, p: Any, n: int) -> Any:
    """The same in 60 digits."""
    shrunk = mpmath.mpf(x)
    for _ in range(n):
        shrunk = shrunk / 2 + mpmath.mpf("0.3") * p + mpmath.mpf("0.1") * mpmath.sin(p)
    return shrunk**2 + mpmath.mpf(x) ** 3


WAYS = [(f, w) for f in FORMS for w in ("a parameter", "an ancilla")]


@pytest.mark.parametrize(("form", "where"), WAYS)
@pytest.mark.parametrize("strict", [False, True])
@sample
def test_values_and_derivatives_are_right(form: str, where: str, strict: bool) -> None:
    """Of a run that contracts by 2**60 and undoes it, in any mode."""
    f = rvm.assemble(source(form, where)).f.with_options(strict=strict)
    name = "z" if where == "an ancilla" else "x"
    at = {"y": 0.0, name: 1.1, "p": 0.7, "n": 60}
    with mpmath.workdps(60):
        want = float(value(1.1, 0.7, 60))
        slopes = {
            name: float(mpmath.diff(lambda x: value(x, 0.7, 60), 1.1)),
            "p": float(mpmath.diff(lambda p: value(1.1, p, 60), 0.7)),
        }
    out = f(**at)
    assert out.y == pytest.approx(want, rel=1e-14)
    assert out[name] == 1.1
    jacobian = f.jacobian(of=["y"], **at).y
    for k, slope in slopes.items():
        assert jacobian[k] == pytest.approx(slope, rel=1e-12)
        assert f.jvp({k: 1.0}, **at)[1].y == pytest.approx(slope, rel=1e-12)
    try:
        gradient = f.grad(loss="y", **at)
    except InvertibilityError as error:
        assert error.code == "R017"
        assert not strict
    else:
        for k, slope in slopes.items():
            assert gradient[k] == pytest.approx(slope, rel=1e-12)
            assert abs(gradient[k] - slope) <= 10 * gradient.info.error[k]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("strict", [False, True])
@sample
def test_runs_come_back_and_turn_anywhere(engine: str, strict: bool) -> None:
    program = rvm.assemble(source("routine", "a parameter"))
    at = {"y": 0.25, "x": 1.1, "p": 0.7, "n": 8}
    m = rvm.Machine(program, "f", **at, engine=engine, strict=strict)
    m.run()
    end, length = {k: m[k] for k in "xy"}, m.time
    for turn in range(0, length, 7):
        m.seek(turn)
        m.seek(length)
        assert m["x"] == end["x"] == 1.1
        assert m["y"] == (end["y"] if strict else pytest.approx(end["y"]))
    m.run_back()
    assert m["x"] == 1.1
    assert m["y"] == (0.25 if strict else pytest.approx(0.25))


def test_arrays_and_parts_of_loops() -> None:
    """In a loop, of an array, whose rows contract by different factors."""
    f = rvm.assemble("""
func f(y: f64[n], x: f64[n], r: f64[n])
    for k = 1 to 3
        routine shrink
            for i = 0 to n - 1
                for j = 1 to 50
                    mul x[i], r[i]
                    add x[i], 0.3
                end
            end
        end
        add y, x
        undo shrink
        add y, x
    end
""").f
    x, r = np.array([1.1, -2.0, 1e-8]), np.array([0.5, 0.9, 0.1])
    shrunk = x.copy()
    for _ in range(50):
        shrunk = shrunk * r + 0.3
    for engine in ENGINES:
        out = f(y=np.zeros(3), x=x, r=r, engine=engine)
        assert out.x.tolist() == x.tolist()
        assert out.y == pytest.approx(3 * (shrunk + x), rel=1e-14)


def test_what_is_not_used_again_is_not_kept() -> None:
    """Ancillas that are freed when they are undone, and what nothing undoes."""
    lib = rvm.assemble("""
func ancilla(y: f64, x: f64)
    alloc t: f64
    add t, x
    mul t, 0.5
    add y, t
    div t, 0.5
    sub t, x
    free t

func steps(x: f64, v: f64)
    for i = 1 to 10
        sub v, x * 0.1
        add x, v * 0.1
    end

func whole(x: i64, k: i64)
    add x, k
    xor k, x
    xor k, x
    sub x, k
""")
    assert {i.op for f in lib.program.functions for i in f.code} >= {"add"}
    assert not any(r.name.endswith(".kept") for f in lib.program.functions for r in f.registers)


def test_a_program_that_keeps_is_a_text() -> None:
    """What is added is code as any other, and is not added twice."""
    program = rvm.assemble(source("call", "a parameter")).program
    assert any(r.name == "x.kept" for r in program.function("f").registers)
    assert rvm.assemble(disassemble(program)).program.functions == program.functions


def test_ancillas_that_contract_do_not_pass_in_adjoints() -> None:
    """The adjoint of t, which takes its turn from s, is computed from what t is on the way back."""
    f = rvm.assemble("""
func f(y: f64, x: f64, n: i64)
    alloc t: f64 = x
    alloc s: f64
    routine r
        for i = 1 to n
            mul t, 0.5
            add t, 0.3
            add s, sin(3 * t)
        end
    end
    add y, s
    undo r
    free s
    free t = x
""").f

    def run(x: Any, n: int) -> Any:
        t, s = mpmath.mpf(x), mpmath.mpf(0)
        for _ in range(n):
            t = t / 2 + mpmath.mpf("0.3")
            s += mpmath.sin(3 * t)
        return s

    for n in (3, 20, 40, 60, 80):
        with mpmath.workdps(60):
            want = float(mpmath.diff(lambda x, n=n: run(x, n), 1.1))
        assert f.jacobian(of=["y"], y=0.0, x=1.1, n=n).y.x == pytest.approx(want, rel=1e-9)
        assert f.grad(loss="y", y=0.0, x=1.1, n=n, strict=True).x == pytest.approx(want, rel=1e-12)
        try:
            found = f.grad(loss="y", y=0.0, x=1.1, n=n).x
        except InvertibilityError as error:
            assert error.code == "R017"
            assert n > 20
        else:
            assert math.isclose(found, want, rel_tol=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_gradients_within_a_run_are_judged(engine: str) -> None:
    """A program that calls a gradient has the right one, or is refused; its arguments stay."""
    f = rvm.assemble("""
func shrink(y: f64, x: f64, n: i64)
    for i = 1 to n
        mul x, 0.5
        add x, 0.3
        add y, sin(3 * x)
    end

func caller(x: f64, g: f64, n: i64)
    alloc z: f64 = x
    call shrink'(0.0, z, n; 1, g)
    free z = x
""").caller

    def run(x: Any, n: int) -> Any:
        y = mpmath.mpf(0)
        for _ in range(n):
            x = x / 2 + mpmath.mpf("0.3")
            y += mpmath.sin(3 * x)
        return y

    refused = []
    for n in (1, 3, 10, 20, 40, 60, 80):
        with mpmath.workdps(60):
            want = float(mpmath.diff(lambda x, n=n: run(x, n), mpmath.mpf(1.1)))
        for tolerance in (None, 1e-6):
            try:
                out = f(x=1.1, g=0.0, n=n, engine=engine, tolerance=tolerance)
            except InvertibilityError as error:
                assert error.code == "R017"
                refused.append((n, tolerance))
            else:
                assert out.x == 1.1
                assert out.g == pytest.approx(want, rel=1e-10 if tolerance is None else 1e-5)
    assert refused == [
        (20, None),
        (40, None),
        (40, 1e-6),
        *((n, t) for n in (60, 80) for t in (None, 1e-6)),
    ]


@wide
def test_hessians_of_long_runs_with_ancillas() -> None:
    """Where tangents of adjoints have ancillas that neither the code nor a bound bears out."""
    f = rvm.assemble("""
func pendulum(q: f64, p: f64, n: i64, h: f64)
    for i = 1 to n
        sub p, h * sin(q)
        add q, h * p
    end

func energy(e: f64, q: f64, p: f64, n: i64, h: f64)
    alloc x: f64 = q
    alloc v: f64 = p
    call pendulum(x, v, n, h)
    add e, v ** 2 / 2 - cos(x)
    uncall pendulum(x, v, n, h)
    free v = p
    free x = q

entry energy
""").energy
    at = {"e": 0.0, "p": 0.25, "n": 20_000, "h": 0.01}
    hessian = f.hessian(loss="e", q=1.0, engine="native", **at)
    d = 1e-5
    slopes = [f.jvp({"q": 1.0}, q=1.0 + s, engine="native", **at)[1].e for s in (d, -d)]
    assert hessian.q.q == pytest.approx((slopes[0] - slopes[1]) / (2 * d), rel=1e-5)


def test_a_text_may_ask_for_no_copies() -> None:
    text = """
    func f(y: f64, x: f64)
        mul x, 0.1
        add y, x
        div x, 0.1
        add y, x
    """
    kept, bare = rvm.assemble(text), rvm.assemble(f"keep none\n{text}")
    assert [i.op for i in bare.program.function("f").code] == ["mul", "add", "div", "add"]
    assert len(kept.program.function("f").code) > 4
    for program in (kept, bare):
        strict = disassemble(program)
        assert ("keep none" in strict) == (program is bare)
        assert encode(rvm.assemble(strict)) == encode(program)
    with pytest.raises(rvm.AssemblyError, match="none"):
        rvm.assemble(f"keep all\n{text}")
