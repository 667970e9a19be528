"""Requests that wait for the worker, and the signal that a journey has to end for one of them.

A reader adds requests while the worker may be running a program.  Some of them end the run at the
next instruction boundary: `pause` and similar ones for good, changes of breakpoints only until they
are made.  All others must wait for the program to stop, and are refused.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rvm_tools.debug.session import Session

from rvm_dap.protocol import Request

ENDING = frozenset({"pause", "cancel", "disconnect", "terminate", "restart"})
SERVED = frozenset(
    {
        "setBreakpoints",
        "setFunctionBreakpoints",
        "setInstructionBreakpoints",
        "setDataBreakpoints",
        "setExceptionBreakpoints",
        "breakpointLocations",
        "source",
        "loadedSources",
        "threads",
    }
)
"""The requests that are served while the program runs."""


class Inbox:
    """A queue that knows whether a journey is active.

    `refuse` is called with each request that cannot be served while the program runs.
    """

    def __init__(self, refuse: Callable[[Request], object]) -> None:
        self._refuse = refuse
        self._waiting: deque[Request] = deque()
        self._changed = threading.Condition()
        self._session: Session | None = None
        self._resumable = False

    def put(self, request: Request) -> None:
        """Let a request wait for the worker, or refuse it."""
        with self._changed:
            self._waiting.append(request)
            if self._session is not None:
                self._attend(self._session)
            self._changed.notify()

    def take(self) -> Request:
        """The next request; waits for one."""
        with self._changed:
            while not self._waiting:
                self._changed.wait()
            return self._waiting.popleft()

    def pending(self, commands: frozenset[str]) -> bool:
        """Whether one of these waits."""
        with self._changed:
            return any(r.command in commands for r in self._waiting)

    def take_served(self) -> list[Request]:
        """All waiting requests that can be served during a journey."""
        with self._changed:
            found = [r for r in self._waiting if r.command in SERVED]
            for request in found:
                self._waiting.remove(request)
            return found

    @contextmanager
    def journey(self, session: Session, resumable: bool = False) -> Iterator[None]:
        """A context in which requests may interrupt the session.

        A resumable journey is started again by its caller, since breakpoints can change on the way.
        """
        with self._changed:
            self._session, self._resumable = session, resumable
            session.interrupt(False)
            self._attend(session)
        try:
            yield
        finally:
            with self._changed:
                self._session = None
                session.interrupt(False)

    def _attend(self, session: Session) -> None:
        """Check whether a waiting request must end the run; refuse those that would wait for it."""
        for request in list(self._waiting):
            if request.command not in ENDING | SERVED:
                self._waiting.remove(request)
                self._refuse(request)
            elif request.command in ENDING or self._resumable:
                session.interrupt()
