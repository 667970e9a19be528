"""A relocatable object file as one position-independent block of memory: a small static linker.

It handles the ELF files that LLVM generates for x86-64.  References within the block are relative,
so they are resolved once.  References to the outside go through a table of words after the code,
and only this table is filled in when the block is loaded.  Anything else (another format or
processor, writable data, another kind of reference) is left to LLVM's own linker.

Source of the formats and of the formulas for relocations: the System V ABI, chapters 4 and 5, and
its supplement for AMD64, section 4.4.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

Word = str | int
"""The address of an outside symbol by its name, or of an offset in the block."""

MAGIC = b"\x7fELF\x02\x01\x01"
"""The magic of ELF with 64 bits, little-endian, version 1."""
RELOCATABLE, X86_64 = 1, 62
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")
PROGBITS, SYMTAB, RELA = 1, 2, 4
WRITE, ALLOC = 1, 2
UNDEFINED = 0
"""The number of the section that outside symbols have."""
PC32, PLT32, GOTPCREL, GOTPCRELX, REX_GOTPCRELX = 2, 4, 9, 41, 42
STUB = b"\xff\x25"
"""`jmp [rip + …]`, for calls to targets more than 2 GiB away."""


class Block(NamedTuple):
    """Machine code and constants; `words` are to be filled in from offset `table` on."""

    data: bytes
    entry: int
    """The offset of the function that is called."""
    table: int
    words: tuple[Word, ...]


class Unknown(Exception):
    """A feature of ELF that is left to LLVM's linker."""


def linked(data: bytes, entry: str) -> Block | None:
    """The block of an object file, with the offset of a function; None where it does not apply."""
    try:
        return _Linker(data).block(entry)
    except (Unknown, struct.error, IndexError, ValueError):
        return None


class _Linker:
    """The tables of one file, and the block that grows."""

    def __init__(self, data: bytes) -> None:
        if not data.startswith(MAGIC):
            raise Unknown
        head = HEADER.unpack_from(data)
        kind, machine, table, size, count = head[1], head[2], head[6], head[11], head[12]
        if (kind, machine, size) != (RELOCATABLE, X86_64, SECTION.size):
            raise Unknown
        self.data = data
        self.sections = [SECTION.unpack_from(data, table + k * size) for k in range(count)]
        self.image = bytearray()
        self.starts: dict[int, int] = {}
        """The positions of sections in the block."""
        self.words: dict[Word, int] = {}
        self.stubs: dict[Word, int] = {}
        """Words that calls go through, each with the number of its stub."""

    def block(self, entry: str) -> Block:
        """Everything in its place."""
        self._place()
        names, symbols = self._symbols()
        asked = [
            (self.starts[target] + offset, kind, symbols[number], addend)
            for target, offset, kind, number, addend in self._relocations()
        ]
        for _, kind, symbol, _ in asked:
            self._reserve(kind, symbol)
        stubs = self._grown(16)
        self.image += bytes(8 * len(self.stubs))
        table = self._grown(8)
        self.image += bytes(8 * len(self.words))
        for word, number in self.stubs.items():
            at, slot = stubs + 8 * number, table + 8 * self.words[word]
            self.image[at : at + 6] = STUB + struct.pack("<i", slot - (at + 6))
        for at, kind, symbol, addend in asked:
            if kind in (GOTPCREL, GOTPCRELX, REX_GOTPCRELX):
                goal = table + 8 * self.words[symbol]
            elif isinstance(symbol, int):
                goal = symbol
            else:
                goal = stubs + 8 * self.stubs[symbol]
            struct.pack_into("<i", self.image, at, goal + addend - at)
        found = symbols[names.index(entry)]
        if not isinstance(found, int):
            raise Unknown
        return Block(bytes(self.image), found, table, tuple(self.words))

    def _place(self) -> None:
        """Lay out the sections that a run needs."""
        for k, section in enumerate(self.sections):
            _, kind, flags, _, offset, size, _, _, alignment, _ = section
            if not flags & ALLOC or not size or self._text(section[0]) == ".eh_frame":
                continue
            if kind != PROGBITS or flags & WRITE:
                raise Unknown
            self.starts[k] = self._grown(alignment)
            self.image += self.data[offset : offset + size]

    def _grown(self, alignment: int) -> int:
        """The block's length, made a multiple of an alignment."""
        self.image += bytes(-len(self.image) % max(alignment, 1))
        return len(self.image)

    def _text(self, offset: int, strings: int | None = None) -> str:
        """A name in a section of names: by default that of the sections' own."""
        table = self.sections[HEADER.unpack_from(self.data)[13] if strings is None else strings]
        start = table[4] + offset
        return self.data[start : self.data.index(0, start)].decode()

    def _symbols(self) -> tuple[list[str], list[Word]]:
        """The names of the symbols, and for each an offset in the block, or a name again."""
        names: list[str] = []
        found: list[Word] = []
        for section in self.sections:
            if section[1] != SYMTAB:
                continue
            _, _, _, _, offset, size, strings, _, _, _ = section
            for at in range(offset, offset + size, SYMBOL.size):
                name, _, _, home, value, _ = SYMBOL.unpack_from(self.data, at)
                names.append(self._text(name, strings))
                if home in self.starts:
                    found.append(self.starts[home] + value)
                else:
                    found.append("" if home != UNDEFINED else names[-1])
        return names, found

    def _relocations(self) -> list[tuple[int, int, int, int, int]]:
        """(section, offset in it, kind, number of the symbol, addend) of each reference."""
        found = []
        for section in self.sections:
            _, kind, _, _, offset, size, _, target, _, _ = section
            if kind != RELA or target not in self.starts:
                continue
            for at in range(offset, offset + size, RELOCATION.size):
                place, info, addend = RELOCATION.unpack_from(self.data, at)
                found.append((target, place, info & 0xFFFFFFFF, info >> 32, addend))
        return found

    def _reserve(self, kind: int, symbol: Word) -> None:
        """Make room for the word of a reference, and for the stub of a call to the outside."""
        if symbol == "":
            raise Unknown
        if kind in (GOTPCREL, GOTPCRELX, REX_GOTPCRELX):
            self.words.setdefault(symbol, len(self.words))
        elif kind == PLT32 and isinstance(symbol, str):
            self.words.setdefault(symbol, len(self.words))
            self.stubs.setdefault(symbol, len(self.stubs))
        elif kind not in (PC32, PLT32) or isinstance(symbol, str):
            raise Unknown
