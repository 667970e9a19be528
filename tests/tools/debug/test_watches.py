"""Watches and tracepoints: what they stop at, in which call, on which engine."""

from __future__ import annotations

import numpy as np
import pytest
from rvm_tools.debug import Session
from rvm_tools.debug.console import Console
from sizes import thin, wide
from tools.debug.consoles import RECURSIVE, console_of

import rvm
from rvm.engines import having
from rvm.state import Options


def frames_of(session: Session) -> list[tuple[str, int, int]]:
    return [(f.code.name, f.pc, f.regs[0]) for f in session.frames]


def test_a_watch_belongs_to_one_call_and_sleeps_outside_it() -> None:
    """Recursion has many registers `k`; the one that is watched is found again on the way back."""
    session = console_of(RECURSIVE, "main", n=6, out=0).session
    session.break_at("10", "n == 4")
    assert session.resume().reason == "breakpoint"
    begun = frames_of(session)
    session.delete(1)
    watch = session.watch("k")
    times = []
    while (stop := session.resume()).reason == "watchpoint" and watch.awake:
        times.append(stop.time)
    # k is made as 3, the call leaves it, it goes down to 2, and is freed.
    assert len(times) == 3 and not watch.awake
    assert "sleeps" in stop.events[0].text
    session.goto(1 << 60)
    assert session.stop.reason == "end"
    back = []
    while (stop := session.resume(-1)).reason == "watchpoint" and stop.events[0].data:
        back.append(stop.time + 1)
    assert back == times[::-1]
    session.goto(watch.born or 0)
    assert not [t for t in back if t <= session.time]
    session.resume()
    assert session.time == times[0] and frames_of(session)[:-1] == begun[:-1]


EVERY_KIND = """\\
func kinds(b: bool, u: u8, z: c128, q: fixed, g: log64, f: f32, x: i64[n], w: c128[n], s: i64)
    for i = 0 to 39
        add x[i % n], i // 7
        add w[i % n].im, 0.5
        add w[(i + 1) % n].re, f64(i // 10)
        if i % 9 == 4, i % 9 == 4
            not b
            add u, 3
            add z.re, 1
            sub z.im, 0.5
            add q, 0.25
            mul g, 2
            add f, 1.5
            call bump(s, x[1:n])
        end
    end

func bump(t: i64, y: i64[m])
    add t, y[0] // 4
    add y[1], 5
"""


@thin
@pytest.mark.parametrize(
    "place",
    ["b", "u", "z", "z.re", "z.im", "q", "g", "f", "s", "x[2]", "w[1]", "w[2].im", "x", "x[1:3]"],
)
def test_watches_stop_alike_on_all_engines(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of every kind: in registers and arrays, whole and in part, there and back."""
    pytest.importorskip("llvmlite")
    monkeypatch.setattr("rvm_tools.debug.warmup.WARM", 0)
    program = rvm.assemble(EVERY_KIND)
    found = {}
    for engine in having("traps"):
        inputs: dict[str, object] = {
            "b": False,
            "u": 0,
            "z": 0j,
            "q": 0,
            "g": 1.0,
            "f": 0.0,
            "s": 0,
        }
        inputs |= {"x": np.zeros(3, np.int64), "w": np.zeros(3, np.complex128)}
        session = Session(program, "kinds", inputs, Options(engine=engine))
        session.watch(place)
        stops = []
        for direction in (1, -1):
            while (stop := session.resume(direction)).reason == "watchpoint":
                stops.append((stop.time, stop.function, stop.pc, stop.events[0].text))
            stops.append((stop.time, stop.reason, 0, ""))
        found[engine] = stops
        forth = [s for s in stops if "(undone)" not in s[3]]
        assert len(stops) - len(forth) == len(forth) - 2, "each change is undone once"
    assert len(found["reference"]) > 4
    assert found["python"] == found["reference"]
    assert found["native"] == found["reference"]


@wide
@pytest.mark.parametrize("direction", [1, -1])
def test_what_is_printed_on_the_way_does_not_end_a_step_over_or_out_of_a_call(
    direction: int,
) -> None:
    """A tracepoint, or a stop passed by `ignore`, in what is called: the goal stays the same."""

    def arrivals(*setup: str) -> list[tuple[str, int, int]]:
        session = console_of(RECURSIVE, "main", n=6, out=0).session
        console = Console(session)
        session.goto(0 if direction > 0 else 1 << 60)
        for command in setup:
            assert console.execute(command).error is None
        found = []
        for _ in range(3):
            stop = session.next(1, direction)
            found.append((stop.reason, stop.time, len(session.frames)))
        session.goto(100)
        for _ in range(3):
            stop = session.finish(direction)
            found.append((stop.reason, stop.time, len(session.frames)))
        return found

    plain = arrivals()
    assert arrivals('tp fib "{n}"') == plain
    assert arrivals("b 11", "ignore 1 1000000") == plain


@wide
def test_a_tracepoint_tells_of_every_call_of_a_deep_recursion_both_ways() -> None:
    source = """\
func deep(n: i64, out: i64)
    if n == 0, n == 0
        add out, 1
    else
        alloc k: i64 = n - 1
        call deep(k, out)
        free k = n - 1
    end
"""
    console = console_of(source, "deep", n=2000, out=0)
    console.execute('tp deep "{n}"')
    there = [k.text for k in console.execute("c").lines if k.style == "printed"]
    # Where the run stands when it begins, it does not come to.
    assert there == [f"> {n}" for n in range(1999, -1, -1)]
    back = [k.text for k in console.execute("rc").lines if k.style == "printed"]
    assert back == [f"< {n}" for n in range(2001)]


CONDITIONS = [
    ("out", "out > 3"),
    ("out", "out % 2 == 0 and out > 0"),
    ("out", "n > 3 and out < 4"),
    ("x[2]", "x[2] > 1"),
    ("x[2]", "n > 2"),
    ("x[2]", "x[0] + x[1] < x[2]"),
    ("x", "x[1] == x[3]"),
]


@thin
@pytest.mark.parametrize("place, text", CONDITIONS)
@pytest.mark.parametrize("engine", having("traps"))
def test_conditions_of_watches_hold_where_the_place_is_passed_on(
    place: str, text: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the stops of the same watch without a condition, with the condition asked there."""
    if engine == "native":
        pytest.importorskip("llvmlite")
    monkeypatch.setattr("rvm_tools.debug.warmup.WARM", 0)
    source = """\
func fib(n: i64, out: i64, x: i64[m])
    if n < 2, n < 2
        add out, n
        add x[out % m], 1
    else
        alloc k: i64 = n - 1
        call fib(k, out, x)
        sub k, 1
        call fib(k, out, x)
        add x[n % m], n
        free k = n - 2
    end
"""

    def stops(condition: str, direction: int) -> list[int]:
        inputs = {"n": 7, "out": 0, "x": np.zeros(4, np.int64)}
        session = Session(rvm.assemble(source), "fib", inputs, Options(engine=engine))
        session.goto(0 if direction > 0 else 1 << 60)
        session.watch(place, condition)
        found = []
        while (stop := session.resume(direction)).reason == "watchpoint":
            frames = session.frames
            session.select(0)
            # The outermost frame's scalars are those of now, wherever they were passed to.
            if condition or session.evaluate(text)[1]:
                found.append(stop.time)
            assert frames is session.frames
        return found

    for direction in (1, -1):
        asked = stops("", direction)
        assert asked and stops(text, direction) == asked


def test_a_watch_stops_at_edits_both_ways_and_shows_the_values() -> None:
    """At a time with an edit, a tick and the edit may both change the place."""
    for going in ("exact", "rounded"):
        t = {"exact": "i64", "rounded": "f64"}[going]
        source = f"func main(x: {t}, n: i64)\n    for i = 1 to n\n        add x, 3\n    end\n"
        session = console_of(source, "main", x=0, n=3).session
        session.watch("x")
        shown = [session.resume().events[0].text.split("  ")[1] for _ in range(2)]
        session.set("x", "100")
        session.goto(0)
        texts = []
        for way in (1, -1):
            while (stop := session.resume(way)).events:
                texts.append([e.text.partition("x  ")[2].replace(".0", "") for e in stop.events])
        assert [s.replace(".0", "") for s in shown] == ["0 -> 3", "3 -> 6"]
        assert texts[:3] == [["0 -> 3"], ["3 -> 6", "6 -> 100  (edited)"], ["100 -> 103"]]
        undone = [["103 -> 100  (undone)"], ["100 -> 3  (edit undone)"], ["3 -> 0  (undone)"]]
        assert texts[3:] == undone
        console, time = Console(session), session.edits[0].time
        for command in ("last x", "origin x"):
            session.goto(time + 1)
            session.goto(time)
            assert f"edited at t={time}" in console.execute(command).text
            assert session.time == time - 1


def test_a_watchpoint_of_a_call_wakes_after_a_jump_into_it_and_after_restart() -> None:
    """Where rounding makes a session jump to an earlier time, as where it runs back to it."""
    found = []
    for t in ("i64", "f64"):
        source = f"""\
func main(x: {t}, n: i64)
    for i = 1 to n
        call change(x, i)
    end

func change(p: {t}, i: i64)
    add p, 1
    alloc k: {t} = p
    add p, 2
    sub k, p - 2
    free k
"""
        session = console_of(source, "main", x=0, n=9).session
        session.break_at("change", "i == 5")
        session.resume()
        session.delete(1)
        session.instruction()
        session.watch("k")
        times = []
        for there in (10**9, session.time + 1, 0, 10**9):
            session.goto(there)
            for way in (1, -1):
                while (stop := session.resume(way)).reason == "watchpoint":
                    times.append((stop.time, stop.events[0].text.replace(".0", "")))
        assert session.restart().time == 0
        while (stop := session.resume()).reason == "watchpoint":
            times.append((stop.time, stop.events[0].text.replace(".0", "")))
        found.append(times)
        assert len({time for time, _ in times}) >= 4
    assert found[0] == found[1]


def test_watchpoints_of_calls_that_an_edit_may_prevent_are_removed_and_named() -> None:
    said: list[str] = []
    source = "func main(x: i64)\n    call f(x)\n    call f(x)\n\nfunc f(y: i64)\n    add y, 1\n"
    session = Session(rvm.assemble(source), "main", {"x": 0}, say=said.append)
    for place in ("x", "y"):
        session.goto(1)
        session.select(len(session.frames) - 1 if place == "y" else 0)
        session.watch(place)
    session.goto(0)
    assert not said
    session.set("x", "5")
    assert [w.text for w in session.watches] == ["x"]
    assert len(said) == 1 and "`y`" in said[0] and "`f`" in said[0]
