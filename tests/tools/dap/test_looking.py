"""Frames, values and sources as a client sees them, and what it can change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.dap.client import Client, Refused, talking
from tools.dap.programs import CALLS, KINDS

import rvm
from rvm.codec import encode

EXAMPLES = Path(__file__).parents[3] / "examples"
INPUTS: dict[str, Any] = {
    "b": True,
    "u": 3,
    "z": "2+1j",
    "p": {"pos": 1.5, "spin": 2},
    "a": [[1, 2, 3], [4, 5, 6]],
    "s": [7, 8],
    "v": "range(2500)",
}


@pytest.fixture
def client() -> Iterator[Client]:
    with talking() as made:
        yield made


@pytest.fixture
def kinds(client: Client, tmp_path: Path) -> Client:
    """Stopped at the beginning of a function with parameters of all kinds."""
    (tmp_path / "kinds.rasm").write_text(KINDS)
    client.launch(tmp_path / "kinds.rasm", inputs=INPUTS, stopOnEntry=True)
    client.event("stopped")
    return client


def children(client: Client, reference: int, **how: Any) -> dict[str, dict[str, Any]]:
    found = client.ask("variables", variablesReference=reference, **how)["variables"]
    return {v["name"]: v for v in found}


def test_values_of_all_kinds(kinds: Client) -> None:
    found = children(kinds, kinds.scope("Parameters"))
    shown = {name: (v["type"], v["value"]) for name, v in found.items() if name != "v"}
    assert shown == {
        "b": ("bool", "true"),
        "u": ("u8", "3"),
        "z": ("c128", "2.0+1.0j"),
        "p": ("Body", "{pos: 1.5, spin: 2}"),
        "a": ("i64[2, 3]", "[[1, 2, 3],\n [4, 5, 6]]"),
        "s": ("stack[i64]", "[7, 8]"),
    }
    assert found["p"]["namedVariables"] == 2
    fields = children(kinds, found["p"]["variablesReference"])
    assert fields["spin"]["evaluateName"] == "p.spin" and fields["spin"]["value"] == "2"
    rows = children(kinds, found["a"]["variablesReference"])
    assert rows["[1]"]["type"] == "i64[3]" and rows["[1]"]["indexedVariables"] == 3
    row = children(kinds, rows["[1]"]["variablesReference"])
    assert [v["value"] for v in row.values()] == ["4", "5", "6"]
    assert row["[2]"]["evaluateName"] == "a[1, 2]"
    for name, v in {**fields, **row, **rows}.items():
        if "value" in v and name != "[0]":
            again = kinds.ask("evaluate", expression=v["evaluateName"], frameId=1)
            assert again["result"] == v["value"]


def test_long_arrays_come_in_parts(kinds: Client) -> None:
    v = children(kinds, kinds.scope("Parameters"))["v"]
    assert v["type"] == "f64[2500]" and v["indexedVariables"] == 2500
    reference = v["variablesReference"]
    part = children(kinds, reference, filter="indexed", start=2400, count=3)
    assert [(n, e["value"]) for n, e in part.items()] == [
        ("[2400]", "2400.0"),
        ("[2401]", "2401.0"),
        ("[2402]", "2402.0"),
    ]
    assert len(children(kinds, reference, filter="indexed", start=2499, count=10)) == 1
    assert children(kinds, reference, filter="named") == {}


def test_a_client_that_can_not_page_gets_chunks(client: Client, tmp_path: Path) -> None:
    (tmp_path / "kinds.rasm").write_text(KINDS)
    client.ask("initialize", adapterID="rvm")
    client.ask("launch", program=str(tmp_path / "kinds.rasm"), inputs=INPUTS, stopOnEntry=True)
    client.ask("configurationDone")
    client.event("stopped")
    v = children(client, client.scope("Parameters"))["v"]
    chunks = children(client, v["variablesReference"])
    assert list(chunks) == ["[0 … 999]", "[1000 … 1999]", "[2000 … 2499]"]
    last = children(client, chunks["[2000 … 2499]"]["variablesReference"])
    assert len(last) == 500 and last["[2001]"]["value"] == "2001.0"
    assert last["[2001]"]["evaluateName"] == "v[2001]"


def test_numbers_in_base_16(kinds: Client) -> None:
    found = children(kinds, kinds.scope("Parameters"), format={"hex": True})
    assert found["u"]["value"] == "0x3" and found["b"]["value"] == "true"
    shown = kinds.ask("evaluate", expression="u + 252", frameId=1, format={"hex": True})
    assert shown["result"] == "0xff"


def test_setting_values_marks_another_run(kinds: Client) -> None:
    kinds.events.clear()
    top = kinds.scope("Parameters")
    assert kinds.ask("setVariable", variablesReference=top, name="u", value="200")["value"] == "200"
    assert kinds.event("invalidated")["areas"] == ["variables"]
    assert any("the session is edited" in line for line in kinds.output())
    found = children(kinds, top)
    rows = children(kinds, found["a"]["variablesReference"])
    reference = rows["[1]"]["variablesReference"]
    kinds.ask("setVariable", variablesReference=reference, name="[2]", value="-6")
    fields = found["p"]["variablesReference"]
    kinds.ask("setVariable", variablesReference=fields, name="pos", value="2.5")
    kinds.ask("setExpression", expression="z.im", value="9", frameId=1)
    kinds.ask("setExpression", expression="a[0, 0]", value="a[1, 2] * 2", frameId=1)
    shown = kinds.values()
    assert shown["a"] == "[[-12, 2, 3],\n [4, 5, -6]]"
    assert (shown["u"], shown["z"]) == ("200", "2.0+9.0j")
    assert shown["p"] == "{pos: 2.5, spin: 2}"
    assert kinds.values("Machine")["edited"] == "first at time 0"
    assert kinds.go("next")["reason"] == "step" and kinds.values()["u"] == "194"  # 450 mod 256


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("u", "1.5", "I003"),
        ("u", "b", "U035"),
        ("u", "", "A"),
        ("s", "3", "U035"),
        ("q", "3", "U041"),
    ],
)
def test_what_can_not_be_set(kinds: Client, name: str, value: str, code: str) -> None:
    with pytest.raises(Refused) as refused:
        reference = kinds.scope("Parameters")
        kinds.ask("setVariable", variablesReference=reference, name=name, value=value)
    assert refused.value.code.startswith(code) and f"[{refused.value.code}]" in refused.value.text
    assert "edited" not in kinds.values("Machine")


def test_counters(kinds: Client) -> None:
    for _ in range(2):
        kinds.go("next")
    kinds.go("stepBack")
    found = kinds.values("Machine")
    assert (found["time"], found["work"], found["erased"]) == ("1", "8", "0")
    assert found["energy"] == "at least 0 J at 300 K"
    with pytest.raises(Refused, match="U030"):
        kinds.ask("setVariable", variablesReference=kinds.scope("Machine"), name="time", value="0")


def test_frames_and_their_values(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "calls.rasm"
    program.write_text(CALLS)
    client.launch(program, configure=False, inputs={"a": 3, "b": 5})
    client.ask("setFunctionBreakpoints", breakpoints=[{"name": "once"}])
    client.ask("configurationDone")
    client.event("stopped")
    frames = client.ask("stackTrace", threadId=1, startFrame=1, levels=1)
    assert frames["totalFrames"] == 3 and len(frames["stackFrames"]) == 1
    frame = frames["stackFrames"][0]
    assert (frame["name"], frame["line"]) == ("twice", 11)
    assert client.values(frame=frame["id"]) == {"p": "4", "q": "9"}
    assert client.ask("evaluate", expression="p + q", frameId=frame["id"])["result"] == "13"
    with pytest.raises(Refused, match="A005"):
        client.ask("evaluate", expression="p + q", frameId=frame["id"] + 1)
    with pytest.raises(Refused, match="U032"):
        client.ask("evaluate", expression="p", frameId=9)
    assert client.ask("threads")["threads"] == [{"id": 1, "name": "main"}]


def test_lines_and_columns_from_zero(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "calls.rasm"
    program.write_text(CALLS)
    client.ask("initialize", adapterID="rvm", linesStartAt1=False, columnsStartAt1=False)
    client.ask("launch", program=str(program), inputs={"a": 3, "b": 5})
    found = client.ask("setBreakpoints", source={"path": str(program)}, breakpoints=[{"line": 14}])
    assert found["breakpoints"][0]["line"] == 14
    client.ask("configurationDone")
    client.event("stopped")
    top = client.top()
    assert (top["name"], top["line"], top["column"]) == ("once", 14, 4)


def test_a_gradient_and_code_without_a_source(client: Client) -> None:
    client.launch(
        EXAMPLES / "norm.rasm",
        inputs={"y": 0, "x": [3, 4]},
        gradient="y",
        function="norm",
        stopOnEntry=True,
    )
    client.event("stopped")
    top = client.top()
    assert top["name"] == "norm_gradient" and top["line"] == 1
    source = top["source"]
    listing = client.ask("source", source=source, sourceReference=source["sourceReference"])
    lines = listing["content"].splitlines()
    assert lines[0].startswith("call norm(y, x)") and "~  uncall norm(y, x)" in lines[0]
    assert source in client.ask("loadedSources")["sources"]
    adjoint = next(k for k, text in enumerate(lines, 1) if "_adjoint" in text.split("~")[0])
    found = client.ask("setBreakpoints", source=source, breakpoints=[{"line": adjoint}])
    assert found["breakpoints"][0]["line"] == adjoint
    assert client.go("continue")["reason"] == "breakpoint"
    assert client.top()["line"] == adjoint and client.values()["x_bar"] == "[0.0, 0.0]"
    assert client.go("continue")["reason"] == "end"
    assert client.values()["x_bar"] == "[6.0, 8.0]"  # d(x·x)/dx = 2x
    client.say("last x_bar[0]")
    client.event("stopped")
    assert client.top()["name"] == "norm_adjoint"


def test_running_the_inverse(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "calls.rasm"
    program.write_text(CALLS)
    client.launch(program, inputs={"a": 4, "b": 112}, back=True)
    assert client.event("stopped")["reason"] == "end"
    assert client.values() == {"a": "3", "b": "5"}
    client.ask("setFunctionBreakpoints", breakpoints=[{"name": "once"}])
    client.go("reverseContinue")
    assert client.top()["name"].startswith("once, being undone")


def test_the_console(client: Client) -> None:
    client.launch(
        EXAMPLES / "sort.rasm", inputs={"x": [9, 4, 7, 1], "p": "zeros(4)"}, stopOnEntry=True
    )
    client.event("stopped")
    assert client.say("x") == "[9, 4, 7, 1]"  # a register, though a command too
    assert client.say("n > 1") == "true"
    assert "t=105" in client.say("seek 105")
    stop = client.event("stopped")
    assert stop["reason"] == "goto" and client.top()["name"] == "merge"
    assert client.say("bt").startswith("> #1   merge")
    assert client.say("frame 0") == "frame 0"
    assert client.ask("evaluate", expression="l", frameId=2)["result"] == "0"
    client.say("end")
    client.event("stopped")
    assert "x[3] = 1            an input" in client.say("origin x[0]")
    assert client.event("stopped")["reason"] == "entry" and client.time == 0
    assert "50%" not in client.say("50%") and client.event("stopped")["reason"] == "goto"
    client.say("+1")
    client.event("stopped")
    with pytest.raises(Refused, match="U033"):
        client.say("goto @nowhere")
    with pytest.raises(Refused, match="A005"):
        client.say("nothing")
    with pytest.raises(Refused, match="U034"):
        client.say("del 7")
    client.say("quit")
    client.event("terminated")


def test_completions(client: Client) -> None:
    client.launch(
        EXAMPLES / "sort.rasm", inputs={"x": [9, 4, 7, 1], "p": "zeros(4)"}, stopOnEntry=True
    )
    client.event("stopped")
    found = client.ask("completions", text="ori", column=4)["targets"]
    assert found == [{"label": "origin", "start": 1, "length": 3}]
    found = client.ask("completions", text="b mer", column=6)["targets"]
    assert found == [{"label": "merge", "start": 3, "length": 3}]


def test_an_object_with_a_whole_record(kinds: Client) -> None:
    found = kinds.ask("evaluate", expression="p", frameId=1, context="watch")
    assert found["result"] == "{pos: 1.5, spin: 2}" and found["type"] == "Body"
    assert set(children(kinds, found["variablesReference"])) == {"pos", "spin"}


def test_included_files_and_sources_that_are_gone(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    part = tmp_path / "lib" / "part.rasm"
    part.write_text("func up(a: i64)\n    inc a\n    inc a\n")
    main = tmp_path / "main.rasm"
    main.write_text('include "lib/part.rasm"\nfunc main(a: i64)\n    call up(a)\n')
    with talking() as client:
        client.ask("initialize", adapterID="rvm")
        client.ask("launch", program="main.rasm", cwd=str(tmp_path), inputs={"a": 1})
        found = client.ask("setBreakpoints", source={"path": str(part)}, breakpoints=[{"line": 3}])
        assert found["breakpoints"][0]["source"] == {"name": "part.rasm", "path": str(part)}
        client.ask("configurationDone")
        client.event("stopped")
        assert client.top()["source"]["path"] == str(part) and client.values() == {"a": "2"}
    (tmp_path / "main.rbc").write_bytes(encode(rvm.load(main)))
    text = part.read_text()
    part.unlink()
    with talking() as client:
        client.launch(tmp_path / "main.rbc", configure=False, inputs={"a": 1})
        source = client.ask("loadedSources")["sources"][1]
        assert source["name"] == "part.rasm" and "path" not in source
        number = source["sourceReference"]
        assert client.ask("source", source=source, sourceReference=number)["content"] == text
        client.ask("setBreakpoints", source=source, breakpoints=[{"line": 3}])
        client.ask("configurationDone")
        client.event("stopped")
        assert client.top()["source"] == source and client.values() == {"a": "2"}
