"""What number systems write LLVM code with (`rvm.numbers.llvm.Emitter`), as nodes.

They write instructions as texts, whose operands are names that stand for nodes, or constants.
"""

from __future__ import annotations

import re
import struct
from typing import Any

from rvm.ir.builder import Builder
from rvm.ir.node import BIT, F64, I64, Node, constant
from rvm.ir.operations import CASTS, NAMES
from rvm.ir.places import KINDS
from rvm.ir.typed import Unprintable
from rvm.leaf import Function, Table
from rvm.leaf.ops import LLVM_TYPES
from rvm.numbers.llvm import SYMBOLS, Llvm, Value, double

CALL = re.compile(r"call (\{[^}]*\}|\w+) @llvm\.([\w.]+?)(?:\.[if]\d+)?\((.*)\)")
EXTRACT = re.compile(r"extractvalue (\{[^}]*\}) (\S+), (\d+)")
Parts = Node | tuple[Node, Node]
"""A value, or the two parts of a complex one."""


class Emitter:
    """Appends to a builder what number systems write as texts."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self._nodes: list[Node] = []

    def written(self, function: Function, args: tuple[str, ...]) -> str:
        """Evaluate a function over leaf operations."""
        kinds = [KINDS[LLVM_TYPES[p.kind]] for p in (*function.params, function.result)]
        nodes = (self.node(a, kind) for a, kind in zip(args, kinds, strict=False))
        return self.name(self.builder.op("written", *nodes, kind=kinds[-1], aux=function))

    def entry_of(self, table: Table, index: str) -> str:
        """The entry of a table at an index that lies inside."""
        kind = KINDS[LLVM_TYPES[table.kind]]
        return self.name(self.builder.op("table", self.node(index, I64), kind=kind, aux=table))

    def pure(self, symbol: str, result: str, *args: tuple[str, str]) -> str:
        """Call a function of the C library that has no effects."""
        if symbol not in SYMBOLS:
            raise KeyError(symbol)
        return self.name(self.builder.pure(symbol, KINDS[result], *self._typed(args)))

    def helper(self, name: str, result: str, *args: tuple[str, str]) -> str:
        """Call a function of the prelude."""
        kind = KINDS.get(result, result)
        return self.name(self.builder.helper(name, kind, *self._typed(args)))

    def trouble(self, condition: str) -> None:
        """Give the instruction up if an `i1` holds."""
        self.builder.trouble(self.node(condition, BIT))

    def op(self, text: str) -> str:
        """Append an instruction that has a result."""
        return self.name(self._made(text))

    # ------------------------------------------------------------ operands

    def name(self, node: Node) -> str:
        """The operand that stands for a node."""
        if node.op == "constant":
            if node.kind == BIT:
                return "true" if node.aux else "false"
            return str(node.aux) if isinstance(node.aux, int) else double(node.aux)
        self._nodes.append(node)
        return f"%{len(self._nodes) - 1}"

    def node(self, operand: str, kind: str) -> Node:
        """The node that an operand of a kind stands for."""
        if operand.startswith("%"):
            return self._nodes[int(operand[1:])]
        if kind == BIT:
            return constant(operand == "true", BIT)
        if kind in (F64, "f32"):
            if operand.startswith("0x"):
                return constant(
                    struct.unpack("<d", int(operand, 16).to_bytes(8, "little"))[0], kind
                )
            return constant(float(operand), kind)
        return constant(int(operand), kind)

    def _typed(self, args: Any) -> list[Node]:
        return [self.node(operand, KINDS[t]) for t, operand in args]

    # ------------------------------------------------------------ instructions

    def _made(self, text: str) -> Node:
        b = self.builder
        word, _, rest = text.partition(" ")
        if word == "select":
            (_, c), (t, x), (_, y) = (part.split(" ") for part in rest.split(", "))
            kind = KINDS[t]
            return b.select(self.node(c, BIT), self.node(x, kind), self.node(y, kind))
        if word in CASTS:
            given, _, to = rest.partition(" to ")
            t, operand = given.split(" ")
            return b.op(word, self.node(operand, KINDS[t]), kind=KINDS[to])
        if word == "call" and (found := CALL.fullmatch(text)):
            result, name, args = found.groups()
            nodes = self._typed(a.split(" ") for a in args.split(", "))
            return b.op("intrinsic", *nodes, kind=KINDS.get(result, result), aux=name)
        if word == "extractvalue" and (found := EXTRACT.fullmatch(text)):
            t, pair, k = found.groups()
            kind = KINDS[t.strip("{ }").split(", ")[int(k)]]
            return b.op("extract", self.node(pair, ""), kind=kind, aux=int(k))
        # A mnemonic with flags or a comparison's name, a type, and operands that all have it.
        head, _, last = rest.partition(", ")
        *words, t, first = head.split(" ")
        operation = NAMES.get(" ".join([word, *words]))
        if operation is None:
            raise Unprintable
        operands = [first, last] if last else [first]
        return b.op(operation, *(self.node(o, KINDS[t]) for o in operands))


def write(b: Builder, llvm: Llvm, kind: str, *args: Parts) -> Parts:
    """The value, of a kind, of a function that a number system has LLVM code for."""
    e = Emitter(b)
    given: list[Value] = [
        (e.name(a[0]), e.name(a[1])) if isinstance(a, tuple) else e.name(a) for a in args
    ]
    found = llvm(e, *given)
    if isinstance(found, tuple):
        return e.node(found[0], kind), e.node(found[1], kind)
    return e.node(found, kind)
