"""Limits, seeking and Ctrl-C at the speed of machine code: exact to the tick, both ways."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from attack.programs import sound as random_programs
from hypothesis import given
from hypothesis import strategies as st
from sizes import examples

import rvm
from rvm.engines import LAW
from rvm.faults import LimitError
from rvm.run.machine import Machine

pytest.importorskip("llvmlite")

SUM = """
func main(s: i64, n: i64)
    for i = 1 to n
        add s, i
    end
"""
FAR = 10**9
"""Rounds of a loop that no engine but machine code gets through in a test."""


def place(m: Machine) -> Any:
    """Where a machine stands, with all it holds."""
    return (
        m.time,
        [(f.code.name, f.code.undo, f.pc, [_plain(v) for v in f.regs]) for f in m.state.frames],
        replace(m.state.account),
    )


def _plain(v: Any) -> Any:
    return v.tolist() if isinstance(v, np.ndarray) else list(v) if isinstance(v, list) else v


def expected(m: Machine) -> dict[str, Any]:
    """The registers at a machine's time: those at the same place in an early round, moved on."""
    near = Machine(m.program, "main", s=0, n=FAR, engine="reference")
    near.seek(300 + m.time % 3)
    found = near.registers()
    early = found["i"]
    added = found["s"] - early * (early - 1) // 2
    assert added in (0, early), "this round's number may have been added, or not yet"
    i = early + (m.time - near.time) // 3
    return {**found, "i": i, "s": i * (i - 1) // 2 + (i if added else 0)}


@pytest.mark.parametrize("t", [10**9, 10**9 + 1, 2 * 10**9 + 2])
def test_seek_is_exact_far_away(t: int) -> None:
    m = Machine(rvm.assemble(SUM), "main", s=0, n=FAR, engine="native")
    assert m.seek(t) == t
    assert m.registers() == expected(m)
    assert m.seek(t - 7) == t - 7
    assert m.registers() == expected(m)
    assert m.seek(0) == 0
    assert m.result == {"s": 0, "n": FAR}


@pytest.mark.parametrize("undo", [False, True])
def test_a_far_limit_on_steps_is_met_to_the_tick(undo: bool) -> None:
    program, limit = rvm.assemble(SUM), 10**9 + 1
    inputs = {"s": FAR * (FAR + 1) // 2 if undo else 0, "n": FAR}
    options = rvm.Options(engine="native", max_steps=limit)
    m = Machine.start(program, "main", inputs, options, undo=undo)
    with pytest.raises(LimitError) as caught:
        m.run()
    assert (caught.value.code, caught.value.time, m.time) == ("R010", limit, limit)
    if not undo:
        assert m.registers() == expected(m)
    assert m.run_back().result == inputs, "nothing is lost"
    assert m.time == 0


@examples(25)
@given(st.integers(0, 10**9), st.lists(st.integers(0, 500), min_size=1, max_size=4), st.booleans())
def test_limits_on_steps_stop_where_stepping_would(seed: int, limits: list[int], on: bool) -> None:
    """`on`: the machine goes on with a higher limit, or begins anew."""
    program = rvm.assemble(random_programs.program(seed))
    machines = []
    for engine in (LAW, "native"):
        options = rvm.Options(engine=engine)
        machines.append(Machine.start(program, "main", random_programs.inputs(seed), options))
    for limit in sorted(limits):
        for m in machines:
            m.options.max_steps = limit
            try:
                m.run()
            except LimitError:
                assert m.time == limit
            else:
                assert m.finished
        assert place(machines[0]) == place(machines[1])
        if not on:
            for m in machines:
                m.run_back()
            assert place(machines[0]) == place(machines[1])


MEMORY = """
func main(p: i64, n: i64)
    alloc a: i64[n % 5 + 1] = n
    add p, sum(a)
    if n > 0
        alloc k: i64 = n - 1
        call main(p, k)
        free k = n - 1
    end
    free a = n
"""


@examples(30)
@given(st.integers(16, 20_000))
def test_a_limit_on_memory_stops_where_stepping_would(limit: int) -> None:
    program = rvm.assemble(MEMORY)
    seen: list[tuple[Any, ...]] = []
    for engine in (LAW, "native"):
        m = Machine(program, "main", p=0, n=40, engine=engine, max_memory=limit)
        code = ""
        try:
            m.run()
        except LimitError as error:
            code = error.code
            assert m.state.account.peak_bytes <= max(limit, m.state.account.live_bytes)
        seen.append((code, place(m)))
        m.options.max_memory = None
        m.run()
        assert m.finished
        seen[-1] += (place(m),)
        m.run_back()
        assert m.result == {"p": 0, "n": 40}
    assert seen[0] == seen[1]
    assert seen[0][0] in ("", "R011")


def test_ctrl_c_in_a_call_leaves_the_callers_data_alone() -> None:
    text = (
        "func f(x: f64[m], n: i64)\n    for i = 1 to n\n"
        "        add x[i % 4], 0.5\n        add x[(i + 1) % 4], 0.25\n    end\n"
    )
    f = rvm.assemble(text).f.with_options(engine="native")
    x = np.zeros(4)
    f(x=x, n=10)
    before = x.copy()
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)

    def press() -> None:
        while np.array_equal(x, before):
            time.sleep(0.001)
        time.sleep(0.3)  # A call begins without a machine, and then its errors tell no time.
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    try:
        with pytest.raises(rvm.Interrupted) as caught:
            f(x=x, n=10**11)
    finally:
        thread.join()
        signal.signal(signal.SIGINT, handler)
    assert caught.value.time is not None and caught.value.time > 0
    assert np.array_equal(x, before)
