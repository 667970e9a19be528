"""LLVM definitions of functions over leaf operations, and of the functions that they call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from rvm.emit.llvm.prelude import NEEDS, PRELUDE, SYMBOLS, TURN
from rvm.emit.llvm.printer import COLD, TYPES, Printer, literal, symbol, table_symbol
from rvm.ir.items import Operations
from rvm.ir.node import Argument, Node, constant
from rvm.leaf import Function, Table
from rvm.leaf.ops import NATIVE
from rvm.numbers.elementary import TURNING, text


class Body(Operations):
    """The operations of a function's body, which is never given up."""

    def trouble(self, condition: Node) -> None:
        raise AssertionError("a function that is called has no checks")


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
        printed, called, symbols = definition(f)
        self.texts[symbol(f)] = printed
        self.symbols |= symbols
        for table in tables(f):
            if table.is_placed:
                self.placed[table_symbol(table)] = table
            else:
                self.texts[table_symbol(table)] = constants(table)
        for other in called:
            self._enter(other)

    def _help(self, name: str) -> None:
        if name in SYMBOLS:
            self.symbols.add(name)
        elif name not in self.texts:
            self.texts[name] = PRELUDE[name]
            for needed in NEEDS.get(name, ()):
                self._help(needed)
            for f in TURNING if name == TURN else ():
                self._enter(text(f))


@cache
def definition(f: Function) -> tuple[str, frozenset[Function], frozenset[str]]:
    """A function's text, the functions that it calls, and those of the C library."""
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
    printer.line(f"ret {result} {printer.operand(found)}")
    head = f"define internal {result} @{symbol(f)}({given}) #0 {{"
    lines = "\n".join([head, "entry:", *printer.lines, "}"])
    return lines + "\n", frozenset(called | printer.functions), frozenset(printer.symbols)


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
