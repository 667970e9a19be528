"""A client of the Debug Adapter Protocol: what an editor does, without the editor."""

from __future__ import annotations

import json
import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from rvm_dap.server import serve_socket

PATIENCE = 30
"""Seconds that an answer may take before a test gives up; none is expected to take one."""


class Refused(Exception):
    """A response with success false; `code` is its short form, `text` what a user is shown."""

    def __init__(self, message: dict[str, Any]) -> None:
        self.code = message["message"]
        self.error = message["body"]["error"]
        self.text = self.error["format"]
        super().__init__(self.text)


class Client:
    """Sends requests, waits for their responses, and keeps events in their order."""

    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._seq = 0
        self._came: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.messages: list[dict[str, Any]] = []
        """All that has come and been looked at."""
        self.events: list[dict[str, Any]] = []
        """Events that no test has waited for yet."""
        self._responses: dict[int, dict[str, Any]] = {}
        self.log: list[str] = []
        """The conversation, a line for each message, for a transcript."""
        self._numbers: list[int] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            self._read_all()
        except OSError:
            self._came.put(None)

    def _read_all(self) -> None:
        while True:
            length = 0
            while True:
                line = self._incoming.readline()
                if not line:
                    self._came.put(None)
                    return
                if line == b"\r\n":
                    break
                length = int(line.split(b":")[1])
            self._came.put(json.loads(self._incoming.read(length)))

    def _next(self) -> dict[str, Any]:
        message = self._came.get(timeout=PATIENCE)
        if message is None:
            raise EOFError
        self._numbers.append(message["seq"])
        assert self._numbers == list(range(1, len(self._numbers) + 1))
        self.messages.append(message)
        body = message.get("body", {})
        if message["type"] == "event":
            self.events.append(message)
            self.log.append(f"* {message['event']} {_compact(body)}".rstrip())
        else:
            self._responses[message["request_seq"]] = message
            if message["success"]:
                self.log.append(f"< {_compact(body)}".rstrip())
            else:
                self.log.append(f"< {message['message']}: {body['error']['format']}")
        return message

    def raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._outgoing.write(data)
        self._outgoing.flush()

    def message(self, value: Any) -> None:
        """Send a value as a message."""
        data = json.dumps(value).encode()
        self.raw(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))

    def send(self, command: str, **arguments: Any) -> int:
        """Send a request and do not wait."""
        self._seq += 1
        self.log.append(f"> {command} {_compact(arguments)}".rstrip())
        self.message(
            {"seq": self._seq, "type": "request", "command": command, "arguments": arguments}
        )
        return self._seq

    def response(self, number: int) -> dict[str, Any]:
        """The body of the response to a request; Refused if it was."""
        while number not in self._responses:
            self._next()
        message = self._responses.pop(number)
        if not message["success"]:
            raise Refused(message)
        return dict(message.get("body", {}))

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and wait for its response."""
        return self.response(self.send(command, **arguments))

    def event(self, *names: str) -> dict[str, Any]:
        """The next event of one of these names; those before it are dropped."""
        while True:
            while self.events:
                found = self.events.pop(0)
                if found["event"] in names:
                    return dict(found.get("body", {})) | {"event": found["event"]}
            self._next()

    def output(self) -> list[str]:
        """The lines printed in events that have come and not been waited for or dropped."""
        return [
            e["body"]["output"].rstrip("\n") for e in self.messages if e.get("event") == "output"
        ]

    # ------------------------------------------------------------ what tests often do

    def launch(
        self, program: Path, *, configure: bool = True, progress: bool = False, **arguments: Any
    ) -> None:
        """Initialize and launch; then, unless breakpoints are to be set first, configure."""
        given = {"supportsInvalidatedEvent": True, "supportsVariablePaging": True}
        given["supportsProgressReporting"] = progress
        self.ask("initialize", adapterID="rvm", **given)
        self.ask("launch", program=str(program), **arguments)
        self.event("initialized")
        if configure:
            self.ask("configurationDone")

    def go(self, command: str, **arguments: Any) -> dict[str, Any]:
        """A request that ends in a stop; the stop."""
        self.events.clear()
        self.ask(command, threadId=1, **arguments)
        return self.event("stopped")

    def top(self) -> dict[str, Any]:
        """The innermost frame."""
        return dict(self.ask("stackTrace", threadId=1)["stackFrames"][0])

    def scope(self, name: str, frame: int = 0) -> int:
        """The reference of a scope of a frame (the innermost, if none is given)."""
        found = self.ask("scopes", frameId=frame or self.top()["id"])["scopes"]
        return int(next(s["variablesReference"] for s in found if s["name"] == name))

    def values(self, scope: str = "Parameters", frame: int = 0) -> dict[str, str]:
        """The values of a scope by name."""
        found = self.ask("variables", variablesReference=self.scope(scope, frame))
        return {v["name"]: v["value"] for v in found["variables"]}

    @property
    def time(self) -> int:
        return int(self.values("Machine")["time"])

    def say(self, text: str) -> str:
        """What the debugger's console answers."""
        return str(self.ask("evaluate", expression=text, context="repl")["result"])


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if value else ""


@contextmanager
def talking() -> Iterator[Client]:
    """A client and a server in this process, joined by a pair of sockets."""
    ours, theirs = socket.socketpair()
    server = threading.Thread(target=serve_socket, args=(theirs,))
    server.start()
    with ours, ours.makefile("rb") as incoming, ours.makefile("wb", buffering=0) as outgoing:
        try:
            yield Client(incoming, outgoing)
        finally:
            with suppress(OSError):
                ours.shutdown(socket.SHUT_RDWR)
            server.join(PATIENCE)
            assert not server.is_alive()
