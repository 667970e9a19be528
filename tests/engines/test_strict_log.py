"""The strict log is the same bits on every engine, at every tick, there and back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from attack.programs import smooth, sound
from hypothesis import given
from hypothesis import strategies as st
from sizes import examples, thin, wide

import rvm
from rvm.engines import LAW, engine, executing
from rvm.engines.python import Source, compiled_of
from rvm.faults import RvmError
from rvm.image import image_of
from rvm.run.machine import Machine
from rvm.state import Options
from rvm.stmt import Map, Pop, Push

OTHERS = [name for name in executing() if name != LAW]
native = pytest.mark.skipif("native" not in executing(), reason="there is no machine code here")

PROGRAM = rvm.assemble("""
func product(c: f64[m, m], a: f64[m, m], b: f64[m, m], n: i64)
    for i = 0 to n - 1
        for k = 0 to n - 1
            for j = 0 to n - 1
                add c[i, j], a[i, k] * b[k, j]
            end
        end
    end

func arrays(x: f64[n], y: f64[n], z: c128[n], w: c128[n], s: f32[n], l: log64[n], m: f64[n, k])
    rot x, y, 0.3
    hadamard z, w
    rot z[1:n], w[0:n - 1], 0.7
    mul s, f32(1.1)
    div l, log64(1.3)
    add x, 1.0 / 3.0
    sub m.T, 0.1
    rot m[:, 0], y, 0.2
    mul z, complex(0.5, 0.1)
    fresh f: f64[n]
    add f, x * 1e-3
    drop f
    alloc e: f64[n, k] = 0.1
    add e, 1e6
    sub e, 1e6
    free e = 0.1
    fresh g: i64[n]
    add g, -7
    drop g
    fresh h: bool
    fresh u: u8
    xor u, 200
    drop u
    drop h
    fresh q: c128[n]
    add q, z
    drop q

func deep(x: f64, y: f64, n: i64)
    if n > 0
        add x, y * 0.1
        rot x, y, 0.2
        call deep(x, y, n - 1)
        sub y, x * 0.3
    end n > 0

func stacks(x: f64, z: c128, t: stack[f64], r: stack[c128], n: i64)
    for i = 1 to n
        mul x, 0.7
        mul z, complex(0.6, 0.7)
        push x, t
        push z, r
        add x, 0.3
        add z, complex(0.1, x)
    end
    for i = 1 to n
        add x, 1e-300
        sub x, 0.9
        fresh u: f64
        swap x, u
        drop u
        if n > 2
            pop x, t
            mul x, 3.0
            push x, t
        end n > 2
    end

func calls(x: f64[n], y: f64, k: i64)
    for i = 1 to k
        call step(x[0], y)
        call turn(x[1:5], x[6:10])
        uncall step(y, x[n - 1])
        if y > 0.0
            mul y, 0.3
        else
            div y, 0.7
        end
    end

func step(p: f64, q: f64)
    routine r
        alloc u: f64 = p * 0.1
        sub u, 1.0 / 3.0
    end
    add q, u * u
    mul q, 0.9
    undo r

func turn(a: f64[n], b: f64[n])
    add a, sin(b) * 0.1
    mul b, 1.1

func failing(x: f64, y: f64[n], k: i64, at: i64)
    for i = 1 to k
        rot x, y[0], 0.3
        mul y, 0.9
        alloc t: f64 = x
        add t, y[i] * f64(i)
        sub t, y[i] * f64(at)
        sub t, y[i] * f64(i - at)
        free t = x
        div x, f64(at - i)
    end
""")


def inputs(name: str, seed: int = 1) -> dict[str, Any]:
    """Arguments of a function, new ones each time."""
    rng = np.random.default_rng(seed)

    def some(*shape: int) -> Any:
        return rng.normal(size=shape) * 10.0 ** rng.integers(-3, 3)

    match name:
        case "product":
            return {"c": some(9, 9), "a": some(9, 9), "b": some(9, 9), "n": 9}
        case "arrays":
            x, y, z, w = some(40), some(40), some(40) + 1j * some(40), some(40) - 2j * some(40)
            x[3], y[4], z[5], w[7] = np.nan, np.inf, complex(np.nan, 1.0), complex(0.0, -0.0)
            s, log = some(40).astype(np.float32), np.abs(some(40))
            return {"x": x, "y": y, "z": z, "w": w, "s": s, "l": log, "m": some(40, 3)}
        case "deep":
            return {"x": some().item(), "y": 0.5, "n": 200}
        case "stacks":
            z = complex(some(), some())
            return {"x": some().item(), "z": z, "t": [0.5], "r": [1j], "n": 70}
        case "calls":
            return {"x": some(12), "y": some().item(), "k": 40}
    return {"x": some().item(), "y": some(12), "k": 11, "at": 8}


def whole(m: Machine) -> tuple[object, ...]:
    """All that a machine is: values, log, account, time, as text that tells every bit."""
    log, a = m.state.residue, m.state.account
    assert log is not None
    values = [
        (f.code.name, f.pc, [v.tolist() if isinstance(v, np.ndarray) else v for v in f.regs])
        for f in m.state.frames
    ]
    stacks = [s.__getstate__()[1:] for s in log.stacks]
    held = [(count, words.tolist()) for count, words in stacks]
    return repr(values), held, a.live_bytes, a.peak_bytes, a.erased_bits, a.drift, m.time


def moved(m: Machine, ticks: int) -> tuple[str, tuple[object, ...]]:
    """A machine after some ticks, or after as many as there are; and the error, if there is one."""
    try:
        m.step(ticks)
    except RvmError as error:
        return str(error), whole(m)
    return "", whole(m)


def steps(rng: random.Random, ticks: int) -> list[int]:
    """Steps there, half the way back, there again, and back to the start."""
    out, at = list[int](), 0
    for goal in (ticks, ticks // 2, ticks, 0):
        while at != goal:
            n = rng.choice((1, 17, 100, 1000, 10**6))
            n = min(n, abs(goal - at))
            out.append(n if goal > at else -n)
            at += out[-1]
    return out


def compare(program: Any, name: str, given: Any, seed: int = 0, **options: Any) -> int:
    """Step on all engines, and on engines in turn: they are the same after each step.

    How many bits the log has had at most.
    """
    end = Machine.start(program, name, given(), Options(engine=LAW, strict=True, **options))
    try:
        end.run()
    except RvmError:
        if not end.time:  # nothing was done that the log could be of
            return 0
    rng, most = random.Random(seed), 0
    plan = steps(rng, end.time)
    machines = [
        Machine.start(program, name, given(), Options(engine=way, strict=True, **options))
        for way in (LAW, *OTHERS, LAW)
    ]
    for n in plan:
        machines[-1].use(engine(rng.choice(executing())))
        law, *rest = (moved(m, n) for m in machines)
        for m, found in zip(machines[1:], rest, strict=True):
            assert found == law, m
        log = machines[0].state.residue
        assert log is not None
        most = max(most, log.bits)
    assert machines[0].residue_bytes == machines[0].time == 0
    return most


@thin
@pytest.mark.parametrize("name", ["product", "arrays", "deep", "stacks", "calls", "failing"])
def test_engines_have_the_same_log_at_every_stop(name: str) -> None:
    assert compare(PROGRAM, name, lambda: inputs(name)) > 300


@thin
@pytest.mark.parametrize("name", ["arrays", "deep", "stacks", "calls", "product"])
@native
def test_a_log_that_is_full_is_left_and_entered_again(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rvm.engines.native.gaps.LEAST", 2)
    compare(PROGRAM, name, lambda: inputs(name, 5))


@examples(24)
@given(st.integers(0, 10**9))
def test_random_programs_have_the_same_log_on_every_engine(seed: int) -> None:
    text, types = sound.program(seed, None), None
    compare(rvm.assemble(text), "main", lambda: sound.inputs(seed, types), seed)


@wide
@examples(12)
@given(st.integers(0, 10**9))
def test_random_float_programs_have_the_same_log_on_every_engine(seed: int) -> None:
    compare(rvm.assemble(smooth.program(seed)), "main", lambda: smooth.inputs(seed), seed)


def limits(name: str) -> Iterator[int]:
    """Limits between what a run has at the start and what it has at most."""
    m = Machine.start(PROGRAM, name, inputs(name), Options(strict=True, engine=LAW))
    low = m.state.account.live_bytes
    m.run()
    high = m.state.account.peak_bytes
    yield from (low + (high - low) * k // 7 for k in range(9))
    yield high - 8


@thin
@pytest.mark.parametrize("name", ["arrays", "deep", "stacks", "calls"])
def test_engines_meet_the_memory_limit_at_the_same_tick(name: str) -> None:
    for limit in limits(name):
        options = {"max_memory": limit, "strict": True}
        law, *rest = (
            moved(Machine.start(PROGRAM, name, inputs(name), Options(engine=e, **options)), 10**6)
            for e in (LAW, *OTHERS)
        )
        assert all(found == law for found in rest), limit


@native
def test_machine_code_does_all_that_it_does_without_the_log() -> None:
    from rvm.ir.function import plan_of

    for name in ("product", "arrays", "deep", "stacks", "calls", "failing", "step", "turn"):
        for undo in (False, True):
            code = image_of(PROGRAM).code(name, undo)
            plain = plan_of(code, True, 0).flow.apart
            for way in (1, -1, 2, -2):
                assert plan_of(code, True, way).flow.apart == plain, (name, way)


def test_generated_python_leaves_maps_of_arrays_and_stacks_to_the_reference_engine() -> None:
    """Of what it does without the log, and nothing else."""
    for name in ("product", "arrays", "deep", "stacks", "calls", "failing", "step", "turn"):
        for undo in (False, True):
            code = image_of(PROGRAM).code(name, undo)
            plain = compiled_of(code, 0, Source).source.flow.apart
            for way in (1, -1):
                for pc in compiled_of(code, way, Source).source.flow.apart - plain:
                    assert isinstance(code.stmts(pc)[0], (Map, Push, Pop)), (name, pc)


@native
def test_a_run_that_is_interrupted_goes_back_by_its_log() -> None:
    m = Machine(PROGRAM, "stacks", engine="native", strict=True, **inputs("stacks") | {"n": 10**9})
    before = m["x"], m["z"], m["t"], m["r"]

    def stop(machine: Machine) -> None:
        if machine.time > 100_000:
            raise KeyboardInterrupt

    m.on_progress = stop
    with pytest.raises((KeyboardInterrupt, rvm.Interrupted)):
        m.run()
    log = m.state.residue
    assert log is not None and log.bits > 100_000
    m.on_progress = None
    m.run_back()
    assert (m["x"], m["z"], m["t"], m["r"]) == before
    assert m.residue_bytes == m.time == 0
