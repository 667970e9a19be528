"""`rvm debug`: scripts with their transcripts, and the other ways in."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from rvm_tools.cli import cli
from rvm_tools.debug import Session
from rvm_tools.debug.console import Console, find, load_commands
from rvm_tools.debug.front import gradient_of
from sizes import thin, wide
from tools.debug.consoles import CORPUS, LOOP, console_of
from tools.running import rvm as run
from tools.running import rvm_json

import rvm

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


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    path = tmp_path / "walk.rasm"
    path.write_text(LOOP, encoding="utf-8")
    return path


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


EXPORTED = """func main(y: f64, x: f64[n], w: log64, q: fixed, z: c128)
    add y, x[0] * x[1]
    mul w, 0.5'log64
    add z.re, y
    add q, 0.25

func half[T: f64 | f32](y: T, x: T)
    add y, x
"""
NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize("kind", ["file", "gradient", "generic", "text"])
def test_an_exported_test_has_any_values_of_any_program(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "program.rasm"
    file.write_text(EXPORTED)
    library = rvm.assemble(EXPORTED) if kind == "text" else rvm.load(file)
    program, name = library.program, "main"
    inputs: dict[str, Any] = {
        "y": -0.0,
        "x": np.array([NAN, -INFINITY] * (600 if kind == "file" else 1)),
        "w": rvm.LogNumber(-INFINITY),
        "q": Fraction(1, 3),
        "z": complex(-INFINITY, -0.0),
    }
    if kind == "gradient":
        program, inputs = gradient_of(program, program.function("main"), inputs, "y")
        name = program.entry
    elif kind == "generic":
        program, name, inputs = library["half[f64]"].program, "half[f64]", {"y": NAN, "x": 2.0}
    console = Console(Session(program, name, inputs))
    console.execute("si 2")
    test = tmp_path / "test_replay.py"
    assert console.execute(f"export-test {test}").error is None
    assert test.with_suffix(".npz").exists() == (kind == "file")
    assert test.with_suffix(".rbc").exists() == (kind == "text")
    space: dict[str, Any] = {"__file__": str(test)}
    exec(test.read_text(), space)
    (found,) = (f for name, f in space.items() if name.startswith("test_"))
    found()
    if kind != "text":
        file.write_text(EXPORTED.replace("    add y, x[", "    neg q\n    add y, x["))
        if kind == "generic":
            file.write_text(EXPORTED.replace("add y, x\n", "sub x, 1.0\n"))
        with pytest.raises(AssertionError):
            found()


def _pytest(path: Path) -> int:
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path)]
    return subprocess.run(words, cwd=path.parent, capture_output=True, timeout=120).returncode


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


def test_help_fits_a_page_and_knows_every_command() -> None:
    console = console_of(LOOP, "walk", x=0, y=1, n=9)
    lines = [k.text for k in console.execute("help").lines]
    assert max(map(len, lines)) <= 80
    for name, command in load_commands().items():
        answer = console.execute(f"help {name}")
        assert answer.error is None and command.usage in answer.text
        assert any(line.strip().startswith(command.usage) for line in lines)
