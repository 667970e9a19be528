"""Rows of lanes processed by compiled code, on as many threads as there are processors.

No call returns while a thread is in machine code, whatever signal handlers raise, and however
often.
"""

from __future__ import annotations

import _thread
import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rvm.engines.native.doors import Door
from rvm.engines.native.memory import Run
from rvm.engines.native.stacks import large_stack, stack_floor
from rvm.host.signals import listen
from rvm.ir import context

FIRST = 8
"""The part of a chunk that is done before threads are started: some milliseconds."""
PARTS = 8
"""The number of pieces into which a thread's share is divided, since some take longer."""


class Piece:
    """Rows of slots and contexts, with room for their outcomes: (rows, …), C order.

    After `chunk` ticks the driver returns, so that Ctrl-C is noticed. `held` are the owners of the
    rows' memory, kept alive while a thread works on the piece.
    """

    def __init__(
        self,
        rows: NDArray[np.int64],
        contexts: NDArray[np.int64],
        hows: NDArray[np.int32],
        chunk: int,
        held: object,
    ) -> None:
        self.rows, self.contexts, self.hows = rows, contexts, hows
        self.chunk = chunk
        self.held = held

    def fields(self, first: int, end: int, part: int) -> NDArray[np.int64]:
        """The driver's arguments for the rows from `first` to `end` and a part of a chunk."""
        return np.array(
            [
                self.rows.ctypes.data,
                self.rows.strides[0],
                self.contexts.ctypes.data,
                self.contexts.strides[0],
                self.hows.ctypes.data,
                first,
                end,
                self.chunk // part,
            ],
            np.int64,
        )


class Crew:
    """Threads that process pieces; when one is stopped or fails, the others stop too."""

    def __init__(self, run: Run, piece: Piece, deep: bool) -> None:
        self.run = run
        self.piece = piece
        self.deep = deep
        self.door = Door()
        self.errors: list[BaseException] = []

    def rows(self, first: int, end: int, once: bool = False) -> int:
        """Work off rows, or, if `once`, some of them; the first that is not done."""
        large = large_stack() if self.deep else None
        floor = stack_floor() if large is None else large.floor
        self.piece.contexts[first:end, context.DEEPEST] = floor
        fields = self.piece.fields(first, end, FIRST if once else 1)
        address = fields.ctypes.data
        while fields[5] < end and not (self.door.closed or self.errors):
            if large is None:
                self.run(address, None)
            else:
                large.run(self.run, address, 0)
                large.tidy()
            listen()
            if once:
                break
        return int(fields[5])

    def pieces(self, parts: Iterator[tuple[int, int]]) -> Iterator[None]:
        """Take pieces as long as there are any, one per step."""
        for first, end in parts:
            if self.door.closed or self.errors:
                return
            self.rows(first, end)
            yield

    def help(self, parts: Iterator[tuple[int, int]]) -> None:
        """The work of an additional thread."""
        if not self.door.enter():
            return
        try:
            for _ in self.pieces(parts):
                pass
        except BaseException as error:
            self.errors.append(error)
        finally:
            self.door.leave()


def work_off(run: Run, piece: Piece, deep: bool) -> None:
    """Run all rows, which may go `deep`; threads are started if a first chunk does not do."""
    crew, n = Crew(run, piece, deep), len(piece.rows)
    done = crew.rows(0, n, once=True)
    if done == n:
        return
    count = processors()
    width = max(1, (n - done) // (count * PARTS))
    # Taking the next of a list's iterator is one step for Python's threads.
    parts = iter([(lo, min(lo + width, n)) for lo in range(done, n, width)])
    helpers = min(count, (n - done + width - 1) // width) - 1

    def steps() -> Iterator[None]:
        for _ in range(helpers):
            _start(crew, parts)
            yield
        yield from crew.pieces(parts)

    crew.door.close(steps())
    if crew.errors:
        raise crew.errors[0]


def _start(crew: Crew, parts: Iterator[tuple[int, int]]) -> None:
    try:
        _thread.start_new_thread(crew.help, (parts,))
    except RuntimeError as error:
        trace = error.__traceback__
        if trace is not None and trace.tb_next is not None:
            raise  # by a signal handler: it has a frame of its own
        # The system has no more threads for us: fewer do as well.


def processors() -> int:
    """The number of processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
