"""Decoding of a `.rbc` file into a program, without trusting the file.

Every range of every table is consumed exactly once and in order, so the size of the result is
proportional to that of the file. Indices are checked against the tables, and nothing recurses.
Types of expressions are not stored but computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rvm.codec.body import Body, Pools
from rvm.codec.constants import unpack
from rvm.codec.layout import (
    ARRAY,
    BY_TAG,
    DIGEST_AT,
    DIRECTORY,
    HEADER,
    MAGIC,
    PARTS,
    SCALAR,
    STACK,
    TABLES,
    VERSION,
    WORK_BASE,
    WORK_PER_BYTE,
    digest,
)
from rvm.expr import Const
from rvm.faults import BytecodeError
from rvm.isa import FUNCTIONS, OPCODES
from rvm.program import Function, Program, Source
from rvm.types import Array, RegisterType, Scalar, Stack
from rvm.verify.nodes import constant_fits, is_type


def decode(data: bytes) -> Program:
    """The program in the bytes of a `.rbc` file.

    BytecodeError B001 … B017 describes defects.  Whether the program is valid is decided by
    `rvm.verify`.
    """
    return _Reader(data).program()


def _check(holds: bool, code: str, message: str, hint: str = "") -> None:
    if not holds:
        raise BytecodeError(code, message, hint=hint)


class _Reader:
    """One file, its tables found and its checksum compared."""

    def __init__(self, data: bytes) -> None:
        _check(data[: len(MAGIC)] == MAGIC, "B001", "this is not a `.rbc` file")
        _check(len(data) >= HEADER.size, "B003", f"the file ends after {len(data)} bytes")
        _, version, flags, tables, size, checksum = HEADER.unpack_from(data)
        _check(
            version == VERSION and not flags,
            "B002",
            f"the file has version {version}, flags {flags}; this program reads version {VERSION}",
            hint="assemble the source again",
        )
        _check(size == len(data), "B003", f"the file has {len(data)} bytes, its header says {size}")
        _check(checksum == digest(data), "B004", "the checksum does not match: the file is damaged")
        _check(tables == len(TABLES), "B005", f"the file has {tables} tables, not {len(TABLES)}")
        self.data = memoryview(data)
        self.views: dict[str, memoryview] = {}
        self._directory(DIGEST_AT + 16)

    def _directory(self, at: int) -> None:
        end = at + DIRECTORY.size * len(TABLES)
        _check(end <= len(self.data), "B003", "the file ends inside its directory")
        for table in TABLES:
            tag, offset, size, width = DIRECTORY.unpack_from(self.data, at)
            at += DIRECTORY.size
            name = table.tag.decode()
            _check(
                tag == table.tag and width == table.record.size and size % width == 0,
                "B005",
                f"the directory has no sound entry for the table {name}",
            )
            _check(
                offset == end and offset + size <= len(self.data),
                "B005",
                f"the table {name} does not stand where the one before it ends",
            )
            self.views[name] = self.data[offset : offset + size]
            end = offset + size
        _check(end == len(self.data), "B005", "there are bytes after the last table")

    def count(self, tag: str) -> int:
        return len(self.views[tag]) // BY_TAG[tag].record.size

    def rows(self, tag: str, first: int = 0, count: int | None = None) -> Iterator[tuple[Any, ...]]:
        record = BY_TAG[tag].record
        stop = None if count is None else (first + count) * record.size
        # Not of a view: where an iterator and its view are collected together, CPython may crash.
        return record.iter_unpack(bytes(self.views[tag][first * record.size : stop]))

    def program(self) -> Program:
        strings = self._strings()
        types = [self._type(row, strings) for row in self.rows("TYPE")]
        pools = Pools(
            strings=strings,
            types=types,
            constants=self._constants(types),
            opcodes=self._names("OPCD", strings, OPCODES, "B012", "opcode"),
            functions=self._names("FUNC", strings, FUNCTIONS, "B013", "function"),
            items=self.rows("ITEM"),
            steps=self.rows("STEP"),
            budget=WORK_BASE + WORK_PER_BYTE * len(self.data),
        )
        functions = self._functions(pools)
        for leftover, tag in ((pools.items, "ITEM"), (pools.steps, "STEP")):
            _check(next(leftover, None) is None, "B015", f"the table {tag} has unused records")
        sources = tuple(
            Source(pools.string(name), pools.string(text)) for name, text in self.rows("SRCS")
        )
        _check(self.count("MAIN") == 1, "B005", "the table MAIN has one record")
        ((entry,),) = self.rows("MAIN")
        return Program(functions, pools.string(entry), sources)

    def _strings(self) -> list[str]:
        out: list[str] = []
        text = self.views["TEXT"]
        end = 0
        for offset, length in self.rows("STRS"):
            _check(
                offset == end and offset + length <= len(text),
                "B007",
                f"string {len(out)} does not stand where the one before it ends",
            )
            end = offset + length
            try:
                out.append(str(text[offset:end], "utf-8"))
            except UnicodeDecodeError:
                raise BytecodeError("B007", f"string {len(out)} is not UTF-8") from None
        _check(end == len(text), "B007", "there is text after the last string")
        return out

    def _type(self, row: tuple[int, ...], strings: list[str]) -> RegisterType:
        kind, rank, frac, zero, name = row
        _check(name < len(strings), "B006", f"a type is named by string {name}")
        unsound = (
            f"a type record is unsound: kind {kind}, rank {rank}, `{strings[name][:40]}`, "
            f"{frac} fraction bits"
        )
        try:
            elem = Scalar(strings[name], frac)
        except ValueError:
            raise BytecodeError("B008", unsound) from None
        made: dict[int, RegisterType] = {SCALAR: elem, ARRAY: Array(elem, rank), STACK: Stack(elem)}
        t = made.get(kind)
        _check(
            t is not None and is_type(t) and zero == 0 and (rank == 0 or kind == ARRAY),
            "B008",
            unsound,
        )
        assert t is not None
        return t

    def _constants(self, types: list[RegisterType]) -> list[Const]:
        out: list[Const] = []
        for number, zero, raw in self.rows("CNST"):
            _check(number < len(types), "B006", f"constant {len(out)} has the type {number}")
            t = types[number]
            what = f"constant {len(out)} is unsound: "
            _check(isinstance(t, Scalar) and zero == 0, "B009", what + f"it is not a value of {t}")
            assert isinstance(t, Scalar)
            try:
                value = unpack(raw, t)
            except ValueError as error:
                raise BytecodeError("B009", what + str(error)) from None
            _check(constant_fits(value, t), "B009", what + f"{value} is not a value of type {t}")
            out.append(Const(value, t))
        return out

    def _names(self, tag: str, strings: list[str], known: Any, code: str, what: str) -> list[str]:
        out = []
        for (number,) in self.rows(tag):
            _check(number < len(strings), "B006", f"the table {tag} names string {number}")
            name = strings[number]
            _check(
                name in known,
                code,
                f"the file uses the {what} `{name[:60]}`, which is not known here",
                hint="import the module that defines it first; "
                "or the file was made by a later version",
            )
            out.append(name)
        return out

    def _functions(self, pools: Pools) -> tuple[Function, ...]:
        out: list[Function] = []
        names: set[str] = set()
        ends = dict.fromkeys(PARTS, 0)
        for row in self.rows("FNCT"):
            name = pools.string(row[0])
            _check(name not in names, "B016", f"there are two functions `{name[:60]}`")
            names.add(name)
            parts: dict[str, Iterator[tuple[Any, ...]]] = {}
            for k, tag in enumerate(PARTS):
                first, count = row[1 + 2 * k], row[2 + 2 * k]
                _check(
                    first == ends[tag] and first + count <= self.count(tag),
                    "B015",
                    f"`{name[:60]}` has records {first} to {first + count} of {tag}, which has "
                    f"{self.count(tag)}, {ends[tag]} of them taken",
                )
                ends[tag] = first + count
                parts[tag] = self.rows(tag, first, count)
            registers = row[2 + 2 * PARTS.index("REGS")]
            lists = row[1 + 2 * PARTS.index("LIST")]
            out.append(Body(name, pools, parts, registers, lists).function())
        for tag in PARTS:
            _check(ends[tag] == self.count(tag), "B015", f"the table {tag} has unused records")
        return tuple(out)
