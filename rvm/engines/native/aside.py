"""Work of LLVM's, done by a thread of its own.

There no signal handler runs, whose exceptions would strike LLVM's Python objects while they are
taken down; and its stack has room for LLVM's recursions, whatever threads here are given.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable, Iterator
from typing import TypeVar

from rvm.engines.native.doors import Door

T = TypeVar("T")
STACK = 32 << 20
"""Bytes of stack, of which what is not used takes no memory."""

_sizing = _thread.allocate_lock()
"""Held while the size of new threads' stacks is another than the process's."""


def aside(work: Callable[[], T]) -> T:
    """What some work gives, or raises; a signal that raises is heard when it is over."""
    door, over = Door(), _thread.allocate_lock()
    over.acquire()
    done: list[T] = []
    errors: list[BaseException] = []

    def worker() -> None:
        try:
            if door.enter():
                try:
                    done.append(work())
                except BaseException as error:
                    errors.append(error)
                finally:
                    door.leave()
        finally:
            over.release()

    def starter() -> None:
        # In a thread too: the process's setting is put back whatever signals come.
        try:
            with _sizing:
                size = _thread.stack_size(STACK)
                try:
                    _thread.start_new_thread(worker, ())
                finally:
                    _thread.stack_size(size)
        except BaseException:
            over.release()

    def steps() -> Iterator[None]:
        try:
            _thread.start_new_thread(starter, ())
        except RuntimeError:
            return
        yield
        over.acquire()

    door.close(steps())
    if errors:
        raise errors[0]
    # Where there are no more threads it is done here.
    return done[0] if done else work()
