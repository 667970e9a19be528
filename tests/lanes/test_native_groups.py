"""Groups of lanes as LLVM's vectors: what they can do together, to the bit of single runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from lanes.singles import agree, in_lanes
from sizes import wide

import rvm
from rvm.engines.native import lanes_wide
from rvm.engines.native.lanes_wide import WideRoot
from rvm.image import image_of
from rvm.ir.context import WIDTH
from rvm.run.lanes import LaneRun
from rvm.run.machine import Machine

pytest.importorskip("llvmlite")
LANES = 19
Make = Callable[[int, np.random.Generator], dict[str, Any]]


def groups_of(program: rvm.Program, name: str, undo: bool = False) -> tuple[int, int]:
    """How many groups were run for a function, and how many of them were left."""
    code = image_of(program).code(name, undo)
    roots = [r for r in code.compiled.values() if isinstance(r, WideRoot)]
    return sum(r.groups for r in roots), sum(r.left for r in roots)


def together(text: str, make: Make, shared: tuple[int, ...] = (), left: int = 0) -> LaneRun:
    """Lanes that go together, all but `left` groups of three, there and back: as single runs."""
    program, rng = rvm.assemble(text), np.random.default_rng(5)
    name = program.program.entry
    assert name is not None
    lanes = [make(k, rng) for k in range(LANES)]
    for k in shared:
        parameter = program.program.function(name).registers[k].name
        for lane in lanes[1:]:
            lane[parameter] = lanes[0][parameter]
    with mock.patch.object(lanes_wide, "GROUPS_ENOUGH", 2):
        run = in_lanes(program.program, name, lanes, shared, engine="native")
        agree(program.program, name, lanes, run)
        assert groups_of(program.program, name) == (3, left)
        f = program[name].with_options(engine="reference")
        results = [dict(f(**_own(lane))) for k, lane in enumerate(lanes) if k not in run.errors]
        still = tuple(k for k in shared if k not in image_of(program).inout[name])
        back = in_lanes(program.program, name, results, still, undo=True, engine="native")
        agree(program.program, name, results, back, undo=True)
    return run


def _own(lane: dict[str, Any]) -> dict[str, Any]:
    return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in lane.items()}


@wide
def test_local_arrays_and_products() -> None:
    text = """
func f(y: f64[n], A: f64[n, n], x: f64[n], s: f64)
    alloc t: f64[n] = A @ x
    alloc big: f64[200]
    add big, s
    add y, t * big[3] + 0.5
    add y[1], sum(t) + dot(t, x) + amax(t)
    sub big, s
    free big
    free t = A @ x
"""

    def make(k: int, rng: np.random.Generator) -> dict[str, Any]:
        return {"y": np.zeros(3), "A": rng.random((3, 3)), "x": rng.random(3), "s": 0.25 * k}

    # Products of matrices are NumPy's in single runs of the reference engine: exact numbers.
    def exact(k: int, rng: np.random.Generator) -> dict[str, Any]:
        made = make(k, rng)
        return {n: np.rint(8 * v) if isinstance(v, np.ndarray) else v for n, v in made.items()}

    together(text, exact)
    together(text, exact, shared=(1,))
    together(text, exact, shared=(0, 2))


def test_numbers_of_all_types() -> None:
    text = """
func f(a: i32, b: u8, c: u64, d: f32, e: fixed, z: c128, z2: c128, w: log64, ok: bool, n: i64)
    for k = 1 to n
        add a, i32(k) * 77777777
        xor b, u8(a) + u8(77)
        add c, u64(b) * u64(12345678901234567)
        rol c, k
        add d, f32(0.1) * f32(a)
        add e, fixed(k) * fixed(f64(b) / 7.0)
        add z, z2 * f64(k)
        mul w, 1.5
    end
    not ok
"""

    def make(k: int, rng: np.random.Generator) -> dict[str, Any]:
        a, b, c = (int(v) for v in rng.integers(0, 200, 3))
        z = complex(rng.random(), rng.random())
        numbers = {"d": np.float32(rng.random()).item(), "e": float(b), "z": z, "z2": z * 1j}
        return {"a": a, "b": b, "c": c, "w": 1.0 + k, "ok": k % 2 == 0, "n": 4} | numbers

    together(text, make)


def test_indices_and_exchanges_by_lane() -> None:
    text = """
func f(a: i64[n], b: f64[n], table: f64[m], i: i64, j: i64, flag: bool)
    add a[i], 5
    swap a[j], a[i]
    add b[i], table[j] * b[j]
    cswap flag, b[0], b[i]
    cswap a[0] > 3, a[i], a[1]
    add b, table[i] * 2.0
    neg b[1:3]
"""

    def make(k: int, rng: np.random.Generator) -> dict[str, Any]:
        i, j = (2 + int(v) for v in rng.permutation(4)[:2])
        arrays = {"a": rng.integers(0, 9, 6), "b": rng.random(6), "table": rng.random(7)}
        return {"i": i, "j": j, "flag": k % 3 == 0} | arrays

    together(text, make)
    together(text, make, shared=(2,))


def test_a_lane_outside_an_array_takes_its_group_with_it() -> None:
    text = "func f(a: i64[n], i: i64)\n    add a[i], 5\n    neg a\n"
    run = together(
        text, lambda k, rng: {"a": rng.integers(0, 9, 4), "i": 7 if k == 9 else 2}, left=1
    )
    assert run.alone == (9,) and run.errors[9].code == "R003"


@wide
def test_calls_with_what_varies_and_what_does_not() -> None:
    text = """
func f(A: f64[m, k], b: f64[k], s: f64, t: f64, u: f64, n: i64)
    call mix(A[1, :], b, 0.5, t)
    call mix(A[0, :], A[1, :], s, t)
    call mix(A[:, 0], A[:, 1], s, u)
    call power(u, s, n)
    call power(t, 0.5, n)

func mix(p: f64[k], q: f64[k], s: f64, t: f64)
    for i = 0 to k - 1
        add p[i], q[i] * s
    end
    add t, s * q[0]

func power(y: f64, x: f64, n: i64)
    if n == 0
        add y, 1.0
    else
        alloc t: f64
        call power(t, x, n - 1)
        add y, t * x
        uncall power(t, x, n - 1)
        free t
    end
"""

    def make(k: int, rng: np.random.Generator) -> dict[str, Any]:
        return {"A": rng.random((2, 2)), "b": rng.random(2), "s": k / 8, "t": 0.0, "u": 0.0, "n": 5}

    together(text, make)
    together(text, make, shared=(1,))
    together(text, make, shared=(0, 1, 4, 5))


def test_conditions_on_what_differs() -> None:
    """All lanes of the second and third group go one way; those of the first part."""
    text = """
func f(x: f64, y: f64)
    if x > 0.0 and 1.0 / x < 100.0
        add y, sqrt(x)
    else
        sub y, 1.0
    end
"""
    run = together(
        text, lambda k, rng: {"x": 1.0 + k if k >= 8 else -1.0 if k % 2 else 3.0, "y": 0.5}
    )
    assert run.alone == ()


def test_what_is_erased_is_counted_by_lane() -> None:
    text = (
        "func f(x: f64, e: f64)\n    alloc t: f64 = x\n    add t, e\n    free t = x\n    add x, e\n"
    )
    run = together(text, lambda k, _: {"x": 1.0 + k, "e": (k % 3 > 0) * math.ulp(1.0 + k)})
    assert run.erased.tolist() == [64 * (k % 3 > 0) for k in range(LANES)]
    text = "func f(x: f64[n], e: f64)\n    alloc t: f64[n] = x\n    add t[1], e\n    free t = x\n"
    run = together(text, lambda k, _: {"x": np.ones(3), "e": (k % 3 > 0) * 2.0**-52})
    assert run.erased.tolist() == [64 * (k % 3 > 0) for k in range(LANES)]


def lately(text: str, make: Make) -> LaneRun:
    """Lanes that part go on by themselves: none begins anew, and each is as a single run."""
    program, rng = rvm.assemble(text).program, np.random.default_rng(6)
    name = program.entry
    assert name is not None
    lanes = [make(k, rng) for k in range(3 * WIDTH)]
    with mock.patch.object(lanes_wide, "GROUPS_ENOUGH", 3):
        run = in_lanes(program, name, lanes, engine="native")
    agree(program, name, lanes, run)
    roots = [
        r for r in image_of(program).code(name, False).compiled.values() if isinstance(r, WideRoot)
    ]
    assert [(r.groups, r.left) for r in roots] == [(3, 0)] and run.errors == {}
    assert 0 < roots[0].alone < roots[0].ticks == sum(run.ticks)
    return run


def test_lanes_that_part_go_on_with_numbers_of_all_types() -> None:
    text = """
func f(a: i32, b: u8, c: u8, d: f32, e: fixed, z: c128, w: log64, ok: bool, n: i64, y: f64, x: f32)
    alloc t: f32 = x * f32(0.5)
    alloc u: c128 = conj(complex(f64(x), 1.0))
    alloc no: bool = not ok
    alloc m: i64 = 3
    for k = 1 to n
        add a, i32(k) * 77777777
        xor b, u8(k) + u8(77)
        add d, f32(0.5) * f32(b)
        add e, fixed(k) * fixed(f64(b) / 8.0)
        add z, u * f64(k)
        mul w, 1.5
        cswap no, b, c
        add m, k
    end
    add y, f64(t) + u.im + f64(m) + f64(i64(no))
    for k = n downto 1
        sub m, k
    end
    free m = 3
    free no = not ok
    free u = conj(complex(f64(x), 1.0))
    free t = x * f32(0.5)
    not ok
"""

    def make(k: int, rng: np.random.Generator) -> dict[str, Any]:
        z = complex(rng.random(), rng.random())
        numbers = {"d": 0.25 * k, "e": float(k), "z": z, "w": 1.0 + k, "y": 0.0, "x": 1.0 / 4 + k}
        return {"a": k, "b": k, "c": 200 - k, "ok": k % 3 == 0, "n": 3 + k % 4} | numbers

    lately(text, make)


def test_lanes_that_part_have_arrays_of_their_own() -> None:
    """Given by lane, and local ones: small and large, with what differs and what does not."""
    text = """
func f(x: f64[n], p: f64[2, m], shared: i64[3], i: i64, y: f64)
    alloc t: f64[n]
    alloc big: i64[200]
    alloc same: i64[4] = 7
    add t, x * 2.0
    add big[3], i
    if i % 2 == 0
        add x[0], 1.0
        add t[1], p[1, 1]
        add same[2], shared[1]
        call change(p[0, :], t[1:3], same, i)
    end
    add same[0], 1
    alloc after: f64[n] = x
    add y, sum(t) + after[0] + f64(same[0] * same[2] + big[3])
    free after = x
    sub same[0], 1
    if i % 2 == 0
        uncall change(p[0, :], t[1:3], same, i)
        sub same[2], shared[1]
        sub t[1], p[1, 1]
        sub x[0], 1.0
    end
    sub big[3], i
    sub t, x * 2.0
    free same = 7
    free big
    free t

func change(p: f64[m], t: f64[k], same: i64[j], i: i64)
    for l = 0 to m - 1
        add t[0], 0.5
        add p[l], f64(i)
        add same[3], i
        swap same[3], same[0]
    end
"""

    def make(k: int, rng: np.random.Generator) -> dict[str, Any]:
        arrays = {"x": rng.integers(0, 9, 4) / 2.0, "p": rng.integers(0, 9, (2, 3)) / 4.0}
        return arrays | {"shared": np.arange(3) + k, "i": k, "y": 0.0}

    lately(text, make)


def test_lanes_that_part_in_a_function_are_together_again_behind_it() -> None:
    text = """
func f(y: i64, x: i64, count: i64, n: i64)
    alloc c: i64
    for k = 1 to n
        call steps(y, x + k, count, c)
        add y, c
        uncall only(c, x + k)
    end
    free c

func steps(y: i64, x: i64, count: i64, c: i64)
    add c, 1
    if x & 3 == 1
        add y, x
        call twice(y, x, c)
    end
    inc count

func twice(y: i64, x: i64, c: i64)
    for j = 1 to x & 7
        add y, j
        add c, 1
    end

func only(c: i64, x: i64)
    add c, 1
    if x & 3 == 1
        for j = 1 to x & 7
            add c, 1
        end
    end
"""
    lately(text, lambda k, _: {"y": k, "x": 3 * k, "count": 5, "n": 4})


def test_lanes_that_part_in_recursion() -> None:
    text = """
func f(y: i64, n: i64)
    if n <= 1
        add y, n
    else
        alloc t: i64
        call f(t, n - 1)
        add y, t
        uncall f(t, n - 1)
        free t
        call f(y, n - 2)
    end
"""
    lately(text, lambda k, _: {"y": 0, "n": 5 + k % 4})


def test_what_is_erased_behind_a_parting_is_counted_by_lane() -> None:
    text = """
func f(x: f64, e: f64)
    alloc t: f64 = x
    add t, e
    if e > 0.0
        call forget(x, e)
    end
    free t = x

func forget(x: f64, e: f64)
    alloc u: f64 = x
    add u, e
    free u = x
"""

    def lane(k: int, _: object = None) -> dict[str, Any]:
        return {"x": 1.0 + k, "e": (k % 3 > 0) * math.ulp(1.0 + k)}

    run = lately(text, lane)
    for k, drift in enumerate(run.drifts):
        machine = Machine.start(rvm.assemble(text).program, "f", lane(k))
        machine.run()
        assert drift == machine.state.account.drift and (drift > 0) == (k % 3 > 0)


def test_a_lane_with_trouble_behind_a_parting_takes_its_group_with_it() -> None:
    text = """
func f(a: i64[n], i: i64, y: i64)
    alloc t: i64[100]
    if y > 0
        add a[i], 5
        call far(a, i)
    end
    free t

func far(a: i64[n], i: i64)
    alloc t: i64[100]
    add a[i + 2], 1
    free t
"""

    def make(k: int, rng: np.random.Generator) -> dict[str, Any]:
        return {"a": rng.integers(0, 9, 6), "i": 4 if k == 3 else 7 if k == 17 else 2, "y": k % 2}

    program, rng = rvm.assemble(text).program, np.random.default_rng(7)
    lanes = [make(k, rng) for k in range(3 * WIDTH)]
    with mock.patch.object(lanes_wide, "GROUPS_ENOUGH", 3):
        run = in_lanes(program, "f", lanes, engine="native")
    agree(program, "f", lanes, run)
    assert groups_of(program, "f") == (3, 2)
    assert {k: e.code for k, e in run.errors.items()} == {3: "R003", 17: "R003"}


@pytest.mark.parametrize("limit", [3, 17, 40, 41, 90])
def test_limits_behind_a_parting(limit: int) -> None:
    text = "func f(y: i64, n: i64)\n    for k = 1 to n\n        add y, k\n    end\n"
    program, lanes = rvm.assemble(text).program, [{"y": k, "n": k} for k in range(40)]
    run = in_lanes(program, "f", lanes, engine="native", max_steps=limit)
    agree(program, "f", lanes, run, max_steps=limit)


def test_lanes_that_go_alone_are_not_tried_again() -> None:
    text = """
func f(y: i64, x: i64, n: i64)
    if x % 2 == 0
        inc y
    end
    for k = 1 to n
        add y, k
    end
"""
    program = rvm.assemble(text)
    x = np.arange(640)
    for _ in "ab":
        out = program.f.map(y=0, x=x, n=50, engine="native")
        assert out.y.tolist() == (1275 + (x % 2 == 0)).tolist() and out.alone == ()
    assert groups_of(program.program, "f") == (lanes_wide.GROUPS_ENOUGH, 0)


def test_gradients_by_groups() -> None:
    """Of a function with an analytic gradient: L = sum of w_i x_i^2 over n rounds."""
    text = """
func f(y: f64, x: f64[m], w: f64[m], n: i64)
    for k = 1 to n
        for i = 0 to m - 1
            add y, w[i] * square(x[i])
        end
    end
"""
    program, rng = rvm.assemble(text), np.random.default_rng(1)
    x, w = rng.random((40, 3)), rng.random(3)
    losses, grad = program.f.map.value_and_grad(loss="y", y=0.0, x=x, w=w, n=4, engine="native")
    assert np.allclose(losses, 4 * (x * x) @ w) and np.allclose(grad.x, 8 * x * w)
    assert np.allclose(grad.w, 4 * (x * x).sum(axis=0)) and grad.alone == ()
    assert groups_of(program.program, "f") == (5, 0)
