"""From a program to the bytes of a `.rbc` file.

Tables are filled in the order of first use on one walk over the program, equal
strings, types, constants and (within a function) expressions once: the same
program gives the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from rvm.codec.constants import pack
from rvm.codec.layout import (
    APPLY,
    ARRAY,
    BY_TAG,
    CONST,
    DIRECTORY,
    ELEMENT,
    HEADER,
    IM,
    INDEX,
    LEN,
    MAGIC,
    MAX_LAYOUT_DEPTH,
    NONE,
    PARTS,
    PLACE,
    RE,
    SCALAR,
    SHAPE,
    SPAN,
    STACK,
    START,
    STRIDE,
    TABLES,
    TOP,
    TRANSPOSED,
    VERSION,
    WORK_BASE,
    WORK_PER_BYTE,
    seal,
    work,
)
from rvm.expr import (
    Apply,
    Const,
    Expr,
    Index,
    Part,
    Peek,
    Place,
    Shaped,
    Span,
    Step,
    Transposed,
    children,
)
from rvm.faults import BytecodeError, Where
from rvm.isa.typing import MAX_NODES
from rvm.program import AnyProgram, Function, Layout, Program, program_of
from rvm.types import I64, Array, RegisterType, Scalar, Stack
from rvm.verify.instructions import MAX_OPERANDS
from rvm.verify.nodes import MAX_DEPTH

CANNOT = "B018"


def encode(program: AnyProgram) -> bytes:
    """The bytes of a `.rbc` file.

    BytecodeError B018 if the program cannot be stored (a template without types, an expression or
    an operand list beyond the limits); every verified program can.
    """
    writer = _Writer()
    try:
        return writer.program(program_of(program))
    except (struct.error, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BytecodeError(CANNOT, f"the program has no bytecode: {error}") from None


def _refuse(message: str, function: str = "") -> BytecodeError:
    return BytecodeError(CANNOT, message, where=Where(function=function))


class _Writer:
    """The tables of one file."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[Any, ...]]] = {tag: [] for tag in BY_TAG}
        self.text: list[bytes] = []
        self.text_size = 0
        self.numbers: dict[tuple[str, object], int] = {}
        self.work = 0

    def program(self, program: Program) -> bytes:
        for function in program.functions:
            _Body(self, function).write()
        for source in program.sources:
            self.add("SRCS", self.string(source.name), self.string(source.text))
        self.add("MAIN", self.string(program.entry))
        data = self._file()
        if self.work > WORK_BASE + WORK_PER_BYTE * len(data):
            raise _refuse("the program's expressions are too large for a file of its size")
        return data

    def _file(self) -> bytes:
        blobs = []
        for table in TABLES[:-1]:
            pack_row = table.record.pack
            blobs.append(b"".join([pack_row(*row) for row in self.rows[table.tag.decode()]]))
        blobs.append(b"".join(self.text))
        out = bytearray(HEADER.pack(MAGIC, VERSION, 0, len(TABLES), 0, b""))
        offset = HEADER.size + DIRECTORY.size * len(TABLES)
        for table, blob in zip(TABLES, blobs, strict=True):
            out += DIRECTORY.pack(table.tag, offset, len(blob), table.record.size)
            offset += len(blob)
        for blob in blobs:
            out += blob
        return seal(out)

    def add(self, tag: str, *row: Any) -> int:
        rows = self.rows[tag]
        rows.append(row)
        return len(rows) - 1

    def once(self, tag: str, key: object, *row: Any) -> int:
        """The number of the row, added when `key` is new to the table."""
        known = self.numbers.get((tag, key))
        if known is None:
            known = self.numbers[tag, key] = self.add(tag, *row)
        return known

    def string(self, text: str) -> int:
        known = self.numbers.get(("STRS", text))
        if known is None:
            raw = text.encode()
            known = self.numbers["STRS", text] = self.add("STRS", self.text_size, len(raw))
            self.text.append(raw)
            self.text_size += len(raw)
        return known

    def type(self, t: RegisterType) -> int:
        known = self.numbers.get(("TYPE", t))
        if known is not None:
            return known
        match t:
            case Scalar(name, frac):
                row = (SCALAR, 0, frac, 0, self.string(name))
            case Array(Scalar(name, frac), rank):
                row = (ARRAY, rank, frac, 0, self.string(name))
            case Stack(Scalar(name, frac)):
                row = (STACK, 0, frac, 0, self.string(name))
            case _:
                raise _refuse(f"{t!r} is not a type")
        return self.once("TYPE", t, *row)

    def constant(self, node: Const) -> int:
        if node.type is None:
            raise _refuse("a constant without a type")
        raw = pack(node.value, node.type)
        return self.once("CNST", (node.type, raw), self.type(node.type), 0, raw)


class _Body:
    """A function while it is added to the tables; expressions are numbered within it."""

    def __init__(self, writer: _Writer, function: Function) -> None:
        self.w = writer
        self.f = function
        self.starts = {tag: len(writer.rows[tag]) for tag in PARTS}
        self.by_id: dict[int, int] = {}
        self.by_shape: dict[tuple[Any, ...], int] = {}
        self.measures: list[tuple[int, int]] = []

    def write(self) -> None:
        w, f = self.w, self.f
        name = w.string(f.name)
        dims = [(*r.dims, *[Const(n, I64) for n in r.shape]) for r in f.registers]
        lengths = [[0 if d is None else self.expr(d) + 1 for d in own] for own in dims]
        operands = [[self.expr(a) for a in i.args] for i in f.code]
        for r, numbers in zip(f.registers, lengths, strict=True):
            w.add("REGS", w.string(r.name), w.type(r.type), *self._list(numbers))
        for p in f.params:
            for field, count, what in self._layout(p.name, p.layout):
                w.add("PARM", field, count, what | START if p.zero and count == NONE else what)
        for d in f.dims:
            w.add("DIMS", w.string(d.name), d.reg, d.axis)
        for i, args in zip(f.code, operands, strict=True):
            op = w.once("OPCD", i.op, w.string(i.op))
            if len(args) > MAX_OPERANDS:
                raise _refuse(f"an instruction with {len(args)} operands", f.name)
            w.work += work(sum(self.measures[a][0] for a in args), len(args))
            w.add("CODE", op, *self._list(args), i.aux, w.string(i.symbol))
        for s in f.spans:
            source = NONE if s.source == -1 else s.source
            w.add("LINE", source, s.line, s.column, s.end)
        stretches: list[int] = []
        for tag in PARTS:
            stretches += (self.starts[tag], len(w.rows[tag]) - self.starts[tag])
        w.add("FNCT", name, *stretches)

    def _list(self, numbers: list[int]) -> tuple[int, int]:
        rows = self.w.rows["LIST"]
        start = len(rows)
        rows.extend((n,) for n in numbers)
        return start, len(numbers)

    def _layout(self, name: str, layout: Layout) -> Iterator[tuple[int, int, int]]:
        """A parameter's layout, each record before its fields."""
        w = self.w
        todo = [(name, layout, 1)]
        while todo:
            field, item, depth = todo.pop()
            if isinstance(item, int):
                yield w.string(field), NONE, item
                continue
            if depth > MAX_LAYOUT_DEPTH:
                raise _refuse(f"the record `{name}` is nested too deep", self.f.name)
            yield w.string(field), len(item.fields), w.string(item.name)
            todo.extend((n, x, depth + 1) for n, x in reversed(item.fields))

    def expr(self, root: Expr) -> int:
        """The number of an expression, its parts numbered before it."""
        by_id = self.by_id
        todo = [root]
        while todo:
            node = todo[-1]
            if id(node) in by_id:
                todo.pop()
                continue
            inner = list(children(node))
            waiting = [c for c in inner if id(c) not in by_id]
            if waiting:
                todo.extend(reversed(waiting))
                continue
            todo.pop()
            by_id[id(node)] = self._node(node, [by_id[id(c)] for c in inner])
        return by_id[id(root)]

    def _node(self, node: Expr, inner: list[int]) -> int:
        shape: tuple[Any, ...]
        match node:
            case Const():
                shape = (CONST, self.w.constant(node))
            case Place(reg, path):
                shape = (PLACE, reg, self._path_shape(path))
            case Apply(fn, _):
                shape = (APPLY, self.w.once("FUNC", fn, self.w.string(fn)), tuple(inner))
            case _:
                raise _refuse(f"a {type(node).__name__} has no bytecode", self.f.name)
        known = self.by_shape.get(shape)
        if known is None:
            known = self.by_shape[shape] = self._add(node, shape, inner)
        return known

    def _path_shape(self, path: tuple[Step, ...]) -> tuple[Any, ...]:
        out: list[Any] = []
        for step in path:
            match step:
                case Index(items):
                    out.append((INDEX, tuple(row for i in items for row in self._item(i))))
                case Part(name):
                    out.append({"re": RE, "im": IM}[name])
                case Transposed():
                    out.append(TRANSPOSED)
                case Shaped(dims):
                    out.append((SHAPE, tuple((ELEMENT, self.by_id[id(d)], 0) for d in dims)))
                case Peek(name):
                    out.append({"top": TOP, "len": LEN}[name])
                case _:
                    raise _refuse(f"{step!r} is not a step", self.f.name)
        return tuple(out)

    def _item(self, item: Expr | Span) -> list[tuple[int, int, int]]:
        if not isinstance(item, Span):
            return [(ELEMENT, self.by_id[id(item)], 0)]
        lo, hi, by = (0 if e is None else self.by_id[id(e)] + 1 for e in item.ends)
        return [(STRIDE, by - 1, 0)] * bool(by) + [(SPAN, lo, hi)]

    def _add(self, node: Expr, shape: tuple[Any, ...], inner: list[int]) -> int:
        w = self.w
        steps = shape[2] if shape[0] == PLACE else ()
        size = 1 + len(steps) + sum(self.measures[c][0] for c in inner)
        depth = 1 + max((self.measures[c][1] for c in inner), default=0)
        if size > MAX_NODES or depth > MAX_DEPTH:
            raise _refuse(f"an expression of {size} nodes in {depth} levels", self.f.name)
        self.measures.append((size, depth))
        if shape[0] == CONST:
            row = (CONST, shape[1], 0, 0)
        elif shape[0] == APPLY:
            row = (APPLY, shape[1], *self._list(inner))
        else:
            start = len(w.rows["STEP"])
            for step in steps:
                if isinstance(step, tuple):
                    kind, rows = step
                    items = [w.add("ITEM", *i) for i in rows]
                    first = items[0] if items else len(w.rows["ITEM"])
                    w.add("STEP", kind, first, len(items))
                else:
                    w.add("STEP", step, 0, 0)
            row = (PLACE, shape[1], start, len(steps))
        w.add("EXPR", *row)
        return len(self.measures) - 1
