"""What the machine promises whatever the program: transactions, depth, direction, limits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs.both_ways import ENGINES, load
from sizes import thin

import rvm

each_engine = pytest.mark.parametrize("engine", ENGINES)


def program(name: str) -> rvm.Library:
    return load(Path(__file__).parent / f"{name}.rasm")


# Absorbs 0.1 in 1e16, so that running back does not restore it, then fails at the last element.
ABSORB = """
record Cell
    v: f64
    z: c128
end

func absorb(x: f64[n], f: f32[n], c: Cell[n], k: i64[n], s: stack[f64])
    for i = 0 to n - 1
        add x[i], 1e16
        add f[i], 1e12
        add c[i].v, x[i]
        add c[i].z.im, 1e17
        add k[i], 7
        push x[i], s
        add k[0], 100 // (n - 1 - i)
    end
"""


def cells() -> dict[str, Any]:
    n = 5
    base = np.arange(n) + 0.1
    return {
        "x": base.copy(),
        "f": base.astype(np.float32),
        "c": {"v": base[::-1].copy(), "z": base * (1 - 1j)},
        "k": np.arange(n),
        "s": [0.3, -0.0],
    }


def as_bytes(values: dict[str, Any]) -> dict[str, Any]:
    return {
        k: as_bytes(v) if isinstance(v, dict) else np.array(v).tobytes() for k, v in values.items()
    }


@pytest.mark.parametrize("strict", [False, True])
@each_engine
def test_an_error_on_the_way_leaves_everything_as_it_was(engine: str, strict: bool) -> None:
    given = cells()
    before = as_bytes(given)
    arrays = [given["x"], given["f"], given["c"]["v"], given["c"]["z"], given["k"], given["s"]]
    with pytest.raises(rvm.MachineError) as caught:
        rvm.assemble(ABSORB).absorb(**given, engine=engine, strict=strict)
    assert caught.value.code == "R005"
    assert as_bytes(given) == before
    now = [given["x"], given["f"], given["c"]["v"], given["c"]["z"], given["k"], given["s"]]
    assert all(a is b for a, b in zip(now, arrays, strict=True))


@each_engine
def test_an_error_with_stop_leaves_the_failing_state(engine: str) -> None:
    given = cells()
    with pytest.raises(rvm.MachineError) as caught:
        rvm.assemble(ABSORB).absorb(**given, engine=engine, on_error="stop")
    assert given["x"].tolist() == [0.0] * 5, "all five have been pushed"
    assert given["s"] == [0.3, 0.0] + [1e16 + k for k in (0, 2, 2, 4, 4)]
    assert given["k"].tolist() == [7 + 25 + 33 + 50 + 100, 8, 9, 10, 11]
    machine = caught.value.values["machine"]
    assert machine["i"] == 4
    assert machine.where.line == 15
    assert machine.where.text.strip().startswith("add k[0]")


@each_engine
def test_an_error_on_the_way_back_leaves_the_results_as_they_were(engine: str) -> None:
    given = cells()
    given["k"][0] = 2
    del given["s"][:]
    before = as_bytes(given)
    with pytest.raises(rvm.RvmError):
        (~rvm.assemble(ABSORB).absorb)(**given, engine=engine)
    assert as_bytes(given) == before


# ------------------------------------------------------------------ depth and direction


@pytest.mark.deep
@each_engine
def test_recursion_a_hundred_thousand_deep(engine: str) -> None:
    limit, depth = sys.getrecursionlimit(), 100_000
    sys.setrecursionlimit(300)
    try:
        f = program("recursion").count.with_options(engine=engine)
        out = f(p=1, n=depth)
        assert out.p == 1 + depth * (depth + 1) // 2
        assert (~f)(**out) == {"p": 1, "n": depth}
        assert sys.getrecursionlimit() == 300
    finally:
        sys.setrecursionlimit(limit)


@each_engine
def test_uncall_in_a_run_that_goes_backwards(engine: str) -> None:
    text = """
func inner(y: i64)
    extern both
        callback say, y
    end
    add y, 10

func middle(y: i64)
    uncall inner(y)
    add y, 1

func outer(y: i64)
    uncall middle(y)
    call inner(y)
"""
    seen: list[int] = []
    outer = rvm.assemble(text).outer.with_options(engine=engine, callbacks={"say": seen.append})
    assert outer(y=0).y == 19
    assert seen == [-1, 9], "outer undoes middle, which undoes inner: that is done"
    assert (~outer)(y=19).y == 0
    assert seen == [-1, 9, 9, -1]


@each_engine
def test_a_run_turns_round_anywhere(engine: str) -> None:
    function = program("recursion")
    machine = rvm.Machine(function, "zigzag", p=3, n=6, engine=engine)
    total = machine.run().time
    for there in range(total + 1):
        machine.seek(there)
        assert machine.time == there
        machine.run_back()
        assert machine.result == {"p": 3, "n": 6}


# ------------------------------------------------------------------ aliasing from Python

MIX = "func mix(a: f64[n], b: f64[m], c: f64[k])\n    add a[0], sum(b) + sum(c)\n"


def test_one_array_as_two_arguments_is_refused_if_one_is_changed() -> None:
    mix = rvm.assemble(MIX).mix
    x = np.arange(6.0)
    for a, b in ((x, x), (x, x[2:4]), (x[:3], x[2:]), (x, x.reshape(2, 3)[1])):
        with pytest.raises(rvm.InputError) as caught:
            mix(a=a, b=b, c=np.ones(1))
        assert caught.value.code == "I007"
    assert mix(a=x[:3], b=x[3:], c=x[3:]).a[0] == 24.0, "apart, or only read, they may be one"


def test_one_array_as_two_fields_is_refused() -> None:
    text = "record Two\n    a: f64[2]\n    b: f64[2]\nend\nfunc f(p: Two)\n    add p.a, p.b\n"
    f, x = rvm.assemble(text).f, np.ones(2)
    with pytest.raises(rvm.InputError) as caught:
        f(p={"a": x, "b": x})
    assert caught.value.code == "I007"
    both = np.array([([1.0, 2.0], [3.0, 4.0])], dtype=[("a", "f8", 2), ("b", "f8", 2)])
    f(p=both[0])
    assert both["a"].tolist() == [[4.0, 6.0]]


# ------------------------------------------------------------------ limits


@thin
@pytest.mark.parametrize("limit", [{"max_steps": 4_000}, {"max_memory": 400_000}])
@each_engine
def test_limits_lose_nothing(engine: str, limit: dict[str, int]) -> None:
    deep = program("recursion")
    with pytest.raises(rvm.LimitError):
        deep.count(p=7, n=20_000, engine=engine, **limit)
    machine = rvm.Machine(deep, "count", p=7, n=20_000, engine=engine, **limit)
    with pytest.raises(rvm.LimitError) as caught:
        machine.run()
    assert caught.value.where.line in range(8, 12)
    assert machine.state.frames[0].regs[0] > 7, "the run has got somewhere"
    assert machine.run_back().result == {"p": 7, "n": 20_000}
    assert machine.time == 0
    machine.options.max_steps = machine.options.max_memory = None
    assert machine.run().result.p == 7 + 10_000 * 20_001
