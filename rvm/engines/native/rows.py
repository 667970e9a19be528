"""The output of counting machine code: rows of counters, a table of sizes, a log of calls."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

from rvm.accounts.counts import Node
from rvm.engines.rows import Row
from rvm.ir.context import CALL_WORDS, ENTRY_AT, ENTRY_ROW, ENTRY_SIZES, ENTRY_TIMES
from rvm.ir.counters import Counters

ENTRIES = 1 << 12
"""Entries of the table of sizes, of which half are used."""
CALLS = 1 << 13
"""Calls that the log holds."""


class MemoryRow(Row):
    """A row in memory that machine code writes to."""

    def __init__(self, node: Node, counters: Counters) -> None:
        words = (ctypes.c_int64 * max(counters.size, 1))()
        super().__init__(node, counters, words)
        self.address = ctypes.addressof(words)


class Table:
    """The table in which `rvm_sizes` finds the sizes that an instruction has met before."""

    def __init__(self, stride: int = 8) -> None:
        self.stride = stride
        """The words of an entry."""
        self.words = (ctypes.c_int64 * (ENTRIES * stride))()
        self.address = ctypes.addressof(self.words)

    def has_room(self, meter_words: int) -> bool:
        """Whether an entry has room for a number of sizes."""
        return ENTRY_SIZES + meter_words <= self.stride

    def taken(self) -> Iterator[tuple[int, int, int, list[int]]]:
        """All entries: (address of the row, position, times, sizes), the last followed by zeros.

        The table is empty from then on.
        """
        words, stride = self.words[:], self.stride
        ctypes.memset(self.address, 0, ctypes.sizeof(self.words))
        for at in range(0, len(words), stride):
            if words[at + ENTRY_ROW]:
                entry = words[at : at + stride]
                yield entry[ENTRY_ROW], entry[ENTRY_AT], entry[ENTRY_TIMES], entry[ENTRY_SIZES:]


class Log:
    """The log to which calls that have returned are written."""

    def __init__(self) -> None:
        self.words = (ctypes.c_int64 * (CALLS * CALL_WORDS))()
        self.address = ctypes.addressof(self.words)
        self.end = self.address + ctypes.sizeof(self.words)

    def taken(self, end: int) -> Iterator[list[int]]:
        """The calls written down up to an address."""
        words = self.words[: (end - self.address) // ctypes.sizeof(ctypes.c_int64)]
        for at in range(0, len(words), CALL_WORDS):
            yield words[at : at + CALL_WORDS]
