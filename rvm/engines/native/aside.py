"""Running LLVM in a separate thread.

No signal handler runs there, so its exceptions cannot interrupt the destruction of LLVM's Python
objects; and its stack is large enough for LLVM's recursion, whatever the size of other threads'
stacks.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable, Iterator
from typing import TypeVar

from rvm.engines.native.doors import Door

T = TypeVar("T")
STACK = 32 << 20
"""The size of the stack in bytes; unused pages take no memory."""

_sizing = _thread.allocate_lock()
"""Held while the stack size for new threads differs from the process's."""


def aside(work: Callable[[], T]) -> T:
    """The result or exception of some work; signals are handled when it is over."""
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
