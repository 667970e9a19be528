"""The machine: stepping, seeking, limits, Ctrl-C, transactions, options."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from sizes import part, sized, thin

import rvm
from rvm.engines import ENGINES, engine, executing
from rvm.engines.extent import first_chunk

EXECUTING = executing()
each_engine = pytest.mark.parametrize("engine", EXECUTING)

SUM = """
func main(s: i64, n: i64)
    for i = 1 to n
        add s, i
    end
"""
DRIFT = """
func main(y: f64, n: i64)
    for i = 1 to n
        add y, sin(0.7)
    end
"""


def state(m: rvm.Machine) -> tuple[Any, ...]:
    return (m.time, [(f.code.name, f.pc, list(f.regs)) for f in m.state.frames])


@each_engine
def test_a_step_forwards_and_one_back_is_where_it_was(engine: str) -> None:
    m = rvm.Machine(rvm.assemble(SUM), engine=engine, s=5, n=4)
    seen = [m.registers()]
    while m.step():
        seen.append(m.registers())
    assert m["s"] == 15
    assert m.finished
    for before in reversed(seen[:-1]):
        assert m.step(-1) == 1
        assert m.registers() == before
    assert m.step(-1) == 0
    assert m.time == 0


@each_engine
def test_seek_is_exact_in_both_directions(engine: str) -> None:
    m = rvm.Machine(rvm.assemble(SUM), engine=engine, s=0, n=20_000)
    reference = rvm.Machine(rvm.assemble(SUM), engine="reference", s=0, n=20_000)
    for t in (40_000, 12_345, 12_346, 59_999, 3, 0):
        assert m.seek(t) == t
        reference.seek(t)
        assert m.registers() == reference.registers()
    assert m.seek(10**9) == m.time < 10**9, "seeking past the end stops there"
    assert m.finished


@each_engine
def test_a_step_limit_loses_nothing(engine: str) -> None:
    f = rvm.assemble(SUM).main.with_options(engine=engine)
    with pytest.raises(rvm.LimitError) as caught:
        f(s=0, n=1000, max_steps=500)
    assert caught.value.code == "R010"
    assert caught.value.time == 500
    m = rvm.Machine(rvm.assemble(SUM), engine=engine, s=3, n=1000, max_steps=500)
    with pytest.raises(rvm.LimitError):
        m.run()
    assert m.time == 500
    assert m.run_back().result == {"s": 3, "n": 1000}


@each_engine
def test_a_memory_limit_holds_for_arrays_and_for_recursion(engine: str) -> None:
    program = rvm.assemble(
        """
func down(n: i64)
    if n > 0
        alloc k: i64 = n - 1
        call down(k)
        free k = n - 1
    end

func wide(n: i64)
    alloc a: f64[n]
    free a
"""
    )
    for name, n in (("down", 10_000), ("wide", 1_000_000)):
        with pytest.raises(rvm.LimitError) as caught:
            program[name](n=n, engine=engine, max_memory=100_000)
        assert caught.value.code == "R011"
        assert program[name](n=10, engine=engine, max_memory=100_000) == {"n": 10}
    with pytest.raises(rvm.LimitError):
        program.wide(n=2**60, engine=engine)


@thin
@each_engine
@sized
def test_recursion_is_as_deep_as_memory(engine: str) -> None:
    program = rvm.assemble(
        """
func down(p: i64, n: i64)
    if n > 0
        alloc k: i64 = n - 1
        inc p
        call down(p, k)
        free k = n - 1
    end
"""
    )
    limit = sys.getrecursionlimit()
    depth = max(part(100_000), 2 * limit)  # libraries raise the limit
    out = program.down(p=0, n=depth, engine=engine)
    assert out.p == depth
    assert (~program.down)(**out, engine=engine).p == 0
    assert sys.getrecursionlimit() == limit < depth


TURNING_SUM = """
func main(s: u64, n: i64)
    for k = 1 to n
        add s, u64(k)
        rol s, 1
    end
"""
"""A sum that no compiler finds a formula for."""


@thin
@each_engine
@pytest.mark.parametrize("back", [False, True])
def test_control_c_stops_at_an_instruction_boundary(engine: str, back: bool) -> None:
    far, near = (10**10, 10**8) if engine == "native" else (3_000_000, 30_000)
    n = near if back else far
    m = rvm.Machine(rvm.assemble(TURNING_SUM), engine=engine, s=0, n=n)
    if back:
        m.run()
        end = m.time

    begun = m.time

    def press() -> None:
        while m.time == begun:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    try:
        with pytest.raises(rvm.Interrupted) as caught:
            while True:
                if back:
                    m.run_back()
                    m.run()
                else:
                    m.run()
    finally:
        thread.join()
    assert caught.value.exit_code == 130
    t = m.time
    fresh = rvm.Machine(m.program, engine="native" if engine == "native" else "python", s=0, n=n)
    fresh.seek(t)
    assert m.registers() == fresh.registers()
    if back:
        assert 0 <= t <= end
    m.run_back()
    assert m["s"] == 0


@each_engine
def test_a_call_that_fails_leaves_the_callers_data_alone(engine: str) -> None:
    program = rvm.assemble(
        """
func f(a: f64[n], k: i64)
    add a, 0.1
    mul a, 3.0
    add a[0], sqrt(a[1])
    add a[k], 1.0
"""
    )
    a = np.array([0.1, 0.2, 0.3])
    saved = a.tobytes()
    with pytest.raises(rvm.MachineError) as caught:
        program.f(a=a, k=7, engine=engine)
    assert a.tobytes() == saved
    assert caught.value.code == "R003"
    assert caught.value.values["index"] == 7
    assert caught.value.where.line == 6
    with pytest.raises(rvm.MachineError) as caught:
        program.f(a=a, k=7, engine=engine, on_error="stop")
    machine = caught.value.values["machine"]
    assert machine.time == 3
    assert a.tobytes() != saved, "the failing state is kept"


@each_engine
def test_exact_programs_undo_themselves_without_a_copy(engine: str) -> None:
    program = rvm.assemble(
        """
func f(a: i64[n], k: i64)
    for i = 0 to len(a) - 1
        add a[i], i * 7
    end
    add a[k], 1
"""
    )
    a = np.arange(5)
    with pytest.raises(rvm.MachineError):
        program.f(a=a, k=-1, engine=engine)
    assert a.tolist() == [0, 1, 2, 3, 4]


@each_engine
def test_strict_mode_restores_floats_and_reports_its_log(engine: str) -> None:
    program = rvm.assemble(DRIFT)
    m = rvm.Machine(program, engine=engine, strict=True, y=0.1, n=2000)
    m.run()
    assert m.residue_bytes > 0
    m.run_back()
    assert m["y"] == 0.1
    assert m.residue_bytes == 0
    tolerant = rvm.Machine(program, engine=engine, y=0.1, n=2000)
    tolerant.run().run_back()
    assert tolerant["y"] != 0.1
    assert tolerant["y"] == pytest.approx(0.1, abs=1e-11)


@each_engine
def test_uncall_inside_a_run_that_is_itself_backwards(engine: str) -> None:
    program = rvm.assemble(
        """
func inner(x: i64, y: i64)
    add x, y * y
    xor y, x

func outer(x: i64, y: i64)
    add y, 3
    uncall inner(x, y)
    swap x, y
"""
    )
    x, y = 10, 4
    # by hand: y = 7; undo inner: y ^= x, x -= y*y; exchange
    y += 3
    y ^= x
    x -= y * y
    x, y = y, x
    out = program.outer(x=10, y=4, engine=engine)
    assert (out.x, out.y) == (x, y)
    assert (~program.outer)(**out, engine=engine) == {"x": 10, "y": 4}
    assert (~~program.outer)(x=10, y=4, engine=engine) == out


def test_options_and_parameters_are_told_apart() -> None:
    program = rvm.assemble("func f(strict: i64, x: i64)\n    add x, strict\n")
    assert program.f(strict=2, x=1).x == 3
    assert program.f.with_options(strict=True)(strict=2, x=1).x == 3
    with pytest.raises(rvm.UsageError):
        program.f.with_options(strength=1)
    with pytest.raises(rvm.InputError) as caught:
        program.f(strict=2, y=1)
    assert "no parameter `y`" in caught.value.message


def test_results_are_mappings_with_names() -> None:
    program = rvm.assemble("func f(x: i64, a: f64[n])\n    add a, 1.0\n    inc x\n")
    a = np.zeros(2)
    out = program.f(1, a)
    assert out.x == out["x"] == 2
    assert out.a is a, "arrays are the caller's own"
    assert dict(out) == {"x": 2, "a": a}
    assert repr(program.f) == "<function f(x: i64, a: f64[n])>"
    assert list(program) == ["f"]
    with pytest.raises(AttributeError):
        _ = program.g


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ([1.0, 2.0], "I003"),
        (np.zeros(2, np.float32), "I003"),
        (np.zeros((2, 2)), "I004"),
        (np.broadcast_to(np.zeros(1), (2,)), "I005"),
        (np.zeros(3), "I004"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(value: Any, code: str) -> None:
    program = rvm.assemble("func f(a: f64[n], b: f64[n])\n    add a, b\n")
    with pytest.raises(rvm.InputError) as caught:
        program.f(a=value, b=np.zeros(2))
    assert caught.value.code == code


def test_arguments_that_share_memory_are_refused_if_one_changes() -> None:
    program = rvm.assemble("func f(a: f64[n], b: f64[m])\n    add a[0], b[0]\n")
    a = np.zeros(4)
    with pytest.raises(rvm.InputError) as caught:
        program.f(a=a, b=a)
    assert caught.value.code == "I007"
    with pytest.raises(rvm.InputError):
        program.f(a=a, b=a[1:])
    assert program.f(a=a[:2], b=a[2:]).a.tolist() == [0.0, 0.0]
    reads = rvm.assemble("func g(y: f64, a: f64[n], b: f64[m])\n    add y, a[0] + b[0]\n")
    assert reads.g(y=0.0, a=a, b=a).y == 0.0


def test_a_read_only_array_is_fine_unless_it_changes() -> None:
    a = np.ones(2)
    a.setflags(write=False)
    assert rvm.assemble("func g(y: f64, a: f64[n])\n    add y, sum(a)\n").g(y=0.0, a=a).y == 2.0
    with pytest.raises(rvm.InputError) as caught:
        rvm.assemble("func f(a: f64[n])\n    add a, 1.0\n").f(a=a)
    assert caught.value.code == "I006"


@each_engine
def test_effects_happen_in_the_direction_that_they_name(engine: str) -> None:
    program = rvm.assemble(
        """
func main(x: i64)
    extern forward
        print "up {}", x
    end
    inc x
    extern backward
        print "down {}", x
    end
    extern both
        callback seen, x
    end
"""
    )
    lines: list[str] = []
    values: list[int] = []
    m = rvm.Machine(
        program, engine=engine, x=1, output=lines.append, callbacks={"seen": values.append}
    )
    m.run()
    assert (lines, values) == (["up 1"], [2])
    m.run_back()
    assert (lines, values) == (["up 1", "down 2"], [2, 2])


def test_generated_source_is_in_tracebacks() -> None:
    import linecache

    from rvm.engines.python import Source, compiled_of
    from rvm.image import image_of

    program = rvm.assemble(SUM)
    compiled = compiled_of(image_of(program).code("main", False), 0, Source)
    lines = linecache.getlines(compiled.filename)
    assert any("s + i" in line for line in lines)
    assert compiled.run.__code__.co_filename == compiled.filename


@each_engine
def test_shapes_that_do_not_go_together_are_an_error(engine: str) -> None:
    program = rvm.assemble("func f(a: f64[n], b: f64[m], c: f64[k])\n    add a, b * c\n")
    a = np.zeros(3)
    with pytest.raises(rvm.MachineError) as caught:
        program.f(a=a, b=np.ones(3), c=np.ones(2), engine=engine)
    assert caught.value.code == "R008"
    with pytest.raises(rvm.MachineError) as caught:
        program.f(a=a, b=np.ones(2), c=np.ones(2), engine=engine)
    assert caught.value.code == "R008"
    assert not a.any()


@each_engine
@pytest.mark.parametrize("value", [0.0, float("inf"), float("nan")])
@pytest.mark.parametrize("t", ["f64", "log64"])
def test_a_factor_that_cannot_be_divided_out_is_refused(engine: str, value: float, t: str) -> None:
    if t == "log64" and value != value:
        value = -0.0
    program = rvm.assemble(f"func f(y: {t}, x: f64)\n    mul y, {t}(x)\n")
    with pytest.raises(rvm.InvertibilityError) as caught:
        program.f(y=2.0, x=value, engine=engine)
    assert caught.value.code == "R007"


@pytest.mark.parametrize(
    "option",
    [
        {"checks": False, "engine": "python"},
        {"on_error": "ignore"},
        {"tolerance": -1.0},
        {"max_steps": -1},
    ],
)
def test_options_that_cannot_be_so_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(rvm.InputError) as caught:
        rvm.assemble(SUM).main(s=0, n=1, **option)
    assert caught.value.code == "I009"


ODD_VALUES: tuple[Any, ...] = (
    *(True, np.True_, 1, -1, 1.5, 1j, math.nan, math.inf, 10**400, None, "x", b"x"),
    *([1], ["native"], {}, np.array([1, 2]), object()),
)
WAYS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "call": lambda f, how: f(s=0.0, n=1, **how),
    "machine": lambda f, how: f.machine(s=0.0, n=1, **how),
    "map": lambda f, how: f.map.with_options(**how)(s=[0.0], n=1),
    "block": lambda f, how: f.map.with_options(block=next(iter(how.values())))(s=[0.0], n=1),
    "gradient": lambda f, how: f.with_options(**how).grad(s=0.0, n=1, loss="s"),
}
BOOLS = ("strict", "checks", "judged_later", "error")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("option", [f.name for f in fields(rvm.Options)])
def test_options_of_another_type_are_refused(option: str, way: str) -> None:
    """No value of an option ends in an error of Python; bools are bools, and no numbers."""
    f = rvm.assemble("func main(s: f64, n: i64)\n    add s, 1\n").main
    for value in ODD_VALUES:
        try:
            WAYS[way](f, {option: value})
            code = ""
        except rvm.RvmError as error:
            code = error.code
        is_bool = isinstance(value, (bool, np.bool_))
        if way != "block" and option in BOOLS and not is_bool:
            assert code == "I009", value
        elif way != "block" and option == "engine":
            assert code == "U002", value
        elif is_bool and (way == "block" or option not in BOOLS):
            assert code == "I009", value


@pytest.mark.parametrize("name", ENGINES)
def test_few_operations_on_large_arrays_come_before_a_look_at_signals(name):
    """A tick may be an operation on a whole array: the first chunk is short for large ones."""
    if name == "native":
        pytest.importorskip("llvmlite")
    text = "func f(x: f64[n], k: i64)\n    for i = 1 to k\n        mul x, 0.5\n    end\n"
    f = rvm.assemble(text).f
    for size in (10**5, 10**7):
        m = f.machine(x=np.ones(size), k=1000)
        assert first_chunk(engine(name), m.state) * size < 10**8


@each_engine
def test_a_run_back_from_changed_values_begins_at_time_0(engine: str) -> None:
    """However many ticks the inverse code takes for them."""
    source = """func main(x: i64, n: i64)
    call more(x, n)
    add x, 1

func more(x: i64, n: i64)
    if n > 0, n > 0
        alloc k: i64 = n - 1
        add x, n
        call more(x, k)
        free k = n - 1
    end
"""
    for n, x in ((12, -78), (0, 0)):
        m = rvm.Machine(rvm.assemble(source), x=0, n=4, engine=engine).run()
        m["n"], m["x"] = n, 1
        m.step(-m.time)
        assert (m.time > 0) == (n > 4)
        m.run_back()
        assert (m.time, m["x"]) == (0, x)
        assert m.run()["x"] == 1
