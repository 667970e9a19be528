"""The debugger's full screen: keys, clicks and the command line, as its pilot drives them."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rvm_tools.debug import Session, tui
from rvm_tools.debug.front import gradient_of
from sizes import wide
from tools.debug.consoles import LOOP
from tools.running import GOLDEN, golden
from tools.running import rvm as run

import rvm
from rvm.program import Program
from rvm.run.machine import Machine

pytest.importorskip("textual", reason="the extra `tui`")

from rvm_tools.debug.tui.app import Screenful
from rvm_tools.debug.tui.bars import LEFT, RIGHT, Timeline, short
from rvm_tools.debug.tui.panes import CodePane, RowsPane, TimelinePane
from rvm_tools.debug.tui.past import MAX_SAMPLES, Past, Sample
from rvm_tools.trace.energy import cmos, landauer
from rvm_tools.trace.run import TraceRequest, traced
from rvm_tools.trace.table import joules
from textual.pilot import Pilot

EXAMPLES = Path(__file__).parents[3] / "examples"
SORT = {"x": [9, 4, 7, 1], "p": [0, 0, 0, 0]}

Play = Callable[[Screenful, Pilot[None]], Awaitable[None]]


def sort() -> Session:
    program = rvm.load(EXAMPLES / "sort.rasm")
    values = {name: np.array(v) for name, v in SORT.items()}
    return Session(program, "sort", values, say=lambda line: None)


def walk(n: int) -> Session:
    program = rvm.assemble(LOOP, "walk.rasm")
    return Session(program, "walk", {"x": 100, "y": 2, "n": n}, say=lambda line: None)


def play(session: Session, script: Play, size: tuple[int, int] = (80, 24), **more: Any) -> None:
    """Run a script of key presses on a screen of a size."""

    async def main() -> None:
        app = Screenful(session, **more)
        async with app.run_test(size=size) as pilot:
            await rest(app, pilot)
            await script(app, pilot)

    asyncio.run(main())


async def rest(app: Screenful, pilot: Pilot[None]) -> None:
    """Until nothing runs and everything is shown."""
    while app.busy or app._waiting:
        await asyncio.sleep(0.005)
    await pilot.pause()


async def press(app: Screenful, pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await rest(app, pilot)


async def enter(app: Screenful, pilot: Pilot[None], text: str) -> None:
    """Run a line of the command line, and leave it."""
    app.action_type(text)
    await pilot.press("enter")
    await rest(app, pilot)
    app.action_stop()


def screen(app: Screenful) -> str:
    """What is on the screen, as text."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips) + "\n"


def rows(app: Screenful, pane: str) -> list[str]:
    return [line.text for line in app.query_one(f"#{pane}", RowsPane).rows]


def picture(machine: Machine) -> list[Any]:
    return [
        (f.code.name, f.pc, [v.tolist() if isinstance(v, np.ndarray) else v for v in f.regs])
        for f in machine.state.frames
    ]


# ---------------------------------------------------------------- going

WAYS: dict[str, Callable[[Session], object]] = {
    "s": lambda s: s.step(),
    "S": lambda s: s.step(1, -1),
    "n": lambda s: s.next(),
    "N": lambda s: s.next(1, -1),
    "i": lambda s: s.instruction(),
    "I": lambda s: s.instruction(1, -1),
    "f": lambda s: s.finish(),
    "F": lambda s: s.finish(-1),
    "c": lambda s: s.resume(),
    "C": lambda s: s.resume(-1),
    "home": lambda s: s.goto(0),
    "end": lambda s: s.goto(1 << 62),
}


@wide
def test_keys_move_as_a_session_without_a_screen_does() -> None:
    plain = sort()
    plain.break_at("merge")

    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        await enter(app, pilot, "b merge")
        for key in (*"sssiiccFnssfSNIcCC", "end", *"II", "home", *"nnc"):
            WAYS[key](plain)
            await press(app, pilot, key)
            assert app.session.time == plain.time, key
            assert picture(app.session.machine) == picture(plain.machine), key

    play(sort(), script)


@wide
def test_lower_case_goes_forwards_whatever_the_prompt_does() -> None:
    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        await enter(app, pilot, "goto 20")
        await enter(app, pilot, "direction reverse")
        await press(app, pilot, "i")
        assert app.session.time == 21
        await enter(app, pilot, "si")
        assert app.session.time == 20
        await press(app, pilot, "I")
        assert app.session.time == 19

    play(sort(), script)


@wide
def test_enter_repeats() -> None:
    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        await press(app, pilot, "i", "enter", "enter")
        assert app.session.time == 3

    play(sort(), script)


def test_keys_pressed_ahead_are_not_lost() -> None:
    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        app.action_go("end")
        app.action_go("rsi")
        app.action_view(1)
        app.action_array(1)
        assert app.busy == "end" and app.view == "source"
        await rest(app, pilot)
        assert app.session.time == 143
        assert (app.view, app.array) == ("bytecode", "x")

    play(sort(), script)


@wide
@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
def test_a_run_is_stopped_in_either_direction(key: str) -> None:
    async def until_running(app: Screenful, pilot: Pilot[None]) -> None:
        while app.busy and app.session.machine.time == app.session.stop.time:
            await asyncio.sleep(0.02)

    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        await pilot.press("c")
        await until_running(app, pilot)
        assert app.busy == "c"
        await asyncio.sleep(0.25)
        status = screen(app).splitlines()[0]
        assert "`c` running" in status and "Esc stops" in status, "where the end is, nobody knows"
        await press(app, pilot, key)
        there = app.session.time
        assert app.session.stop.reason == "interrupted"
        assert 0 < there < 10**12
        # Each passing is counted: the way back would take far longer than the way there.
        app.session.ignore(app.session.break_at("3").number, 10**15)
        await pilot.press("C")
        await until_running(app, pilot)
        assert re.fullmatch(r"[━─]{20} \d+%", app.journey.bar())
        await press(app, pilot, key)
        assert app.session.stop.reason == "interrupted"
        assert 0 < app.session.time < there
        await press(app, pilot, "home", "i")
        assert app.session.time == 1

    play(walk(10**12), script)


# ---------------------------------------------------------------- the timeline


@wide
def test_a_click_on_the_timeline_seeks() -> None:
    length = sort().find_end()

    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        await press(app, pilot, "end")
        assert app.session.time == length
        cells = 80 - LEFT - RIGHT
        for cell in (0, 17, 30, cells - 1, 1):
            await pilot.click("#timeline", offset=(LEFT + cell, 1))
            await rest(app, pilot)
            time = round(length * cell / (cells - 1))
            assert app.session.time == time
            fresh = sort()
            fresh.goto(time)
            assert picture(app.session.machine) == picture(fresh.machine)
        await pilot.click("#timeline", offset=(2, 1))
        await rest(app, pilot)
        assert app.session.time == time

    play(sort(), script)


@wide
def test_marks_and_hits_stand_where_they_are_in_time() -> None:
    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        await press(app, pilot, "end")
        await enter(app, pilot, "goto 72")
        await enter(app, pilot, "mark half")
        await enter(app, pilot, "start")
        await enter(app, pilot, "b merge")
        await press(app, pilot, "c")
        line = app.query_one(TimelinePane).timeline
        shown = screen(app).splitlines()
        events = next(row for row in shown if row.startswith("events"))
        bar = next(row for row in shown if row.startswith("time "))
        assert events.index("◆") - LEFT == line.cell(72)
        assert events.index("●") == bar.index("█")
        assert bar.index("█") - LEFT == line.cell(app.session.time)
        assert bar.endswith("of 144")

    play(sort(), script)


def test_columns_and_times() -> None:
    line = Timeline(cells=11, extent=1000, known=True, time=500)
    assert [line.time_at(k) for k in (0, 3, 10)] == [0, 300, 1000]
    assert [line.cell(t) for t in (0, 300, 1000, 5000)] == [0, 3, 10, 10]
    assert [len(part) for part in line.bar()] == [5, 1, 5]
    assert Timeline(11, 1000, False, 500).bar()[2].endswith("?")
    memory = {0: Sample(8, 0), 1000: Sample(16, 0)}
    assert line.memory(memory) == ("▄         █", "")
    assert line.memory({500: Sample(9, 0)}) == ("     █     ", "9 B")
    assert [short(n) for n in (0, 999_999, 4_524_158_300)] == ["0", "999,999", "4.52 G"]
    assert short(51_200_016, "B") == "51.2 MB"


def test_energy_is_joules_a_step_and_their_sum() -> None:
    line = Timeline(cells=11, extent=1000, known=True, time=500)
    bit = 1.380649e-23 * 300.0 * math.log(2.0)
    bits = {0: Sample(8, 0), 500: Sample(8, 64), 1000: Sample(8, 192)}
    # 64 bits in the first half, 128 in the second: twice the power.
    assert line.energy(bits, landauer()) == ("▄▄▄▄▄▄█████", f"{64 * bit * 1e21:.1f} zJ")
    later = Timeline(cells=11, extent=1000, known=True, time=750)
    assert later.energy(bits, landauer())[1] == f"≈{128 * bit * 1e21:.1f} zJ"
    # What operations take is not known where none were counted.
    assert line.energy(bits, cmos()) == (" " * 11, "")
    assert line.energy({0: Sample(8, 0), 1000: Sample(8, 0)}, landauer()) == ("▁" * 11, "0 J")


LOSSY = """\
func lossy(x: i64, n: i64)
    for i = 1 to n
        alloc t: i64
        add t, x + i
        add x, t
        drop t
    end
"""


@wide
def test_a_survey_looks_everywhere_and_leaves_the_session_alone(tmp_path: Path) -> None:
    """Also of a program that erases, which can't be taken back to look."""
    path = tmp_path / "lossy.rasm"
    path.write_text(LOSSY, encoding="utf-8")
    program = rvm.load(path)
    session = Session(program, "lossy", {"x": 1, "n": 50}, say=lambda line: None)

    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        await press(app, pilot, "end")
        stop, kept = session.stop, picture(session.machine)
        await press(app, pilot, "e")
        assert (session.time, session.stop, session.work) == (stop.time, stop, stop.work)
        assert picture(session.machine) == kept
        line = app.timeline.timeline
        for cell in range(line.cells):
            time = line.time_at(cell)
            fresh = Machine(program, "lossy", x=1, n=50, engine="reference")
            fresh.step(time)
            account, found = fresh.state.account, app.past.samples[time]
            assert (found.bytes, found.bits) == (account.live_bytes, account.erased_bits)
        # The whole, as `rvm trace` counts it, by one model after the other.
        for model in ("cmos", "adiabatic", "landauer"):
            request = TraceRequest(str(path), ("x=1", "n=50"), energy=model)
            trace = traced(request)
            assert app.console_.model.name == model
            found = app.past.samples[session.time].joules(app.console_.model)
            assert found == pytest.approx(trace.joules(trace.all), rel=1e-12)
            row = next(r for r in screen(app).splitlines() if r.startswith(model))
            assert "█" in row and row.endswith(joules(found))
            await press(app, pilot, "e")
        await enter(app, pilot, "set x = 3")
        assert len(app.past.samples) == 1
        await press(app, pilot, "e")
        assert len(app.past.samples) == 1
        assert "restart" in screen(app)

    play(session, script)


def test_samples_are_bounded() -> None:
    session, past = walk(10**4), Past()
    for time in range(2 * MAX_SAMPLES):
        session.goto(time)
        past.sample(session)
    assert len(past.samples) <= MAX_SAMPLES


# ---------------------------------------------------------------- values and code


def test_what_has_changed_is_marked() -> None:
    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        while app.session.frame.regs[0] == 100:
            await press(app, pilot, "i")
        marked = {row.split()[1] for row in rows(app, "values") if row.startswith("*")}
        assert marked == {"x"}
        await press(app, pilot, "i")
        marked = {row.split()[1] for row in rows(app, "values") if row.startswith("*")}
        assert marked == {"y"}
        await press(app, pilot, "I")
        marked = {row.split()[1] for row in rows(app, "values") if row.startswith("*")}
        assert marked == {"y"}
        await enter(app, pilot, "p x")
        marked = {row.split()[1] for row in rows(app, "values") if row.startswith("*")}
        assert marked == {"y"}, "looking at a value is not a stop"

    play(walk(3), script)


@wide
def test_arrays_by_pages() -> None:
    program = rvm.assemble("func one(x: i64[n])\n    add x[250], 7\n", "one.rasm")
    session = Session(program, "one", {"x": np.arange(300)}, say=lambda line: None)

    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        def cells() -> list[str]:
            return [c for row in rows(app, "values") for c in row.split()[1:]]

        await press(app, pilot, "i", "a")
        seen: list[str] = []
        pages = 0
        while len(seen) < 300:
            assert len(rows(app, "values")) <= app.values.size.height
            assert cells()[0] == str(len(seen)), "no element is left out"
            seen += cells()
            pages += 1
            await press(app, pilot, "right_square_bracket")
        assert pages > 3
        assert seen == [f"{257}*" if k == 250 else str(k) for k in range(300)]
        assert cells()[-1] == "299", "after the last page there is none"
        for _ in range(pages + 1):
            await press(app, pilot, "left_square_bracket")
        assert cells()[:2] == ["0", "1"]
        await press(app, pilot, "a")
        assert app.values.border_title == "registers of one"

    play(session, script)


def test_a_breakpoint_at_the_cursor() -> None:
    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        await press(app, pilot, "down", "b")
        assert [b.target.line for b in app.session.breaks] == [3]
        await press(app, pilot, "c")
        assert (app.session.stop.reason, app.session.stop.line) == ("breakpoint", 3)
        await press(app, pilot, "b")
        assert app.session.breaks == []
        await press(app, pilot, "v", "down", "b")
        (made,) = app.session.breaks
        pane = app.query_one(CodePane)
        assert made.target.text == pane.place == f"walk@{pane.cursor}"
        assert pane.cursor in pane.listing.breaks
        await press(app, pilot, "b")
        assert app.session.breaks == []

    play(walk(5), script)


def test_a_click_moves_the_cursor() -> None:
    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        await pilot.click("#code", offset=(8, 4))
        assert app.code.place == "4"
        await enter(app, pilot, "p x")
        assert app.code.place == "4", "only what moves the machine moves the cursor"
        await press(app, pilot, "b")
        assert [b.target.line for b in app.session.breaks] == [4]

    play(walk(5), script)


@wide
def test_views_of_the_code() -> None:
    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        pane = app.query_one(CodePane)
        assert pane.listing.rows[pane.listing.here].strip() == "if n > 1"
        await press(app, pilot, "v")
        assert pane.listing.rows[1].split() == ["alloc", "m", "=", "n", "//", "2"]
        await press(app, pilot, "v")
        left, right = pane.listing.rows[1].split("|")
        assert (left.split()[0], right.split()[0]) == ("alloc", "free")
        await press(app, pilot, "v")
        assert pane.listing.title == "source sort.rasm"

    play(sort(), script)


@wide
def test_the_command_line() -> None:
    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        await press(app, pilot, "colon", *"goto 107", "enter")
        assert app.session.time == 107
        await pilot.press("escape")
        await enter(app, pilot, "watch x[0]")
        assert [w.text for w in app.session.watches] == ["x[0]"]
        await pilot.press("colon", "up", "up", "enter")
        await rest(app, pilot)
        assert app.session.time == 107
        await pilot.press(*"resta", "tab", "enter")
        await rest(app, pilot)
        assert app.session.time == 0
        await pilot.press(*"nonsense", "enter")
        await rest(app, pilot)
        assert "U036" in screen(app)
        await pilot.press("q", "enter")
        await pilot.pause()

    play(sort(), script)


def test_commands_to_begin_with() -> None:
    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        assert app.session.time == 20
        assert len(app.session.breaks) == 1

    play(sort(), script, commands=["b merge", *["si"] * 20])


def test_a_failing_check_is_shown() -> None:
    program = rvm.assemble(
        "func bad(x: i64)\n    alloc a: i64\n    add a, x\n    free a\n", "b.rasm"
    )
    session = Session(program, "bad", {"x": 3}, say=lambda line: None)

    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        await press(app, pilot, "c")
        assert app.session.stop.reason == "error"
        assert "R001" in "\n".join(s.text for s in app.query_one("#log").lines)  # type: ignore
        await press(app, pilot, "C")
        assert app.session.time == 0

    play(session, script)


# ---------------------------------------------------------------- gradients


def norm_gradient() -> tuple[Program, dict[str, Any]]:
    program = rvm.load(EXAMPLES / "norm.rasm")
    given = {"y": 0.0, "x": np.array([3.0, 4.0])}
    return gradient_of(program.program, program.program.function("norm"), given, "y")


def test_a_gradient_has_adjoints_beside_values() -> None:
    made, inputs = norm_gradient()

    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        await press(app, pilot, "end")
        shown = " ".join(" ".join(rows(app, "values")).split())
        # The gradient of x . x is 2 x.
        assert shown == "y 0.0 adj 1.0 x [3.0, 4.0] *adj [6.0, 8.0]"
        await enter(app, pilot, "last x_bar[0]")
        shown = " ".join(" ".join(rows(app, "values")).split())
        assert shown == "y 0.0 adj 1.0 x [3.0, 4.0] *adj [0.0, 8.0]"
        assert rows(app, "frames")[0].split()[2] == "norm_adjoint"

    play(Session(made, made.entry, inputs, say=lambda line: None), script)


def test_adjoints_of_records_are_beside_them_too() -> None:
    text = """\
record Body
    x: f64
    m: f64
end

func energy(e: f64, b: Body)
    add e, b.m * b.x ** 2
"""
    program = rvm.assemble(text)
    given = {"e": 0.0, "b": {"x": 3.0, "m": 5.0}}
    made, inputs = gradient_of(program.program, program.program.function("energy"), given, "e")

    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        await press(app, pilot, "end")
        shown = [row.split() for row in rows(app, "values")]
        # d(m x^2) = 2 m x dx + x^2 dm
        assert ["b.x", "3.0", "*adj", "30.0"] in shown
        assert ["b.m", "5.0", "*adj", "9.0"] in shown

    play(Session(made, made.entry, inputs, say=lambda line: None), script)


# ---------------------------------------------------------------- the screen


def test_how_it_looks() -> None:
    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        await press(app, pilot, "end")
        await enter(app, pilot, "mark done")
        await enter(app, pilot, "b merge")
        await press(app, pilot, "home", "c", "n")
        golden("tui_sort", screen(app))

    play(sort(), script)


def test_the_page_shows_this_screen() -> None:
    page = (EXAMPLES.parent / "docs" / "debugging.md").read_text(encoding="utf-8")
    assert (GOLDEN / "tui_sort.txt").read_text(encoding="utf-8") in page


def test_how_a_gradient_looks() -> None:
    made, inputs = norm_gradient()

    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        await press(app, pilot, "end")
        await enter(app, pilot, "last x_bar[0]")
        await press(app, pilot, "d")
        golden("tui_gradient", screen(app))

    play(Session(made, made.entry, inputs, say=lambda line: None), script)


@wide
def test_what_was_said_last_stays_in_sight() -> None:
    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        for number in range(30):
            await enter(app, pilot, f"p {number} + 1000")
        for size in ((160, 50), (70, 20), (100, 30)):
            await pilot.resize_terminal(*size)
            await rest(app, pilot)
            await pilot.pause(0.2)
            assert "29 + 1000 = 1029" in screen(app), size

    play(sort(), script)


@wide
@pytest.mark.parametrize("size", [(80, 24), (160, 50), (50, 16)])
def test_every_row_fits(size: tuple[int, int]) -> None:
    async def script(app: Screenful, pilot: Pilot[None]) -> None:
        await press(app, pilot, "s", "s", "v", "v")
        shown = screen(app).splitlines()
        assert len(shown) == size[1]
        assert max(map(len, shown)) <= size[0]
        assert shown[0].startswith(f" t={app.session.time}")
        assert any(row.startswith("time ") for row in shown)
        await pilot.resize_terminal(100, 30)
        await rest(app, pilot)
        assert len(screen(app).splitlines()) == 30

    play(sort(), script, size)


def test_it_needs_a_terminal_and_textual(monkeypatch: pytest.MonkeyPatch) -> None:
    file = str(EXAMPLES / "sort.rasm")
    assert "U038" in run("debug", file, "x=[1]", "p=[0]", "--tui", code=2).stderr
    monkeypatch.setattr(tui, "find_spec", lambda name: None)
    missing = run("debug", file, "x=[1]", "p=[0]", "--tui", code=2).stderr
    assert "U038" in missing and 'pip install "rvm[tui]"' in missing
    both = run("debug", file, "x=[1]", "p=[0]", "--tui", "--batch", code=2)
    assert "neither --batch nor --json" in both.stderr
