"""The strict log in the format of machine code: the fields described in `rvm.ir.context`."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from numpy.typing import NDArray

from rvm.ir.context import LOG_FIELDS
from rvm.numbers.residue import Residue, Snapshot

LEAST = 1 << 20
"""The initial capacity in gaps: enough for a run of some hundredths of a second. Unused memory is
not taken from the host."""
ROW = struct.Struct(f"<{LOG_FIELDS}q")
SPARE, MOST = 4, 2 * LEAST
"""The number of finished logs kept for later calls, and the largest number of words in each."""


class Gaps:
    """A log for runs of machine code, which stop when it is full."""

    __slots__ = ("_blocks", "_places", "address", "log", "row")

    def __init__(self, log: Residue) -> None:
        self.log = log
        self.row = ctypes.create_string_buffer(ROW.size)
        self.address = ctypes.addressof(self.row)
        self._blocks: list[NDArray[Any] | None] = [None, None, None]
        """The memory of the stacks whose addresses are known."""
        self._places = [0, 0, 0]

    def begin(self) -> None:
        """Allocate memory, and pass it to machine code."""
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
        """Update the log's size after a run; allocate the room that it has requested."""
        _, codes, _, _, nibbles, _, _, wholes, _, wanted = ROW.unpack_from(self.row)
        self.log.fall((codes, nibbles, wholes))
        if wanted:
            self.log.reserve(max(wanted, len(self.log)))

    def released(self) -> Snapshot:
        """The contents of the log, whose ownership is given up."""
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
