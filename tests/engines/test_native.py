"""The native engine where it is unlike others: ways in and out, memory of its own, its cache."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import pytest
from engines.order import ordered
from hypothesis import given
from hypothesis import strategies as st
from sizes import examples

import rvm
from rvm.engines import LAW
from rvm.image import image_of
from rvm.ir.flow import Flow
from rvm.ir.function import plan_of
from rvm.program import Program
from rvm.run.machine import Machine
from rvm.state import State

pytestmark = pytest.mark.smoke

pytest.importorskip("llvmlite")


def apart(program: Program, name: str) -> list[str]:
    """The opcodes of the instructions that are not compiled."""
    code = image_of(program).code(name, False)
    return [code.instrs[pc].op for pc in sorted(plan_of(code, True, False).flow.apart)]


def same_run(program: Program, name: str, **inputs: Any) -> Machine:
    """A machine at the end of a native run that went as the reference engine's."""
    machines = []
    for engine in (LAW, "native"):
        copies = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in inputs.items()}
        machines.append(Machine(program, name, **copies, engine=engine).run())
    one, two = machines
    assert (one.time, one.erased_bits) == (two.time, two.erased_bits)
    assert one.state.account == two.state.account
    for k, v in one.result.items():
        assert np.array_equal(np.asarray(v), np.asarray(two.result[k])), k
    return two


# ---------------------------------------------------------------- ways in and out

NESTED = """
func main(s: u64, n: i64)
    for i = 1 to n
        for j = 1 to i
            add s, u64(i * j)
            rol s, 3
            call turn(s, u64(j))
        end
        xor s, 255
    end

func turn(s: u64, k: u64)
    if k & 1 == 1
        rol s, 1
    else
        add s, k
    end
"""


@examples(40)
@given(st.data())
def test_a_run_may_stop_and_go_on_anywhere_in_nested_loops(data: st.DataObject) -> None:
    program = rvm.assemble(NESTED)
    fresh = Machine(program, "main", s=1, n=7, engine="reference").run()
    end = fresh.time
    m = Machine(program, "main", s=1, n=7, engine="native")
    for t in data.draw(st.lists(st.integers(0, end), max_size=5)):
        m.seek(t)
        other = Machine(program, "main", s=1, n=7, engine="reference")
        other.seek(t)
        assert m.registers() == other.registers()
        assert [f.pc for f in m.state.frames] == [
            f.pc if m.direction > 0 else _turned(f.pc, k, other)
            for k, f in enumerate(other.state.frames)
        ]
    m.run()
    assert m["s"] == fresh["s"]


def _turned(pc: int, depth: int, m: Machine) -> int:
    frame = m.state.frames[depth]
    return len(frame.code) - (frame is not m.state.top) - pc


def test_copies_of_loops_are_entered_at_their_heads_only() -> None:
    """Going on in the middle of a round never jumps into a loop after its head."""
    program = rvm.assemble(NESTED)
    code = image_of(program).code("main", False)
    plan = plan_of(code, True, False)
    flow: Flow = plan.flow
    inner, outer = sorted(flow.cycles, key=lambda c: c.back - c.head)
    middle = next(p for p in sorted(flow.gates) if inner.holds(p))
    around = flow.around(middle)
    assert around == (outer, inner)
    assert flow.copy(around, 2, middle + 1) == 2
    assert flow.copy(around, 2, inner.head + 1) == 1, "the next round is an ordinary one"
    assert flow.copy(around, 2, inner.back + 1) == 1
    assert flow.copy(around, 1, outer.head + 1) == 0


def test_deep_recursion_leaves_the_hosts_stack_alone() -> None:
    program = rvm.assemble(
        """
        func down(s: i64, n: i64)
            if n > 0
                sub n, 1
                call down(s, n)
                add n, 1
                add s, n
            end
        """
    )
    m = Machine(program, "down", s=0, n=100_000, engine="native").run()
    assert m["s"] == 100_000 * 100_001 // 2
    assert m.time == Machine(program, "down", s=0, n=100_000, engine="python").run().time
    assert m.run_back()["s"] == 0


def test_an_error_deep_in_calls_leaves_every_frame() -> None:
    program = rvm.assemble(
        """
        func outer(x: f64[n], d: i64[n])
            alloc t: f64[3] = 0.25
            for i = 0 to n - 1
                call inner(x[i], t[1], d, i)
            end
            free t = 0.25

        func inner(y: f64, t: f64, d: i64[n], i: i64)
            alloc k: i64 = i * 2
            add y, t * f64(100 // d[i])
            free k = i * 2
        """
    )
    x, d = np.zeros(4), np.array([1, 2, 0, 4])
    seen = []
    for engine in (LAW, "native"):
        with pytest.raises(rvm.RvmError) as caught:
            program.outer(x=x.copy(), d=d, engine=engine, on_error="stop")
        m = caught.value.values.pop("machine")
        frames = [
            (f.code.name, f.pc, [np.asarray(v).tolist() for v in f.regs]) for f in m.state.frames
        ]
        seen.append((str(caught.value), m.time, frames, m.state.account))
        m.run_back()
        assert m.time == 0
        assert m.result["x"].tolist() == [0.0] * 4
    assert seen[0] == seen[1]
    assert "division by zero" in seen[0][0]


# ---------------------------------------------------------------- memory

ARRAYS = """
func main(x: f64[n], s: stack[f64], y: f64)
    alloc t: f64[n]
    add t, x * 2.0
    for k = 0 to n - 1
        push t[k], s
    end
    extern forward
        callback look, x
    end
    for k = 0 to n - 1
        pop t[n - 1 - k], s
        sub t[n - 1 - k], x[n - 1 - k] * 2.0
    end
    alloc small: f64[2, 2] = 1.5
    add y, small[1, 0] + small[0, 1]
    extern forward
        callback look, x
    end
    free small = 1.5
    free t
"""


def test_arrays_and_stacks_survive_stops_on_the_way() -> None:
    program = rvm.assemble(ARRAYS)
    looks: list[list[float]] = []
    f = program.main.with_options(
        engine="native", callbacks={"look": lambda x: looks.append(x.tolist())}
    )
    out = f(x=np.arange(5.0), s=[7.0], y=0.0)
    assert looks == [[0.0, 1.0, 2.0, 3.0, 4.0]] * 2
    assert out == {"x": out["x"], "s": [7.0], "y": 3.0}
    m = f.machine(x=np.arange(5.0), s=[7.0], y=0.0)
    for t in range(m.run().time + 1):
        assert m.seek(t) == t
    m.run_back()
    assert m.result["s"] == [7.0]
    assert m.state.account.live_bytes == 5 * 8 + 8 + 8


def test_a_stack_is_the_callers_own_list() -> None:
    program = rvm.assemble("func f(x: i64, s: stack[i64])\n    push x, s\n")
    mine = [1, 2]
    assert program.f(x=3, s=mine, engine="native")["s"] == [1, 2, 3]
    assert mine == [1, 2, 3]


def test_fields_of_structured_arrays_have_gaps() -> None:
    program = rvm.assemble(
        """
        func f(p: Point[n])
            for i = 0 to n - 1
                add p[i].x, p[i].y * 2.0
            end
            swap p[0:2].x, p[2:4].x
        record Point
            x: f64
            y: f64
        end
        """
    )
    points = np.zeros(4, [("x", "f8"), ("y", "f8")])
    points["y"] = [1, 2, 3, 4]
    program.f(p=points, engine="native")
    assert points["x"].tolist() == [6.0, 8.0, 2.0, 4.0]
    assert points["y"].tolist() == [1.0, 2.0, 3.0, 4.0]


def test_views_that_reach_into_each_other_are_told_apart_by_the_reference() -> None:
    program = rvm.assemble("func f(x: f64[n], a: i64, b: i64)\n    add x[a:a+3], x[b:b+3]\n")
    assert apart(program.program, "f") == []
    same_run(program.program, "f", x=np.arange(8.0), a=0, b=3)
    with pytest.raises(rvm.RvmError) as caught:
        program.f(x=np.arange(8.0), a=0, b=2, engine="native")
    assert caught.value.code == "R004"


def test_broadcasting_of_length_one_is_the_references() -> None:
    program = rvm.assemble("func f(Y: f64[m, n], a: f64[p, n])\n    add Y, a * 2.0\n")
    assert apart(program.program, "f") == []
    same_run(program.program, "f", Y=np.ones((3, 4)), a=np.arange(4.0).reshape(1, 4))
    same_run(program.program, "f", Y=np.ones((3, 4)), a=np.arange(12.0).reshape(3, 4))


@pytest.mark.parametrize("n", [0, 1, 7])
def test_sums_and_products_of_small_arrays(n: int) -> None:
    """In the order that the machine's page states: `engines.order` has it once more."""
    program = rvm.assemble(
        """
        func f(s: f64, d: f64, A: f64[m, n], x: f64[n], y: f64[m])
            add s, sum(x) * 3.0
            add d, dot(x, x)
            add y, A @ x
            add A, outer(y, x)
        """
    )
    rng = np.random.default_rng(n)
    given = {"A": rng.normal(size=(3, n)), "x": rng.normal(size=n), "y": rng.normal(size=3)}
    native = program.f(s=0.5, d=0.0, **{k: v.copy() for k, v in given.items()}, engine="native")
    x = given["x"]
    assert native.s == 0.5 + ordered(list(x), operator.add, 0.0) * 3.0
    assert native.d == pytest.approx(float(x @ x), rel=1e-15)
    y = given["y"] + given["A"] @ x
    assert np.allclose(native["y"], y, rtol=1e-15)
    assert np.allclose(native["A"], given["A"] + np.outer(y, x), rtol=1e-15)


def test_products_add_in_the_order_of_indices() -> None:
    program = rvm.assemble("func f(C: f64[n, n], A: f64[n, n])\n    add C, A @ A\n")
    a = np.random.default_rng(0).normal(size=(40, 40))
    wanted = a[:, :1] * a[:1]
    for k in range(1, 40):
        wanted += a[:, k : k + 1] * a[k]
    found = program.f(C=np.zeros((40, 40)), A=a, engine="native")["C"]
    assert found.tobytes() == wanted.tobytes()


# ---------------------------------------------------------------- options

FREED = """
func f(x: f64, y: f64)
    alloc t: f64 = x
    add y, t
    free t = x + 1.0
"""


def test_checks_may_be_left_out_and_only_here() -> None:
    program = rvm.assemble(FREED)
    with pytest.raises(rvm.InvertibilityError):
        program.f(x=1.0, y=0.0, engine="native")
    assert program.f(x=1.0, y=0.0, engine="native", checks=False).y == 1.0
    assert program.f(x=1.0, y=0.0, checks=False).y == 1.0
    with pytest.raises(rvm.InputError):
        program.f(x=1.0, y=0.0, engine="python", checks=False)


def test_indices_are_checked_all_the_same() -> None:
    program = rvm.assemble("func f(x: f64[n], i: i64)\n    add x[i], 1.0\n")
    for i in (-1, 3, 2**62):
        with pytest.raises(rvm.RvmError) as caught:
            program.f(x=np.zeros(3), i=i, engine="native", checks=False)
        assert caught.value.code == "R003"


# ---------------------------------------------------------------- auto


def test_auto_goes_over_to_machine_code_without_a_difference() -> None:
    program = rvm.assemble(NESTED)
    m = Machine(program, "main", s=1, n=300)
    other = Machine(program, "main", s=1, n=300, engine="python")
    assert m.run()["s"] == other.run()["s"]
    assert m.time == other.time > 200_000
    assert m.run_back()["s"] == 1


@pytest.mark.parametrize(
    ("text", "first", "then"),
    [
        ("func f(x: f64)\n    add x, 1.0\n", "python", "native"),
        ("func f(x: f64[n], y: f64[n])\n    add x, exp(y)\n", "python", "native"),
        ("func f(x: f64)\n    for i = 1 to 9\n        add x, 1.0\n    end\n", "python", "native"),
        (
            "func f(x: f64[n])\n    for i = 1 to 9\n        add x, exp(f64(i))\n    end\n",
            "python",
            "native",
        ),
        (
            "func f(y: f64, x: f64[n])\n    for i = 1 to 9\n        add y, sum(exp(x))\n    end\n",
            "python",
            "native",
        ),
        (
            "func f(y: i64, x: i64[n])\n    for i = 1 to 9\n        add y, sum(x)\n    end\n",
            "python",
            "native",
        ),
        ("func f(y: c128[n], x: c128[n])\n    mul y, x\n", "python", "native"),
        (
            "func f(y: c128[n], x: c128)\n    for i = 1 to 9\n        mul y[i], x * x\n    end\n",
            "python",
            "native",
        ),
    ],
)
def test_what_auto_chooses(text: str, first: str, then: str) -> None:
    from rvm.engines.auto import choose

    program = rvm.assemble(text)
    for strict in (False, True):
        found = choose(image_of(program), "f", rvm.Options(strict=strict))
        assert (found.first, found.then) == (first, then), str(found)


def test_auto_without_llvm_goes_over_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    from rvm.engines import auto
    from rvm.engines.vector.engine import Vector

    monkeypatch.setattr(auto, "native_is_there", lambda: False)
    text = """
    func f(x: f64[n], s: f64, steps: i64)
        for t = 1 to steps
            for i = 1 to n - 1
                add s, x[i] * 0.5
                sub x[i], 0.001
            end
        end
    """
    program, x = rvm.assemble(text), np.linspace(0.0, 1.0, 2_000)
    pieces: list[int] = []
    advance = Vector.advance

    def watched(self: Vector, state: State, ticks: int) -> int:
        pieces.append(ticks)
        return advance(self, state, ticks)

    monkeypatch.setattr(Vector, "advance", watched)
    out = program.f(x=x.copy(), s=0.0, steps=60)
    assert pieces
    wanted = program.f(x=x.copy(), s=0.0, steps=60, engine="python")
    assert out.s == wanted.s
    assert out.x.tobytes() == wanted.x.tobytes()
    assert "NumPy" in str(auto.choose(image_of(program), "f", rvm.Options()))


def test_auto_compiles_what_is_called_often() -> None:
    from rvm.engines import auto

    program = rvm.assemble("func f(x: f64)\n    add x, sin(1.0)\n")
    image = image_of(program)
    found = {program.f(x=0.5).x for _ in range(auto.WARM // auto.A_CALL - 100)}
    code = image.code("f", False)
    assert not auto.is_warm(code, auto.choice_of(code, rvm.Options()))
    found |= {program.f(x=0.5).x for _ in range(110)}
    assert auto.is_warm(code, auto.choice_of(code, rvm.Options()))
    assert found == {program.f(x=0.5, engine="reference").x}


@pytest.mark.parametrize(
    "place", ["x[i, 0:2, :]", "x[i, 1:3]", "x[i]", "x[0:2, i, :]", "x[i, :, 1:3]"]
)
def test_parts_of_arrays_as_arguments(place: str) -> None:
    """Those without gaps and those with gaps go to different variants of the callee."""
    program = rvm.assemble(
        f"""
        func f(x: f64[l, m, n], i: i64)
            call g({place})

        func g(y: f64[p, q])
            for a = 0 to p - 1
                for b = 0 to q - 1
                    add y[a, b], f64(10 * a + b)
                end
            end
        """
    )
    same_run(program.program, "f", x=np.arange(36.0).reshape(3, 3, 4), i=1)


@pytest.mark.parametrize(
    "x", [[3.0, 1.0, 3.0, 2.0], [0.0, -0.0, 0.0], [1.0, np.nan, 2.0, np.nan], [5.0], [-np.inf, 7.0]]
)
def test_extremes_and_where_they_are(x: list[float]) -> None:
    program = rvm.assemble(
        """
        func f(low: f64[n], high: f64[n], s: f64, x: f64[n])
            add high, first_max(x)
            add low, last_min(x)
            add s, amax(x) - amin(x)
        """
    )
    assert apart(program.program, "f") == []
    values = np.array(x)
    out = program.f(low=np.zeros(len(x)), high=np.zeros(len(x)), s=0.0, x=values, engine="native")
    assert np.flatnonzero(out["high"]).tolist() == [np.argmax(values)]
    assert np.flatnonzero(out["low"]).tolist() == [len(x) - 1 - np.argmin(values[::-1])]
    assert np.array_equal(out.s, np.max(values) - np.min(values), equal_nan=True)


def test_sums_over_the_axes_that_another_has_not() -> None:
    program = rvm.assemble(
        "func f(y: f64[n], g: f64[m, n], z: f64[n])\n    add y, sum_like(g, z)\n"
    )
    assert apart(program.program, "f") == []
    g = np.random.default_rng(3).normal(size=(5, 3))
    out = program.f(y=np.ones(3), g=g, z=np.zeros(3), engine="native")
    assert np.allclose(out["y"], 1 + g.sum(0), rtol=1e-15)


# ---------------------------------------------------------------- where roundings may differ

ELEMENTARY = {
    "exp": (-20, 20),
    "log": (1e-6, 1e6),
    "log2": (1e-6, 1e6),
    "expm1": (-3, 3),
    "log1p": (-0.9, 10),
    "sin": (-100, 100),
    "cos": (-100, 100),
    "tan": (-1.5, 1.5),
    "asin": (-1, 1),
    "acos": (-1, 1),
    "atan": (-50, 50),
    "sinh": (-10, 10),
    "cosh": (-10, 10),
    "tanh": (-5, 5),
}


@pytest.mark.parametrize("fn", ELEMENTARY)
def test_elementary_functions_of_arrays_are_within_four_units_of_numpys(fn: str) -> None:
    program = rvm.assemble(f"func f(y: f64[n], x: f64[n])\n    add y, {fn}(x)\n")
    assert apart(program.program, "f") == []
    x = np.random.default_rng(len(fn)).uniform(*ELEMENTARY[fn], size=2000)
    ours = program.f(y=np.zeros(2000), x=x, engine="native")["y"]
    theirs = program.f(y=np.zeros(2000), x=x, engine="reference")["y"]
    assert np.all(np.abs(ours - theirs) <= 4 * np.spacing(np.abs(theirs)))


@pytest.mark.parametrize("n", [10, 1000, 20_000])
def test_sums_of_arrays_are_within_the_stated_bound(n: int) -> None:
    """n ε Σ|x|, of which NumPy's own error is a small part."""
    program = rvm.assemble(
        "func f(s: f64, d: f64, x: f64[n], y: f64[n])\n    add s, sum(x)\n    add d, dot(x, y)\n"
    )
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=n), rng.normal(size=n)
    ours = program.f(s=0.0, d=0.0, x=x, y=y, engine="native")
    eps = np.finfo(float).eps
    assert abs(ours.s - math.fsum(x)) <= n * eps * np.abs(x).sum()
    assert abs(ours.d - math.fsum(x * y)) <= n * eps * np.abs(x * y).sum()


@pytest.mark.parametrize("t", ["i64", "u8", "fixed", "bool"])
def test_arrays_of_exact_types_are_the_same_to_the_bit(t: str) -> None:
    op = "xor y, x" if t == "bool" else "add y, x * x - x"
    program = rvm.assemble(f"func f(y: {t}[n], x: {t}[n])\n    {op}\n")
    dtype = {"i64": np.int64, "u8": np.uint8, "fixed": np.int64, "bool": np.bool_}[t]
    raw = np.random.default_rng(1).integers(0, 2**52 if t == "fixed" else 2**62, 300)
    same_run(program.program, "f", y=np.zeros(300, dtype), x=raw.astype(dtype))
