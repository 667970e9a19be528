"""`rvm pebble`: what it prints, its JSON, its files, its errors and its exit codes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import Result
from sizes import wide
from tools.running import golden, process, rvm, rvm_json

import rvm as machine
from rvm.pebble import Kind, Plan, check, load, plan
from rvm.pebble.game import Rules

DATA = Path(__file__).parents[2] / "examples" / "data"
C17, ADDER = str(DATA / "c17.bench"), str(DATA / "adder8.bench")
STEP = """\
func step(y: i64[n], x: i64[n], c: i64)
    add y[0], x[n-1] * c
    for i = 1 to n - 1
        add y[i], x[i-1] * c + x[i]
    end
"""
STRAIGHT = """\
func other(x: i64, y: i64)
    add y, x

func f(x: i64, y: i64)
    alloc a: i64
    alloc b: i64
    alloc c: i64
    add a, x * x
    add b, a + x
    add c, b * b
    add y, c
    sub c, b * b
    sub b, a + x
    sub a, x * x
    free c
    free b
    free a
"""


GRADIENT = ["--steps", "300", "--goal", "gradient", "--price", "8"]


def shown(*args: str) -> str:
    """A call and its output, without what depends on the computer's speed."""
    result = rvm("pebble", *args)
    text = re.sub(r" +[\d.]+ m?s$", "   T", result.stdout, flags=re.M)
    names = [Path(a).name if "/" in a else a for a in args]
    return f"$ rvm pebble {' '.join(names)}\n{text}\n"


def test_chains() -> None:
    calls = [
        ["--steps", "1000", "--pebbles", "12"],
        ["--steps", "1e6", "--time", "10M"],
        ["--steps", "16", "--pebbles", "5", "--erasures", "3"],
        [*GRADIENT, "--bytes", "480MB", "--state-bytes", "40MB"],
        ["--steps", "1000", "--pebbles", "4", "--goal", "gradient", "--disk", "inf"],
        ["--steps", "12", "--bytes", "100", "--sizes", "10,20,30,10,20,30,10,20,30,10,20,30"],
        ["--steps", "100", "--pebbles", "9", "--strategy", "bennett"],
        ["--steps", "64", "--pebbles", "7", "--goal", "erase", "--check", "--no-compare"],
    ]
    golden("pebble_chains", "".join(shown(*call) for call in calls))


def test_graphs() -> None:
    calls = [
        [C17],
        [C17, "--pebbles", "4"],
        [C17, "--time", "10"],
        [C17, "--pebbles", "5", "--costs", "10,1,1,1,1,1", "--no-compare"],
        [ADDER, "--pebbles", "20", "--rounds", "20k"],
    ]
    golden("pebble_graphs", "".join(shown(*call) for call in calls))


@wide
def test_pictures() -> None:
    calls = [
        ["--steps", "16", "--pebbles", "6", "--picture"],
        ["--steps", "8", "--pebbles", "3", "--goal", "gradient", "--price", "0", "--picture"],
        ["--steps", "1000", "--pebbles", "12", "--goal", "gradient", "--price", "8", "--picture"],
        [C17, "--pebbles", "4", "--picture"],
        ["--steps", "1e6", "--pebbles", "40", "--plot"],
        [C17, "--plot"],
    ]
    golden("pebble_pictures", "".join(shown(*call) for call in calls))


def test_actions_are_those_of_the_plan() -> None:
    lines = rvm("pebble", "--steps", "40", "--pebbles", "7", "--actions").stdout.splitlines()
    expected = plan(40, pebbles=7)
    assert lines == [repr(action) for action in expected.actions()]
    moves = rvm("pebble", C17, "--pebbles", "4", "--actions").stdout.split()
    assert moves[0] in ("+10", "+11") and len(moves) == 12


@wide
def test_json_of_a_chain() -> None:
    found = rvm_json(
        "pebble", *GRADIENT, "--pebbles", "12", "--actions", "--compare", "--plot", "--check"
    )
    expected = plan(300, pebbles=12, goal="gradient", price=8)
    head = {"kind", "steps", "goal", "strategy", "budget", "cost", "overhead", "proof", "notes"}
    assert set(found) == head | {"strategies", "curve", "checked", "actions"}
    assert found["kind"] == "chain" and found["checked"] is True
    assert (found["steps"], found["strategy"], found["budget"]) == (300, "hybrid", 12)
    assert found["cost"]["moves"] == expected.cost.moves
    assert found["overhead"] == expected.cost.moves / 300
    by_name = {row["strategy"]: row for row in found["strategies"]}
    assert by_name["hybrid"]["chosen"] and not by_name["revolve"]["chosen"]
    revolve = plan(300, pebbles=12, goal="gradient", strategy="revolve")
    assert by_name["revolve"]["moves"] == revolve.cost.moves
    assert {name for name, curve in found["curve"].items() if [12, expected.cost.total] in curve}
    # The listed actions, played by the rules, cost what was said.
    kinds = {kind.name.capitalize(): kind for kind in Kind}
    tally = check(
        Rules(300, "gradient", 12, erasures=float("inf")),
        [(kinds[kind], start, stop) for kind, start, stop in found["actions"]],
    )
    assert (tally.moves, tally.erased) == (found["cost"]["moves"], found["cost"]["erased"])


def test_json_of_a_graph() -> None:
    found = rvm_json("pebble", C17, "--pebbles", "4", "--actions", "--compare")
    head = {"kind", "nodes", "outputs", "strategy", "budget", "cost", "overhead", "bound"}
    assert set(found) == head | {"optimal", "gap", "notes", "strategies", "actions"}
    assert (found["kind"], found["nodes"], found["outputs"]) == ("graph", 6, ["22", "23"])
    assert found["optimal"] and found["gap"] == 0 and found["bound"] == 12
    assert len(found["actions"]) == found["cost"]["moves"] == 12
    assert [row["strategy"] for row in found["strategies"]] == ["bennett", "eager", "exact"]
    overview = rvm_json("pebble", C17)
    assert overview["moves"] == "10 at least"


def test_no_infinity_in_json() -> None:
    text = rvm("pebble", C17, "--time", "10", "--json").stdout
    assert json.loads(text, parse_constant=pytest.fail)["budget"] is None
    text = rvm("pebble", "--steps", "9", "--pebbles", "5", "--price", "inf", "--json").stdout
    assert json.loads(text, parse_constant=pytest.fail)["strategy"] == "knill"


@wide
def test_plans_are_saved_and_read(tmp_path: Path) -> None:
    file = str(tmp_path / "plan.npz")
    rvm("pebble", "--steps", "1000", "--pebbles", "20", "--save", file)
    rows = rvm_json("pebble", file, "--compare")["strategies"]
    assert {row["label"]: row["moves"] for row in rows if row["chosen"]} == {"knill": 7161}
    kept = load(file)
    assert isinstance(kept, Plan) and kept.cost.moves == 7161
    text = rvm("pebble", file).stdout
    assert "played by the rules: 7,161 moves, a peak of 20, as predicted" in text
    assert rvm("pebble", file, "--picture", "--no-compare").stdout.count("█") > 100
    rvm("pebble", ADDER, "--pebbles", "40", "--save", file)
    assert "played by the rules: 71 moves, a peak of 40" in rvm("pebble", file).stdout
    assert "bennett" in rvm("pebble", file, "--compare", "--plot").stdout
    Path(file).write_bytes(b"no plan")
    assert "P005" in rvm("pebble", file, code=1).stderr
    Path(file).unlink()
    assert "U011" in rvm("pebble", file, code=2).stderr


def bars(path: Path) -> int:
    """The bars in a picture."""
    return sum(e.get("class") == "bar" for e in ElementTree.parse(path).iter())


def test_pictures_in_files(tmp_path: Path) -> None:
    file = tmp_path / "plan.svg"
    result = rvm("pebble", "--steps", "16", "--pebbles", "6", "--picture", "--out", str(file))
    assert result.stderr == f"drawn: {file}\n" and "█" not in result.stdout
    advances = sum(kind == Kind.ADVANCE for kind, *_ in plan(16, pebbles=6).actions())
    assert bars(file) == advances
    rvm("pebble", "--steps", "100", "--pebbles", "9", "--plot", "--out", str(file))
    assert "knill" in {e.text for e in ElementTree.parse(file).iter()}
    found = rvm_json("pebble", C17, "--plot", "--out", str(file))
    assert found["drawn"] == str(file) and len(found["curve"]) >= 2
    assert (
        "U012"
        in rvm(
            *("pebble", "--steps", "9", "--pebbles", "5", "--picture", "--out", "/nowhere/x.svg"),
            code=2,
        ).stderr
    )


def test_a_chain_becomes_a_program(tmp_path: Path) -> None:
    source = tmp_path / "step.rasm"
    source.write_text(STEP)
    for name in ("out.rasm", "out.rbc"):
        made = tmp_path / name
        options = ["--step", "step", "--steps", "20", "--pebbles", "6", "--emit", str(made)]
        assert "emitted: " in rvm("pebble", str(source), *options).stderr
        program = machine.load(made)
        x = [1, 2, 3]
        for _ in range(20):
            x = [x[2] * 3, x[0] * 3 + x[1], x[1] * 3 + x[2]]
        import numpy as np

        out = program[program.program.entry](y=np.zeros(3, int), x=np.array([1, 2, 3]), c=3)
        assert out.y.tolist() == x


def test_steps_with_numbers_and_in_place_become_programs(tmp_path: Path) -> None:
    source, made = tmp_path / "two.rasm", tmp_path / "made.rbc"
    source.write_text(
        "func step(y: i64, x: i64, k: i64)\n    add y, x + 3 * k + 1\n\n"
        "func turn(x: i64, k: i64)\n    add x, 3 * k + 1\n"
    )
    chain = [str(source), "--step", "step", "--number", "k", "--steps", "9", "--pebbles", "5"]
    expected = 5 + sum(3 * k + 1 for k in range(9))
    for more in ([], ["--in-place", "2,3,5,6,8,9", "--step-in-place", "turn"]):
        rvm("pebble", *chain, *more, "--emit", str(made))
        program = machine.load(made)
        assert program[program.program.entry](y=0, x=5, k=0).y == expected
    for options in (["--number", "k"], ["--step-in-place", "turn"]):
        assert rvm("pebble", "--steps", "7", "--pebbles", "4", *options, code=2).stdout == ""


def test_a_function_and_a_circuit_become_programs(tmp_path: Path) -> None:
    source, made = tmp_path / "f.rasm", tmp_path / "made.rbc"
    source.write_text(STRAIGHT)
    options = ["-f", "f", "--pebbles", "3", "--emit", str(made), "--no-compare"]
    rvm("pebble", str(source), *options)
    assert machine.load(made)["f"](x=5, y=1).y == 901
    text = tmp_path / "made.rasm"
    rvm("pebble", C17, "--pebbles", "4", "--emit", str(text))
    assert "func circuit(" in text.read_text()
    for wrong in (["--emit", str(tmp_path / "x.txt")], ["--emit", "/nowhere/x.rbc"]):
        assert "U012" in rvm("pebble", C17, "--pebbles", "4", *wrong, code=2).stderr


def test_costs_by_names(tmp_path: Path) -> None:
    file = tmp_path / "costs.json"
    file.write_text('{"10": 50, "11": 2}')
    found = rvm_json("pebble", C17, "--pebbles", "6", "--costs", f"@{file}")
    # 10, 11, 16 and 19 are made and undone, 22 and 23 made.
    assert found["cost"]["cost"] == 2 * (50 + 2 + 1 + 1) + 2
    file.write_text('{"99": 50}')
    assert (
        "no node `99`" in rvm("pebble", C17, "--pebbles", "6", "--costs", f"@{file}", code=2).stderr
    )


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--steps", "1000", "--pebbles", "9"], "--pebbles 11 is the least that suffices"),
        (["--steps", "1000", "--bytes", "90", "--state-bytes", "10"], "--bytes 110 is the least"),
        (["--steps", "1000", "--bytes", "90"], "--state-bytes or --sizes"),
        (["--steps", "1000"], "--pebbles, --bytes, --time or --energy"),
        (["--steps", "1000", "--pebbles", "9", "--time", "1e6"], "only one budget may be given"),
        (["--steps", "1000", "--pebbles", "20", "--strategy", "nope"], "no strategy `nope`"),
        (["--steps", "1e9", "--pebbles", "60", "--picture"], "too long to be drawn"),
        (["--steps", "9", "--pebbles", "9", "--in-place", "a"], "`a` is not a step"),
        (["--steps", "9", "--pebbles", "5", "--costs", "1,2,x"], "x"),
        ([C17, "--pebbles", "2"], "--pebbles 4"),
        ([C17, "--bytes", "2"], "needs the sizes of nodes"),
        ([C17, "--picture"], "a plan needs a budget"),
        (["nowhere.bench", "--pebbles", "2"], "can't read nowhere.bench"),
        (["--steps", "10", "--pebbles", "5", "--rounds", "9"], "a chain has no use for --rounds"),
        ([C17, "--price", "3", "-f", "f"], "a graph has no use for --price and --function"),
        (["plan.npz", "--pebbles", "3"], "a plan that was saved has no use for --pebbles"),
    ],
)
def test_errors_name_options(args: list[str], told: str) -> None:
    result = rvm("pebble", *args, code=exit_code(rvm_any(*args)))
    assert told in result.stderr and result.stdout == ""
    as_json = rvm_any(*args, "--json")
    assert as_json.exit_code == result.exit_code
    # What is wrong with the call itself is told before there is anything to print.
    assert json.loads(as_json.stdout)["errors"][0]["message"] in result.stderr


def rvm_any(*args: str) -> Result:
    from click.testing import CliRunner
    from rvm_tools.cli import cli

    return CliRunner().invoke(cli, ["pebble", *args], prog_name="rvm")


def exit_code(result: Result) -> int:
    assert result.exit_code in (1, 2), result.output
    return result.exit_code


@pytest.mark.parametrize(
    "args",
    [
        [],
        [C17, "--steps", "9", "--pebbles", "4"],
        ["--steps", "9", "--step", "f", "--pebbles", "4"],
        ["--steps", "9", "--pebbles", "4", "--out", "x.svg"],
        ["--steps", "9", "--pebbles", "4", "--plot", "--picture", "--out", "x.svg"],
        ["--steps", "9", "--pebbles", "4", "--emit", "x.rbc"],
        ["--steps", "9", "--pebbles", "many"],
        ["--steps", "9", "--pebbles", "4", "--price", "-1"],
    ],
)
def test_wrong_usage(args: list[str]) -> None:
    assert rvm("pebble", *args, code=2).stdout == ""


def test_a_circuit_that_is_wrong_is_reported_by_its_line(tmp_path: Path) -> None:
    file = tmp_path / "bad.bench"
    file.write_text("INPUT(a)\nOUTPUT(y)\ny = MAYBE(a)\n")
    result = rvm("pebble", str(file), "--pebbles", "3", code=1)
    assert "P009" in result.stderr and "bad.bench:3" in result.stderr


def test_strategies_are_completed() -> None:
    words = "rvm pebble --strategy b"
    done = process(_RVM_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD="3")
    assert "bennett" in done.stdout and "best" in done.stdout and "knill" not in done.stdout


@wide
@pytest.mark.skipif(os.name != "posix", reason="signals and terminals of POSIX")
def test_ctrl_c_takes_the_best_so_far() -> None:
    import pty

    screen, inside = pty.openpty()
    command = [sys.executable, "-m", "rvm_tools", "pebble", ADDER, "--pebbles", "14"]
    # Whatever started the tests may ignore Ctrl-C, and what it starts would too.
    run: Any = subprocess.Popen(
        [*command, "--time-limit", "500", "--rounds", "1e9"],
        stdout=subprocess.PIPE,
        stderr=inside,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    os.close(inside)
    shown = b""
    # The bar appears when the search is under way, however long that takes.
    while b"searching" not in shown and select.select([screen], [], [], 120)[0]:
        shown += os.read(screen, 4096)
    run.send_signal(signal.SIGINT)
    reader = threading.Thread(target=drained, args=[screen])
    reader.start()
    out, _ = run.communicate(timeout=120)
    reader.join()
    os.close(screen)
    assert run.returncode == 130, shown
    assert "the search was interrupted" in out and "pebbles   14 (budget 14)" in out


def drained(screen: int) -> None:
    """Read a terminal to its end, so that nobody waits to write to it."""
    with contextlib.suppress(OSError):
        while os.read(screen, 4096):
            pass
