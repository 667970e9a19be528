"""One function of a `.rbc` file, built from its stretches of the tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from rvm.codec.layout import (
    APPLY,
    CONST,
    ELEMENT,
    INDEX,
    LEN,
    MAX_LAYOUT_DEPTH,
    NONE,
    PLACE,
    SHAPE,
    SPAN,
    START,
    STRIDE,
    TOP,
    TRANSPOSED,
    work,
)
from rvm.expr import Apply, Const, Expr, Index, Part, Peek, Place, Shaped, Span, Step, Transposed
from rvm.faults import BytecodeError, Where
from rvm.isa import TypeFault, place_type
from rvm.isa.typing import MAX_NODES
from rvm.program import Dim, Function, Instr, Layout, Param, Record, Register
from rvm.program import Span as SourceSpan
from rvm.types import I64, RegisterType, Scalar, Stack, ValueType
from rvm.verify.instructions import MAX_OPERANDS
from rvm.verify.nodes import MAX_DEPTH, result_type

Rows = Iterator[tuple[Any, ...]]

STEPS: dict[int, Step] = {
    1: Part("re"),
    2: Part("im"),
    TRANSPOSED: Transposed(),
    TOP: Peek("top"),
    LEN: Peek("len"),
}


@dataclass(slots=True)
class Pools:
    """The tables that all functions share; `items` and `steps` are taken in order."""

    strings: list[str]
    types: list[RegisterType]
    constants: list[Const]
    opcodes: list[str]
    functions: list[str]
    items: Rows
    steps: Rows
    budget: int
    """The amount of work (see `layout.work`) that remaining instructions may have."""
    items_taken: int = 0
    steps_taken: int = 0

    def string(self, number: int) -> str:
        if number >= len(self.strings):
            raise BytecodeError("B006", f"string {number} of {len(self.strings)}")
        return self.strings[number]


class Body:
    """A function during decoding: first its expressions, then the parts that refer to them."""

    def __init__(
        self, name: str, pools: Pools, parts: Mapping[str, Rows], registers: int, lists: int
    ) -> None:
        self.name = name
        self.pools = pools
        self.parts = parts
        self.lists = parts["LIST"]
        self.taken = lists
        self.register_rows = list(parts["REGS"])
        self.types: list[RegisterType] = [self._type(row[1]) for row in self.register_rows]
        self.registers = registers
        self.nodes: list[Expr] = []
        self.sizes: list[int] = []
        self.depths: list[int] = []

    def function(self) -> Function:
        for row in self.parts["EXPR"]:
            self._expression(row)
        registers = tuple(self._register(k, row) for k, row in enumerate(self.register_rows))
        params = tuple(self._params())
        dims = tuple(self._dims())
        code = tuple(self._instr(row) for row in self.parts["CODE"])
        spans = tuple(
            SourceSpan(-1 if source == NONE else source, line, column, end)
            for source, line, column, end in self.parts["LINE"]
        )
        if next(self.lists, None) is not None:
            raise self._fault("B015", "its stretch of LIST has unused records")
        return Function(self.name, params, registers, code, spans, dims)

    def _fault(self, code: str, message: str) -> BytecodeError:
        return BytecodeError(code, message, where=Where(function=self.name[:60]))

    def _below(self, number: int, limit: int, what: str) -> int:
        if number >= limit:
            raise self._fault("B006", f"{what} {number} of {limit}")
        return number

    def _type(self, number: int) -> RegisterType:
        return self.pools.types[self._below(number, len(self.pools.types), "type")]

    def _list(self, first: int, count: int) -> list[int]:
        """The next `count` records of LIST, which must start at `first`."""
        if not count and first == self.taken:
            return []
        out = [n for (n,) in islice(self.lists, count)]
        if first != self.taken or len(out) != count:
            raise self._fault("B015", f"records {first} to {first + count} of LIST are not next")
        self.taken += count
        return out

    def _node(self, number: int) -> Expr:
        if number >= len(self.nodes):
            raise self._fault("B006", f"expression {number}, with {len(self.nodes)} before it")
        return self.nodes[number]

    def _expression(self, row: tuple[int, ...]) -> None:
        kind, a, b, c = row
        inner: list[int]
        node: Expr
        try:
            if kind == CONST and b == c == 0:
                node, inner = (
                    self.pools.constants[self._below(a, len(self.pools.constants), "constant")],
                    [],
                )
            elif kind == PLACE:
                node, inner = self._place(a, b, c)
            elif kind == APPLY:
                fn = self.pools.functions[self._below(a, len(self.pools.functions), "function")]
                inner = self._list(b, c)
                args = tuple(self._node(n) for n in inner)
                types = tuple(n.type for n in args if n.type is not None)
                if len(types) != len(args):
                    raise self._fault("B010", f"`{fn}` is applied to a stack")
                node = Apply(fn, args, result_type(fn, types))
            else:
                raise self._fault("B010", f"expression {len(self.nodes)} is of no kind")
        except TypeFault as fault:
            raise self._fault("B010", f"expression {len(self.nodes)}: {fault.message}") from None
        self._measure(node, inner)

    def _measure(self, node: Expr, inner: list[int]) -> None:
        steps = len(node.path) if isinstance(node, Place) else 0
        size = 1 + steps + sum([self.sizes[n] for n in inner])
        depth = 1 + max([self.depths[n] for n in inner], default=0)
        if size > MAX_NODES or depth > MAX_DEPTH:
            raise self._fault(
                "B011", f"expression {len(self.nodes)} has {size} nodes in {depth} levels"
            )
        self.nodes.append(node)
        self.sizes.append(size)
        self.depths.append(depth)

    def _place(self, reg: int, first: int, count: int) -> tuple[Place, list[int]]:
        base = self.types[self._below(reg, self.registers, "register")]
        pools = self.pools
        if first != pools.steps_taken:
            raise self._fault("B015", f"record {first} of STEP is not next")
        if not count:
            return Place(reg, (), None if isinstance(base, Stack) else base), []
        inner: list[int] = []
        path: list[Step] = []
        for kind, a, b in islice(pools.steps, min(count, MAX_NODES)):
            if kind == INDEX and b:
                path.append(Index(tuple(self._index_items(a, b, inner))))
            elif kind == SHAPE and b:
                items = tuple(self._index_items(a, b, inner))
                dims = tuple(i for i in items if not isinstance(i, Span))
                if len(dims) < len(items):
                    raise self._fault("B010", "a length that is a slice")
                path.append(Shaped(dims))
            elif kind in STEPS and a == b == 0:
                path.append(STEPS[kind])
            else:
                raise self._fault("B010", "a step of a path leads nowhere")
        if len(path) != count:
            raise self._fault("B015", f"a path of {count} steps, with {len(path)} to be had")
        pools.steps_taken += count
        t: ValueType = place_type(base, path)
        return Place(reg, tuple(path), t), inner

    def _index_items(self, first: int, count: int, inner: list[int]) -> Iterator[Expr | Span]:
        if first != self.pools.items_taken or count > MAX_NODES:
            raise self._fault("B015", f"records {first} to {first + count} of ITEM are not next")
        self.pools.items_taken += count
        by: Expr | None = None
        for row in islice(self.pools.items, count):
            kind, a, b = row
            count -= 1
            if kind in (ELEMENT, STRIDE) and b == 0 and by is None:
                inner.append(a)
                node = self._index(a)
                if kind == ELEMENT:
                    yield node
                else:
                    by = node
            elif kind == SPAN:
                inner.extend(n - 1 for n in (a, b) if n)
                lo, hi = (self._index(n - 1) if n else None for n in (a, b))
                yield Span(lo, hi, by)
                by = None
            else:
                raise self._fault("B010", "an index is of no kind")
        if count:
            raise self._fault("B015", "an index beyond the records of ITEM")
        if by is not None:
            raise self._fault("B010", "the step of no span")

    def _index(self, number: int) -> Expr:
        node = self._node(number)
        if not (isinstance(node.type, Scalar) and node.type.is_integer):
            raise self._fault("B010", f"an index of type {node.type}")
        return node

    def _register(self, k: int, row: tuple[int, ...]) -> Register:
        dims = tuple(None if not n else self._node(n - 1) for n in self._list(row[2], row[3]))
        name, t = self.pools.string(row[0]), self.types[k]
        if not isinstance(t, Stack):
            return Register(name, t, dims)
        shape = tuple(d.value for d in dims if isinstance(d, Const) and d.type == I64)
        if len(shape) < len(dims):
            raise self._fault("B010", f"lengths of the arrays in the stack `{name}` vary")
        return Register(name, t, shape=shape)

    def _params(self) -> Iterator[Param]:
        """Parameters from their layouts, each record before its fields; closed from inside out."""
        open_records: list[tuple[str, str, int, list[tuple[str, Layout]]]] = []
        zero = False
        for name, fields, what in self.parts["PARM"]:
            field = self.pools.string(name)
            layout: Layout
            if fields != NONE:
                record = self.pools.string(what)
                if len(open_records) >= MAX_LAYOUT_DEPTH:
                    raise self._fault("B014", "records are nested too deep")
                if fields:
                    open_records.append((field, record, fields, []))
                    continue
                layout = Record(record, ())
            else:
                zero = bool(what & START) and not open_records
                layout = self._below(what & ~START if zero else what, self.registers, "register")
            while open_records:
                outer, record, wanted, have = open_records[-1]
                have.append((field, layout))
                if len(have) < wanted:
                    break
                open_records.pop()
                field, layout = outer, Record(record, tuple(have))
            else:
                yield Param(field, layout, zero)
        if open_records:
            raise self._fault("B014", f"the record `{open_records[0][0][:60]}` lacks fields")

    def _dims(self) -> Iterator[Dim]:
        for name, reg, axis in self.parts["DIMS"]:
            yield Dim(self.pools.string(name), self._below(reg, self.registers, "register"), axis)

    def _instr(self, row: tuple[int, ...]) -> Instr:
        op, first, count, aux, symbol = row
        mnemonic = self.pools.opcodes[self._below(op, len(self.pools.opcodes), "opcode")]
        if count > MAX_OPERANDS:
            raise self._fault("B017", f"an instruction with {count} operands")
        numbers = self._list(first, count)
        args = tuple([self._node(n) for n in numbers])
        self.pools.budget -= work(sum([self.sizes[n] for n in numbers]), count)
        if self.pools.budget < 0:
            raise self._fault("B011", "its expressions are too large for a file of this size")
        return Instr(mnemonic, args, aux, self.pools.string(symbol))
