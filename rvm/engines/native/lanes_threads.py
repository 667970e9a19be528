"""Rows of lanes worked off by compiled code, on as many threads as there are processors."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rvm.emit.llvm import context
from rvm.engines.native.flight import stack_room
from rvm.engines.native.memory import Run

FIRST = 8
"""The part of a chunk that is done before threads are started: some milliseconds."""
PARTS = 8
"""Into how many pieces a thread's share is cut, since some take longer than others."""


class Piece:
    """Rows of slots and contexts, and room for how each ended: (rows, …), C order.

    After `chunk` ticks the driver comes back, so that Ctrl-C is heard.
    """

    def __init__(
        self,
        rows: NDArray[np.int64],
        contexts: NDArray[np.int64],
        hows: NDArray[np.int32],
        chunk: int,
    ) -> None:
        self.rows, self.contexts, self.hows = rows, contexts, hows
        self.chunk = chunk

    def fields(self, first: int, end: int, part: int) -> NDArray[np.int64]:
        """What the driver is given, for the rows from `first` to `end` and a part of a chunk."""
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
    """Threads that work off pieces; when one is stopped or fails the others stop too."""

    def __init__(self, run: Run, piece: Piece) -> None:
        self.run = run
        self.piece = piece
        self.stopped = threading.Event()
        self.errors: list[BaseException] = []

    def rows(self, first: int, end: int, once: bool = False) -> int:
        """Work off rows, or, if `once`, some of them; the first that is not done."""
        self.piece.contexts[first:end, context.DEEPEST] = stack_room()
        fields = self.piece.fields(first, end, FIRST if once else 1)
        address = ctypes.c_void_p(fields.ctypes.data)
        while fields[5] < end and not self.stopped.is_set():
            self.run(address, None)
            if once:
                break
        return int(fields[5])

    def pieces(self, parts: Iterator[tuple[int, int]]) -> None:
        """Take pieces as long as there are any."""
        try:
            for first, end in parts:
                if self.stopped.is_set():
                    return
                self.rows(first, end)
        except BaseException as error:
            self.stopped.set()
            self.errors.append(error)


def work_off(run: Run, piece: Piece) -> None:
    """Run all rows; threads are started if a first chunk of ticks does not do."""
    crew, n = Crew(run, piece), len(piece.rows)
    done = crew.rows(0, n, once=True)
    if done == n:
        return
    count = processors()
    width = max(1, (n - done) // (count * PARTS))
    # Taking the next of a list's iterator is one step for Python's threads.
    parts = iter([(lo, min(lo + width, n)) for lo in range(done, n, width)])
    others = [
        threading.Thread(target=crew.pieces, args=(parts,), daemon=True)
        for _ in range(min(count, (n - done + width - 1) // width) - 1)
    ]
    for thread in others:
        thread.start()
    try:
        crew.pieces(parts)
        for thread in others:
            thread.join()
    except BaseException:
        crew.stopped.set()
        for thread in others:
            thread.join()
        raise
    if crew.errors:
        raise crew.errors[0]


def processors() -> int:
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
