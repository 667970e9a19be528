"""A graph as the text of a function in LLVM's assembly language.

Variables are memory in the frame, which LLVM turns into registers; arrays are pointers with lengths
and strides.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from rvm.ir.blocks import FunctionBuilder
from rvm.ir.items import Operations
from rvm.ir.kind import ROOT
from rvm.ir.node import BIT, F32, F64, I8, Argument, Block, Node, Var, number
from rvm.ir.operations import CASTS, MNEMONICS
from rvm.ir.places import KINDS, item_size
from rvm.ir.steady import Steady
from rvm.leaf import Function, Table
from rvm.leaf.ops import NATIVE
from rvm.types import elem_of

TYPES = {kind: text for text, kind in KINDS.items()}
"""LLVM's types by kind."""
COLD = "!prof !1"
"""Branches that are hardly ever taken: the first target is the unlikely one."""
STEADY = ", !invariant.load !2"
"""The attribute of loads from memory that does not change while the function runs."""
LENGTH = "range(i64 0, -9223372036854775808) "
RANGE = "!{i64 0, i64 -9223372036854775808}"
"""The range of a length, as an attribute and as metadata: it is never negative. Then one comparison
suffices for both ends of an index."""
CELL, ELEMENT, FRAMES = "rvm_cell", "rvm_element", "frames"
"""The prefixes of the symbols of cells and of watched elements; the constant with the number of
bytes of stack that one call may take."""
PACES = {
    "whole": ('"llvm.loop.unroll.disable"', '"llvm.loop.interleave.count", i32 {}'),
    "vectors": ('"llvm.loop.interleave.count", i32 {}',),
    "straight": ('"llvm.loop.unroll.full", i1 false',),
    "single": ('"llvm.loop.vectorize.enable", i1 false',),
}
"""LLVM's metadata of loops, by what `rvm.ir.builder.Builder.nest` knows of them.

None are orders, of which LLVM would print a warning where it cannot carry them out: to unroll a
loop is one, unless its flag is false; LLVM unrolls it all the same where it can.
"""
MARKS = frozenset(["begin", "perform", "done", "edge", "erased", "entering", "unreturned"])
MARKS |= {"returned", "rounded", "settle", "part"}


TEXTS = {
    "extract": "extractvalue {t} {0}, {aux}",
    "slot": "getelementptr i64, ptr {0}, i64 {aux}",
    "moved": "getelementptr i8, ptr {0}, i64 {1}",
    "total": "getelementptr i64, ptr %ctx, i64 {aux}",
    "cell": f"getelementptr i64, ptr @{CELL}{{aux[0]}}, i64 {{aux[1]}}",
    "element": f"getelementptr i64, ptr @{ELEMENT}{{aux[0]}}, i64 {{aux[1]}}",
    "frame": "call ptr @llvm.frameaddress.p0(i32 0)",
    "frames": f"load i64, ptr @{FRAMES}",
    "taken": "atomicrmw xchg ptr {0}, ptr {1} acq_rel",
    "offered": "cmpxchg ptr {0}, ptr null, ptr {1} acq_rel monotonic",
}
"""Operations that are a single instruction; `t` is the first argument's kind."""
ENDS = {
    "assume": "call void @llvm.assume(i1 {0})",
    "jump": "br label %{aux}",
    "return": "ret i32 {0}",
}
"""Operations without a result."""


class Module(Protocol):
    """The services of a module to its printer."""

    @property
    def steady(self) -> Steady:
        """The array parameters that nothing changes while the module's root runs."""

    def metadata(self, text: str) -> str:
        """The name of a new metadata node; `{}` in its text is that name."""


def symbol(f: Function) -> str:
    """The symbol of a function over leaf operations."""
    return f"rvm_f_{f.name}"


def table_symbol(table: Table) -> str:
    """The symbol of a table."""
    return f"rvm_t_{table.name}"


class Printer:
    """A printer of operations, those of one function.

    `symbols`, `helpers` and `functions` are the external names that its text needs.
    """

    def __init__(self, b: Operations, module: Module | None = None) -> None:
        self.operations = b
        self.module = module
        self.symbols: set[str] = set()
        self.helpers: set[str] = set()
        self.functions: set[Function] = set()
        self.placed: dict[str, Table] = {}
        self.lines: list[str] = []
        self.names: dict[Node, str] = {}
        self.block = "entry"
        """The label of the block that is being printed."""
        self._count = 0
        self._lengths = ""
        self._paces: dict[str, list[str]] = {}
        self._notes = self._scopes()
        self._steady = frozenset[int]() if module is None else module.steady[self.b.code.name]
        self._rules: dict[str, Callable[[Node], str | None]] = {
            name.removeprefix("_do_"): getattr(self, name)
            for name in dir(self)
            if name.startswith("_do_")
        }

    # ------------------------------------------------------------ the function

    @property
    def b(self) -> FunctionBuilder:
        """The function."""
        return cast(FunctionBuilder, self.operations)

    def print(self) -> None:
        """Print the function's blocks."""
        for block in self.b.blocks:
            self.print_block(block)

    def text(self, attributes: str) -> str:
        """The definition of the function, which has been printed."""
        b = self.b
        scope = "" if b.symbol == ROOT else "internal "
        head = ", ".join([*map(self._argument, b.arguments), "ptr noalias %ctx"])
        entry, *rest = self.lines
        room = [self.room(v) for v in b.variables]
        lines = [f"define {scope}i32 @{b.symbol}({head}) {attributes} {{", entry, *room, *rest, "}"]
        return "\n".join(lines) + "\n"

    @property
    def frame(self) -> int:
        """The bytes that a call takes at most: a place for each value, and its arrays."""
        return 8 * (len(self.lines) + len(self.b.variables)) + self._arrays()

    def _arrays(self) -> int:
        return sum(v.size + 8 * v.many for v in self.b.variables)

    def _argument(self, a: Argument) -> str:
        alone = "noalias " if a.is_alone else ""
        return f"{TYPES[a.kind]} {LENGTH if a.is_length else ''}{alone}%{a.name}"

    def room(self, v: Var) -> str:
        """Room for a variable in the frame."""
        if v.size:
            return f"  %{v.name} = alloca [{v.size} x i8], align 16"
        t = self.type(v.kind, v)
        return f"  %{v.name} = alloca [{v.many} x {t}]" if v.many else f"  %{v.name} = alloca {t}"

    def _metadata(self, text: str) -> str:
        assert self.module is not None
        return self.module.metadata(text)

    def _scopes(self) -> dict[int, str]:
        """Metadata for array registers that no other one shares their memory."""
        arrays = list(self.operations.arrays)
        if len(arrays) < 2:
            return {}
        new = self._metadata
        domain = new("distinct !{{}}")
        scopes = {k: new(f"distinct !{{{{}}, {domain}}}") for k in arrays}
        notes = {}
        for k in arrays:
            others = new(f"!{{{', '.join(scopes[j] for j in arrays if j != k)}}}")
            own = new(f"!{{{scopes[k]}}}")
            notes[k] = f", !alias.scope {own}, !noalias {others}"
        return notes

    def print_block(self, block: Block) -> None:
        """A block of the function."""
        self.label(block.label)
        self.print_items(block.items)

    def print_items(self, items: Sequence[Node]) -> None:
        """Operations in order."""
        for node in items:
            rule = self._rules.get(node.op)
            if rule is not None:
                found = rule(node)
                if found is not None:
                    self.names[node] = found
            elif node.op in ENDS:
                operands = map(self.operand, node.args)
                self.line(ENDS[node.op].format(*operands, aux=node.aux))
            elif node.op not in MARKS:
                self.names[node] = self.pure(node)

    # ------------------------------------------------------------ lines

    def line(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append("  " + text)

    def op(self, text: str) -> str:
        """An instruction with a result; its name."""
        self._count += 1
        name = f"%t{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def fresh(self) -> str:
        """A label that is not used yet."""
        self._count += 1
        return f"l{self._count}"

    def label(self, name: str) -> None:
        """Begin a block of the text."""
        self.lines.append(f"{name}:")
        self.block = name

    def leave(self, condition: str, label: str) -> None:
        """Go to a label if a condition holds, which is rare."""
        going = self.fresh()
        self.line(f"br i1 {condition}, label %{label}, label %{going}, {COLD}")
        self.label(going)

    def operand(self, node: Node) -> str:
        """The operand for a node."""
        if node.op == "constant":
            return literal(node)
        if node.op in ("argument", "variable", "room"):
            return f"%{node.aux.name}"
        return self.names[node]

    def type(self, kind: str, of: Node | Var | None = None) -> str:
        """The type of a value of a kind that a node has or takes, or a variable."""
        return TYPES.get(kind, kind)

    def given(self, node: Node, to: Node | None = None) -> str:
        """The operand for a node that another takes."""
        return self.operand(node)

    def typed(self, nodes: Sequence[Node], to: Node | None = None) -> str:
        """Operands with their types, as calls have them."""
        return ", ".join(f"{self.type(n.kind, to)} {self.given(n, to)}" for n in nodes)

    # ------------------------------------------------------------ pure operations

    def pure(self, node: Node) -> str:
        """A pure operation."""
        name, args = node.op, node.args
        mnemonic = MNEMONICS.get(name)
        if mnemonic is not None:
            operands = ", ".join([self.given(a, node) for a in args])
            return self.op(f"{mnemonic} {self.type(args[0].kind, node)} {operands}")
        if name in CASTS:
            return self.op(f"{name} {self.typed(args, node)} to {self.type(node.kind, node)}")
        kind = args[0].kind if args else ""
        return self.op(TEXTS[name].format(*map(self.operand, args), aux=node.aux, t=kind))

    def _do_select(self, node: Node) -> str:
        return self.op(f"select {self.typed(node.args, node)}")

    def _do_intrinsic(self, node: Node) -> str:
        # A last argument that says how it is meant is one for all lanes.
        args = [a for a in node.args if not (a.op == "constant" and a.kind == BIT)]
        last = "".join(f", i1 {literal(a)}" for a in node.args[len(args) :])
        name = f"@llvm.{node.aux}.{self.suffix(node)}{args[0].kind}"
        given = self.typed(args, node)
        return self.op(f"call {self.type(node.kind, node)} {name}({given}{last})")

    def suffix(self, node: Node) -> str:
        """The part of a function's name that says of how many it is."""
        return ""

    def _do_helper(self, node: Node) -> str | None:
        self.helpers.add(node.aux)
        return self._called(node.kind, f"@{node.aux}", node.args)

    def _do_pure(self, node: Node) -> str | None:
        self.symbols.add(node.aux)
        return self.op(f"call {TYPES[node.kind]} @{node.aux}({self.typed(node.args)})")

    def _do_pair(self, node: Node) -> str:
        found = "poison"
        for k, part in enumerate(node.args):
            found = self.op(f"insertvalue {node.kind} {found}, {self.typed((part,))}, {k}")
        return found

    def _do_written(self, node: Node) -> str | None:
        self.functions.add(node.aux)
        return self.op(f"call {TYPES[node.kind]} @{symbol(node.aux)}({self.typed(node.args)})")

    def _do_table(self, node: Node) -> str:
        return self.entry(node.aux, self.operand(node.args[0]))

    def entry(self, table: Table, index: str) -> str:
        """The entry of a table at an index."""
        t = TYPES[NATIVE[table.kind]]
        if table.is_placed:
            self.placed[table_symbol(table)] = table
        place = f"[{len(table.values)} x {t}], ptr @{table_symbol(table)}, i64 0, i64 {index}"
        return self.op(f"load {t}, ptr {self.op(f'getelementptr inbounds {place}')}")

    # ------------------------------------------------------------ variables and memory

    def held(self, v: Var, t: str, at: Sequence[Node]) -> str:
        """The address of a variable's value, or of that at an index."""
        if not at:
            return f"%{v.name}"
        return self.op(f"getelementptr {t}, ptr %{v.name}, i64 {self.operand(at[0])}")

    def _do_get(self, node: Node) -> str:
        t = self.type(node.kind, node.aux)
        return self.op(f"load {t}, ptr {self.held(node.aux, t, node.args)}")

    def _do_set(self, node: Node) -> None:
        value, *at = node.args
        t = TYPES[value.kind]
        self.line(f"store {t} {self.operand(value)}, ptr {self.held(node.aux, t, at)}")

    def _do_dim(self, node: Node) -> str:
        reg, axis = node.aux
        return self.op(f"load i64, ptr %{self.b.arrays[reg].dims[axis].name}")

    def strides(self, reg: int) -> list[str]:
        """The strides of an array register in bytes, the last first."""
        held = self.b.arrays[reg]
        if held.strides:
            return [self.op(f"load i64, ptr %{s.name}") for s in reversed(held.strides)]
        stride = str(self.distance(reg))
        found = [stride]
        for dim in reversed(held.dims[1:]):
            stride = self.op(f"mul i64 {stride}, {self.op(f'load i64, ptr %{dim.name}')}")
            found.append(stride)
        return found

    def distance(self, reg: int) -> int:
        """The distance of elements in bytes."""
        return item_size(elem_of(self.b.function.registers[reg].type))

    def _do_stride(self, node: Node) -> str:
        reg, axis = node.aux
        found: list[str] = self.strides(reg)
        return found[-1 - int(axis)]

    def offset(self, pointer: str, distance: str) -> str:
        """A pointer moved by a number of bytes."""
        return (
            pointer
            if distance == "0"
            else self.op(f"getelementptr i8, ptr {pointer}, i64 {distance}")
        )

    def address(self, reg: int, part: int, indices: Sequence[Node]) -> str:
        """The address of an element, or of a part of one."""
        pointer = self.op(f"load ptr, ptr %{self.b.arrays[reg].pointer.name}")
        if any(number(i) != 0 for i in indices):
            strides = self.strides(reg)
            for i, stride in zip(indices, reversed(strides), strict=True):
                index = self.operand(i)
                if index != "0":
                    moved = stride if index == "1" else self.op(f"mul i64 {index}, {stride}")
                    pointer = self.offset(pointer, moved)
        return self.offset(pointer, str(8 * part))

    def _do_address(self, node: Node) -> str:
        reg, part = node.aux
        return self.address(reg, part, node.args)

    def _do_load(self, node: Node) -> str:
        reg, part = node.aux
        return self.fetch(node.kind, self.address(reg, part, node.args), self.note(reg, True))

    def _do_store(self, node: Node) -> None:
        reg, part = node.aux
        value, *at = node.args
        pointer = self.address(reg, part, at)
        self.keep(value.kind, self.operand(value), pointer, self.note(reg))

    def note(self, reg: int, loaded: bool = False) -> str:
        """Metadata for loads and stores of an array's elements."""
        return self._notes.get(reg, "") + (STEADY if loaded and reg in self._steady else "")

    def fetch(self, kind: str, pointer: str, note: str = "") -> str:
        """A value in memory, where a bool is a byte."""
        if kind == BIT:
            return self.op(f"icmp ne i8 {self.op(f'load i8, ptr {pointer}{note}')}, 0")
        return self.op(f"load {TYPES[kind]}, ptr {pointer}{note}")

    def keep(self, kind: str, value: str, pointer: str, note: str = "") -> None:
        """Put a value into memory."""
        if kind == BIT:
            kind, value = I8, self.op(f"zext i1 {value} to i8")
        self.line(f"store {TYPES[kind]} {value}, ptr {pointer}{note}")

    def _do_peek(self, node: Node) -> str:
        (pointer,) = node.args
        if pointer.op == "argument":
            return self.op(f"load {TYPES[node.kind]}, ptr {self.operand(pointer)}")
        return self.fetch(node.kind, self.operand(pointer))

    def _do_poke(self, node: Node) -> None:
        value, pointer = node.args
        if pointer.op == "argument":
            self.line(
                f"store {TYPES[value.kind]} {self.operand(value)}, ptr {self.operand(pointer)}"
            )
        else:
            self.keep(value.kind, self.operand(value), self.operand(pointer))

    def _do_field(self, node: Node) -> str:
        return self.op(f"getelementptr i64, ptr %ctx, i64 {node.aux}") if node.aux else "%ctx"

    def _do_fetch(self, node: Node, note: str = "") -> str:
        at, _ = node.aux
        pointer = self.op(f"getelementptr i64, ptr {self.operand(node.args[0])}, i64 {at}")
        return self.fetch(node.kind, pointer, note)

    def _do_length(self, node: Node) -> str:
        if not self._lengths:
            self._lengths = f", !range {self._metadata(RANGE)}"
        return self._do_fetch(node, self._lengths)

    def _do_clear(self, node: Node) -> None:
        pointer, size = map(self.operand, node.args)
        where = f"ptr align 16 {pointer}, i8 0, i64 {size}, i1 false"
        self.line(f"call void @llvm.memset.p0.i64({where})")

    # ------------------------------------------------------------ what is done conditionally

    def _do_trouble(self, node: Node) -> None:
        self.leave(self.operand(node.args[0]), node.aux)

    def _do_bound(self, node: Node) -> None:
        index, length = map(self.operand, node.args)
        self.leave(self.op(f"icmp uge i64 {index}, {length}"), node.aux)

    def _do_if(self, node: Node) -> None:
        yes, no, unlikely = node.aux
        self.fork(self.operand(node.args[0]), yes, no, unlikely)

    def fork(
        self, condition: str, yes: Sequence[Node], no: Sequence[Node], unlikely: bool = False
    ) -> None:
        """Some operations if a condition holds, others if it does not."""
        there, behind = self.fresh(), self.fresh()
        other = self.fresh() if no else behind
        hint = f", {COLD}" if unlikely else ""
        self.line(f"br i1 {condition}, label %{there}, label %{other}{hint}")
        for label, items in ((there, yes), (other, no)):
            if items or label == there:
                self.label(label)
                self.print_items(items)
                self.line(f"br label %{behind}")
        self.label(behind)

    def _do_loop(self, node: Node) -> None:
        k, body = node.aux
        limit = self.operand(node.args[0])
        head, inside, out = self.fresh(), self.fresh(), self.fresh()
        self.line(f"store i64 0, ptr %{k.name}")
        self.line(f"br label %{head}")
        self.label(head)
        below = self.op(f"icmp slt i64 {self.op(f'load i64, ptr %{k.name}')}, {limit}")
        self.line(f"br i1 {below}, label %{inside}, label %{out}")
        self.label(inside)
        self.print_items(body)
        step = self.op(f"add nsw i64 {self.op(f'load i64, ptr %{k.name}')}, 1")
        self.line(f"store i64 {step}, ptr %{k.name}")
        self.line(f"br label %{head}{self._pace(k.pace)}")
        self.label(out)

    def _do_while(self, node: Node) -> None:
        before, condition, body = node.aux
        head, inside, out = self.fresh(), self.fresh(), self.fresh()
        self.line(f"br label %{head}")
        self.label(head)
        self.print_items(before)
        self.line(f"br i1 {self.operand(condition)}, label %{inside}, label %{out}")
        self.label(inside)
        self.print_items(body)
        self.line(f"br label %{head}")
        self.label(out)

    def _pace(self, name: str) -> str:
        """The metadata of a loop."""
        if not name:
            return ""
        if name not in self._paces:
            kind, _, many = name.partition(" ")
            notes = [self._metadata(f"!{{!{note.format(many)}}}") for note in PACES[kind]]
            self._paces[name] = notes
        # Each loop has a node of its own.
        own = self._metadata("distinct !{" + ", ".join(["{}", *self._paces[name]]) + "}")
        return f", !llvm.loop {own}"

    # ------------------------------------------------------------ calls, and ends of blocks

    def _do_call(self, node: Node) -> str:
        given = "".join(f"{TYPES[a.kind]} {self.operand(a)}, " for a in node.args)
        return self.op(f"call i32 @{node.aux[0]}({given}ptr %ctx)")

    def _do_through(self, node: Node) -> str | None:
        function, *given = node.args
        return self._called(node.kind, self.operand(function), given)

    def _called(self, kind: str, function: str, given: Sequence[Node]) -> str | None:
        text = f"call {TYPES.get(kind, kind)} {function}({self.typed(given)})"
        if kind == "void":
            self.line(text)
            return None
        return self.op(text)

    def _do_again(self, node: Node) -> None:
        target, pace = node.aux
        self.line(f"br label %{target}{self._pace(pace)}")

    def _do_fork(self, node: Node) -> None:
        yes, no, unlikely = node.aux
        condition = self.operand(node.args[0])
        hint = f", {COLD}" if unlikely else ""
        self.line(f"br i1 {condition}, label %{yes}, label %{no}{hint}")

    def _do_switch(self, node: Node) -> None:
        cases = " ".join(f"i64 {at}, label %{label}" for at, label in node.aux)
        first = node.aux[0][1]
        self.line(f"switch i64 {self.operand(node.args[0])}, label %{first} [ {cases} ]")


def double(x: float) -> str:
    """A constant of type double (or a float, if it is one) as LLVM writes it, to the bit."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


def literal(node: Node) -> str:
    """A constant as LLVM writes it."""
    value: Any = node.aux
    if node.kind == BIT:
        return "true" if value else "false"
    if node.kind in (F64, F32):
        # LLVM writes a float constant as the double of the same value.
        return double(value)
    return "null" if value is None else str(value)
