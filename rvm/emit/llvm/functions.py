"""LLVM definitions of functions over leaf operations, and of the functions that they call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from functools import cache
from typing import NamedTuple

from rvm.emit.llvm import prelude, rooms, runtime, strict_log  # they fill `HELPERS`
from rvm.emit.llvm.helpers import HELPERS, Body
from rvm.emit.llvm.printer import COLD, TYPES, Printer, literal, symbol, table_symbol
from rvm.ir.node import Argument, Node, constant
from rvm.leaf import Function, Table
from rvm.leaf.ops import NATIVE


class Definition(NamedTuple):
    """A function's text, and what it calls: functions, helpers, and those of the C library."""

    text: str
    functions: frozenset[Function]
    helpers: frozenset[str]
    symbols: frozenset[str]


class Definitions:
    """The texts of functions, and of those they call; `symbols` are those of the C library."""

    def __init__(self, functions: Iterable[Function], helpers: Iterable[str]) -> None:
        self.texts: dict[str, str] = {}
        self.symbols: set[str] = set()
        self.placed: dict[str, Table] = {}
        for f in functions:
            self._enter(f)
        for name in helpers:
            self._help(name)

    def text(self) -> str:
        """All definitions."""
        return "\n".join(self.texts[name] for name in sorted(self.texts))

    def _enter(self, f: Function) -> None:
        if symbol(f) in self.texts:
            return
        self._take(symbol(f), definition(f))
        for table in tables(f):
            if table.is_placed:
                self.placed[table_symbol(table)] = table
            else:
                self.texts[table_symbol(table)] = constants(table)

    def _help(self, name: str) -> None:
        if name in HELPERS and name not in self.texts:
            self._take(name, helping(name))

    def _take(self, name: str, made: Definition) -> None:
        self.texts[name] = made.text
        self.symbols |= made.symbols
        for f in made.functions:
            self._enter(f)
        for other in made.helpers:
            self._help(other)


def _defined(printer: Printer, head: str, found: Node | None, called: Set[Function]) -> Definition:
    """The definition of a function whose operations have been printed."""
    printer.line(f"ret {printer.typed((found,))}" if found is not None else "ret void")
    rooms = map(printer.room, printer.operations.variables)
    text = "\n".join([f"define {head} {{", "entry:", *rooms, *printer.lines, "}"]) + "\n"
    helpers, symbols = frozenset(printer.helpers), frozenset(printer.symbols)
    return Definition(text, frozenset(called | printer.functions), helpers, symbols)


@cache
def helping(name: str) -> Definition:
    """The definition of a helper."""
    b, made = Body(), HELPERS[name]
    found = made.define(b, *(Node("argument", a.kind, (), a) for a in made.args))
    printer = Printer(b)
    printer.print_items(b.items)
    given = ", ".join(f"{TYPES[a.kind]} %{a.name}" for a in made.args)
    gives = TYPES.get(made.gives, made.gives)
    return _defined(printer, f"{made.before} {gives} @{name}({given}) {made.behind}", found, set())


@cache
def definition(f: Function) -> Definition:
    """The definition of a function over leaf operations."""
    b = Body()
    params = [Argument(f"x{k}", NATIVE[p.kind]) for k, p in enumerate(f.params)]
    args = [Node("argument", a.kind, (), a) for a in params]
    given = ", ".join(f"{TYPES[a.kind]} %{a.name}" for a in params)
    *guard, found = b.graft(f, args)
    result = TYPES[found.kind]
    printer = Printer(b)
    split = b.items.index(guard[0]) + 1 if guard else 0
    printer.print_items(b.items[:split])
    called = set()
    if guard:
        assert f.cold is not None
        called.add(f.cold)
        printer.line(f"br i1 {printer.operand(guard[0])}, label %cold, label %hot, {COLD}")
        printer.label("cold")
        printer.line(f"%rare = call {result} @{symbol(f.cold)}({given})")
        printer.line(f"ret {result} %rare")
        printer.label("hot")
    printer.print_items(b.items[split:])
    return _defined(printer, f"internal {result} @{symbol(f)}({given}) #0", found, called)


def tables(f: Function) -> Iterator[Table]:
    """The tables that a function's body reads."""
    return (node.aux for node in f.ordered.nodes if node.op == "table")


def constants(table: Table) -> str:
    """The definition of a table."""
    t = TYPES[NATIVE[table.kind]]
    values = ", ".join(f"{t} {literal(constant(v, table.kind))}" for v in table.values)
    return f"@{table_symbol(table)} = internal constant [{len(table.values)} x {t}] [{values}]\n"


def declared(table: Table) -> str:
    """The declaration of a table whose values are elsewhere."""
    t = TYPES[NATIVE[table.kind]]
    return f"@{table_symbol(table)} = external constant [{len(table.values)} x {t}]"


del prelude, rooms, runtime, strict_log
