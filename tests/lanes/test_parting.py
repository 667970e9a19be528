"""What parts lanes, and what they still do together; each lane against its single run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes.singles import agree, in_lanes, single
from sizes import examples, thin

import rvm
from rvm.engines import executing
from rvm.engines.lanes.uniform import Uniformity, parted_ranges
from rvm.image import image_of


def check(text: str, lanes: list[dict[str, Any]]) -> Any:
    """Lanes are single runs, and all that do not fail go together."""
    program = rvm.assemble(text)
    run = in_lanes(program.program, program.program.entry, lanes)
    agree(program.program, program.program.entry, lanes, run)
    assert set(run.alone) == set(run.errors)
    return run


def test_slices_whose_bounds_differ() -> None:
    text = """
func f(x: f64[n], y: f64[n], a: i64, b: i64)
    add y[0], sum(x[a:b])
    neg x[a:b]
    swap x[a:a + 1], y[b - 1:b]
"""
    rng = np.random.default_rng(1)
    lanes = [
        {"x": rng.random(6), "y": rng.random(6), "a": a, "b": b}
        for a, b in [(0, 6), (1, 3), (0, 6), (2, 3), (4, 2), (1, 3), (0, 7)]
    ]
    run = check(text, lanes)
    assert set(run.errors) == {4, 6}


def test_rows_by_lane_as_arguments() -> None:
    """A view of another row in every lane is passed by reference, and shared rows are read."""
    text = """
func mix(p: f64[k], q: f64[k], s: f64)
    add p, q * s
    add p[0], s

func f(A: f64[m, k], B: f64[m, k], i: i64, j: i64)
    call mix(A[i, :], B[j, :], 0.5)
    uncall mix(A[j, :], B[i, :], A[i, 0] * 0.25)
"""
    rng = np.random.default_rng(2)
    one, two = rng.random((3, 2)), rng.random((3, 2))
    pairs = [(i, j) for i in range(3) for j in range(4) if i != j]
    lanes = [{"A": one.copy(), "B": two, "i": i, "j": j} for i, j in pairs]
    program = rvm.assemble(text)
    for shared in ((), (1,)):
        run = in_lanes(program.program, "f", lanes, shared)
        agree(program.program, "f", lanes, run)
        assert set(run.alone) == set(run.errors) == {2, 5, 8}


def test_arrays_of_other_lengths() -> None:
    text = """
func f(y: f64, n: i64)
    alloc t: f64[n] = 0.5
    add y, sum(t * 2.0)
    free t = 0.5
"""
    program, lanes = rvm.assemble(text), [{"y": 0.0, "n": n} for n in (3, 3, 2, 0, 3)]
    run = in_lanes(program.program, "f", lanes)
    agree(program.program, "f", lanes, run)
    assert run.regs[0].tolist() == [3.0, 3.0, 2.0, 0.0, 3.0] and set(run.alone) <= {2, 3}


def test_arrays_of_one_length_where_some_lanes_go() -> None:
    text = """
func f(y: f64, z: f64, n: i64)
    if z > 0.0
        alloc t: f64[n] = z
        add t[1], y
        if y > 1.0
            add z, 0.0
        end
        sub t[1], y
        free t = z
    end
    alloc u: f64[n]
    add u, y
    add z, 0.125 * u[0]
    sub u, y
    free u
"""
    text = text.replace("            add z, 0.0\n", "            inc n\n            dec n\n")
    check(text, [{"y": 0.5 * k, "z": (-1.0) ** k, "n": 3} for k in range(7)])


def test_exchanges_on_a_condition_of_the_lane() -> None:
    text = """
func f(c: bool, a: i64[n], x: f64, y: f64, k: i64)
    cswap c, x, y
    cswap k > 1, a[k], a[0]
    cswap not c, a[1], a[k]
"""
    rng = np.random.default_rng(3)
    lanes = [
        {"c": c, "a": rng.integers(0, 99, 3), "x": 1.0, "y": 2.0, "k": k}
        for c in (True, False)
        for k in (0, 2, 1, 3)
    ]
    run = check(text, lanes)
    assert {e.code for e in run.errors.values()} <= {"R003", "R004"} and len(run.errors) < 5


def test_an_expression_that_is_passed_must_come_back() -> None:
    text = """
func f(y: f64, x: f64, d: f64)
    call g(x * x, y, d)
    call g(0.5, y, d)

func g(t: f64, y: f64, d: f64)
    add t, d
    add y, t
"""
    lanes = [{"y": 0.0, "x": x, "d": d} for x, d in [(1.0, 0.0), (2.0, 1e-15), (3.0, 1e-3)]]
    run = check(text, lanes)
    assert [e.code for e in run.errors.values()] == ["R012"] and run.erased.tolist()[:2] == [0, 128]


def test_both_sides_of_and_and_or_are_asked_only_where_they_must() -> None:
    text = """
func f(y: i64, x: i64[n], z: i64[m], i: i64, d: i64)
    if i < n and x[i] > 1 and 6 // d > 2
        add y, 1
    end
    if i >= n or x[i] < 2 or 6 // d < 3
        add y, 2
    end
    if d > 0 and z[0] == 1
        add y, 4
    end
"""
    lanes = [
        {"y": 0, "x": np.array([1, 2, 3]), "z": np.array([1][:m], np.int64), "i": i, "d": d}
        for m in (1,)
        for i in range(5)
        for d in (-1, 0, 1, 2, 3)
    ]
    run = check(text, lanes)
    assert {k % 5 for k in run.errors} == {1}
    empty = [inputs | {"z": np.zeros(0, np.int64)} for inputs in lanes]
    run = check(text, empty)
    assert {k % 5 for k in run.errors} == {1, 2, 3, 4}


@examples(30)
@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=8),
    st.integers(1, 4),
    st.sampled_from([None, 1, 3]),
)
def test_loops_in_loops_with_lengths_by_lane(ns: list[int], m: int, block: int | None) -> None:
    text = """
func f(y: i64, s: stack[i64], n: i64, m: i64)
    for i = 1 to n
        for j = i to n step m
            add y, i * j
            if y % 3 == 0, y % 3 == 1
                inc y
            end
        end
        alloc t: i64 = y & 7
        push t, s
        free t
    end
"""
    program = rvm.assemble(text)
    lanes = [{"y": k, "s": [], "n": n, "m": m} for k, n in enumerate(ns)]
    run = in_lanes(program.program, "f", lanes, shared=(3,), block=block)
    agree(program.program, "f", lanes, run)


def test_ancillas_have_values_of_their_own() -> None:
    """Made of a register by functions that give it back as it is: no other name for it."""
    text = """
func f(x: f64, n: i64, w: log64, z: c128)
    alloc t: f64 = conj(x)
    alloc k: i64 = i64(n)
    alloc v: log64 = abs(w)
    alloc u: f64 = z.re
    alloc s: f64 = x
    add t, 1.0
    inc k
    mul v, 2.0
    add u, 1.0
    swap s, x
    add x, t + f64(k) + u
    sub x, t + f64(k) + u
    swap s, x
    free s = t - 1.0
    free u = z.re + 1.0
    free v = w * 2.0
    free k = n + 1
    free t = x + 1.0
"""
    lanes = [{"x": 0.5, "n": k, "w": 2.0, "z": 1j + k} for k in range(3)]
    run = check(text, lanes)
    assert run.errors == {} and run.regs[0].tolist() == [0.5] * 3


def test_an_engine_by_name_runs_lane_by_lane() -> None:
    """For the bits of single runs, transcendental functions included."""
    f = rvm.assemble("func f(y: f64, x: f64)\n    add y, sin(x) ** 1.7 + exp(tan(x))\n").f
    x = np.linspace(0.1, 1.4, 50)
    out = f.map(y=0.0, x=x, engine="reference")
    singles = [single(f.program, "f", {"y": 0.0, "x": float(v)})[0][0] for v in x]
    assert out.y.tolist() == singles and len(out.alone) == 50
    assert f.map(y=0.0, x=x, engine="vector").alone == ()
    strict = f.map(y=0.0, x=x, strict=True)
    assert strict.y.tolist() == singles
    assert f.map(y=0.0, x=x, max_memory=10**6, engine="vector").y.tolist() == singles


# ---------------------------------------------------------------- the analysis


def vary(text: str, *given: str) -> list[str]:
    program = rvm.assemble(text)
    code = image_of(program).code(program.program.entry, False)
    names = [r.name for r in code.function.registers]
    found = Uniformity().varying(code, frozenset(names.index(n) for n in given))
    return sorted(names[k] for k in found)


FLOW = """
func f(a: i64, b: i64, c: i64, n: i64, x: i64[m])
    for i = 1 to n
        add b, i
        if a > i
            inc c
        end
        add x[b], 1
    end
    add n, len(x)
"""


@pytest.mark.parametrize(
    ("given_", "varying"),
    [
        ("a", ["a", "c"]),
        ("b", ["b", "x"]),
        ("c", ["c"]),
        ("n", ["b", "c", "i", "i.end", "n", "x"]),
        ("x", ["x"]),
    ],
)
def test_what_varies(given_: str, varying: list[str]) -> None:
    assert vary(FLOW, given_) == varying


def test_what_varies_through_calls() -> None:
    text = """
func f(a: f64, b: f64, c: f64)
    call g(a, b, c)

func g(p: f64, q: f64, r: f64)
    add p, q
    call h(r, p)

func h(s: f64, t: f64)
    if t > 0.0
        call g(s, 1.0, t * t)
    end
"""
    assert vary(text, "b") == ["a", "b", "c"]
    assert vary(text, "c") == ["c"]


def test_lanes_are_together_outside_of_the_ranges_where_they_part() -> None:
    code = image_of(rvm.assemble(FLOW)).code("f", False)
    ops = [i.op for i in code.instrs]
    inner = [pc for pc, op in enumerate(ops) if op == "br"][1]
    assert parted_ranges(code, {0}) == frozenset(range(inner, code.instrs[inner].aux + 1))
    assert parted_ranges(code, {1}) == frozenset()


SHARED = {
    "a local array": "alloc l: i64[a]\nadd b, 2\nadd w[2], b\nfree l: i64[a]",
    "a slice": "add x[0:a], 1\nadd b, 2\nadd x[0:a], b",
    "a slice given to a call": "call g(x[0:a], b)\nadd w[1], b",
    "a loop": "for i = 0 to 3\nadd x[0:a], i\nadd b, 2\nalloc t: i64[a] = b\nadd x[0:a], t\n"
    "free t = b\nend",
}


@thin
@pytest.mark.parametrize("body", SHARED.values(), ids=SHARED)
@pytest.mark.parametrize("engine", executing())
def test_what_is_the_same_for_all_lanes_changes_once(body: str, engine: str) -> None:
    """Lanes of which an operation makes groups, by the lengths of their arrays say."""
    text = f"""
func g(x: i64[m], b: i64)
    add x, b
    add b, 1
func f(a: i64, x: i64[n], w: i64[k], b: i64)
{body}
"""
    f = rvm.assemble(text).f
    a = np.array([3, 4, 3, 2, 4])
    out = f.map(a=a, x=np.zeros((5, 6), np.int64), w=np.arange(4), b=1, engine=engine)
    for lane in range(5):
        one = f(a=int(a[lane]), x=np.zeros(6, np.int64), w=np.arange(4), b=1, engine="reference")
        for name in ("x", "w", "b"):
            found = np.broadcast_to(out[name], (5, *np.shape(one[name])))
            assert np.array_equal(found[lane], one[name]), name
    back = (~f).map(**out, engine=engine)
    assert not back.x.any() and (back.w == np.arange(4)).all() and (back.b == 1).all()


@pytest.mark.parametrize("engine", executing())
@pytest.mark.parametrize("lanes", [1, 31, 32, 33])
def test_arrays_without_elements(lanes: int, engine: str) -> None:
    text = "func f(a: i64, x: i64[n, m])\n    add x, 1\n    add a, len(x)\n"
    f = rvm.assemble(text).f
    for shape in ((0, 3), (2, 0), (0, 0)):
        out = f.map(a=np.arange(lanes), x=np.zeros((lanes, *shape), np.int64), engine=engine)
        assert out.x.shape == (lanes, *shape)
        assert (out.a == np.arange(lanes) + shape[0]).all()
