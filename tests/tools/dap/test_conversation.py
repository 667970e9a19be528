"""Conversations with the server: going both ways, stopping, looking, and what is refused."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools.dap.client import Client, Refused, talking
from tools.dap.programs import CALLS, WINDOW
from tools.running import golden

import rvm

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def client() -> Iterator[Client]:
    with talking() as made:
        yield made


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    (tmp_path / "calls.rasm").write_text(CALLS)
    return tmp_path / "calls.rasm"


def start(client: Client, program: Path, **arguments: Any) -> None:
    client.launch(program, stopOnEntry=True, **arguments)
    assert client.event("stopped")["reason"] == "entry"


# ---------------------------------------------------------------- going


def test_instructions_both_ways(client: Client, calls: Path) -> None:
    start(client, calls, inputs={"a": 3, "b": 5})
    machine = rvm.Machine(rvm.load(calls), a=3, b=5, output=lambda line: None)
    for _ in range(10):
        stop = client.go("next", granularity="instruction")
        machine.step()
        here = {name: str(v) for name, v in machine.registers().items()}
        assert client.values() == here and client.time == machine.time
        names = [f["name"] for f in client.ask("stackTrace", threadId=1)["stackFrames"]]
        assert [n.split(",")[0] for n in names] == [
            f.code.name for f in reversed(machine.state.frames)
        ]
    assert stop["reason"] == "end" and machine.finished
    for _ in range(10):
        stop = client.go("stepBack", granularity="instruction")
    assert stop["reason"] == "entry" and client.values() == {"a": "3", "b": "5"}


def test_lines_over_into_and_out(client: Client, calls: Path) -> None:
    start(client, calls, inputs={"a": 3, "b": 5})

    def at(command: str) -> tuple[str, int]:
        client.go(command)
        top = client.top()
        return top["name"], top["line"]

    assert at("next") == ("main", 3)
    assert at("stepIn") == ("twice", 10)
    assert at("next") == ("twice", 11)
    assert at("next") == ("twice", 12)  # over the call
    assert at("stepBack") == ("twice", 11)  # and back over it
    assert at("stepIn") == ("once", 15)
    assert at("stepOut") == ("twice", 12)
    assert at("stepOut")[0] == "main"
    client.go("stepBack")
    assert client.top()["line"] == 3


def test_the_ends_are_stops(client: Client, calls: Path) -> None:
    start(client, calls, inputs={"a": 3, "b": 5})
    for command in ("stepBack", "reverseContinue"):
        stop = client.go(command)
        assert stop["reason"] == "entry" and client.time == 0
    assert client.go("continue")["reason"] == "end"
    for command in ("next", "stepIn", "stepOut", "continue"):
        stop = client.go(command)
        assert stop["reason"] == "end" and "step back" in stop["description"]
        assert client.top()["name"] == "main, at its end" and client.top()["line"] == 7
    assert client.go("stepBack")["reason"] == "step"
    assert client.values() == {"a": "4", "b": "12"}


def test_what_is_printed_is_output(client: Client, calls: Path) -> None:
    start(client, calls, inputs={"a": 3, "b": 5})
    client.go("continue")
    client.go("reverseContinue")
    assert client.output() == ["a is 4", "a is 4"]


def test_random_walks_agree_with_a_machine(client: Client) -> None:
    program = EXAMPLES / "sort.rasm"
    x = [5, 2, 9, 1, 7, 3]
    start(client, program, inputs={"x": x, "p": "zeros(6)"})
    client.ask(
        "setBreakpoints",
        source={"path": str(program)},
        breakpoints=[{"line": 28}, {"line": 33, "condition": "k % 2 == 0"}],
    )
    machine = rvm.Machine(rvm.load(program), x=np.array(x), p=np.zeros(6, np.int64))
    rng = random.Random(7)
    moves = ["next", "stepIn", "stepOut", "stepBack", "continue", "reverseContinue"]
    for _ in range(60):
        how = {} if rng.random() < 0.6 else {"granularity": "instruction"}
        client.go(rng.choice(moves), **how)
        machine.seek(client.time)
        assert machine.time == client.time
        frames = client.ask("stackTrace", threadId=1)["stackFrames"]
        assert len(frames) == len(machine.state.frames)
        outer = machine.state.frames[0].regs
        shown = client.values(frame=1)
        assert shown["x"] == str(outer[0].tolist()) and shown["p"] == str(outer[1].tolist())


def test_goto_runs_to_a_line_either_way(client: Client, calls: Path) -> None:
    start(client, calls, inputs={"a": 3, "b": 5})
    targets = client.ask("gotoTargets", source={"path": str(calls)}, line=12)["targets"]
    assert [t["label"] for t in targets] == [
        "line 12: on to its next execution",
        "line 12: back to its last execution",
    ]
    with pytest.raises(Refused, match="not a place that has come before") as refused:
        client.ask("goto", threadId=1, targetId=targets[1]["id"])
    assert refused.value.code == "U033" and client.time == 0
    stop = client.go("goto", targetId=_target(client, calls, 12, 0))
    assert stop["reason"] == "goto" and client.time == 6
    client.go("continue")
    stop = client.go("goto", targetId=_target(client, calls, 10, 1))
    assert stop["reason"] == "goto" and client.time == 2
    assert client.say("info b") == "no breakpoints, tracepoints or watchpoints"
    with pytest.raises(Refused, match="U041"):
        client.ask("goto", threadId=1, targetId=4711)


def _target(client: Client, path: Path, line: int, which: int) -> int:
    found = client.ask("gotoTargets", source={"path": str(path)}, line=line)["targets"]
    return int(found[which]["id"])


def test_restart_keeps_breakpoints(client: Client, calls: Path) -> None:
    start(client, calls, inputs={"a": 3, "b": 5})
    client.ask("setBreakpoints", source={"path": str(calls)}, breakpoints=[{"line": 15}])
    client.go("continue")
    client.ask("setVariable", variablesReference=client.scope("Parameters"), name="r", value="70")
    assert client.go("restart")["reason"] == "entry"
    assert client.values() == {"a": "3", "b": "5"}
    assert client.go("continue")["reason"] == "breakpoint" and client.values() == {"r": "9"}


# ---------------------------------------------------------------- how it ends


def test_without_a_debugger(client: Client, calls: Path) -> None:
    client.launch(calls, inputs=["a=3", "b=5"], noDebug=True)
    assert client.event("stopped", "exited") == {"exitCode": 0, "event": "exited"}
    client.event("terminated")
    assert client.output() == ["a is 4"]


def test_a_failing_run_without_a_debugger(client: Client, tmp_path: Path) -> None:
    (tmp_path / "window.rasm").write_text(WINDOW)
    inputs = {"y": "zeros(4)", "x": [5, 6, 7, 8], "w": 2}
    client.launch(tmp_path / "window.rasm", inputs=inputs, noDebug=True)
    assert client.event("stopped", "exited")["exitCode"] == 4
    assert "error[R001]" in client.output()[0]


def test_terminate_and_the_end_that_is_one(client: Client, calls: Path) -> None:
    client.launch(calls, inputs={"a": 3, "b": 5}, stopAtEnd=False)
    assert client.event("stopped", "exited")["event"] == "exited"
    client.event("terminated")
    client.ask("terminate")
    assert client.event("exited")["exitCode"] == 0
    client.event("terminated")
    client.ask("disconnect")


# ---------------------------------------------------------------- a whole session


def test_the_transcript_of_finding_a_bug(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "window.rasm"
    program.write_text(WINDOW)
    client.launch(
        program,
        configure=False,
        inputs={"y": "zeros(6)", "x": [5, 11, 16, 23, 36, 58], "w": 3},
    )
    client.ask("setFunctionBreakpoints", breakpoints=[])
    client.send("configurationDone")
    assert client.event("stopped")["reason"] == "exception"
    client.ask("exceptionInfo", threadId=1)
    client.ask("stackTrace", threadId=1)
    client.say("last total")
    client.event("stopped")
    client.ask(
        "setBreakpoints",
        source={"path": str(program)},
        breakpoints=[{"line": 9, "condition": "total == sum(x[max(0, i - w + 1):i + 1])"}],
    )
    client.go("reverseContinue")
    client.ask("evaluate", expression="i", context="watch", frameId=1)
    client.ask("setBreakpoints", source={"path": str(program)}, breakpoints=[])
    for _ in range(4):
        client.go("next")
    client.ask("evaluate", expression="x[i - w]", context="hover", frameId=1)
    client.ask("setExpression", expression="total", value="total - x[i - w]", frameId=1)
    client.event("invalidated")
    client.go("continue")
    locals_ = client.scope("Locals")
    client.ask("variables", variablesReference=locals_)
    client.ask("disconnect")
    text = "\n".join(client.log).replace(str(tmp_path), "…") + "\n"
    golden("dap_window", text)
