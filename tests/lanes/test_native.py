"""Lanes in machine code beside single runs: to the bit, wherever single runs agree to the bit."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest
from attack.programs import smooth
from attack.programs import sound as programs_random
from hypothesis import given, settings
from hypothesis import strategies as st
from lanes.singles import (
    agree,
    by_lane,
    flat,
    in_lanes,
    is_by_lane,
    perturbed,
    same,
    single,
    stacked,
)
from lanes.test_map import ACKERMANN, FACTORIAL, FAILING
from lanes.test_programs_in_lanes import CASES, LANES, QUIET, inputs
from programs.both_ways import Case
from sizes import examples, wide

import rvm
from rvm.engines.native import lanes as native_lanes
from rvm.engines.native import lanes_threads, lanes_wide
from rvm.library.handle import FunctionHandle
from rvm.program import Program
from rvm.run.binding import outside
from rvm.run.lanes import LaneRun, run_lanes
from rvm.types import Stack

pytest.importorskip("llvmlite")
SEEDS = st.integers(0, 10**9)
NATIVE: dict[str, Any] = {"engine": "native"}


def handle(text: str) -> FunctionHandle:
    """The first function of a text, with machine code as its engine."""
    program = rvm.assemble(text)
    return program[program.program.entry].with_options(**NATIVE)


@contextmanager
def groups(enough: int) -> Iterator[None]:
    """Within it vectors are used from so many groups of lanes on."""
    with mock.patch.object(lanes_wide, "GROUPS_ENOUGH", enough):
        yield


def there_and_back(
    program: Program, name: str, lanes: list[dict[str, Any]], **options: Any
) -> LaneRun:
    """Lanes run forwards and back as single runs do, in groups if they can; then one by one."""
    with groups(1):
        run = once(program, name, lanes, **options)
    with groups(1 << 40):
        other = in_lanes(program, name, lanes, **NATIVE, **options)
    assert run.alone == other.alone
    assert np.array_equal(run.ticks, other.ticks) and np.array_equal(run.erased, other.erased)
    function = program.function(name)
    for k, (one, two) in enumerate(zip(run.regs, other.regs, strict=True)):
        if isinstance(function.registers[k].type, Stack):
            assert one == two
        else:
            same(function, k, one, two, 0.0)
    return run


def once(program: Program, name: str, lanes: list[dict[str, Any]], **options: Any) -> LaneRun:
    """Lanes run forwards and back, and compared with single runs."""
    function = program.function(name)
    run = in_lanes(program, name, lanes, **NATIVE, **options)
    block = options.pop("block", None)
    agree(program, name, lanes, run, **options)
    ended = [k for k in range(len(lanes)) if k not in run.errors]
    if ended:
        varying = {
            k: by_lane(function, k, [held[lane] for lane in ended])
            for k in range(function.n_args)
            if is_by_lane(function, k, held := run.regs[k])
        }
        made = rvm.Options(**NATIVE, **options)
        back = run_lanes(program, name, run.regs, varying, made, undo=True, block=block)
        results = []
        for at in range(len(ended)):
            regs = [varying[k][at] if k in varying else v for k, v in enumerate(run.regs)]
            regs = [v.item() if isinstance(v, np.generic) else v for v in regs]
            results.append({p.name: outside(function, p.layout, regs) for p in function.params})
        agree(program, name, results, back, undo=True, **options)
    return run


@pytest.mark.deep
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_program(case: Case) -> None:
    there_and_back(case.program.program, case.function.name, inputs(case), **QUIET)
    assert LANES == 3


@pytest.mark.deep
@examples(15)
@given(SEEDS, st.sampled_from([None, 1, 2]))
def test_random_programs(seed: int, block: int | None) -> None:
    program = rvm.assemble(programs_random.program(seed), f"random{seed}")
    lanes = [programs_random.inputs(seed + 7 * k) for k in range(5)]
    there_and_back(program.program, "main", lanes, block=block)


@wide
@examples(8)
@given(SEEDS)
def test_random_programs_in_which_lanes_keep_together(seed: int) -> None:
    """The same whole numbers in every lane, so that paths part seldom."""
    program = rvm.assemble(programs_random.program(seed), f"random{seed}")
    rng = np.random.default_rng(seed)
    first = programs_random.inputs(seed)
    lanes = [first, *({k: perturbed(v, rng) for k, v in first.items()} for _ in range(8))]
    there_and_back(program.program, "main", lanes)


@wide
@examples(8)
@given(SEEDS)
def test_random_programs_of_every_type(seed: int) -> None:
    program = rvm.assemble(smooth.program(seed), f"smooth{seed}")
    rng = np.random.default_rng(seed)
    first = smooth.inputs(seed)
    lanes = [first, *({k: perturbed(v, rng) for k, v in first.items()} for _ in range(9))]
    there_and_back(program.program, "main", lanes)


@pytest.mark.deep
@settings(max_examples=6, deadline=None)
@given(SEEDS, st.sampled_from(["x2", "q0", "z1.im", "u[1]", "p.m"]), st.data())
def test_random_gradients(seed: int, loss: str, data: st.DataObject) -> None:
    f = rvm.assemble(smooth.program(seed), f"smooth{seed}").main.with_options(**NATIVE)
    rng = np.random.default_rng(seed)
    first = smooth.inputs(seed)
    lanes = [first, *({k: perturbed(v, rng) for k, v in first.items()} for _ in range(8))]
    shared = data.draw(st.sets(st.sampled_from(sorted(first)), max_size=len(first) - 1))
    for lane in lanes:
        lane |= {name: first[name] for name in shared}
    given = {k: first[k] if k in shared else stacked([v[k] for v in lanes]) for k in first}
    with groups(data.draw(st.sampled_from([1, 1 << 40]))):
        losses, found = f.map.value_and_grad(loss=loss, on_error="return", **given)
    assert found.errors == {}
    singles = [f.value_and_grad(loss=loss, **lane) for lane in lanes]
    assert losses.tolist() == [value for value, _ in singles]
    parts = [flat(grad) for _, grad in singles]
    for name, held in flat(found).items():
        want = np.array([part[name] for part in parts])
        if name.split(".")[0] in shared:
            assert np.allclose(held, want.sum(axis=0), rtol=1e-9), name
        else:
            assert np.array_equal(np.asarray(held), want), name


def test_lanes_fail_alone() -> None:
    program = rvm.assemble(FAILING)
    x = np.array([1, 2, 3])
    cases = [(3, 1, 0), (0, 0, 0), (-1, 0, 0), (1, 11, 0), (0, -5, 0), (2, 2, -52)]
    cases += [(1, 4, 0), (0, 5, 90), (2, 3, 0)] * 4
    lanes = [{"y": y, "x": x, "z": 0.5, "i": i, "d": d} for i, d, y in cases]
    run = in_lanes(program.program, "f", lanes, shared=(1,), **NATIVE)
    agree(program.program, "f", lanes, run)
    assert {e.code for e in run.errors.values()} == {"R001", "R002", "R003", "R005"}
    assert set(run.alone) == set(run.errors) and min(set(range(6, 18)) - set(run.alone)) == 6


def test_recursion_to_other_depths() -> None:
    f = handle(FACTORIAL)
    out = f.map(y=0, n=np.array([5, 0, 8, 3, 1, 6, 7, 5, 5, 2]))
    assert out.y.tolist() == [120, 1, 40320, 6, 1, 720, 5040, 120, 120, 2] and out.alone == ()
    m, n = (v.ravel() for v in np.mgrid[0:3, 0:4])
    program = rvm.assemble(ACKERMANN)
    lanes = [{"y": 0, "m": int(a), "n": int(b)} for a, b in zip(m, n, strict=True)]
    run = there_and_back(program.program, "ack", lanes)
    assert run.regs[0].tolist() == [*range(1, 5), *range(2, 6), 3, 5, 7, 9] and run.alone == ()


def test_limits_hold_for_each_lane() -> None:
    program = rvm.assemble(FACTORIAL)
    lanes = [{"y": 0, "n": n} for n in (1, 4, 2, 6)]
    run = in_lanes(program.program, "factorial", lanes, max_steps=60, **NATIVE)
    agree(program.program, "factorial", lanes, run, max_steps=60)
    assert {e.code for e in run.errors.values()} == {"R010"} and 0 not in run.errors
    run = in_lanes(program.program, "factorial", lanes, max_memory=3000, **NATIVE)
    agree(program.program, "factorial", lanes, run, max_memory=3000)
    assert run.errors and 0 not in run.errors


def test_arguments_count_as_memory_of_each_lane() -> None:
    """800 bytes of parameters and 400 of a local array, however the lanes are run."""
    text = """\
func f(y: f64[n], x: f64[n])
    alloc t: f64[n]
    add t, x * x
    add y, t
    sub t, x * x
    free t
"""
    rng = np.random.default_rng(0)
    lanes = [{"y": np.zeros(50), "x": rng.normal(size=50)} for _ in range(40)]
    program = rvm.assemble(text)
    for most, fails in ((1199, True), (1200, False)):
        run = there_and_back(program.program, "f", lanes, max_memory=most)
        agree(program.program, "f", lanes, run, max_memory=most)
        assert set(run.errors) == (set(range(40)) if fails else set())


def test_many_lanes_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """With little work a chunk and more threads than pieces every lane is run once."""
    monkeypatch.setattr(native_lanes, "most_ticks", lambda *_: 50)
    monkeypatch.setattr(lanes_threads, "processors", lambda: 5)
    text = (
        "func f(x: i64, a: i64[m], n: i64)\n    for k = 1 to n\n        add x, k * a[0]\n    end\n"
    )
    text += "    add a[1], x\n"
    f = handle(text)
    n = np.arange(203) % 17
    a = np.stack([np.arange(203), np.zeros(203, np.int64)], axis=1)
    out = f.map(x=0, a=a, n=n)
    want = a[:, 0] * n * (n + 1) // 2
    assert out.x.tolist() == out.a[:, 1].tolist() == want.tolist() and out.alone == ()
    assert out.ticks.tolist() == [_ticks(f, int(k)) for k in n]
    back = (~f).map(**out)
    assert not back.x.any() and np.array_equal(back.a, a)


def _ticks(f: FunctionHandle, n: int) -> int:
    machine = f.machine(x=0, a=np.array([1, 0]), n=n, engine="reference")
    machine.run()
    return machine.time


def test_an_interrupt_stops_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the thread that waits: the others end, and the inputs are as they were."""
    monkeypatch.setattr(native_lanes, "most_ticks", lambda *_: 50)
    monkeypatch.setattr(lanes_threads, "processors", lambda: 3)
    rows, calls = lanes_threads.Crew.rows, []

    def interrupted(crew: Any, first: int, end: int, once: bool = False) -> int:
        calls.append(first)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return rows(crew, first, end, once)

    monkeypatch.setattr(lanes_threads.Crew, "rows", interrupted)
    text = "func f(x: i64, n: i64)\n    for k = 1 to n\n        add x, k\n    end\n"
    x = np.arange(500)
    with pytest.raises(rvm.Interrupted) as caught:
        handle(text).map(x=x, n=20)
    assert caught.value.code == "R016" and x.tolist() == list(range(500))


def test_programs_in_which_an_instruction_is_not_compiled() -> None:
    """Lanes stop there, with arrays and frames under way, and are run by machines."""
    text = """
func inner(a: f64[n], x: f64)
    alloc t: f64[n] = a
    alloc s: stack[f64]
    push x, s
    extern forward
        assert x < 90.0, "large"
    end
    pop x, s
    add a[0], 1.0
    sub t[0], -1.0
    free s
    free t = a

func f(a: f64[n], x: f64, s: stack[i64])
    call inner(a, x)
    alloc k: i64 = 3
    push k, s
    free k
"""
    program = rvm.assemble(text)
    lanes = [{"a": np.ones(70), "x": v, "s": [1] * k} for k, v in enumerate((1.0, 0.0, 5.0))]
    run = there_and_back(program.program, "f", lanes)
    assert not run.errors


def test_auto_runs_loops_in_machine_code_and_the_rest_with_numpy() -> None:
    """sin in NumPy's vectors may differ in the last place; machine code has the scalars' bits."""
    text = "func f(x: f64, y: f64, n: i64)\n"
    text += "    for k = 1 to n\n        add x, sin(y * f64(k))\n    end\n"
    program = rvm.assemble(text)
    rng = np.random.default_rng(0)
    lanes = [{"x": 0.0, "y": v, "n": 3} for v in (1e3 * rng.random(300)).tolist()]
    run = in_lanes(program.program, "f", lanes, engine="auto")
    assert run.regs[0].tolist() == [single(program.program, "f", lane)[0][0] for lane in lanes]


def test_auto_leaves_to_numpy_what_is_not_all_compiled() -> None:
    """Running sums of fixed-point arrays are NumPy's; lanes still go together."""
    text = """
func f(a: fixed[m], b: fixed[m], n: i64)
    for k = 1 to n
        add b, scan_left(a)
    end
"""
    program = rvm.assemble(text)
    one = 1 << 43
    a = np.array([[one, 4 * one], [one // 4, 0]])
    out = program.f.map(a=a, b=np.zeros((2, 2), np.int64), n=2)
    assert out.alone == () and out.b.tolist() == [[2 * one, 10 * one], [one // 2, one // 2]]
    assert program.f.map(a=a, b=np.zeros((2, 2), np.int64), n=2, engine="native").alone == (0, 1)
