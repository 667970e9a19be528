"""What a session says of costs: energy, profiles, parts of the way."""

from __future__ import annotations

import math
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from rvm_tools.debug import Session
from rvm_tools.debug.console import Console
from rvm_tools.trace.run import TraceRequest, traced
from rvm_tools.trace.table import joules
from sizes import wide
from tools.debug.consoles import CORPUS, LOOP, RECURSIVE, console_of

import rvm
from rvm.state import Options

LOSING = """\
func losing(y: i64, n: i64)
    for i = 1 to n
        alloc t: i64
        add t, i * i
        drop t
        add y, i
    end
"""


BIT = 1.380649e-23 * 300.0 * math.log(2.0)


def test_energy_is_that_of_the_way_from_the_start_to_here() -> None:
    """Against fresh runs to those times, in an order that goes back and forth."""
    console = console_of(LOSING, "losing", y=0, n=9)
    session = console.session

    def erased(time: int) -> int:
        machine = rvm.Machine(session.program, "losing", y=0, n=9, engine="reference")
        machine.seek(time)
        return machine.erased_bits

    assert "[t=0 0 J >]" in console.prompt()
    for goal in (20, 31, 45):
        session.goto(goal)
        assert session.erased == erased(goal)
        number, unit, _ = console.prompt().removesuffix("] ").split()[-3:]
        power = {"zJ": 1e-21, "aJ": 1e-18}[unit]
        assert float(number) * power == pytest.approx(erased(goal) * BIT, rel=1e-2)
    # Inside an iteration, after its `drop`: what was erased is there again.
    for _ in range(12):
        session.instruction(1, -1)
        assert session.erased == erased(session.time)
    session.instruction(1)
    assert session.erased == erased(34)
    answer = console.execute("start")
    assert answer.error is None and session.erased == 0
    session.goto(31)
    assert session.erased == erased(31)


def test_energy_by_a_model_is_counted_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / "losing.rasm"
    path.write_text(LOSING, encoding="utf-8")
    console = Console(Session(rvm.load(path), "losing", {"y": 0, "n": 9}))
    console.execute("goto 40")
    work = console.session.work
    for name in ("cmos", "adiabatic"):
        trace = traced(TraceRequest(str(path), ("y=0", "n=9"), energy=name, end=40))
        answer = console.execute(f"energy {name}")
        found = answer.as_json()["energy"]
        assert found["joules"] == pytest.approx(trace.joules(trace.all), rel=1e-12)
        text = answer.text
        assert f"energy  {joules(trace.joules(trace.all))} by `{name}`" in text
    assert (console.session.time, console.session.work) == (40, work)
    assert "adiabatic" in console.execute("energy").text, "the model is kept"
    assert console.execute("energy coal").error.code == "U039"  # type: ignore[union-attr]
    console.execute("set y = 3")
    assert console.execute("energy").error.code == "U037"  # type: ignore[union-attr]


@wide
def test_ctrl_c_ends_the_counting_and_leaves_the_session_where_it_is() -> None:
    program = rvm.assemble(LOOP, "text.rasm")
    inputs = {"x": 0, "y": 1, "n": 50_000_000}
    console = Console(Session(program, "walk", inputs, Options(engine="python")))
    console.session.goto(10_000_000)
    stop = console.session.stop
    thread = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    thread.start()
    answer = console.execute("energy cmos")
    thread.join()
    assert answer.text.endswith("interrupted") and "joules" not in answer.data
    assert console.session.stop == stop and console.session.time == 10_000_000
    assert console.execute("si").error is None


def test_a_profile_of_what_has_erased_is_counted_in_a_run_of_its_own() -> None:
    console = console_of(LOSING, "losing", y=0, n=9)
    first = console.execute("prof 0 50").lines
    console.execute("end")
    stop = console.session.stop
    again = console.execute("prof 0 50").lines
    assert [k.text for k in again] == [k.text for k in first]
    assert console.session.stop == stop and console.session.machine["y"] == 45


def test_looking_elsewhere_is_not_a_visit() -> None:
    console = console_of(RECURSIVE, "main", n=6, out=0)
    for command in ("goto 50", "goto 80", "inverse", "prof start end", "energy cmos", "back"):
        console.execute(command)
    assert console.session.time == 50


def test_a_walk_to_an_origin_is_one_visit() -> None:
    source = (CORPUS.parents[2] / "examples" / "sort.rasm").read_text(encoding="utf-8")
    inputs = {"x": np.array([9, 4, 7, 1]), "p": np.zeros(4, np.int64)}
    console = console_of(source, "sort", **inputs)
    for command in ("end", "origin x[0]", "back"):
        assert console.execute(command).error is None
    assert console.session.time == 144
    console.execute("forward")
    assert console.session.time == 0


@pytest.mark.parametrize("kind", ["i64", "f64", "fixed", "c128", "log64", "bool"])
def test_the_origin_of_what_a_stack_shows(kind: str) -> None:
    value = "false" if kind == "bool" else f"{kind}(1)"
    source = f"func f(s: stack[{kind}])\n alloc t: {kind} = {value}\n push t, s\n free t\n"
    console = console_of(source, "f", s=[True if kind == "bool" else 2])
    for place in ("s.top", "top(s)", "len(s)", "s"):
        assert "an input" in console.execute(f"origin {place}").text
        console.execute("end")
        assert "made here by `push`" in console.execute(f"origin {place}").text
        console.execute("start")


def test_a_profile_counts_alike_whatever_is_watched() -> None:
    console = console_of(RECURSIVE, "main", n=6, out=0)
    plain = [k.text for k in console.execute("prof start end").lines]
    for command in ("b fib if n == 3", "c", "watch out", "rwatch n", "fin"):
        assert console.execute(command).error is None
    stop, asleep = console.session.stop, [w.awake for w in console.session.watches]
    assert [k.text for k in console.execute("prof start end").lines] == plain
    assert console.session.stop == stop
    assert [w.awake for w in console.session.watches] == asleep


def test_per_cent() -> None:
    from rvm_tools.debug.console import share_text

    assert [share_text(t, 10**6) for t in (0, 5, 123456, 999_999, 10**6)] == [
        "0%",
        "0.0005%",
        "12.3%",
        "99.9%",
        "100%",
    ]
