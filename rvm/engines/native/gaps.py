"""The strict log as machine code has it: the row of fields that `rvm.ir.context` describes."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from numpy.typing import NDArray

from rvm.ir.context import LOG_FIELDS
from rvm.numbers.residue import Residue, Snapshot

LEAST = 1 << 20
"""How many gaps there is room for when a run begins: what a run of some hundredths of a second
leaves.  Memory that is not used is not taken from the host."""
ROW = struct.Struct(f"<{LOG_FIELDS}q")
SPARE, MOST = 4, 2 * LEAST
"""How many logs that are done with wait for the next call, and the most words that one may have."""


class Gaps:
    """A log for runs of machine code, which leave where there is no more room in it."""

    __slots__ = ("_blocks", "_places", "address", "log", "row")

    def __init__(self, log: Residue) -> None:
        self.log = log
        self.row = ctypes.create_string_buffer(ROW.size)
        self.address = ctypes.addressof(self.row)
        self._blocks: list[NDArray[Any] | None] = [None, None, None]
        """The memory of the stacks whose addresses are known."""
        self._places = [0, 0, 0]

    def begin(self) -> None:
        """Make room, and tell machine code of it."""
        fields: list[int] = []
        for k, stack in enumerate(self.log.stacks):
            count, room = stack.count, stack.room
            if room < LEAST // 2:
                stack.reserve(LEAST)
                room = stack.room
            if count:
                stack.clear()
            if self._blocks[k] is not stack.block:
                self._blocks[k], self._places[k] = stack.block, stack.block.ctypes.data
            fields += (self._places[k], count, count + room)
        ROW.pack_into(self.row, 0, *fields, 0)

    def land(self) -> None:
        """Enter in the log how much of it the run has left; make room for what it has asked for."""
        _, codes, _, _, nibbles, _, _, wholes, _, wanted = ROW.unpack_from(self.row)
        self.log.fall((codes, nibbles, wholes))
        if wanted:
            self.log.reserve(max(wanted, len(self.log)))

    def released(self) -> Snapshot:
        """What the log holds, which is nobody's any more."""
        found = self.log.snapshot()
        codes, nibbles, wholes = self.log.stacks
        words = len(codes.block) + len(nibbles.block) + len(wholes.block)
        if len(_spare) < SPARE and words <= MOST:
            _spare.append(self)
        return found


_spare: list[Gaps] = []


def lent(entries: Snapshot | None = None) -> Gaps:
    """A log with room in it that has these entries, or none.

    It is released when a run is done, or becomes that of a machine.
    """
    try:
        found = _spare.pop()
    except IndexError:
        found = Gaps(Residue())
    if entries is None:
        found.log.fall((0, 0, 0))
    else:
        found.log.hold(entries)
    return found
