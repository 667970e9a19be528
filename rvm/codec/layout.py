"""The layout of a `.rbc` file: header, directory, and tables of fixed-width records.

All numbers are little-endian.  `docs/bytecode.md` describes the same in prose;
a test holds the two together.
"""

from __future__ import annotations

import hashlib
import struct
from typing import NamedTuple

MAGIC = b"\x8fRVM\r\n\x1a\n"
"""Not ASCII at its start, and damaged by any conversion of line ends."""
VERSION = 1

HEADER = struct.Struct("<8sHHIQ16s")
"""Magic, version, flags (0), number of tables, length of the file, checksum."""
DIGEST_AT = 24
"""The offset of the checksum, which covers the whole file except itself."""
DIRECTORY = struct.Struct("<4sIII")
"""A table's tag, offset, size in bytes, width of a record."""

NONE = 0xFFFFFFFF
"""An index that names nothing: a leaf's field count, a span without a source."""
START = 0x80000000
"""Beside a register: as a parameter it begins as zero where a caller names no value."""


class Table(NamedTuple):
    """A table: its tag and the form of its records."""

    tag: bytes
    record: struct.Struct
    holds: str
    """The fields of a record, in order, as the format's description names them."""


def _table(tag: str, form: str, holds: str) -> Table:
    return Table(tag.encode(), struct.Struct("<" + form), holds)


TABLES = (
    _table("STRS", "II", "offset in TEXT, length"),
    _table("OPCD", "I", "mnemonic (string)"),
    _table("FUNC", "I", "function of the function table (string)"),
    _table("TYPE", "BBBBI", "kind (0 scalar, 1 array, 2 stack), rank, fraction bits, 0, name"),
    _table("CNST", "II16s", "type, 0, raw value"),
    _table("LIST", "I", "index"),
    _table("ITEM", "III", "kind (0 index, 1 span, 2 step of the next span), first, second"),
    _table(
        "STEP",
        "III",
        "kind (0 index, 1 re, 2 im, 3 transposed, 4 top, 5 len, 6 shape), first item, items",
    ),
    _table("EXPR", "IIII", "kind (0 constant, 1 place, 2 applied function), a, b, c"),
    _table("REGS", "IIII", "name, type, first length in LIST, lengths"),
    _table(
        "PARM",
        "III",
        "field name, fields (or NONE), register (and START) or name of the record type",
    ),
    _table("DIMS", "III", "name, register, axis"),
    _table("CODE", "IIIiI", "opcode, first operand in LIST, operands, aux, symbol (string)"),
    _table("LINE", "IIII", "source (or NONE), line, column, end"),
    _table("FNCT", "I14I", "name, then first and count in REGS PARM DIMS EXPR CODE LINE LIST"),
    _table("SRCS", "II", "name, text (strings)"),
    _table("MAIN", "I", "name of the entry function"),
    _table("TEXT", "B", "UTF-8 of all strings, one after another"),
)
"""Every file has all of them, in this order and without gaps."""

BY_TAG = {t.tag.decode(): t for t in TABLES}
PARTS = ("REGS", "PARM", "DIMS", "EXPR", "CODE", "LINE", "LIST")
"""The tables of which each function owns a stretch, as its record lists them."""

SCALAR, ARRAY, STACK = 0, 1, 2
CONST, PLACE, APPLY = 0, 1, 2
INDEX, RE, IM, TRANSPOSED, TOP, LEN, SHAPE = 0, 1, 2, 3, 4, 5, 6
ELEMENT, SPAN, STRIDE = 0, 1, 2

MAX_LAYOUT_DEPTH = 32
"""Records in records in records … of a parameter."""
WORK_BASE = 1 << 20
WORK_PER_BYTE = 8
"""A file of b bytes may hold instructions of WORK_BASE + WORK_PER_BYTE * b expression nodes in
all, each counted as often as instructions hold it: shared parts cannot blow up."""


def digest(data: bytes | bytearray | memoryview) -> bytes:
    """The checksum: BLAKE2b, 16 bytes, of everything but the checksum's own place."""
    view = memoryview(data)
    h = hashlib.blake2b(view[:DIGEST_AT], digest_size=16)
    h.update(view[DIGEST_AT + 16 :])
    return h.digest()


def seal(data: bytearray) -> bytes:
    """`data` with its length and checksum written into the header."""
    struct.pack_into("<Q", data, 16, len(data))
    data[DIGEST_AT : DIGEST_AT + 16] = digest(data)
    return bytes(data)


def work(sizes: int, operands: int) -> int:
    """The work of an instruction: the nodes of its operands, and its pairs of operands."""
    return sizes + operands * operands // 2
