"""The data that generated code shares with its caller: the context, and a frame's slots.

The context is a row of 64-bit fields.  A frame's registers are a row of 64-bit slots.  A scalar has
one slot (a complex number two), a stack one for its pointer, and an array slots for its pointer,
its owner, and its lengths and strides in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable

from rvm.types import Array, RegisterType, Scalar

TICKS, PC, LIVE, PEAK, ERASED, LIMIT, TOLERANCE, DEEPEST, FRAMES, DRIFT, GAPS = range(11)
"""Ticks left; where the run stopped; live and peak bytes; erased bits; the memory limit (all i64);
the tolerance (double; below 0 where there is none); the lowest address that frames on the stack may
have, which a root raises by what one call takes; the frames that a run stopped in, outermost first
(pointer); the largest residue, in parts of what was allowed (double); the strict log (pointer)."""
FIELDS = 11
"""The number of fields of the context."""
NO_TOLERANCE, EDITED = -1.0, -2.0
"""The value for no tolerance; and the flag for values changed from outside."""

WORDS, COUNT, ROOM, STACK = range(4)
WANTED = 3 * STACK
LOG_FIELDS = WANTED + 1
"""The strict log is a row of fields: of each of its stacks, in the order of
`rvm.numbers.residue.Residue.stacks`, where its words are, how many entries it has, and room for how
many; then for how many gaps there was no room.  A program's stack is a row of three such fields."""

WIDTH = 8
"""Lanes in a vector."""
WIDE = (ERASED, DRIFT)
"""The fields that a context of several lanes has for each of them, after the common ones."""
LANE_ERASED, LANE_DRIFT, SPARED, ALONE = range(FIELDS, FIELDS + 4 * WIDTH, WIDTH)
LANE_FIELDS = ALONE + 1
"""Where those are, and what else there is: for each lane how many ticks less than the group it has
taken; and how many ticks lanes have taken by themselves, in all."""

ROW, CHILD, EMPTY, TABLE, MASK, STRIDE, USED, MOST, LOG, LOG_END, LEAST = range(FIELDS, FIELDS + 11)
"""Further fields for code that counts.  The row of the outermost function's counters; the function
that gives a callee's row (of the context, the caller's row and the call's position; null if there
is none), and the one that empties the table and the log (of the context).  The table of sizes: its
address, the number of its entries less one, the words of each, how many are used and may be used.
Where the next call is to be written down, and where there is no more room; how many ticks a call
must have taken to be (i64)."""
ENTRY_ROW, ENTRY_AT, ENTRY_TIMES, ENTRY_SIZES = range(4)
"""An entry of the table: a row, an instruction's position, how often it found some sizes, these."""
CALL_WORDS, OPEN = 3, -1
"""A call that is written down: the number of the callee's code, the ticks left after its entry and
after its return.  For a call that has not returned the first is OPEN; where a run stops, such
calls come last, innermost first."""

NEXT, CODE, POSITION, HEADER = range(4)
"""The header of a stopped frame, before its slots: pointer to the next one, number of its code,
position."""

MINE, FRAMED = 1, 2
"""Owners of a local array: 1 if its memory is to be freed, 2 if it is in the frame; 0: Python's."""
CLEAN = 1 << 62
"""What is added to the size of memory that is released and holds zeros."""

DONE, SPENT, STOPPED, LOST, PARTED = range(5)
"""How generated code ends: at its end, its ticks spent, at an instruction that is not for it, or
without the memory to say where.  Within code for groups of lanes: at a branch where these part."""


def slots(types: Iterable[RegisterType]) -> tuple[tuple[int, ...], int]:
    """The first slot of each register, and the number of slots, by the registers' types."""
    starts, n = [], 0
    for t in types:
        starts.append(n)
        n += slot_count(t)
    return tuple(starts), n


def slot_count(t: RegisterType) -> int:
    """The slots of a register."""
    if isinstance(t, Array):
        return 2 + 2 * t.rank
    return t.parts if isinstance(t, Scalar) else 1
