"""What counting machine code writes to: rows of counters, a table of sizes, a log of calls."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterator

from rvm.accounts.counts import Node
from rvm.ir.context import CALL_WORDS, ENTRY_AT, ENTRY_ROW, ENTRY_SIZES, ENTRY_TIMES
from rvm.ir.counters import Counters

ENTRIES = 1 << 12
"""Entries of the table of sizes, of which half are used."""
CALLS = 1 << 13
"""Calls that the log holds."""


class Row:
    """The counters of a node's code, in memory that machine code writes to."""

    def __init__(self, node: Node, counters: Counters) -> None:
        self.node = node
        self.counters = counters
        self.words = (ctypes.c_int64 * max(counters.size, 1))()
        self.address = ctypes.addressof(self.words)
        self.entries: Counter[int] = Counter()
        """How often runs were entered at a leader."""
        self.stops: Counter[tuple[int, bool]] = Counter()
        """How often they stopped at a position, and whether in the call there."""

    def settle(self) -> None:
        """Add what the counters stand for to the node's counts, and begin anew."""
        node, counters, words = self.node, self.counters, self.words
        held = words[:]
        if not (self.entries or self.stops or any(held)):
            return
        for (position, _), n in self.stops.items():
            self.entries[counters.leader(position)] -= n
        done, jumps, returns = counters.ticks(held, self.entries)
        for (position, called), n in self.stops.items():
            for pc in range(counters.leader(position), position + called):
                done[pc] += n
        self.entries.clear()
        self.stops.clear()
        for to, counts in ((node.done, done), (node.jumps, jumps), (node.returns, returns)):
            for pc, n in enumerate(counts):
                to[pc] += n
        for pc, key in counters.fixed.items():
            instr = node.code.instrs[pc]
            n = done[pc] + jumps[pc] + (jumps[instr.aux] if instr.op == "cf" else 0)
            if n:
                node.sizes[pc][key] += n
        for at in counters.counted.values():
            words[at] = 0
        for pc, at in counters.erased.items():
            if held[at]:
                node.erased[pc] += held[at]
                words[at] = 0
        for pc, meter in counters.meters.items():
            if held[meter.at]:
                self.met(pc, held[meter.at], held[meter.at + 1 : meter.at + 1 + meter.words])
                words[meter.at] = 0

    def met(self, pc: int, times: int, sizes: list[int]) -> None:
        """An instruction has found some sizes so often."""
        self.node.sizes[pc][self.counters.meters[pc].key(sizes)] += times


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
