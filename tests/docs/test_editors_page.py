"""The page on editors: its configuration launches, its commands and arguments are there."""

from __future__ import annotations

import json
import re

from docs.pages import ROOT
from rvm_tools.debug.console import find
from tools.dap.client import talking

PAGE = (ROOT / "docs" / "editors.md").read_text()


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.S | re.M)


def test_the_configuration_of_vs_code_launches() -> None:
    extension, launch = map(json.loads, blocks("json"))
    debugger = extension["contributes"]["debuggers"][0]
    (given,) = launch["configurations"]
    assert debugger["type"] == given["type"] and debugger["args"] == ["rvm", "dap"]
    assert given["program"] == "${file}"
    with talking() as client:
        client.ask("initialize", adapterID=given["type"])
        client.ask("launch", **given | {"program": str(ROOT / "examples" / "sort.rasm")})
        client.ask("configurationDone")
        assert client.event("stopped")["reason"] == "entry"


def test_every_launch_argument_is_in_the_table() -> None:
    table = PAGE.split("## Launch arguments")[1].split("Values are JSON")[0]
    told = set(
        re.findall(
            r"`(\w+)`(?=[^|]*\|)",
            "\n".join(
                row.split("|")[1] + "|" for row in table.splitlines() if row.startswith("| `")
            ),
        )
    )
    source = (ROOT / "tools" / "rvm_dap" / "lifecycle.py").read_text()
    body = source.split("def launch(")[1].split('@answers("configurationDone")')[0]
    read = set(re.findall(r'args\.\w+(?:\.get)?\("(\w+)"', body))
    assert told == read


def test_the_commands_of_the_console_are_there() -> None:
    commands = [line for line in blocks("text")[0].splitlines() if line]
    assert len(commands) >= 7
    for line in commands:
        word = line.split()[0]
        assert word == "seek" or find(line)[0].names
