"""The strict log as machine code has it: the row of fields that `rvm.ir.context` describes."""

from __future__ import annotations

import ctypes

from rvm.ir.context import COUNT, LOG_FIELDS, ROOM, STACK, WANTED, WORDS
from rvm.numbers.residue import Residue

LEAST = 1 << 20
"""How many gaps there is room for when a run begins: what a run of some hundredths of a second
leaves.  Memory that is not used is not taken from the host."""


class Gaps:
    """A log during a run of machine code, which leaves where there is no more room in it."""

    def __init__(self, log: Residue) -> None:
        self.log = log
        self.row = (ctypes.c_int64 * LOG_FIELDS)()
        self.address = ctypes.addressof(self.row)
        for k, stack in enumerate(log.stacks):
            if stack.room < LEAST // 2:
                stack.reserve(LEAST)
            stack.clear()
            field = STACK * k
            self.row[field + WORDS] = stack.block.ctypes.data
            self.row[field + COUNT] = stack.count
            self.row[field + ROOM] = stack.count + stack.room

    def land(self) -> None:
        """Enter in the log how much of it the run has left; make room for what it has asked for."""
        log, row = self.log, self.row
        log.fall((row[COUNT], row[STACK + COUNT], row[2 * STACK + COUNT]))
        if row[WANTED]:
            log.reserve(max(row[WANTED], len(log)))
