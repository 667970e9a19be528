"""What a client can do while a program runs, and what it is told when it asks for nonsense."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.dap.client import Client, Refused, talking
from tools.dap.programs import CALLS, LONG

ENDLESS = 1 << 60
NEVER = {"line": 3, "hitCondition": "> 1000000000000"}
"""A breakpoint in `LONG`; each passing is counted, so that on any machine the way back takes some
thousand times as long as a `seek` there, and is still under way when it is to be stopped."""


@pytest.fixture
def client() -> Iterator[Client]:
    with talking() as made:
        yield made


@pytest.fixture
def long(client: Client, tmp_path: Path) -> Path:
    """A program that runs longer than anybody waits, stopped at its beginning."""
    (tmp_path / "long.rasm").write_text(LONG)
    inputs = {"s": 0, "n": ENDLESS}
    client.launch(tmp_path / "long.rasm", inputs=inputs, stopOnEntry=True)
    client.event("stopped")
    return tmp_path / "long.rasm"


def test_pause_in_both_directions(client: Client, long: Path) -> None:
    client.events.clear()
    client.ask("continue", threadId=1)
    client.ask("pause", threadId=1)
    assert client.event("stopped")["reason"] == "pause"
    client.say("seek 3000001")
    client.event("stopped")
    i = int(client.values("Locals")["i"])
    assert int(client.values()["s"]) == i * (i + 1) // 2 or int(client.values()["s"]) == (
        i * (i - 1) // 2
    )
    client.ask("setBreakpoints", source={"path": str(long)}, breakpoints=[NEVER])
    client.events.clear()
    client.ask("reverseContinue", threadId=1)
    client.ask("pause", threadId=1)
    assert client.event("stopped")["reason"] == "pause" and client.time <= 3000001


def test_a_pause_that_comes_before_the_run_has_begun(client: Client, long: Path) -> None:
    client.events.clear()
    first, second = client.send("continue", threadId=1), client.send("pause", threadId=1)
    client.response(first)
    assert client.event("stopped")["reason"] == "pause"
    client.response(second)
    # Nothing is left of it: the next step is a whole one.
    time = client.time
    assert client.go("next", granularity="instruction")["reason"] == "step"
    assert client.time == time + 1


def test_a_pause_when_nothing_runs(client: Client, long: Path) -> None:
    assert client.go("pause")["reason"] == "pause"
    assert client.go("next")["reason"] == "step"


def test_breakpoints_are_set_while_it_runs(client: Client, long: Path) -> None:
    client.events.clear()
    client.ask("continue", threadId=1)
    with pytest.raises(Refused) as refused:
        while True:  # until the run has begun
            client.ask("stackTrace", threadId=1)
    assert refused.value.code == "notStopped" and "U042" in refused.value.text
    assert client.ask("threads")["threads"]
    found = client.ask(
        "setBreakpoints",
        source={"path": str(long)},
        breakpoints=[{"line": 3, "condition": "i % 1000 == 0"}],
    )
    assert found["breakpoints"][0]["verified"]
    assert client.event("stopped")["reason"] == "breakpoint"
    assert int(client.values("Locals")["i"]) % 1000 == 0


def test_none_of_the_stops_is_lost_to_requests_on_the_way(client: Client, long: Path) -> None:
    client.ask(
        "setBreakpoints",
        source={"path": str(long)},
        breakpoints=[{"line": 3, "condition": "i == 2_000_000"}],
    )
    client.events.clear()
    client.send("continue", threadId=1)
    numbers = [client.send("loadedSources") for _ in range(30)]
    for number in numbers:
        client.response(number)
    assert client.event("stopped")["reason"] == "breakpoint"
    assert client.values("Locals")["i"] == "2000000"


@pytest.mark.parametrize("command", ["continue", "reverseContinue"])
def test_what_takes_long_is_shown_and_can_be_called_off(
    tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rvm_dap.progress.PATIENCE", 0.05)
    monkeypatch.setattr("rvm_dap.progress.INTERVAL", 0.02)
    (tmp_path / "long.rasm").write_text(LONG)
    with talking() as client:
        inputs = {"s": 0, "n": 10**15}
        client.launch(tmp_path / "long.rasm", progress=True, inputs=inputs, stopOnEntry=True)
        client.event("stopped")
        client.go("next")
        where = {"path": str(tmp_path / "long.rasm")}
        point = {"line": 3, "condition": "s < 0"}
        if command == "reverseContinue":
            client.say("seek 100_000_000")
            client.event("stopped")
            point = NEVER
        client.ask("setBreakpoints", source=where, breakpoints=[point])
        begun = client.time
        client.events.clear()
        client.ask(command, threadId=1)
        start = client.event("progressStart")
        assert start["cancellable"] and start["title"] in ("continue", "reverse")
        update = client.event("progressUpdate")
        assert update["progressId"] == start["progressId"] and "at time" in update["message"]
        assert ("percentage" in update) == (command == "reverseContinue")
        client.ask("cancel", progressId=start["progressId"])
        assert client.event("progressEnd")["progressId"] == start["progressId"]
        assert client.event("stopped")["reason"] == "pause"
        assert (client.time > begun) == (command == "continue")
        # What takes no time is not worth a word.
        client.events.clear()
        client.go("next")
        assert not [e for e in client.events if e["event"].startswith("progress")]


def test_clients_that_show_no_progress_receive_none(client: Client, long: Path) -> None:
    client.events.clear()
    client.ask("continue", threadId=1)
    time.sleep(1.0)
    client.ask("pause", threadId=1)
    client.event("stopped")
    assert not [m for m in client.messages if m.get("event", "").startswith("progress")]


def test_leaving_while_it_runs(client: Client, long: Path) -> None:
    client.ask("continue", threadId=1)
    client.ask("disconnect")


def test_going_away_while_it_runs(client: Client, long: Path) -> None:
    client.ask("continue", threadId=1)  # and the fixture closes the connection


def test_a_restart_while_it_runs(client: Client, long: Path) -> None:
    client.ask("continue", threadId=1)
    client.events.clear()
    client.ask("restart")
    while client.event("stopped")["reason"] != "entry":
        pass
    assert client.time == 0


def test_a_search_at_the_console_can_be_paused(client: Client, long: Path) -> None:
    client.events.clear()
    number = client.send("evaluate", expression="end", context="repl")
    second = client.send("pause", threadId=1)
    client.response(number)
    client.response(second)
    assert client.event("stopped")["reason"] in ("pause", "goto")


# ---------------------------------------------------------------- what is refused


def test_requests_at_the_wrong_time(client: Client, tmp_path: Path) -> None:
    (tmp_path / "calls.rasm").write_text(CALLS)
    for command in ("continue", "stackTrace", "setBreakpoints", "configurationDone", "pause"):
        with pytest.raises(Refused) as refused:
            client.ask(command)
        assert refused.value.code == "U042" and refused.value.error["id"] == 21042
    client.launch(tmp_path / "calls.rasm", inputs={"a": 1, "b": 2})
    client.event("stopped")
    for command in ("initialize", "launch"):
        with pytest.raises(Refused, match="U042"):
            client.ask(command, program="x.rasm")
    with pytest.raises(Refused, match="U042"):
        client.ask("exceptionInfo", threadId=1)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "U041"),
        ({"program": 3}, "U041"),
        ({"program": "nowhere.rasm"}, "U011"),
        ({"program": "calls.rasm"}, "I001"),
        ({"program": "calls.rasm", "inputs": {"a": 1, "b": 2, "c": 3}}, "I002"),
        ({"program": "calls.rasm", "inputs": {"a": 1, "b": "?"}}, "I010"),
        ({"program": "calls.rasm", "inputs": 3}, "U041"),
        ({"program": "calls.rasm", "inputs": {"a": 1, "b": 2}, "function": "f"}, "U001"),
        ({"program": "calls.rasm", "inputs": {"a": 1, "b": 2}, "engine": "turbo"}, "U002"),
        ({"program": "calls.rasm", "inputs": {"a": 1, "b": 2}, "gradient": "a"}, "I008"),
        ({"program": "calls.rasm", "inputs": {"a": 1, "b": 2}, "strict": "yes"}, "U041"),
        ({"program": "calls.rasm", "inputs": {"a": 1, "b": 2}, "tolerance": "x"}, "U041"),
        ({"program": "wrong.rasm", "inputs": {}}, "A003"),
    ],
)
def test_launches_that_fail(
    client: Client, tmp_path: Path, arguments: dict[str, Any], code: str
) -> None:
    (tmp_path / "calls.rasm").write_text(CALLS)
    (tmp_path / "wrong.rasm").write_text("func f(x: i64)\n    mov x, 3\n    mul x, \n")
    client.ask("initialize", adapterID="rvm")
    with pytest.raises(Refused) as refused:
        client.ask("launch", cwd=str(tmp_path), **arguments)
    assert refused.value.code == code, refused.value.text
    assert f"[{code}]" in refused.value.text and refused.value.error["showUser"] is True
    # And then one that does not.
    client.ask("launch", cwd=str(tmp_path), program="calls.rasm", inputs={"a": 1, "b": 2})
    client.event("initialized")


def test_messages_that_are_not_requests(client: Client) -> None:
    client.message({"seq": 1, "type": "response", "command": "x", "request_seq": 1})
    client.message({"seq": 77, "type": "request"})
    with pytest.raises(Refused, match="U041"):
        client.response(77)
    client.message({"seq": 78, "type": "request", "command": "launch", "arguments": [1]})
    with pytest.raises(Refused, match="U041"):
        client.response(78)
    client.message({"type": "request", "command": "launch"})
    with pytest.raises(Refused, match="U041"):
        client.response(0)
    client.message([1, 2])
    assert "not a JSON object" in client.event("output")["output"]
    client.raw(b"Content-Length: 3\r\n\r\n{a}")
    assert "not JSON" in client.event("output")["output"]
    with pytest.raises(Refused, match="there is no request `frobnicate`"):
        client.ask("initialize") and client.ask("frobnicate")
    client.raw(b"GET / HTTP/1.1\r\n\r\n")
    assert "the conversation ends" in client.event("output")["output"]
    with pytest.raises((EOFError, OSError)):
        client.ask("threads")


def test_arguments_of_the_wrong_types(client: Client, tmp_path: Path) -> None:
    (tmp_path / "calls.rasm").write_text(CALLS)
    client.launch(tmp_path / "calls.rasm", inputs={"a": 1, "b": 2}, stopOnEntry=True)
    client.event("stopped")
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("setBreakpoints", {"source": "x", "breakpoints": []}),
        ("setBreakpoints", {"source": {}, "breakpoints": [3]}),
        ("setBreakpoints", {"source": {"path": str(tmp_path / "calls.rasm")}, "breakpoints": [{}]}),
        ("stackTrace", {"startFrame": "all"}),
        ("variables", {}),
        ("variables", {"variablesReference": 1}),
        ("variables", {"variablesReference": True}),
        ("evaluate", {}),
        ("disassemble", {"memoryReference": "0x1000", "instructionCount": -1}),
        ("setDataBreakpoints", {"breakpoints": [{"dataId": "3"}]}),
        ("setDataBreakpoints", {"breakpoints": [{"dataId": "x"}]}),
    ]
    for command, arguments in wrong:
        with pytest.raises(Refused) as refused:
            client.ask(command, **arguments)
        assert refused.value.code == "U041", (command, arguments)


def test_references_end_with_the_stop(client: Client, tmp_path: Path) -> None:
    (tmp_path / "calls.rasm").write_text(CALLS)
    client.launch(tmp_path / "calls.rasm", inputs={"a": 1, "b": 2}, stopOnEntry=True)
    client.event("stopped")
    reference = client.scope("Parameters")
    client.go("next")
    with pytest.raises(Refused, match="U041"):
        client.ask("variables", variablesReference=reference)
