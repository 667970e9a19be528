"""Machine code that counts what it executes: its runs, and its rows of counters.

Each node of the tree of call paths has a row, created when a run first takes its path.  The counts
of basic blocks follow from the rows; the counts of the block in which a run stopped follow from its
position.  Between gates, steps are counted one by one.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from rvm.accounts.counts import Counts, Node
from rvm.engines.counted import count_tick, unarmed
from rvm.engines.native.engine import Native
from rvm.engines.native.flight import CONTEXT, Flight
from rvm.engines.native.frames import layout_of
from rvm.engines.native.gaps import Gaps
from rvm.engines.native.roots import kind_for, root_of
from rvm.engines.native.rows import ENTRIES, Log, MemoryRow, Table
from rvm.host.signals import at_once
from rvm.ir import context
from rvm.ir.counters import counters_of
from rvm.ir.function import plan_of
from rvm.state import Frame, Options, State

COUNTING = struct.Struct("<QQQQqqqqQQq")
"""The fields of a context from ROW on."""
WORD = struct.Struct("<q")
NEVER = 1 << 62

Child = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
Empty = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class CountingNative(Native):
    """Machine code with counters, and counted single steps in between."""

    def __init__(self, counts: Counts) -> None:
        super().__init__()
        self.counts = counts
        self._options, self._way = Options(), 0
        self._rows: dict[Node, MemoryRow] = {}
        self._at: dict[int, MemoryRow] = {}
        """The rows by their addresses."""
        self._table = Table()
        self._log = Log()
        self._child = Child(self._find_child)
        self._empty = Empty(self._make_room)
        self._flight: Flight | None = None
        """The active run."""
        self._began = 0
        self._direction = 1
        self._open: list[int] = []
        """The times at which calls that have not returned were entered, innermost first."""
        self._failure: BaseException | None = None
        """An exception raised during a run, which is raised again after the run has ended."""

    def advance(self, state: State, ticks: int) -> int:
        """Execute and count up to `ticks` ticks; may stop some short of them, at a gate."""
        unarmed(state)
        options, frames, n = state.options, state.frames, ticks
        self._options, self._way = options, state.logging
        path = self.counts.align(frames)
        with np.errstate(all="ignore"):
            while n > 0:
                frame = frames[-1]
                flow = plan_of(frame.code, options.checks, self._way).flow
                if frame.pc in flow.gates and frame.pc not in flow.apart:
                    if flow.needs(0)[frame.pc] <= n:
                        n, how = self._fly(state, path, n)
                        if how == context.SPENT or n == 0:
                            break
                    elif n < ticks:
                        break
                frame = frames[-1]
                if len(frames) == 1 and frame.pc == len(frame.code):
                    break
                count_tick(state, self.counts)
                n -= 1
        return ticks - n

    def _fly(self, state: State, path: list[Node], ticks: int) -> tuple[int, int]:
        """Run the innermost frame's code from a gate: the ticks that are left, and how it ended."""
        frame, frames, account = state.frames[-1], state.frames, state.account
        watched = self.counts.calls is not None
        kind = kind_for(frame, state.options, state.logging, counts=True, watched=watched)
        layout, root = layout_of(frame.code), root_of(frame.code, kind)
        row, outer = self._row(path[-1]), len(frames)
        row.entries[frame.pc] += 1
        flight = Flight(root, layout, layout.packed(frame.regs), ticks, frame.pc)
        flight.fields += self._fields(row)
        self._flight, self._began, self._direction = flight, state.time, state.direction
        began = perf_counter()
        gaps = None if state.residue is None else Gaps(state.residue)
        flight.go(account.live_bytes, state.options, state.edited, gaps, outer)
        root.busy += perf_counter() - began
        self._read()
        left = flight.land(state)
        if flight.done:
            row.entries[frame.pc] -= 1
        else:
            self._stopped(frames[outer - 1 :], path)
        self._flight = None
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        return left, flight.how

    def _stopped(self, frames: list[Frame], path: list[Node]) -> None:
        """Enter where frames have stopped, outermost first; all but the last are in calls."""
        row, calls = self._row(path[-1]), self.counts.calls
        for frame in frames[:-1]:
            row.stops[frame.pc, True] += 1
            path.append(path[-1].child(frame.pc))
            row = self._row(path[-1])
            row.entries[0] += 1
            if calls is not None:
                self._tell(calls.enter, path[-1].code, self._open.pop())
        row.stops[frames[-1].pc, False] += 1

    # ------------------------------------------------------------ memory

    def _fields(self, row: MemoryRow) -> bytes:
        table, log, calls = self._table, self._log, self.counts.calls
        return COUNTING.pack(
            row.address,
            _pointer(self._child),
            _pointer(self._empty),
            table.address,
            ENTRIES - 1,
            table.stride,
            0,
            ENTRIES // 2,
            log.address,
            log.end,
            NEVER if calls is None else calls.least,
        )

    def _row(self, node: Node) -> MemoryRow:
        found = self._rows.get(node)
        if found is None:
            flow = plan_of(node.code, self._options.checks, self._way).flow
            found = self._rows[node] = MemoryRow(node, counters_of(node.code, flow))
            self._at[found.address] = found
            node.pending.append(found)
            widest = max((m.words for m in found.counters.meters.values()), default=0)
            if not self._table.has_room(widest):
                if self._flight is not None:
                    self._read()
                self._table = Table(context.ENTRY_SIZES + widest)
                if self._flight is not None:
                    self._refresh(self._row_of(self._flight))
        return found

    def _read(self) -> None:
        """Read the entries that the active run has put into the table and the log."""
        flight, calls = self._flight, self.counts.calls
        assert flight is not None
        if self._field(flight, context.USED):
            for address, pc, times, sizes in self._table.taken():
                self._at[address].met(pc, times, sizes)
        for number, entered, left in self._log.taken(self._field(flight, context.LOG)):
            if number == context.OPEN:
                self._open.append(self._time(flight, entered))
            elif calls is not None:
                code = flight.root.code(number)
                self._tell(
                    calls.called, code, self._time(flight, entered), self._time(flight, left)
                )

    @at_once
    def _tell(self, watcher: Callable[..., object], *what: object) -> None:
        """Report a call to a watcher, unless a report has failed in this run."""
        if self._failure is None:
            try:
                watcher(*what)
            except BaseException as error:
                self._failure = error

    def _refresh(self, row: MemoryRow) -> None:
        """Tell the active run where there is room now."""
        assert self._flight is not None
        self._flight.fields[CONTEXT.size :] = self._fields(row)

    def _row_of(self, flight: Flight) -> MemoryRow:
        return self._at[self._field(flight, context.ROW)]

    def _field(self, flight: Flight, field: int) -> int:
        (value,) = WORD.unpack_from(flight.fields, WORD.size * field)
        return int(value)

    def _time(self, flight: Flight, left: int) -> int:
        return self._began + (flight.ticks - left) * self._direction

    # ------------------------------------------------------------ called by machine code

    def _find_child(self, fields: int, row: int, pc: int) -> int:
        """The address of the row of a callee; 0 in case of trouble."""
        try:
            return self._row(self._at[row].node.child(pc)).address
        except BaseException as error:
            self._failure = self._failure or error
            return 0

    def _make_room(self, fields: int) -> None:
        """Empty the table and the log."""
        assert self._flight is not None
        self._read()
        self._refresh(self._row_of(self._flight))


def _pointer(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
