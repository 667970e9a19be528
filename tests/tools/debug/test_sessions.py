"""Sessions without a screen: stops, edits, steps over calls, what is shown."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest
from rvm_tools.debug import Session
from rvm_tools.debug.console import Console
from rvm_tools.debug.front import gradient_of
from rvm_tools.debug.journeys import Onlooker
from sizes import thin, wide
from tools.debug.consoles import CORPUS, LOOP, RECURSIVE, console_of

import rvm
from rvm.image import Code
from rvm.state import Options


@thin
@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("stopping", [False, True])
def test_ctrl_c_stops_either_direction_between_two_instructions(
    direction: int, stopping: bool
) -> None:
    inputs = {"x": 0, "y": 1, "n": 10**12}
    program = rvm.assemble(LOOP, "text.rasm")
    console = Console(Session(program, "walk", inputs, Options(engine="python")))
    if direction < 0:
        console.session.goto(15_000_000)
    if stopping:
        console.execute("b 3 if i < 0")
    begun, under_way = console.session.time, threading.Event()

    class Told(Onlooker):
        def moves(self, machine: rvm.Machine) -> None:
            if machine.time != begun:
                under_way.set()

    def interrupt() -> None:
        under_way.wait()
        os.kill(os.getpid(), signal.SIGINT)

    console.session.watched_by(Told())

    thread = threading.Thread(target=interrupt)
    thread.start()
    answer = console.execute("c" if direction > 0 else "rc")
    thread.join()
    assert answer.stop is not None and answer.stop.reason == "interrupted"
    assert (console.session.time - begun) * direction > 0
    assert not console.session.machine.state.armed
    here = console.session.time
    console.execute("si")
    assert console.session.time == here + 1
    console.execute("rsi")
    # n steps of the loop are four ticks each, behind four of its beginning.
    machine = console.session.machine
    assert machine["x"] is not None and console.session.time == here


def test_a_stop_in_reverse_shows_the_machine_before_the_instruction_at_that_instruction() -> None:
    console = console_of(LOOP, "walk", x=0, y=1, n=9)
    session = console.session
    session.break_at("4", "i == 3")
    forth = session.resume()
    shown = (session.machine["x"], session.machine["y"], session.frame.pc)
    session.goto(1 << 60)
    back = session.resume(-1)
    assert (back.time, back.line, back.pc) == (forth.time, 4, forth.pc)
    assert (session.machine["x"], session.machine["y"], session.frame.pc) == shown


def test_time_goes_both_ways_and_work_only_one() -> None:
    session = console_of(LOOP, "walk", x=0, y=1, n=9).session
    session.instruction(10)
    session.instruction(4, -1)
    session.goto(8)
    assert (session.time, session.work) == (8, 10 + 4 + 2)


def test_an_edit_marks_the_session_and_leads_elsewhere() -> None:
    console = console_of(LOOP, "walk", x=0, y=1, n=9)
    session = console.session
    session.goto(12)
    assert "edited" not in console.prompt()
    console.execute("set y = y + 1")
    assert "edited" in console.prompt() and session.diverged == 12
    session.goto(0)
    assert (session.machine["x"], session.machine["y"]) == (0, 1), "what was before the edit"
    fresh = rvm.Machine(session.program, "walk", x=0, y=1, n=9)
    fresh.seek(12)
    fresh["y"] = fresh["y"] + 1
    for at in (12, 20, 11, 13, 12, 40):
        session.goto(at)
        if at >= 12:
            fresh.seek(at)
            assert session.machine.registers() == fresh.registers(), "after it, the edited run"
    session.goto(0)
    assert console.execute("export-test a.py").error.code == "U037"  # type: ignore[union-attr]
    console.execute("restart")
    assert session.diverged is None and (session.machine["x"], session.machine["y"]) == (0, 1)


def test_the_caller_s_arrays_are_left_alone() -> None:
    source = "func f(x: i64[n])\n    add x, 1\n"
    data = np.zeros(3, np.int64)
    session = Session(rvm.assemble(source), "f", {"x": data})
    session.resume()
    assert data.tolist() == [0, 0, 0] and session.machine["x"].tolist() == [1, 1, 1]


def test_what_the_program_prints_is_not_repeated_by_searches() -> None:
    source = """\
func f(x: i64, n: i64)
    for i = 1 to n
        add x, i
        extern forward
            print "x", x
        end
    end
"""
    console = console_of(source, "f", x=0, n=3)
    printed = [k.text for k in console.execute("c").lines if k.style == "printed"]
    assert printed == ["x 1", "x 3", "x 6"]
    for command in ("last x", "inverse", "prof start end", "origin x"):
        assert not [k for k in console.execute(command).lines if k.style == "printed"]


def test_a_gradient_is_debugged_with_adjoints_beside_values() -> None:
    source = "func f(y: f64, a: f64, b: f64)\n    add y, a * a * b\n"
    program = rvm.assemble(source)
    inputs = {"y": 0.0, "a": 3.0, "b": 5.0}
    made, dual = gradient_of(program.program, program.program.function("f"), inputs, "y")
    session = Session(made, made.entry, dual)
    session.resume()
    assert session.machine["a_bar"] == 2 * 3.0 * 5.0 and session.machine["b_bar"] == 9.0
    session.resume(-1)
    assert session.time == 0 and session.machine["a_bar"] == 0.0


def test_adjoints_of_records_are_beside_their_values() -> None:
    source = """\
record Body
    x: f64
    m: f64
end

func energy(e: f64, b: Body)
    add e, b.m * b.x ** 2
"""
    program = rvm.assemble(source)
    given = {"e": 0.0, "b": {"x": 3.0, "m": 5.0}}
    made, dual = gradient_of(program.program, program.program.function("energy"), given, "e")
    console = Console(Session(made, made.entry, dual))
    console.execute("end")
    shown = [k.text.split()[-4:] for k in console.execute("info regs").lines]
    # d(m x^2) = 2 m x dx + x^2 dm
    assert shown == [
        ["f64", "0.0", "adjoint", "1.0"],
        ["f64", "3.0", "adjoint", "30.0"],
        ["f64", "5.0", "adjoint", "9.0"],
    ]


def test_finish_and_its_opposite_are_the_ends_of_one_call() -> None:
    session = console_of(RECURSIVE, "main", n=6, out=0).session
    session.break_at("fib", "n == 3")
    session.resume()
    depth, time_in = len(session.frames), session.time
    out = session.finish()
    assert len(session.frames) == depth - 1
    session.instruction(1, -1)
    assert len(session.frames) == depth and session.frame.pc == len(session.frame.code)
    session.delete(1)
    back = session.finish(-1)
    assert len(session.frames) == depth - 1 and back.time == time_in - 1
    assert out.time > time_in


def test_steps_over_calls_stay_in_the_function() -> None:
    """Going over, no stop is ever deeper, in whichever direction."""
    session = console_of(RECURSIVE, "main", n=7, out=0).session
    lines = []
    while session.next().reason == "step":
        assert len(session.frames) == 1
        lines.append(session.stop.line)
    assert lines == [3, 4]
    lines = []
    while session.next(1, -1).reason == "step":
        lines.append(session.stop.line)
    assert lines == [4, 3, 2]
    assert session.next(1, -1).reason == "start" and session.machine["out"] == 0


def test_a_session_at_a_late_time_holds_no_more_than_at_an_early_one() -> None:
    import tracemalloc

    session = console_of(LOOP, "walk", x=0, y=1, n=1_000_000).session
    session.break_at("3", "i < 0")

    def held() -> int:
        session.step(3)
        session.step(2, -1)
        session.instruction(400)
        return tracemalloc.get_traced_memory()[0]

    def there(time: int) -> int:
        session.goto(time)
        session.resume(-1)
        session.goto(time)
        return held()

    there(3_900_000)  # whatever is compiled at first use has been
    session.goto(0)
    tracemalloc.start()
    try:
        early, late = there(1_000), there(3_900_000)
    finally:
        tracemalloc.stop()
    assert late < early + 50_000


def test_bytecode_without_its_source_is_debugged_by_instructions() -> None:
    made = rvm.assemble((CORPUS / "forgets.rasm").read_text(encoding="utf-8"))
    bare = replace(made.program, sources=())
    console = Console(Session(bare, "average", {"total": 0, "n": 0, "data": np.array([5, 200])}))
    for text in ("s", "b damp@0", "c", "l", "dis", "last t", "prof start end", "inverse"):
        assert console.execute(text).error is None, text
    assert console.session.stop.line == 0
    before = console.session.time
    console.execute("rs")
    assert console.session.time == before - 1, "without lines, each instruction is one"


def test_labels_are_places_to_stop_at() -> None:
    source = (CORPUS.parents[2] / "examples" / "sum.rasm").read_text(encoding="utf-8")
    session = Session(rvm.assemble(source), "sum", {"s": 0, "n": 4})
    session.break_at("again")
    times = []
    while session.resume().reason == "breakpoint":
        times.append(session.machine["i"])
    assert times == [1, 2, 3, 4]


def test_numbers_are_written_as_people_write_them() -> None:
    session = console_of(LOOP, "walk", x=0, y=1, n=9_000_000).session
    console = Console(session)
    for text in ("goto 1000000", "goto 1_000_000", "goto 1,000,000", "goto 1e6"):
        console.execute("start")
        assert console.execute(text).error is None and session.time == 1_000_000
    console.execute("rsi 1e3")
    assert session.time == 999_000


def test_stacks_and_matrices_are_shown_as_values() -> None:
    source = "func f(s: stack[i64], x: i64, m: i64[a, b])\n    push x, s\n    add m[1, 0], 4\n"
    console = console_of(source, "f", s=[5, 6], x=7, m=np.zeros((2, 2), np.int64))
    console.execute("disp s")
    assert console.execute('tp 3 "{s} {x}"').error is None
    lines = [k.text for k in console.execute("c").lines]
    assert "> [5, 6, 7] 0" in lines and "  s = [5, 6, 7]" in lines
    assert console.execute("p m * 2").text == "m * 2 = [[0, 0],\n         [8, 0]]"
    assert console.execute("p m").text == "m = [[0, 0],\n     [4, 0]]"


def test_arrays_are_set_whole_or_in_part() -> None:
    source = "func f(x: i64, data: i64[k])\n    add x, data[0]\n"
    session = console_of(source, "f", x=3, data=np.array([5, 7, 9])).session
    session.set("data", "[1, 2, 3]")
    session.set("data[1:3]", "[8, 9]")
    assert session.machine["data"].tolist() == [1, 8, 9]
    session.set("data", "4")
    assert session.machine["data"].tolist() == [4, 4, 4]


@wide
def test_what_runs_once_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long straight code, with stops in it and without: compiling would take minutes."""
    compiled: list[str] = []
    from rvm.engines import python

    plain = python.Compiled.__init__

    def noted(self: python.Compiled, code: Code, *more: object) -> None:
        compiled.append(code.name)
        plain(self, code, *more)

    monkeypatch.setattr(python.Compiled, "__init__", noted)
    lines = [f"    add x, y ^ {k}\n    xor y, x >> {k % 7}\n" for k in range(1500)]
    console = console_of("func long(x: i64, y: i64)\n" + "".join(lines), "long", x=1, y=2)
    for command in ("c", "rc", "b 1500", "c", "watch x if x == 12345", "c", "rc", "last y"):
        assert console.execute(command).error is None
    assert not compiled
    short = console_of(LOOP, "walk", x=0, y=1, n=1000)
    short.execute("c")
    assert compiled == ["walk"]


CALLS = """\
func main(x: i64, a: i64[n], i: i64, k: i64)
    call outer(x, a, k)
    call inner(a[i], k, 2 * k)

func outer(v: i64, b: i64[m], k: i64)
    call inner(v, k, 7)
    call inner(b[1], k, 7)

func inner(w: i64, k: i64, l: i64)
    add w, k
    add w, l
"""


@pytest.mark.parametrize(
    ("hit", "depth", "text", "names"),
    [
        *((1, depth, text, "x v w") for depth, text in enumerate(("x = 9", "v = 9", "w = 9"))),
        *((1, depth, "k = 9", "k k k") for depth in range(3)),
        *((2, depth, text, "a[1] b[1] w") for depth, text in enumerate(("a[1] = 9", "b[1] = 9"))),
        (2, 2, "w = 9", "a[1] b[1] w"),
    ],
)
def test_a_variable_is_set_under_all_its_names(hit: int, depth: int, text: str, names: str) -> None:
    console = console_of(CALLS, "main", x=1, a=np.array([1, 2, 3]), i=2, k=5)
    session = console.session
    for line in ("b inner@1", f"c {hit}", f"frame {depth}", f"set {text}"):
        assert console.execute(line).error is None
    here = str([f.regs for f in session.frames])
    for frame, name in enumerate(names.split()):
        session.select(frame)
        assert session.evaluate(name)[1] == 9
    time = session.time
    fresh = Session(session.program, "main", session.inputs)
    fresh.goto(time - 1)
    for line in ("del 1", "end", f"goto {time}"):
        assert console.execute(line).error is None
    assert str([f.regs for f in session.frames]) == here
    session.goto(time - 1)
    assert str([f.regs for f in session.frames]) == str([f.regs for f in fresh.frames])


def test_what_was_passed_as_an_expression_stays() -> None:
    console = console_of(CALLS, "main", x=1, a=np.array([1, 2, 3]), i=2, k=5)
    session = console.session
    console.execute("b inner@1")
    console.execute("c 3")
    assert [f.code.name for f in session.frames] == ["main", "inner"]
    for frame, text, told in ((0, "k = 4", "`2 * k` as `l`"), (1, "l = 3", "`2 * k` as `l`")):
        console.execute(f"frame {frame}")
        answer = console.execute(f"set {text}")
        assert answer.error is not None and answer.error.code == "U035"
        assert told in answer.text and session.diverged is None
        assert session.frames[1].regs[1:] == [5, 10]
