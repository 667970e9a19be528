"""`rvm debug`: scripts with their transcripts, the ways in, and what a terminal adds."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from rvm_tools.cli import cli
from rvm_tools.debug import Session
from rvm_tools.debug.console import Console, find, load_commands
from rvm_tools.debug.front import gradient_of
from rvm_tools.trace.run import TraceRequest as TraceRequest
from rvm_tools.trace.run import traced
from rvm_tools.trace.table import joules
from sizes import thin, wide
from tools.running import rvm as run
from tools.running import rvm_json

import rvm
from rvm.engines import having
from rvm.image import Code
from rvm.state import Options

CORPUS = Path(__file__).parent / "debug"
SCRIPTS = sorted(CORPUS.glob("*.rdb"))


def arguments(script: Path) -> list[str]:
    """The command line that a script's first line names."""
    first = script.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# run: "), script
    return shlex.split(first.removeprefix("# run: "))


@thin
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_transcripts(script: Path) -> None:
    with contextlib.chdir(CORPUS):
        words = ["debug", *arguments(script), "-x", script.name, "--batch"]
        done = CliRunner().invoke(cli, words, prog_name="rvm")
    text = f"{done.stdout}exit code {done.exit_code}\n"
    kept = script.with_suffix(".txt")
    if os.environ.get("RVM_GOLDEN"):
        kept.write_text(text, encoding="utf-8")
    assert text == kept.read_text(encoding="utf-8"), "RVM_GOLDEN=1 would keep the new one"


def test_the_corpus_has_every_command() -> None:
    used = set()
    for script in SCRIPTS:
        for line in script.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(rvm.RvmError):
                used.add(find(line.strip())[0].names[0])
    elsewhere = {"save", "source", "export-test", "help"}
    assert {c.names[0] for c in load_commands().values()} - used - elsewhere == set()


# ---------------------------------------------------------------- other ways in


LOOP = """\
func walk(x: i64, y: i64, n: i64)
    for i = 1 to n
        add x, y ^ i
        xor y, x >> 3
    end
"""


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    path = tmp_path / "walk.rasm"
    path.write_text(LOOP, encoding="utf-8")
    return path


def console_of(text: str, function: str, **inputs: object) -> Console:
    return Console(Session(rvm.assemble(text, "text.rasm"), function, inputs))


def test_json_prints_one_object(loop: Path) -> None:
    script = loop.with_suffix(".rdb")
    script.write_text("b 3 if i == 5\nc\np x\nlast y\nwrong\n", encoding="utf-8")
    found = rvm_json("debug", str(loop), "x=0", "y=1", "n=9", "-x", str(script), code=2)
    stops = [a.get("stop") for a in found["answers"]]
    assert stops[1]["reason"] == "breakpoint" and stops[1]["line"] == 3
    machine = rvm.Machine(rvm.load(loop), x=0, y=1, n=9)
    machine.seek(stops[1]["time"])
    assert machine["i"] == 5 and found["answers"][2]["value"] == machine["x"]
    write = found["answers"][3]["write"]
    assert int(write["new"]) == machine["y"]
    assert found["answers"][4]["error"]["code"] == "U036"
    assert found["time"] == stops[3]["time"] < stops[1]["time"]


def test_json_has_what_is_wrong_with_the_file(tmp_path: Path) -> None:
    bad = tmp_path / "bad.rasm"
    bad.write_text("func f(x: i64)\n    add x, x\n", encoding="utf-8")
    found = rvm_json("debug", str(bad), "x=1", code=1)
    assert [e["code"] for e in found["errors"]] == ["A013"]


def test_commands_come_through_a_pipe(loop: Path) -> None:
    done = run("debug", str(loop), "x=0", "y=1", "n=9", input="si 3\n\nrsi\nq\nsi\n")
    times = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("t=")]
    assert times == ["t=0", "t=3", "t=6", "t=5"]


def test_commands_may_be_shortened_while_that_is_unambiguous() -> None:
    table = load_commands()
    for name, found in table.items():
        for k in range(1, len(name) + 1):
            starting = {id(c) for n, c in table.items() if n.startswith(name[:k])}
            if name[:k] in table:
                assert find(name[:k])[0] is table[name[:k]]
            elif len(starting) == 1:
                assert find(f"{name[:k]} x") == (found, "x")
            else:
                with pytest.raises(rvm.UsageError, match="could be"):
                    find(name[:k])


def test_enter_repeats() -> None:
    console = console_of(LOOP, "walk", x=0, y=1, n=9)
    console.execute("si 2")
    console.execute("")
    assert console.session.time == 4
    console.execute("p x")
    console.execute("")
    assert console.session.time == 4, "looking is not repeated"


def test_a_script_is_sourced_and_a_session_saved(tmp_path: Path) -> None:
    console = console_of(LOOP, "walk", x=0, y=1, n=9)
    for command in ("b 3 if i == 5", 'tp 4 "y={y}"', "goto 11", "mark here", "watch y if y > 2"):
        assert console.execute(command).error is None
    saved = tmp_path / "session.rdb"
    console.execute(f"save {saved}")
    again = console_of(LOOP, "walk", x=0, y=1, n=9)
    assert again.execute(f"source {saved}").error is None
    assert [p.kind for p in again.session.probes] == ["breakpoint", "tracepoint", "watchpoint"]
    assert again.session.marks == {"here": 11} and again.session.time == 11
    for one in (console, again):
        one.execute("c")
    assert console.session.stop.time == again.session.stop.time


@pytest.mark.deep
def test_an_exported_test_passes_and_fails_when_the_program_changes(loop: Path) -> None:
    session = Session(rvm.load(loop), "walk", {"x": 0, "y": 1, "n": 9})
    console = Console(session)
    console.execute("b 4 if i == 6")
    console.execute("c")
    test = loop.with_name("test_replay.py")
    assert console.execute(f"export-test {test}").error is None
    assert _pytest(test) == 0
    loop.write_text(LOOP.replace(">> 3", ">> 2"), encoding="utf-8")
    assert _pytest(test) == 1


@wide
def test_an_exported_test_expects_the_error_that_the_session_stands_at(tmp_path: Path) -> None:
    path = tmp_path / "forgets.rasm"
    path.write_text((CORPUS / "forgets.rasm").read_text(encoding="utf-8"), encoding="utf-8")
    inputs = {"total": 0, "n": 0, "data": np.array([5, 200, 7])}
    console = Console(Session(rvm.load(path), "average", inputs))
    assert console.execute("c").stop.reason == "error"  # type: ignore[union-attr]
    test = tmp_path / "test_error.py"
    console.execute(f"export-test {test}")
    assert "R001" in test.read_text(encoding="utf-8")
    assert _pytest(test) == 0


def _pytest(path: Path) -> int:
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path)]
    return subprocess.run(words, cwd=path.parent, capture_output=True, timeout=120).returncode


# ---------------------------------------------------------------- rules


@thin
@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("stopping", [False, True])
def test_ctrl_c_stops_either_direction_between_two_instructions(
    direction: int, stopping: bool
) -> None:
    inputs = {"x": 0, "y": 1, "n": 50_000_000}
    program = rvm.assemble(LOOP, "text.rasm")
    console = Console(Session(program, "walk", inputs, Options(engine="python")))
    if direction < 0:
        console.session.goto(15_000_000)
    if stopping:
        console.execute("b 3 if i < 0")
    begun = console.session.time

    def interrupt() -> None:
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

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


RECURSIVE = """\
func main(n: i64, out: i64)
    call fib(n, out)
    add n, 1
    uncall fib(n, out)

func fib(n: i64, out: i64)
    if n < 2, n < 2
        add out, n
    else
        alloc k: i64 = n - 1
        call fib(k, out)
        sub k, 1
        call fib(k, out)
        free k = n - 2
    end
"""


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


def test_steps_over_calls_stay_in_the_function(loop: Path) -> None:
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


def test_completion_knows_commands_and_what_they_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rvm_tools.debug.completions import completions
    from rvm_tools.debug.prompt import toolbar

    source = """\
record Body
    pos: f64
    mass: f64
end

func walk(x: i64, data: i64[n], body: Body)
    for i = 1 to 3
        add data[0], x
    end
"""
    inputs = {"x": 3, "data": np.zeros(4, np.int64), "body": {"pos": 1.0, "mass": 2.0}}
    console = console_of(source, "walk", **inputs)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hunt.rdb").touch()
    (tmp_path / "hunts").mkdir()
    (tmp_path / "hunts" / "deep.rdb").touch()
    console.execute("mark here")
    console.execute("b walk")

    def words(text: str) -> list[str]:
        start, found = completions(console, text)
        return [text[:start] + word for word in found]

    assert words("ori") == ["origin"]
    assert words("goto @") == ["goto @here"] and words("prof st") == ["prof start"]
    assert words("b wa") == ["b walk"] and words("dis w") == ["dis walk"]
    assert words("watch da") == ["watch data"]
    assert words("watch data i") == ["watch data if"]
    assert words("b 8 if x + da") == ["b 8 if x + data"]
    assert words("p body.m") == ["p body.mass"]
    assert words("p data[x] + n") == [] and words("p data[n - x] * bo") != []
    assert words("p i") == [], "what is not live has no value"
    assert words('tp 8 "x is {body.m') == ['tp 8 "x is {body.mass']
    assert words("del ") == ["del 1"] and words("info p") == ["info pairs"]
    assert words("direction rev") == ["direction reverse"]
    assert words("help orig") == ["help origin"] and words("energy ad") == ["energy adiabatic"]
    assert words("source hu") == ["source hunt.rdb", "source hunts/"]
    assert words("save hunts/d") == ["save hunts/deep.rdb"]
    assert words("nonsense x") == [] and words("s 3") == []
    assert "walk at text.rasm:7" in toolbar(console)


def test_without_prompt_toolkit_the_prompt_is_a_plain_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from rvm_tools.debug.prompt import converse

    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    lines = iter(["si 4", "", "q"])
    prompts: list[str] = []

    def typed(prompt: str) -> str:
        prompts.append(prompt)
        return next(lines)

    monkeypatch.setattr("builtins.input", typed)
    console = console_of(LOOP, "walk", x=0, y=1, n=9)
    converse(console)
    assert prompts == ["[t=0 0 J >] ", "[t=4 0 J >] ", "[t=8 0 J >] "] and console.finished


# ---------------------------------------------------------------- energy


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


def test_looking_elsewhere_is_no_visit() -> None:
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


def test_a_profile_counts_alike_whatever_is_watched() -> None:
    console = console_of(RECURSIVE, "main", n=6, out=0)
    plain = [k.text for k in console.execute("prof start end").lines]
    for command in ("b fib if n == 3", "c", "watch out", "rwatch n", "fin"):
        assert console.execute(command).error is None
    stop, asleep = console.session.stop, [w.awake for w in console.session.watches]
    assert [k.text for k in console.execute("prof start end").lines] == plain
    assert console.session.stop == stop
    assert [w.awake for w in console.session.watches] == asleep


# ---------------------------------------------------------------- stops on the way


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


# ---------------------------------------------------------------- what is wrong


WRONG = {
    "contineu": ("U036", "did you mean `continue`"),
    "s 0": ("U036", "not a count"),
    "200%": ("U036", "0% to 100%"),
    "b 3 if": ("U036", "no condition"),
    "b 3 if x": ("U030", "not a condition"),
    "watch data[3]": ("R003", "outside 0 … 2"),
    "watch x + 1": ("U030", "is an expression"),
    "set k = 3": ("U030", "is a length"),
    "set data = [1, 2]": ("U035", "[3], and the value [2]"),
    "set data = [1, 2, 0.5]": ("I003", "0.5 is not an integer"),
    'tp 3 "x is {x"': ("U036", "no `}`"),
    'tp 3 "x is {nowhere}"': ("A005", "nowhere"),
    "fin 3": ("U036", "takes nothing more"),
    "l 99": ("U031", "has 3 lines"),
    "frame -1": ("U036", "not a count"),
    "goto 1.5": ("U036", "not a time"),
    "last": ("U036", "which place"),
}


@pytest.mark.parametrize("command", WRONG)
def test_what_is_wrong_is_said_and_does_no_harm(command: str) -> None:
    source = "func f(x: i64, data: i64[k])\n    add x, data[0]\n    add data[1], x\n"
    console = console_of(source, "f", x=3, data=np.array([5, 7, 9]))
    console.execute("s")
    before = (console.session.time, console.session.machine.result)
    answer = console.execute(command)
    code, text = WRONG[command]
    assert answer.error is not None and answer.error.code == code
    assert text in answer.text, answer.text
    assert not console.session.probes and console.session.diverged is None
    assert (console.session.time, str(console.session.machine.result)) == (
        before[0],
        str(before[1]),
    )
    # No number was used up for what could not be set.
    assert console.execute("b 3").text == "breakpoint 1: line 3"


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


def test_help_fits_a_page_and_knows_every_command() -> None:
    console = console_of(LOOP, "walk", x=0, y=1, n=9)
    lines = [k.text for k in console.execute("help").lines]
    assert max(map(len, lines)) <= 80
    for name, command in load_commands().items():
        answer = console.execute(f"help {name}")
        assert answer.error is None and command.usage in answer.text
        assert any(line.strip().startswith(command.usage) for line in lines)


def test_per_cent() -> None:
    from rvm_tools.debug.console import share_text

    assert [share_text(t, 10**6) for t in (0, 5, 123456, 999_999, 10**6)] == [
        "0%",
        "0.0005%",
        "12.3%",
        "99.9%",
        "100%",
    ]
