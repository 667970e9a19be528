"""Requests with any arguments: each is answered, and none shows a fault of the server."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from rvm_dap.adapter import ANSWERS
from sizes import wide
from tools.dap.client import Client, Refused, talking
from tools.dap.programs import CALLS

LEAVING = {"disconnect", "terminate", "initialize", "launch"}
NAMES = [
    "threadId",
    "frameId",
    "variablesReference",
    "name",
    "value",
    "expression",
    "context",
    "granularity",
    "source",
    "line",
    "endLine",
    "breakpoints",
    "condition",
    "hitCondition",
    "logMessage",
    "instructionReference",
    "offset",
    "dataId",
    "accessType",
    "targetId",
    "memoryReference",
    "instructionCount",
    "instructionOffset",
    "startFrame",
    "levels",
    "filter",
    "start",
    "count",
    "format",
    "text",
    "column",
]
TEXTS = ["", "a", "p", "q", "a + b", "a[", "main", "once", "0x1003", "-7", "3", "% 2", "print a"]
TEXTS += ["seek 4", "last b", "origin a", "b 12", 'tp 10 "{p}"', "set a = 3", "up", "[0]"]
TEXTS += ['[0, "main", "a"]', "instruction", "repl", "write", "read", "q == 9", "end", "\ud7ff"]


def some(rng: random.Random, name: str, path: str) -> Any:
    """A value for an argument: often of the type that it should have."""
    kind = rng.randrange(50)
    if name == "source" and kind < 48:
        return {"path": path} if kind < 40 else {"sourceReference": 1_000_000 + rng.randrange(4)}
    if name == "breakpoints" and kind < 48:
        inner = ["line", "condition", "hitCondition", "logMessage", "name", "dataId"]
        inner += ["instructionReference", "offset", "accessType"]
        return [
            {n: some(rng, n, path) for n in inner if rng.random() < 0.6}
            for _ in range(rng.randrange(3))
        ]
    if name == "context" and kind < 48:
        return rng.choice(["repl", "watch", "hover"])
    if name == "frameId" and kind < 40:
        return 1
    number = name.endswith(("Id", "Reference", "ine", "ount", "ffset", "start", "column", "levels"))
    if number and name not in ("dataId", "instructionReference", "memoryReference") and kind < 48:
        return rng.choice([0, 1, 1, 2, 3, 5, 7, 10, 12, -1, 10**9])
    if kind < 48:
        return rng.choice(TEXTS)
    return rng.choice([None, True, 1.5, [], {}, [1], {"hex": True}])


def ask(client: Client, command: str, arguments: dict[str, Any]) -> bool:
    """Whether a request was done; if not, by an error that is none of the server's own."""
    try:
        client.ask(command, **arguments)
    except Refused as refused:
        assert refused.error["id"] > 1000, (command, arguments, refused.text)
        return False
    return True


@wide
def test_requests_with_any_arguments(tmp_path: Path) -> None:
    program = tmp_path / "calls.rasm"
    program.write_text(CALLS)
    rng = random.Random(11)
    done = set()
    with talking() as client:
        client.launch(program, inputs={"a": 3, "b": 5}, stopOnEntry=True)
        client.event("stopped")
        commands = sorted(set(ANSWERS) - LEAVING)
        often = [*commands, *["scopes", "gotoTargets", "evaluate"] * 6]
        for _ in range(3000):
            command = rng.choice(often)
            used = [n for n in NAMES if rng.random() < 0.85]
            if ask(client, command, {n: some(rng, n, str(program)) for n in used}):
                done.add(command)
            client.events.clear()
        assert not [line for line in client.output() if "internal error" in line]
        assert len(done) > len(commands) - 6, set(commands) - done
