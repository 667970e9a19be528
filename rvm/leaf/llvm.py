"""Functions over leaf operations as LLVM code: as definitions, and in the middle of other code."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Protocol

from rvm.leaf.function import Function, Order
from rvm.leaf.ops import BIT, F64, LLVM_TYPES, OPS, WIDTHS, whole
from rvm.leaf.python import NAMES, text_of
from rvm.leaf.trace import FLOATS, Node, Table

PREFIX = "rvm_f_"
"""What the symbols of functions begin with."""
UNLIKELY = "!prof !1"
"""Metadata of a branch that is rarely taken; modules define the node."""


class Emitter(Protocol):
    """Appends instructions to the code that is being made."""

    def op(self, text: str) -> str:
        """Append an instruction that has a result; the result's name."""

    def entry_of(self, table: Table, index: str) -> str:
        """The entry of a table at an index that lies inside."""


def double(x: float) -> str:
    """A constant of type double (or a float, if it is one) as LLVM writes it, to the bit."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


def symbol(f: Function) -> str:
    """The symbol of a function's definition."""
    return PREFIX + f.name


def table_symbol(table: Table) -> str:
    """The symbol of a table."""
    return f"{PREFIX}table_{table.name}"


class Emitted:
    """The results of a function at given operands, written into other code one after the other."""

    def __init__(self, e: Emitter, args: tuple[str, ...]) -> None:
        self._e = e
        self._args = args
        self._order = Order()
        self._found: dict[int, str] = {}

    def __call__(self, result: Node) -> str:
        """The operand of a result; what others before needed too is not computed again."""
        done = len(self._order.nodes)
        same = self._order.add(result)
        for node in self._order.nodes[done:]:
            operands = [self._found[id(a)] for a in node.args]
            self._found[id(node)] = _one(self._e, node, self._args, operands)
        return self._found[id(same)]


def operand(value: Any, kind: str) -> str:
    """A constant of a kind."""
    if kind in FLOATS:
        return double(value)
    if kind == BIT:
        return "true" if value else "false"
    bits = WIDTHS[kind]
    return str(value - (1 << bits) if value >> (bits - 1) > 0 else value)


def _known(operand: str, kind: str) -> Any:
    """The value of an operand that is a constant integer or truth value; None of others."""
    if kind == BIT:
        return {"true": True, "false": False}.get(operand)
    value = None if kind in FLOATS else whole(operand)
    return value if value is None or kind[0] == "i" else value % (1 << WIDTHS[kind])


@cache
def _computed(name: str) -> Callable[..., Any]:
    """An operation on Python's numbers."""
    args = [f"a{k}" for k in range(len(OPS[name].takes))]
    text = text_of(name, total=True).format(*args, t="_t", u="_u")
    return eval(f"lambda {', '.join(args)}: {text}", dict(NAMES))  # type: ignore[no-any-return]


def _one(e: Any, node: Node, args: tuple[str, ...], operands: list[str]) -> str:
    match node.op:
        case "argument":
            return args[int(node.aux)]
        case "constant":
            return operand(node.aux, node.kind)
        case "table":
            return str(e.entry_of(node.aux, operands[0]))
        case "check":
            return _checked(e, node, operands)
        case "call":
            return str(e.written(node.aux, tuple(operands)))
    op = OPS[node.op]
    known = [_known(o, kind) for o, kind in zip(operands, op.takes, strict=True)]
    if node.op.startswith("select_") and known[0] is not None:
        return operands[1] if known[0] else operands[2]
    if None not in known and node.kind not in FLOATS:
        return operand(_computed(node.op)(*known), node.kind)
    if not isinstance(op.llvm, str):
        return op.llvm(e, *operands)
    steps: dict[str, str] = {}
    *before, last = op.llvm.split("; ")
    for name, text in zip("abcdefgh", before, strict=False):
        steps[name] = e.op(text.format(*operands, **steps))
    found = e.op(last.format(*operands, **steps))
    # Of a float that is no such integer there is no value at all, which an index must not be.
    return str(
        e.op(f"freeze {LLVM_TYPES[node.kind]} {found}") if last.startswith("fpto") else found
    )


def _checked(e: Any, node: Node, operands: list[str]) -> str:
    """A value behind a check: where that fails the instruction is given up."""
    bad, value, *_ = operands
    if bad == "false":
        return value
    e.trouble(bad)
    if node.aux.safe is None:
        return value
    kind = LLVM_TYPES[node.kind]
    safe = operand(node.aux.safe, node.kind)
    return safe if bad == "true" else str(e.op(f"select i1 {bad}, {kind} {safe}, {kind} {value}"))


class _Lines:
    """Collects the instructions of one definition."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names = 0

    def op(self, text: str) -> str:
        self._names += 1
        name = f"%t{self._names}"
        self.lines.append(f"  {name} = {text}")
        return name

    def entry_of(self, table: Table, index: str) -> str:
        return entry_of(self.op, table, index)


def entry_of(op: Callable[[str], str], table: Table, index: str) -> str:
    """The instructions that read an entry of a table."""
    t = LLVM_TYPES[table.kind]
    place = f"[{len(table.values)} x {t}], ptr @{table_symbol(table)}, i64 0, i64 {index}"
    return op(f"load {t}, ptr {op(f'getelementptr inbounds {place}')}")


def definitions(f: Function) -> Iterator[tuple[str, str]]:
    """The definitions of a function's texts and tables, by their symbols."""
    for text in f.texts():
        yield symbol(text), _definition(text)
        for result in (text.result, text.guard):
            order = Order()
            if result is not None:
                order.add(result)
            for node in order.nodes:
                if node.op == "table":
                    yield table_symbol(node.aux), _table(node.aux)


def _definition(f: Function) -> str:
    args = tuple(f"%x{k}" for k in range(len(f.params)))
    params = ", ".join(f"{LLVM_TYPES[p.kind]} {a}" for p, a in zip(f.params, args, strict=True))
    result = LLVM_TYPES[f.result.kind]
    made = _Lines()
    made.lines.append("entry:")
    emitted = Emitted(made, args)
    if f.guard is not None:
        assert f.cold is not None
        test = emitted(f.guard)
        made.lines.append(f"  br i1 {test}, label %cold, label %hot, {UNLIKELY}")
        made.lines.append("cold:")
        made.lines.append(f"  %rare = call {result} @{symbol(f.cold)}({params})")
        made.lines.append(f"  ret {result} %rare")
        made.lines.append("hot:")
    found = emitted(f.result)
    made.lines.append(f"  ret {result} {found}")
    attributes = "nounwind willreturn memory(none)"
    head = f"define internal {result} @{symbol(f)}({params}) {attributes} {{"
    return "\n".join([head, *made.lines, "}"]) + "\n"


def _table(table: Table) -> str:
    t = LLVM_TYPES[table.kind]
    show = double if table.kind == F64 else str
    values = ", ".join(f"{t} {show(v)}" for v in table.values)
    return f"@{table_symbol(table)} = internal constant [{len(table.values)} x {t}] [{values}]\n"
