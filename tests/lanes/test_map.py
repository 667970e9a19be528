"""`f.map` as Python sees it: arguments, results, errors, paths that part, recursion, gradients."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest
from lanes.singles import agree, in_lanes

import rvm
from rvm.library.handle import FunctionHandle
from rvm.registry import having

pytestmark = pytest.mark.smoke

FACTORIAL = """
func factorial(y: i64, n: i64)
    if n == 0
        add y, 1
    else
        alloc t: i64
        call factorial(t, n - 1)
        add y, n * t
        uncall factorial(t, n - 1)
        free t
    end
"""
ACKERMANN = """
func ack(y: i64, m: i64, n: i64)        ; Ackermann's function, added to y
    if m == 0
        add y, n + 1
    elseif n == 0
        call ack(y, m - 1, 1)
    else
        alloc t: i64
        call ack(t, m, n - 1)
        call ack(y, m - 1, t)
        uncall ack(t, m, n - 1)
        free t
    end
"""


def handle(text: str, engine: str = "vector", **options: Any) -> FunctionHandle:
    """The first function of a text, its lanes as NumPy vectors if nothing else is asked for."""
    program = rvm.assemble(text)
    return program[program.program.entry].with_options(engine=engine, **options)


def test_results_have_the_lanes_in_front_and_inputs_stay() -> None:
    f = handle("func f(x: f64, a: f64[n], k: i64)\n    add x, sum(a)\n    add a[0], f64(k)\n")
    a, x = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 3.0])
    out = f.map(x=x, a=a, k=10)
    assert out.x.tolist() == [2.0, 7.0, 12.0] and out.k == 10
    assert out.a.tolist() == [[10.0, 1.0], [12.0, 3.0], [14.0, 5.0]]
    assert a.tolist() == [[0, 1], [2, 3], [4, 5]] and x.tolist() == [1, 2, 3]
    assert out.ticks.tolist() == [2, 2, 2] and out.errors == {} and out.alone == ()
    back = (~f).map(**out)
    assert back.x.tolist() == x.tolist() and back.a.tolist() == a.tolist()


def test_a_shared_array_that_is_changed_is_one_for_each_lane() -> None:
    f = handle("func f(a: f64[n], x: f64)\n    add a[1], x\n    add a[0], 1.0\n")
    a = np.array([1.0, 2.0])
    out = f.map(a=a, x=np.array([10.0, 20.0]))
    assert out.a.tolist() == [[2.0, 12.0], [2.0, 22.0]] and a.tolist() == [1.0, 2.0]


def test_what_is_the_same_in_all_lanes_comes_back_by_lane_if_it_changed() -> None:
    f = handle("func f(n: i64, x: f64, s: stack[i64])\n    inc n\n    add x, 1.0\n    push n, s\n")
    out = f.map(n=4, x=np.zeros(3), s=[7])
    assert out.n.tolist() == [0, 0, 0] and out.s == [[7, 5]] * 3


def test_stacks_of_different_depths() -> None:
    text = """
func f(s: stack[i64], x: i64, n: i64)
    for k = 1 to n
        add x, k * k
        push x, s
    end
"""
    f = handle(text)
    out = f.map(s=[[1], [], [5, 6]], x=[0, 1, 2], n=[3, 0, 1])
    assert out.s == [[1, 1, 4, 9], [], [5, 6, 3]] and out.x.tolist() == [0, 1, 0]
    assert out.alone == ()
    back = (~f).map(**out)
    assert back.s == [[1], [], [5, 6]] and back.x.tolist() == [0, 1, 2]


def test_records_and_numbers_of_other_types() -> None:
    text = """
record Body
    pos: f64[2]
    m: fixed
end
func f(b: Body, z: c128, w: log64, ok: bool)
    add b.pos, f64(b.m)
    add b.m, 0.5
    add z.im, b.pos[0]
    mul w, w * w
    not ok
"""
    f = handle(text.replace("mul w, w * w", "mul w, 2.0"))
    out = f.map(
        b={"pos": np.zeros((2, 2)), "m": [0.5, 1.5]},
        z=np.array([1j, 2.0]),
        w=[1.0, rvm.LogNumber(3.0)],
        ok=True,
    )
    assert out.b.pos.tolist() == [[0.5, 0.5], [1.5, 1.5]]
    assert out.b.m.tolist() == [1 << 43, 1 << 44]
    assert out.z.tolist() == [1.5j, 2.0 + 1.5j]
    assert np.allclose(out.w, [np.log(2.0), 3.0 + np.log(2.0)])
    assert out.ok.tolist() == [False, False]


def test_lanes_go_their_own_ways_through_an_array() -> None:
    f = handle("func f(y: i64, x: i64[n], i: i64, j: i64)\n    add y, x[i] + x[(i + j) % n]\n")
    x = np.array([3, 1, 4, 1, 5])
    i, j = np.arange(5), np.array([0, 7, 2, 9, 4])
    want = [int(x[a] + x[(a + b) % 5]) for a, b in zip(i, j, strict=True)]
    assert f.map(y=0, x=x, i=i, j=j).y.tolist() == want


@pytest.mark.parametrize("block", [None, 1, 3])
def test_recursion_to_another_depth_in_every_lane(block: int | None) -> None:
    f = handle(FACTORIAL)
    n = np.array([5, 0, 8, 3, 1, 6, 7])
    out = f.map(y=0, n=n, block=block)
    want = [120, 1, 40320, 6, 1, 720, 5040]
    assert out.y.tolist() == want and out.alone == ()
    assert out.ticks.tolist() == [_ticks(f, y=0, n=int(k)) for k in n]
    assert (~f).map(**out).y.tolist() == [0] * 7


def test_recursion_on_what_was_computed() -> None:
    f = handle(ACKERMANN)
    m, n = (v.ravel() for v in np.mgrid[0:3, 0:4])
    closed = [[k + 1 for k in range(4)], [k + 2 for k in range(4)], [2 * k + 3 for k in range(4)]]
    out = f.map(y=0, m=m, n=n)
    assert out.y.tolist() == [v for row in closed for v in row] and out.alone == ()


def _ticks(f: FunctionHandle, **inputs: Any) -> int:
    machine = f.machine(**inputs, engine="reference")
    machine.run()
    return machine.time


def test_loops_of_different_lengths_meet_again() -> None:
    """Euclid's algorithm on a stack of quotients, then work in common."""
    text = """
func gcd(a: i64, b: i64, q: stack[i64], n: i64)
    while b != 0, n > 0
        alloc d: i64 = a // b
        sub a, d * b
        swap a, b
        push d, q
        free d
        inc n
    end
    add n, a
"""
    rng = np.random.default_rng(4)
    a, b = rng.integers(1, 10**6, 60), rng.integers(0, 10**6, 60)
    out = handle(text).map(a=a, b=b, n=0)
    assert out.a.tolist() == np.gcd(a, b).tolist() and out.alone == ()
    assert len({len(q) for q in out.q}) > 5
    back = (~handle(text)).map(**out)
    assert back.a.tolist() == a.tolist() and back.b.tolist() == b.tolist()


# ---------------------------------------------------------------- failing lanes

FAILING = """
func f(y: i64, x: i64[n], i: i64, d: i64, z: f64)
    add y, x[i]
    add y, 100 // d
    alloc t: f64 = z
    if d > 10
        add t, 1.0
    end
    free t = z
    if y > 0, y > 60
        add y, 50
    end
"""


def test_lanes_fail_alone_with_the_errors_of_single_runs() -> None:
    program = rvm.assemble(FAILING)
    x = np.array([1, 2, 3])
    bad = [
        {"i": 3, "d": 1},
        {"i": 0, "d": 0},
        {"i": -1, "d": 0},
        {"i": 1, "d": 11},
        {"i": 0, "d": -5},
        {"i": 2, "d": 2, "y": -52},
    ]
    good = [{"i": 1, "d": 4}, {"i": 0, "d": 5, "y": 90}, {"i": 2, "d": 3}]
    lanes = [{"y": 0, "x": x, "z": 0.5} | case for case in (*bad, *good, *bad)]
    run = in_lanes(program.program, "f", lanes, shared=(1,))
    agree(program.program, "f", lanes, run)
    codes = {e.code for e in run.errors.values()}
    assert codes == {"R001", "R002", "R003", "R005"}
    assert set(run.alone) == set(run.errors) and not set(range(6, 9)) & set(run.errors)


def test_errors_are_raised_or_returned() -> None:
    f = handle("func f(y: i64, d: i64)\n    add y, 7 // d\n")
    d = np.array([1, 0, 7, 0])
    out = f.map(y=0, d=d, on_error="return")
    assert out.y.tolist() == [7, 0, 1, 0] and sorted(out.errors) == [1, 3]
    with pytest.raises(rvm.LaneErrors, match="lane 1, and 1 more of 4: division by zero") as caught:
        f.map(y=0, d=d)
    assert caught.value.code == "R005" and sorted(caught.value.errors) == [1, 3]
    assert caught.value.result.y.tolist() == [7, 0, 1, 0]
    assert isinstance(caught.value.errors[3], rvm.MachineError)


def test_a_lane_that_fails_in_a_call_does_not_stop_the_others() -> None:
    text = """
func inner(y: i64, d: i64, n: i64)
    if n > 0
        call inner(y, d - 1, n - 1)
    end
    add y, 60 // d

func f(y: i64, a: i64[m], d: i64)
    call inner(y, d, 3)
    call inner(a[1], d + 1, 2)
    inc y
"""
    program = rvm.assemble(text)
    lanes = [{"y": 0, "a": np.zeros(3, np.int64), "d": d} for d in range(-2, 8)]
    run = in_lanes(program.program, "f", lanes)
    agree(program.program, "f", lanes, run)
    assert sorted(run.errors) == [1, 2, 3, 4, 5]


def test_limits_and_tolerance_hold_for_each_lane() -> None:
    program = rvm.assemble(FACTORIAL)
    lanes = [{"y": 0, "n": n} for n in (1, 4, 2, 6)]
    run = in_lanes(program.program, "factorial", lanes, max_steps=60)
    agree(program.program, "factorial", lanes, run, max_steps=60)
    assert {e.code for e in run.errors.values()} == {"R010"} and 0 not in run.errors
    drift = "func f(x: f64)\n    alloc t: f64 = x\n    add t, 1e-13\n    free t = x\n    inc x\n"
    program = rvm.assemble(drift)
    lanes = [{"x": v} for v in (0.5, 1000.0, 3.0)]
    run = in_lanes(program.program, "f", lanes)
    agree(program.program, "f", lanes, run)
    assert sorted(run.errors) == [0, 2] and run.erased.tolist()[1] == 64
    run = in_lanes(program.program, "f", lanes, tolerance=1e-3)
    agree(program.program, "f", lanes, run, tolerance=1e-3)
    assert not run.errors and run.erased.tolist() == [64] * 3


def test_asserts_fail_by_lane_and_prints_come_lane_by_lane() -> None:
    text = """
func f(x: i64)
    extern forward
        assert x < 3, "too large: {}", x
        print "x is {}", x
    end
    inc x
"""
    f = handle(text)
    said: list[str] = []
    out = f.map(x=np.array([1, 5, 2]), on_error="return", output=said.append)
    assert said == ["x is 1", "x is 2"] and out.errors[1].code == "R013"
    assert out.x.tolist() == [2, 5, 3] and out.alone == (0, 1, 2)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("inputs", "code", "words"),
    [
        ({"x": 1.0, "a": np.zeros(2)}, "I020", "given by lane"),
        ({"x": np.zeros(3), "a": np.zeros((2, 2))}, "I021", "equally many"),
        ({"x": np.zeros(3, np.float32), "a": np.zeros(2)}, "I003", "float64, not float32"),
        ({"x": np.zeros(3), "a": np.zeros((3, 2), np.int64)}, "I003", "float64, not int64"),
        ({"x": ["a"], "a": np.zeros(2)}, "I003", "an f64"),
        ({"x": np.zeros(3)}, "I001", "`a`"),
        ({"x": np.zeros(3), "a": np.zeros(2), "b": 1}, "I002", "`b`"),
        ({"x": np.zeros((3, 2)), "a": np.zeros(2)}, "I003", "an array of shape [3, 2]"),
        ({"x": np.zeros(3), "a": np.zeros(2), "on_error": "stop"}, "I009", "on_error"),
        ({"x": np.zeros(3), "a": np.zeros(2), "block": 0}, "I009", "block"),
    ],
)
def test_arguments_that_are_refused(inputs: dict[str, Any], code: str, words: str) -> None:
    f = handle("func f(x: f64, a: f64[n])\n    add x, sum(a)\n")
    with pytest.raises(rvm.InputError) as caught:
        f.map(**inputs)
    assert caught.value.code == code and words in caught.value.message


def test_names_of_options_that_are_parameters() -> None:
    f = handle("func f(block: f64, on_error: i64)\n    add block, f64(on_error)\n")
    assert f.map(block=np.ones(2), on_error=3).block.tolist() == [4.0, 4.0]
    small = f.map.with_options(block=1, on_error="return")
    assert small(block=np.ones(2), on_error=3).block.tolist() == [4.0, 4.0]


def test_ctrl_c_is_raised_as_an_error_of_rvm(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("rvm.library.lane_map.run_lanes", stopped)
    with pytest.raises(rvm.Interrupted):
        handle("func f(x: f64)\n    add x, 1.0\n").map(x=np.zeros(2))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_map_over_no_lanes() -> None:
    f = handle("func f(x: f64, a: f64[n])\n    add x, sum(a)\n")
    out = f.map(x=np.zeros(0), a=np.zeros(2))
    assert out.x.shape == (0,) and out.errors == {}


# ---------------------------------------------------------------- gradients


def test_adjoints_of_what_is_shared_are_summed() -> None:
    """L = sum over lanes of w x_k^2 + b: dL/dx_k = 2 w x_k, dL/dw = sum x_k^2, dL/db = B."""
    f = handle("func f(y: f64, w: f64, x: f64, b: f64)\n    add y, w * x * x + b\n")
    x = np.array([1.0, 2.0, -3.0])
    losses, grad = f.map.value_and_grad(loss="y", y=0.0, w=0.5, x=x, b=1.0)
    assert losses.tolist() == [1.5, 3.0, 5.5]
    assert grad.x.tolist() == [1.0, 2.0, -3.0]
    assert grad.w == 14.0 and grad.b == 3.0 and grad.y == 3.0
    only = f.map.grad(loss="y", wrt=["w"], y=0.0, w=0.5, x=x, b=1.0)
    assert list(only) == ["w"]


def test_as_many_lanes_as_rows() -> None:
    """A shared matrix whose adjoint is the same in all lanes is not taken for one by lane."""
    f = handle("func f(y: f64, M: f64[m, n], x: f64)\n    add y, x\n    add M[0, 1], 2.0 * x\n")
    grad = f.map.grad(loss="M[0, 1]", y=0.0, M=np.zeros((2, 3)), x=np.array([1.0, 2.0]))
    assert grad.M.tolist() == [[0, 2, 0], [0, 0, 0]] and grad.x.tolist() == [2, 2]


def test_the_gradient_of_an_inverse() -> None:
    f = handle("func f(x: f64, y: f64)\n    add x, sin(y)\n    mul y, x * x + 1.0\n")
    x, y = np.array([0.5, 0.25, 1.5]), np.array([0.75, 2.0, -0.5])
    found = (~f).map.grad(loss="y", x=x, y=y)
    for k in range(3):
        single = (~f).grad(loss="y", x=float(x[k]), y=float(y[k]))
        assert np.isclose(found.x[k], single.x) and np.isclose(found.y[k], single.y)


def test_a_shared_array_read_at_places_that_differ() -> None:
    f = handle("func f(y: f64, table: f64[n], i: i64)\n    add y, table[i] ** 2\n")
    table = np.array([1.0, 2.0, 3.0, 4.0])
    grad = f.map.grad(loss="y", y=0.0, table=table, i=np.array([0, 2, 2, 3, 2]))
    assert np.allclose(grad.table, [2.0, 0.0, 18.0, 8.0])


def test_a_lane_without_a_gradient_is_reported_and_left_out() -> None:
    f = handle("func f(y: f64, x: f64, n: i64, w: f64)\n    add y, w * x ** (100 // n)\n")
    x, n = np.array([1.0, 2.0, 3.0]), np.array([100, 0, 50])
    losses, grad = f.map.value_and_grad(loss="y", y=0.0, x=x, n=n, w=2.0, on_error="return")
    assert list(grad.errors) == [1] and grad.errors[1].code == "R005"
    assert np.allclose(losses[[0, 2]], [2.0, 18.0]) and np.isnan(losses[1])
    assert np.allclose(grad.x, [2.0, 0.0, 12.0]) and np.isclose(grad.w, 10.0)
    with pytest.raises(rvm.LaneErrors):
        f.map.grad(loss="y", y=0.0, x=x, n=n, w=2.0)


def test_values_that_do_not_come_back_are_found_by_lane() -> None:
    """A contraction forgets its start in one lane and not in the other: R017 as in a single run."""
    body = (
        "    for i = 1 to 60\n        mul x, k\n        add x, 1.0\n        add y, x * x\n    end\n"
    )
    f = handle(f"func f(y: f64, x: f64, k: f64)\n{body}")
    k = np.array([0.1, 1.0])
    found = f.map.grad(loss="y", y=0.0, x=np.array([0.3, 0.3]), k=k, on_error="return")
    with pytest.raises(rvm.InvertibilityError) as caught:
        f.grad(loss="y", y=0.0, x=0.3, k=0.1)
    assert list(found.errors) == [0] and str(found.errors[0]) == str(caught.value)
    assert found.x[1] == f.grad(loss="y", y=0.0, x=0.3, k=1.0).x


@pytest.mark.parametrize("loss", ["n", "z", "a", "a[5]", "q"])
def test_losses_that_are_refused(loss: str) -> None:
    f = handle("func f(y: f64, n: i64, z: c128, a: f64[m])\n    add y, a[0]\n")
    with pytest.raises(rvm.InputError) as caught:
        f.map.grad(loss=loss, y=np.zeros(2), n=1, z=1j, a=np.zeros(3))
    assert caught.value.code == "I008"


@pytest.mark.parametrize("engine", having("lanes"))
def test_a_product_that_does_not_fit_spoils_no_other_lane(engine: str) -> None:
    text = "func f(y: fixed, x: fixed)\n    for i = 1 to 3\n        add y, x * x\n    end\n"
    x = np.array([1, 2, 2000, 3]) << 43
    out = rvm.assemble(text).f.map(engine=engine, y=0, x=x, on_error="return")
    assert {k: e.code for k, e in out.errors.items()} == {2: "R009"}
    assert (out.y[[0, 1, 3]] >> 43).tolist() == [3, 12, 27]
