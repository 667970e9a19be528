"""The adapter: facts about a client, the session that it launched, and the handlers of requests.

Functions register with `@answers("command")`. They return the body of the response; work that must
follow the response (a run, an event) is scheduled with `Adapter.later`.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from rvm_tools.debug.console import Console
from rvm_tools.debug.journeys import Onlooker
from rvm_tools.debug.session import Session

from rvm.faults import RvmError, UsageError
from rvm_dap.breakpoints import Registry
from rvm_dap.code import Addresses
from rvm_dap.inbox import Inbox
from rvm_dap.protocol import Arguments, Channel, Request
from rvm_dap.sources import Sources

Body = dict[str, Any]
_Answer = Callable[["Adapter", Arguments], Body | None]
ANSWERS: dict[str, _Answer] = {}
"""Every request's function by its command."""
_MODULES = ("lifecycle", "navigation", "stops", "inspection", "variables", "evaluation")
_BEFORE_LAUNCH = frozenset({"initialize", "launch", "cancel", "disconnect", "terminate"})


def answers(*commands: str) -> Callable[[_Answer], _Answer]:
    """Register a function as the one that answers a request."""

    def enter(function: _Answer) -> _Answer:
        for command in commands:
            ANSWERS[command] = function
        return function

    return enter


@dataclass(frozen=True, slots=True)
class Client:
    """A client's conventions for counting lines and columns, and its capabilities."""

    first_line: int = 1
    first_column: int = 1
    paging: bool = False
    """Whether it can request the elements of a long array in parts."""
    invalidated: bool = False
    """Whether it can be notified that values have changed."""
    progress: bool = False
    """Whether it can show progress."""


@dataclass(frozen=True, slots=True)
class Debuggee:
    """A launched session, its text commands, and the client's wishes for it."""

    session: Session
    console: Console
    sources: Sources
    addresses: Addresses
    breaks: Registry
    stop_on_entry: bool
    stop_at_end: bool
    no_debug: bool
    progress: Onlooker
    """An onlooker that reports the progress of journeys to the client, if it can show it."""


class Adapter:
    """One client's conversation, in one thread except for requests that `Inbox` lets through."""

    def __init__(self, channel: Channel, inbox: Inbox) -> None:
        self.channel = channel
        self.inbox = inbox
        self.client = Client()
        self.debuggee: Debuggee | None = None
        self.handles: list[Any] = []
        """The objects of the references that the client was given since the last journey."""
        self.finished = False
        self._later: list[Callable[[], object]] = []
        for name in _MODULES:
            import_module(f"rvm_dap.{name}")

    @property
    def launched(self) -> Debuggee:
        """The debuggee; UsageError U042 if there is none yet."""
        if self.debuggee is None:
            raise UsageError("U042", "no program has been launched yet")
        return self.debuggee

    @property
    def session(self) -> Session:
        """The debuggee's session."""
        return self.launched.session

    def later(self, action: Callable[[], object]) -> None:
        """Do this as soon as the response has been sent."""
        self._later.append(action)

    def reference(self, what: object) -> int:
        """A number by which the client can ask for more of this until the machine moves."""
        self.handles.append(what)
        return len(self.handles)

    @contextmanager
    def journey(self, title: str, *, resumable: bool = False) -> Iterator[None]:
        """A context in which the session runs: requests may interrupt it, and the client is told.

        A resumable journey is started again by its caller, since breakpoints can change on the way.
        """
        debuggee = self.launched
        debuggee.progress.begins(title)
        try:
            with self.inbox.journey(debuggee.session, resumable):
                yield
        finally:
            debuggee.progress.ends()

    def serve(self) -> None:
        """Answer requests until the client leaves."""
        while not self.finished:
            self.answer(self.inbox.take())

    def answer(self, request: Request) -> None:
        """Answer a request with a body or an error."""
        try:
            found = ANSWERS.get(request.command)
            if found is None:
                raise UsageError("U041", f"there is no request `{request.command}`")
            if request.command not in _BEFORE_LAUNCH and self.debuggee is None:
                raise UsageError(
                    "U042", f"`{request.command}` needs a program, and none has been launched"
                )
            body = found(self, request.arguments)
        except RvmError as error:
            self._later.clear()
            self.channel.refuse(request.seq, request.command, error)
            return
        except Exception as error:
            self._later.clear()
            traceback.print_exc(file=sys.stderr)
            self.channel.refuse(request.seq, request.command, error)
            return
        self.channel.respond(request, body)
        self._follow()

    def _follow(self) -> None:
        """Do the work scheduled for after the response."""
        while self._later:
            action = self._later.pop(0)
            try:
                action()
            except RvmError as error:
                self.channel.output(str(error), "stderr")
            except Exception as error:
                traceback.print_exc(file=sys.stderr)
                self.channel.output(f"internal error: {type(error).__name__}: {error}", "stderr")
