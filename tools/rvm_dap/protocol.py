"""Requests as data, and the channel that answers and events go out through."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, TypeVar

from rvm.faults import RvmError, UsageError
from rvm_dap.wire import write_message

T = TypeVar("T")
_QUIET = frozenset({"evaluate", "completions", "stackTrace", "scopes", "variables", "source"})
INTERNAL = 70
"""The number of an internal error, like the exit code."""


@dataclass(frozen=True, slots=True)
class Request:
    """A client's request."""

    seq: int
    command: str
    arguments: Arguments


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a request, read with their types; UsageError U041 where they are wrong."""

    given: Mapping[str, Any] = field(default_factory=dict)

    def _get(self, name: str, kind: type[T] | tuple[type, ...], what: str) -> Any:
        value = self.given.get(name)
        wrong = isinstance(value, bool) and kind is int
        if value is not None and (wrong or not isinstance(value, kind)):
            raise UsageError("U041", f"the argument `{name}` is not a {what}")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """A string; required unless there is a default."""
        value = self._get(name, str, "string")
        return str(self._needed(name, value, default))

    def integer(self, name: str, default: int | None = None) -> int:
        """A whole number; required unless there is a default."""
        value = self._get(name, int, "whole number")
        return int(self._needed(name, value, default))

    def flag(self, name: str, default: bool = False) -> bool:
        """A truth value."""
        value = self._get(name, bool, "truth value")
        return default if value is None else bool(value)

    def inner(self, name: str) -> Arguments:
        """An object; an empty one if it is not there."""
        return Arguments(self._get(name, dict, "object") or {})

    def items(self, name: str) -> list[Arguments]:
        """A list of objects; empty if it is not there."""
        value = self._get(name, list, "list") or []
        if not all(isinstance(item, dict) for item in value):
            raise UsageError("U041", f"the argument `{name}` is not a list of objects")
        return [Arguments(item) for item in value]

    @staticmethod
    def _needed(name: str, value: T | None, default: T | None) -> T:
        found = default if value is None else value
        if found is None:
            raise UsageError("U041", f"the argument `{name}` is missing")
        return found


def request_of(message: Mapping[str, Any]) -> Request | None:
    """A message as a request; None for other messages.  UsageError U041 if it is not one."""
    if message.get("type") in ("response", "event"):
        return None
    seq, command = message.get("seq"), message.get("command")
    arguments = message.get("arguments")
    if message.get("type") != "request" or not isinstance(command, str):
        raise UsageError("U041", "the message is not a request")
    if not isinstance(seq, int) or isinstance(seq, bool):
        raise UsageError("U041", f"the request `{command}` has no number")
    if arguments is not None and not isinstance(arguments, dict):
        raise UsageError("U041", f"the arguments of `{command}` are not an object")
    return Request(seq, command, Arguments(arguments or {}))


class Channel:
    """The messages to the client: numbered, and written as a whole from any thread."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._seq = 0
        self.closed = False
        """Whether the client has disconnected; further messages are then lost."""

    def _send(self, message: dict[str, Any]) -> None:
        with self._lock:
            if self.closed:
                return
            self._seq += 1
            try:
                write_message(self._stream, {"seq": self._seq, **message})
            except (OSError, ValueError):
                self.closed = True

    def respond(self, request: Request, body: Mapping[str, Any] | None = None) -> None:
        """The answer to a successful request."""
        message = _answer(request.seq, request.command, True)
        self._send(message | ({"body": dict(body)} if body is not None else {}))

    def refuse(self, seq: int, command: str, error: Exception, short: str = "") -> None:
        """The answer to a failed request."""
        message = _answer(seq, command, False)
        code = error.code if isinstance(error, RvmError) else "internal error"
        # A client shows failures to the user, except those of requests that only look around.
        loud = not short and command not in _QUIET
        self._send(
            message | {"message": short or code, "body": {"error": _error_body(error, loud)}}
        )

    def not_stopped(self, request: Request) -> None:
        """The answer to a request that cannot be served while the program runs."""
        hint = "pause it, or wait for a stop"
        error = UsageError("U042", f"`{request.command}` while the program runs", hint=hint)
        self.refuse(request.seq, request.command, error, "notStopped")

    def event(self, name: str, body: Mapping[str, Any] | None = None) -> None:
        """Send an event to the client."""
        message: dict[str, Any] = {"type": "event", "event": name}
        self._send(message | ({"body": dict(body)} if body is not None else {}))

    def output(self, text: str, category: str = "stdout") -> None:
        """A line of the program's output ("stdout"), or of the debugger's."""
        self.event("output", {"category": category, "output": text + "\n"})


def _answer(seq: int, command: str, success: bool) -> dict[str, Any]:
    return {"type": "response", "request_seq": seq, "success": success, "command": command}


def _error_body(error: Exception, loud: bool) -> dict[str, Any]:
    """An error as the protocol's `Message`, with the text that the command line shows."""
    if not isinstance(error, RvmError):
        text = f"internal error: {type(error).__name__}: {error}; this is a bug of rvm"
        return {"id": INTERNAL, "format": text, "showUser": loud}
    text = "\n".join(d.human() for d in error.diagnostics)
    return {"id": _number_of(error.code), "format": text, "showUser": loud}


def _number_of(code: str) -> int:
    """A code as the number that the protocol wants: U031 is 21031, the 21st letter's 31."""
    return 1000 * (ord(code[0]) - ord("A") + 1) + int(code[1:])
