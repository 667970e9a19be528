"""The past that a session shows is the past that was: against runs that only went forwards."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rvm_tools.debug import Session
from rvm_tools.debug.console import Console
from rvm_tools.debug.journeys import Onlooker
from rvm_tools.debug.keyframes import Keyframes
from rvm_tools.debug.reruns import Reruns
from sizes import thin, wide

import rvm
from rvm.engines import ENGINES
from rvm.state import Options

GROWING = """
func main(y: f64, x: f32[n], s: stack[f64], w: log64, z: c128, k: i64)
    for i = 1 to k
        add y, 1e10 * f64(i)
        mul y, 1.7
        call deep(x, y)
        mul w, log64(1.01)
        mul z, 0.9 + 0.3j
        if i % 5 == 0
            alloc a: f64 = 0.1
            push a, s
            free a
            alloc lost: f64 = y
            drop lost
        end
        sub y, 3.0
    end

func deep(x: f32[n], y: f64)
    add x[0], 1e8
    mul x, 0.37
    add x[1], x[0] * f32(1e-7)
    sub y, 0.125
"""
INPUTS: dict[str, Any] = {
    "y": 0.3,
    "x": np.array([0.1, 0.2, 3e-5], np.float32),
    "s": [0.7],
    "w": 1.5,
    "z": 0.1 + 0.7j,
}


def held(frames: Any) -> str:
    """All registers of all frames, to the bit."""
    return repr(
        [
            (f.code.name, f.pc, [v.tobytes() if isinstance(v, np.ndarray) else v for v in f.regs])
            for f in frames
        ]
    )


def session_of(k: int, engine: str = "auto", text: str = GROWING, **options: Any) -> Session:
    inputs = {**INPUTS, "k": k}
    made = rvm.Options(engine=engine)
    return Session(rvm.assemble(text), "main", inputs, made, say=lambda line: None, **options)


def pasts(k: int) -> list[str]:
    """What the registers held at every time of a run that only goes forwards."""
    session, out = session_of(k, "reference"), []
    while True:
        out.append(held(session.frames))
        if session.instruction().reason == "end":
            return [*out, held(session.frames)]


@pytest.fixture(scope="module")
def true() -> list[str]:
    return pasts(40)


@pytest.fixture(autouse=True)
def close_keyframes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short runs have many of them too."""
    monkeypatch.setattr("rvm_tools.debug.keyframes.FIRST", 64)
    monkeypatch.setattr("rvm_tools.debug.reruns.FINE", 30)


@thin
@pytest.mark.parametrize("engine", [n for n, row in ENGINES.items() if row.missing() is None])
def test_all_that_is_shown_of_the_past_was_so(engine: str, true: list[str]) -> None:
    """A walk of all kinds of moves; at each stop, every register of every frame."""
    rng, session = random.Random(engine), session_of(40, engine)
    session.find_end()
    stops = [session.break_at("11", "i > 3"), session.break_at("deep"), session.break_at("19")]
    session.watch("x[1]")
    session.watch("y", "i % 2 == 0")
    for _ in range(150):
        way = rng.choice([1, -1, -1])
        session.enable(rng.choice(stops).number, rng.random() < 0.5)
        move = rng.randrange(6)
        if move == 0:
            session.goto(rng.randrange(len(true)))
        elif move == 1:
            session.resume(way)
        elif move == 2:
            session.finish(way)
        elif move == 3:
            session.select(0)
            session.seek_write("y", way)
        else:
            (session.step, session.next, session.instruction)[move % 3](rng.randrange(9), way)
        assert held(session.frames) == true[session.time], (session.stop, move)
        assert session.machine.direction == 1


@wide
def test_stops_on_the_way_back_are_those_on_the_way_out() -> None:
    for text in ("y", "x[0]", "z.re"):
        session = session_of(15)
        session.watch(text)
        session.break_at("12")
        out, back = [], []
        while session.resume().reason != "end":
            out += [e.data for e in session.stop.events if e.kind == "watchpoint"]
        while session.resume(-1).reason != "start":
            back += [e.data for e in session.stop.events if e.kind == "watchpoint"]
        assert out and [(d["new"], d["old"]) for d in reversed(back)] == [
            (d["old"], d["new"]) for d in out
        ]


@pytest.mark.parametrize("budget", [3_000, 20_000, 1 << 20])
def test_keyframes_stay_within_their_budget(budget: int, true: list[str]) -> None:
    session = session_of(40, keyframes=budget)
    past: Keyframes = session._travel.past
    session.resume()
    for time in (300, 299, 17, 298, 0, 250):
        session.goto(time)
        assert held(session.frames) == true[time]
        session.instruction(3, -1)
        assert held(session.frames) == true[max(0, time - 3)]
        assert past.size <= budget or len(past._keys) <= 1


def test_a_long_way_back_without_a_stop_takes_a_few_times_its_length() -> None:
    """In ticks, of any engine."""
    session = session_of(400)
    length = session.find_end()
    session.break_at("5", "i == 2")
    session.goto(length)
    work = session.work
    assert session.resume(-1).reason == "breakpoint"
    assert session.work - work < 6 * length


def test_the_inverse_code_computes_another_past_and_says_so(tmp_path: Path) -> None:
    console = Console(session_of(40))
    session = console.session
    session.goto(200)
    there = held(session.frames)
    answer = console.execute("back --inverse")
    assert "computed by the inverse code" in answer.text and " computed " in console.prompt()
    assert session.stop.reason in ("start", "error")
    assert session.machine.state.frames[0].regs[0] != 0.3
    refused = console.execute(f"save {tmp_path / 'a.rdb'}").error
    assert refused is not None and refused.code == "U037"
    console.execute("restart")
    session.goto(200)
    assert held(session.frames) == there


def test_what_is_saved_has_the_edits(tmp_path: Path) -> None:
    console = Console(session_of(40))
    for line in ("goto 100", "set y = 0.25", "goto 60", "set x[1] = f32(7.5)", "goto 210"):
        assert console.execute(line).error is None
    # The second edit came earlier: what was after it is another run.
    assert [e.time for e in console.session.edits] == [60]
    for line in ("goto 130", "set y = y + 1.0", "goto 210", "mark here"):
        assert console.execute(line).error is None
    assert [e.time for e in console.session.edits] == [60, 130]
    there = held(console.session.frames)
    file = tmp_path / "session.rdb"
    assert console.execute(f"save {file}").error is None
    again = Console(session_of(40))
    assert again.execute(f"source {file}").error is None
    assert again.session.time == 210 and held(again.session.frames) == there
    for time, same in ((59, True), (60, False), (129, False), (209, False), (0, True)):
        again.session.goto(time)
        console.session.goto(time)
        fresh = session_of(40)
        fresh.goto(time)
        assert held(again.session.frames) == held(console.session.frames)
        assert (held(fresh.frames) == held(console.session.frames)) == same


@pytest.mark.parametrize("computed", [False, True])
def test_interrupts_at_the_end_of_a_way_back_leave_what_was(
    computed: bool, true: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = session_of(40)
    session.goto(200)
    at = Reruns.at

    def interrupted(*given: Any) -> Any:
        session.interrupt()
        return at(*given)

    monkeypatch.setattr(Reruns, "at", interrupted)
    stop = session.compute_back(20) if computed else session.instruction(20, -1)
    assert (stop.reason, stop.time) == ("step", 180)
    assert session.machine.state.residue is None
    if computed:
        assert session.diverged == 180
    else:
        assert held(session.frames) == true[180]


def test_progress_of_repeated_runs_is_reported() -> None:
    """Runs again go from an earlier state forwards, and the way back then goes on to its goal."""
    own: list[tuple[int, int | None]] = []
    again: list[tuple[int, int]] = []

    class Told(Onlooker):
        def sets_out(self, machine: rvm.Machine, goal: int | None) -> None:
            if machine is session.machine:
                own.append((machine.time, goal))
            else:
                assert goal is not None
                again.append((machine.time, goal))

    session = session_of(40)
    session.goto(200)
    session.watched_by(Told())
    session.goto(150)
    assert (own, again) == ([], [(128, 150)])
    again.clear()
    session.instruction(70, -1)
    assert again and all(time < goal <= 150 for time, goal in again)
    assert own[0] == (150, 80) and {goal for _, goal in own} == {80}


OFF = """
func main(x: f64, y: f64)
    alloc t: f64
    add t, x
    add t, 1e3
    add y, t
    sub t, x
    sub t, 1e3
    free t
    add y, 1
"""


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("tolerance", [None, 1e-9])
def test_what_is_known_of_sizes_is_as_it_was_after_a_way_back_over_a_free(
    tolerance: float | None, strict: bool
) -> None:
    """A wrong value is refused there as if the session had never been further."""
    options = Options(strict=strict, tolerance=tolerance)
    for further in (False, True):
        session = Session(rvm.assemble(OFF), "main", {"x": 0.1, "y": 0.2}, options)
        session.break_at("9")
        assert session.resume(1).reason == "breakpoint"
        if further:
            assert session.goto(1 << 60).reason == "end"
            assert session.resume(-1).reason == "breakpoint"
        session.set("t", "1e-3")
        stop = session.resume()
        assert stop.error is not None and stop.error.code == "R001"
