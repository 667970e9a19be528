"""Taking `.rbc` files apart and putting them together again, sound or not."""

from __future__ import annotations

import random
import struct
from collections.abc import Mapping

from rvm.codec.layout import BY_TAG, DIRECTORY, HEADER, MAGIC, TABLES, VERSION, seal


def tables(data: bytes) -> dict[str, bytes]:
    """The contents of each table of a sound file."""
    out = {}
    for k in range(len(TABLES)):
        tag, offset, size, _ = DIRECTORY.unpack_from(data, HEADER.size + k * DIRECTORY.size)
        out[tag.decode()] = data[offset : offset + size]
    return out


def join(contents: Mapping[str, bytes]) -> bytes:
    """A file of these tables, with a sound header and directory."""
    out = bytearray(HEADER.pack(MAGIC, VERSION, 0, len(TABLES), 0, b""))
    offset = HEADER.size + DIRECTORY.size * len(TABLES)
    for table in TABLES:
        blob = contents[table.tag.decode()]
        out += DIRECTORY.pack(table.tag, offset, len(blob), table.record.size)
        offset += len(blob)
    for table in TABLES:
        out += contents[table.tag.decode()]
    return seal(out)


def patched(data: bytes, tag: str, row: int, field: int, value: object) -> bytes:
    """The file with one field of one record changed, and sealed again."""
    contents = tables(data)
    record = BY_TAG[tag].record
    blob = bytearray(contents[tag])
    fields = list(record.unpack_from(blob, row * record.size))
    fields[field] = value
    record.pack_into(blob, row * record.size, *fields)
    return join({**contents, tag: bytes(blob)})


_EDGES = (0, 1, 2, 3, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)


_FAVOURED = ("EXPR", "LIST", "CODE", "STEP", "ITEM", "REGS", "CNST", "OPCD", "FUNC", "PARM")
"""Tables whose damage is seldom found before expressions are built."""


def mutated(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """A file near `data`; most keep a sound header, so that what lies after it is reached."""
    roll = rng.random()
    if roll < 0.05:
        return data[: rng.randrange(len(data))]
    if roll < 0.1:
        out = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            out[rng.randrange(len(out))] = rng.randrange(256)
        return bytes(out) if rng.random() < 0.3 else seal(out)
    contents = dict(tables(data))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        _mutate_table(rng, contents, tables(other))
    return join(contents)


def _mutate_table(
    rng: random.Random, contents: dict[str, bytes], other: Mapping[str, bytes]
) -> None:
    tag = rng.choice(_FAVOURED) if rng.random() < 0.6 else rng.choice(list(contents))
    width = BY_TAG[tag].record.size
    blob = bytearray(contents[tag])
    rows = len(blob) // width
    roll = rng.random()
    if roll < 0.08:
        blob = bytearray(other[tag])
    elif roll < 0.14:
        blob += other[tag][: width * rng.randint(1, 3)]
    elif roll < 0.2 and rows:
        del blob[(k := rng.randrange(rows) * width) : k + width]
    elif roll < 0.26 and rows:
        k = rng.randrange(rows) * width
        blob[k:k] = blob[k : k + width] * rng.randint(1, 3)
    elif roll < 0.32 and rows > 1:
        a, b = rng.randrange(rows) * width, rng.randrange(rows) * width
        blob[a : a + width], blob[b : b + width] = blob[b : b + width], blob[a : a + width]
    elif roll < 0.36:
        del blob[rng.randint(0, len(blob)) :]
    elif len(blob) >= 4 and roll < 0.85:
        at = rng.randrange(len(blob) // 4) * 4
        (old,) = struct.unpack_from("<I", blob, at)
        new = rng.choice((old + 1, old - 1, old + rng.randint(-9, 9), *_EDGES[:4], *_EDGES))
        struct.pack_into("<I", blob, at, new & 0xFFFFFFFF)
    elif blob:
        blob[rng.randrange(len(blob))] ^= 1 << rng.randrange(8)
    contents[tag] = bytes(blob)
