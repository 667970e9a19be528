"""Messages to the debug adapter with any arguments: each is answered, none by an internal error."""

from __future__ import annotations

import io
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

from rvm_dap.adapter import ANSWERS, Adapter
from rvm_dap.inbox import Inbox
from rvm_dap.protocol import INTERNAL, Channel
from rvm_dap.server import converse

from attack.cases import Broken, InputKind
from attack.kinds.sessions import TEXT
from attack.mutations import EDGES, bent, flipped, texts
from attack.reduction import LINES

_WORDS = (
    *texts("a k p p.pos a[1] a[ main twist 0x1003 -7 3 %2 start end up [0] repl watch hover write"),
    *("", "k == 2", "print a", "seek 4", "last k", "origin a", "b 8", 'tp 9 "{k}"', "set k = 3"),
    *("% 2", ">= 3", '[0, "main", "k"]', "instruction", "\ud7ff", "a + k", "p.spin if k", "é"),
)
_NAMES = texts(
    """threadId frameId variablesReference name value expression context granularity source line
    endLine breakpoints condition hitCondition logMessage instructionReference offset dataId lines
    accessType targetId memoryReference instructionCount instructionOffset startFrame levels filter
    start count format text column functionBreakpoints filters"""
)
_NUMBERS = (0, 1, 1, 1, 2, 3, 5, 7, 10, 12, -1, 10**9, 4096, 4100)
_INSIDE = texts("line condition hitCondition logMessage name dataId instructionReference offset")


@cache
def _commands() -> tuple[str, ...]:
    """All requests that do not launch or leave."""
    Adapter(Channel(io.BytesIO()), Inbox(lambda request: None))  # which enters all answers
    leaving = {"disconnect", "terminate", "initialize", "launch", "restart"}
    return tuple(sorted(set(ANSWERS) - leaving))


def _make(rng: random.Random) -> bytes:
    """A message a line: a launch, requests with arguments of all sorts, a few damaged lines."""
    lines = []
    for k in range(rng.randrange(2, 12)):
        arguments = {n: _some(rng, n) for n in _NAMES if rng.random() < 0.6}
        command = rng.choice((*_commands(), "scopes", "evaluate", "variables", "stackTrace"))
        message: Any = {
            "seq": k + 4,
            "type": "request",
            "command": command,
            "arguments": arguments,
        }
        if rng.random() < 0.15:
            message = bent(rng, message, (*EDGES, *_WORDS))
        line = json.dumps(message).encode()
        lines.append(flipped(rng, line).replace(b"\n", b" ") if rng.random() < 0.05 else line)
    return b"\n".join(lines)


def _some(rng: random.Random, name: str) -> Any:
    roll = rng.randrange(50)
    if name == "source" and roll < 48:
        return {"path": "session.rasm"} if roll < 40 else {"sourceReference": 1_000_000 + roll % 4}
    if name == "breakpoints" and roll < 48:
        some = range(rng.randrange(3))
        return [{n: _some(rng, n) for n in _INSIDE if rng.random() < 0.6} for _ in some]
    if name == "context" and roll < 48:
        return rng.choice(["repl", "watch", "hover"])
    if name in ("threadId", "frameId") and roll < 40:
        return 1
    texts = ("dataId", "instructionReference", "memoryReference")
    number = name.endswith(("Id", "Reference", "ine", "ount", "ffset", "start", "column", "levels"))
    if number and name not in texts and roll < 48:
        return rng.choice(_NUMBERS)
    return rng.choice(_WORDS) if roll < 48 else rng.choice(EDGES)


_BEGIN: tuple[tuple[str, dict[str, Any]], ...] = (
    ("initialize", {"adapterID": "rvm"}),
    (
        "launch",
        {
            "program": "session.rasm",
            "stopOnEntry": True,
            "maxSteps": 3000,
            "inputs": {
                "a": [1, 2, 3, 4],
                "k": 2,
                "p": {"pos": 1.5, "spin": 2},
                "z": "1+2j",
                "s": [7],
                "b": True,
            },
        },
    ),
    ("configurationDone", {}),
)


def _attack(data: bytes, folder: Path) -> bool:
    """Hold a conversation from launch to disconnection, and read all that was answered."""
    (folder / "session.rasm").write_text(TEXT)
    lines = [
        json.dumps({"seq": k + 1, "type": "request", "command": c, "arguments": a}).encode()
        for k, (c, a) in enumerate(_BEGIN)
    ]
    # A file that the client names in its messages is looked for, and is not there.
    lines += data.split(b"\n")
    lines.append(b'{"seq": 999, "type": "request", "command": "disconnect"}')
    incoming = io.BytesIO(b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(k), k) for k in lines))
    outgoing = io.BytesIO()
    converse(incoming, outgoing)
    done = False
    for message in _answers(outgoing.getvalue()):
        if message["type"] == "response" and message["success"]:
            done = done or message["request_seq"] not in (1, 2, 3, 999)
        elif message["type"] == "response":
            error = message["body"]["error"]
            if error["id"] == INTERNAL:
                raise Broken(f"`{message['command']}` is answered with {error['format']}")
        body = message.get("body")
        if message.get("event") == "output" and "internal error" in str(body):
            raise Broken("an internal error after a response", str(body))
    return done


def _answers(data: bytes) -> list[dict[str, Any]]:
    """The messages that an adapter has sent."""
    out = []
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        length = int(head.removeprefix(b"Content-Length: "))
        out.append(json.loads(rest[:length]))
        data = rest[length:]
    return out


KIND = InputKind(
    "messages", "messages to the debug adapter", ".jsonl", _make, _attack, (LINES,), share=0.6
)
