"""Breakpoints of all kinds, by what the client is told and by where the program then stops."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.dap.client import Client, Refused, talking
from tools.dap.programs import CALLS

EXAMPLES = Path(__file__).parents[3] / "examples"
LOOP = """\
func loop(s: i64, n: i64)
    for i = 1 to n
        add s, i
    end
"""


@pytest.fixture
def client() -> Iterator[Client]:
    with talking() as made:
        yield made


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    (tmp_path / "loop.rasm").write_text(LOOP)
    return tmp_path / "loop.rasm"


def begin(client: Client, program: Path, **inputs: Any) -> None:
    client.launch(program, stopOnEntry=True, inputs=inputs)
    client.event("stopped")


def set_lines(client: Client, program: Path, *lines: dict[str, Any]) -> list[dict[str, Any]]:
    found = client.ask("setBreakpoints", source={"path": str(program)}, breakpoints=list(lines))
    return list(found["breakpoints"])


def stops(client: Client, command: str, most: int = 20) -> list[str]:
    """The variable `i` at each stop on the way to the end (or the start)."""
    out = []
    for _ in range(most):
        if client.go(command)["reason"] in ("end", "entry"):
            break
        out.append(client.values("Locals").get("i", "-"))
    return out


def test_lines_move_to_where_something_begins(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "calls.rasm"
    program.write_text(CALLS)
    begin(client, program, a=3, b=5)
    found = set_lines(client, program, {"line": 9}, {"line": 15}, {"line": 16})
    assert [b["verified"] for b in found] == [True, True, False]
    assert [b.get("line") for b in found] == [10, 15, None]
    assert "U031" in found[2]["message"]
    lines = client.ask("breakpointLocations", source={"path": str(program)}, line=1, endLine=13)[
        "breakpoints"
    ]
    assert [b["line"] for b in lines] == [2, 3, 5, 7, 10, 11, 12]
    stop = client.go("continue")
    assert stop["reason"] == "breakpoint" and stop["hitBreakpointIds"] == [found[0]["id"]]


def test_a_file_that_is_not_of_the_program(client: Client, loop: Path) -> None:
    begin(client, loop, s=0, n=5)
    found = set_lines(client, loop.parent / "other.rasm", {"line": 3}, {"line": 4})
    assert [b["verified"] for b in found] == [False, False]


def test_conditions_and_numbers_of_hits(client: Client, loop: Path) -> None:
    begin(client, loop, s=0, n=9)
    expected = {
        "3": ["3", "4", "5", "6", "7", "8", "9"],
        "== 3": ["3"],
        "> 7": ["8", "9"],
        "< 3": ["1", "2"],
        "<= 2": ["1", "2"],
        "% 4": ["4", "8"],
    }
    for hits, values in expected.items():
        set_lines(client, loop)
        set_lines(client, loop, {"line": 3, "hitCondition": hits})
        assert stops(client, "continue") == values, hits
        client.go("restart")
    set_lines(client, loop, {"line": 3, "condition": "i % 3 == 0"})
    assert stops(client, "continue") == ["3", "6", "9"]
    assert stops(client, "reverseContinue") == ["9", "6", "3"]
    set_lines(client, loop, {"line": 3, "condition": "i % 2 == 0", "hitCondition": "3"})
    assert stops(client, "continue") == ["6", "8"]


def test_a_condition_or_count_that_can_not_be_read(client: Client, loop: Path) -> None:
    begin(client, loop, s=0, n=9)
    wrong = set_lines(
        client,
        loop,
        {"line": 3, "condition": "i +"},
        {"line": 3, "condition": "i"},
        {"line": 3, "condition": "k > 3"},
        {"line": 3, "hitCondition": "often"},
        {"line": 3, "hitCondition": "% 0"},
    )
    assert not any(b["verified"] for b in wrong)
    assert [b["message"].split()[-1] for b in wrong] == [
        "[A002]",
        "[U030]",
        "[A005]",
        "[U036]",
        "[U036]",
    ]
    assert client.go("continue")["reason"] == "end"


def test_what_stays_in_the_list_keeps_its_hits(client: Client, loop: Path) -> None:
    begin(client, loop, s=0, n=9)
    first = set_lines(client, loop, {"line": 3, "hitCondition": "== 4"})[0]["id"]
    set_lines(client, loop, {"line": 3, "condition": "i == 2"}, {"line": 3, "hitCondition": "== 4"})
    assert client.go("continue")["hitBreakpointIds"] != [first]
    found = set_lines(client, loop, {"line": 3, "hitCondition": "== 4"})
    assert found[0]["id"] == first
    assert client.go("continue")["hitBreakpointIds"] == [first]
    assert client.values("Locals")["i"] == "4"


def test_hits_count_anew_after_a_restart(client: Client, loop: Path) -> None:
    begin(client, loop, s=0, n=9)
    set_lines(client, loop, {"line": 3, "hitCondition": "== 4"})
    for _ in range(2):
        assert stops(client, "continue") == ["4"]
        client.go("restart")


def test_a_temporary_stop_and_one_that_an_edit_removes(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "calls.rasm"
    program.write_text(CALLS)
    begin(client, program, a=3, b=5)
    client.say("tb once")
    assert client.event("breakpoint")["reason"] == "new"
    client.ask("continue", threadId=1)
    told = client.event("breakpoint", "stopped")
    assert told["event"] == "breakpoint" and told["reason"] == "removed"
    client.event("stopped")
    info = client.ask("dataBreakpointInfo", name="r", frameId=3)
    wish = {"dataId": info["dataId"]}
    (found,) = client.ask("setDataBreakpoints", breakpoints=[wish])["breakpoints"]
    client.go("continue")
    assert client.go("continue")["text"].startswith(f"watchpoint {found['id']} sleeps")
    while "has not been called yet" not in client.go("reverseContinue")["text"]:
        pass
    client.ask("setExpression", expression="a", value="7", frameId=1)
    told = client.event("breakpoint")
    assert told["reason"] == "removed" and told["breakpoint"]["id"] == found["id"]


def test_log_points_print_in_both_directions(client: Client, loop: Path) -> None:
    begin(client, loop, s=0, n=3)
    set_lines(client, loop, {"line": 3, "logMessage": "i={i} s={s}"})
    assert client.go("continue")["reason"] == "end"
    assert client.go("reverseContinue")["reason"] == "entry"
    assert client.output() == [
        "> i=1 s=0",
        "> i=2 s=1",
        "> i=3 s=3",
        "< i=3 s=3",
        "< i=2 s=1",
        "< i=1 s=0",
    ]


def test_functions(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "calls.rasm"
    program.write_text(CALLS)
    begin(client, program, a=3, b=5)
    found = client.ask(
        "setFunctionBreakpoints",
        breakpoints=[{"name": "once"}, {"name": "twice", "condition": "p > 100"}, {"name": "no"}],
    )["breakpoints"]
    assert [b["verified"] for b in found] == [True, True, False]
    stop = client.go("continue")
    assert stop["reason"] == "function breakpoint" and client.top()["name"] == "once"
    assert client.go("continue")["reason"] == "end"


def test_instructions(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "calls.rasm"
    program.write_text(CALLS)
    begin(client, program, a=3, b=5)
    here = int(client.top()["instructionPointerReference"], 0)
    rows = client.ask(
        "disassemble", memoryReference=hex(here), instructionOffset=-2, instructionCount=20
    )["instructions"]
    assert len(rows) == 20 and rows[0]["presentationHint"] == "invalid"
    texts = [" ".join(r["instruction"].split()) for r in rows]
    assert texts[1:7] == [
        "-- start of main",
        "inc a ~ dec a",
        "call twice(a, b) ~ uncall twice(a, b)",
        'print "a is", a ~ print "a is", a',
        "add b, 100 ~ sub b, 100",
        "-- end of main",
    ]
    assert rows[2]["line"] == 2 and rows[2]["location"]["path"] == str(program)
    at = next(r["address"] for r in rows if r["instruction"].startswith("xor"))
    found = client.ask(
        "setInstructionBreakpoints",
        breakpoints=[{"instructionReference": at}, {"instructionReference": "0x1"}],
    )["breakpoints"]
    assert [b["verified"] for b in found] == [True, False]
    stop = client.go("continue")
    assert stop["reason"] == "instruction breakpoint"
    assert client.top()["instructionPointerReference"] == at and client.values() == {"r": "9"}
    with pytest.raises(Refused, match="U041"):
        client.ask("disassemble", memoryReference="main", instructionCount=1)


def test_places_that_change(client: Client, loop: Path) -> None:
    begin(client, loop, s=0, n=9)
    info = client.ask("dataBreakpointInfo", name="s", frameId=1)
    assert info["accessTypes"] == ["write", "read"] and info["description"] == "s of loop"
    wish = {"dataId": info["dataId"], "accessType": "write", "condition": "s > 20"}
    found = client.ask("setDataBreakpoints", breakpoints=[wish])["breakpoints"]
    stop = client.go("continue")
    assert stop["reason"] == "data breakpoint" and stop["hitBreakpointIds"] == [found[0]["id"]]
    assert stop["text"] == f"watchpoint {found[0]['id']}: s  15 -> 21"
    assert client.go("continue")["text"].endswith("s  21 -> 28")
    assert client.go("reverseContinue")["text"].endswith("s  28 -> 21  (undone)")
    again = client.ask("setDataBreakpoints", breakpoints=[wish])["breakpoints"]
    assert again == found
    client.ask("setDataBreakpoints", breakpoints=[])
    assert client.go("continue")["reason"] == "end"


def test_a_place_of_a_call_that_is_over(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "calls.rasm"
    program.write_text(CALLS)
    begin(client, program, a=3, b=5)
    client.ask("setFunctionBreakpoints", breakpoints=[{"name": "once"}])
    client.go("continue")
    reference = client.scope("Parameters")
    info = client.ask("dataBreakpointInfo", name="r", variablesReference=reference)
    client.go("restart")
    found = client.ask("setDataBreakpoints", breakpoints=[{"dataId": info["dataId"]}])
    assert not found["breakpoints"][0]["verified"]
    assert "U032" in found["breakpoints"][0]["message"]


def test_what_is_not_a_place(client: Client, loop: Path) -> None:
    begin(client, loop, s=0, n=9)
    for name, code in (("s + 1", "U030"), ("k", "A005"), ("s[", "A002")):
        info = client.ask("dataBreakpointInfo", name=name, frameId=1)
        assert info["dataId"] is None and code in info["description"]
    reference = client.scope("Machine")
    info = client.ask("dataBreakpointInfo", name="time", variablesReference=reference)
    assert info["dataId"] is None and "U030" in info["description"]


def test_stops_set_at_the_console_belong_to_the_client_too(client: Client, loop: Path) -> None:
    begin(client, loop, s=0, n=9)
    client.events.clear()
    assert client.say("b 3 if i == 4") == "breakpoint 1: line 3 if i == 4"
    told = client.event("breakpoint")
    assert told["reason"] == "new" and told["breakpoint"]["line"] == 3
    found = set_lines(client, loop, {"line": 3, "condition": "i == 4"})
    assert found[0]["id"] == 1
    assert stops(client, "continue") == ["4"]
    client.say("del 1")
    assert client.event("breakpoint")["reason"] == "removed"
    assert stops(client, "reverseContinue") == []
