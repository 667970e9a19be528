"""Waiting for threads without interruption by exceptions from signal handlers.

The last step of such a wait is a single C call, in which Python runs no handlers.
"""

from __future__ import annotations

import _thread
import ctypes
from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar

from rvm.host.signals import listen

LOOK = 0.05
"""The number of seconds between two checks for signals while waiting for threads."""


class Door:
    """A gate through which threads go to work; closing it waits until all have come out.

    Python's own locks let signal handlers run while they wait, which may raise exceptions.  The
    last wait is one call of a C function of Python's, during which no handler runs.
    """

    _spare: ClassVar[list[int]] = []
    """C locks that are not in use. They are never freed: a thread may arrive late."""

    def __init__(self) -> None:
        self.closed = False
        self._inside = 0
        self._counting = _thread.allocate_lock()
        self._empty = _thread.allocate_lock()
        """Released by the last thread to come out."""
        self._empty.acquire()
        spare = Door._spare
        self._busy: int = spare.pop() if spare else _locks().allocate()
        """Held as long as somebody is inside."""

    def enter(self) -> bool:
        """Go in; False if it is closed.  Not for the thread that closes it."""
        with self._counting:
            if not self._inside:
                _locks().acquire(self._busy, 1)
            if not self.closed:
                self._inside += 1
            elif not self._inside:
                _locks().release(self._busy)
            return not self.closed

    def leave(self) -> None:
        """Come out."""
        with self._counting:
            self._inside -= 1
            if not self._inside:
                _locks().release(self._busy)
                if self._empty.locked():
                    self._empty.release()

    def close(self, steps: Iterator[None]) -> None:
        """Take these steps and wait until all threads have left, however this ends.

        Threads that arrive later find it closed.
        """
        locks, busy = _locks(), self._busy
        acquire, release = locks.acquire, locks.release
        try:
            for _ in steps:
                pass
            while self._inside:
                self._empty.acquire(timeout=LOOK)
                listen()
        finally:
            # Python runs handlers of signals after calls and where a loop begins again: here only
            # when all is done.
            self.closed = True
            try:
                acquire(busy, 1)
            finally:
                release(busy)
        Door._spare.append(busy)


class _Locks:
    """Python's locks for C: they are waited for without the lock on the interpreter."""

    def __init__(self) -> None:
        api: Any = ctypes.pythonapi
        pointer = ctypes.c_void_p

        def function(name: str, result: Any, *arguments: Any) -> Any:
            address = ctypes.cast(getattr(api, name), pointer).value
            assert address is not None
            return ctypes.CFUNCTYPE(result, *arguments)(address)

        self.allocate = function("PyThread_allocate_lock", pointer)
        self.acquire = function("PyThread_acquire_lock", ctypes.c_int, pointer, ctypes.c_int)
        """A C call on a lock, with 1 to wait without limit."""
        self.release = function("PyThread_release_lock", None, pointer)


@cache
def _locks() -> _Locks:
    return _Locks()
