"""Expressions and places as people type them at the debugger: the assembler's, typed by the table.

In scope are the registers of a frame, its lengths, and the constants and pure functions of the
program's sources.  Messages are the assembler's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from rvm_asm.cursor import Bad
from rvm_asm.expressions import ExpressionParser
from rvm_asm.lexer import END, NEWLINE, lex
from rvm_asm.nodes import Node, Ref
from rvm_asm.program import Declarations
from rvm_asm.scope import Binding, Length, NameGroup, Slot
from rvm_asm.values import Rejected, ValueReader

from rvm.engines.evaluate import evaluate
from rvm.expr import Const, Expr, Index, Place, Span, Step, places
from rvm.faults import UsageError
from rvm.isa import TypeFault, typed
from rvm.isa.typing import literal
from rvm.program import Function, Layout, Program, Record, Register
from rvm.types import BOOL, I64, RegisterType, Scalar, Stack, elem_of, rank_of, with_rank
from rvm_tools.show import leaves, seen

_Regs = Sequence[Any]
_MAX_KNOWN = 1000
"""Expressions that are remembered."""


class _Reader(ValueReader):
    """Reads expressions over a frame, whose last registers may be tops of stacks of arrays."""

    def __init__(self, program: Declarations, excused: set[str], function: Function) -> None:
        super().__init__(program, excused)
        self._tops = {r.name: k for k, r in enumerate(function.registers) if r.name[:1] == "\0"}

    def held_top(self, stack: Slot, node: Ref) -> Slot:
        k = self._tops.get(_top_of(stack.reg))
        if k is None:
            what = f"`{node.name}` is a stack of arrays, whose top cannot be read during a run"
            self.reject("A040", what, node, "`p` shows it; conditions may ask `len(s)`")
        assert isinstance(stack.type, Stack)
        return Slot(k, with_rank(stack.type.elem, len(stack.shape)))


def _top_of(reg: int) -> str:
    """The internal name of a stack's top among registers, which no text can use."""
    return f"\0{reg}"


def _with_tops(function: Function, regs: _Regs) -> tuple[Function, _Regs]:
    """A frame with registers for the tops of its stacks of arrays."""
    registers, held = list(function.registers), list(regs)
    for k, r in enumerate(function.registers):
        if r.shape:
            rows = seen(r, regs[k])[1]
            top = rows[-1] if isinstance(rows, np.ndarray) and len(rows) else None
            registers.append(Register(_top_of(k), with_rank(elem_of(r.type), len(r.shape))))
            held.append(top)
    return replace(function, registers=tuple(registers)), held


class Language:
    """The expressions of a program: names of its constants and pure functions, read once."""

    def __init__(self, program: Program) -> None:
        self._known: dict[tuple[object, ...], Expr] = {}
        """Parsed expressions: a tracepoint's text is evaluated at every hit."""
        self._declared = Declarations()
        try:
            for source in program.sources:
                self._declared.read(source.name, source.text)
        except Exception:
            # A source that is not of this assembler has no constants that we know of.
            self._declared = Declarations()

    def expression(
        self, text: str, function: Function, regs: _Regs | None = None, want: Scalar | None = None
    ) -> Expr:
        """A typed expression over a function's registers; AssemblyError for errors in it.

        Among several registers of one name, those that are live in `regs` come first.
        """
        live = None if regs is None else tuple(r is not None for r in regs)
        key = (text, function.name, live, want)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            found = self._read(text, function, regs, lambda e: typed(e, want))
            self._known[key] = found
        return found

    def value(self, text: str, function: Function, regs: _Regs) -> tuple[RegisterType | None, Any]:
        """The type and raw value of an expression in a frame, or of a whole stack."""
        stack = names(function, regs).get(text.strip())
        node: Expr
        if isinstance(stack, Slot) and isinstance(stack.type, Stack):
            node = Place(stack.reg, ())
            return seen(function.registers[stack.reg], value_of(node, function, regs))
        function, regs = _with_tops(function, regs)
        node = self.expression(text, function, regs)
        return node.type, value_of(node, function, regs)

    def condition(self, text: str, function: Function, regs: _Regs | None = None) -> Expr:
        """A condition over a function's registers; UsageError U030 if it is not a bool."""
        found = self.expression(text, function, regs, BOOL)
        if found.type != BOOL:
            raise UsageError("U030", f"`{text}` is not a condition: it is {found.type}")
        return found

    def place(self, text: str, function: Function, regs: _Regs | None = None) -> Place:
        """A place of a frame (a whole stack too); UsageError U030 if it is an expression."""
        found = self._read(text, function, regs, lambda e: e)
        if not isinstance(found, Place):
            what = "a length" if text in {d.name for d in function.dims} else "an expression"
            raise UsageError(
                "U030", f"`{text}` is {what}, not a place", hint="name `x`, `x[3]`, `z.re`"
            )
        return found

    def _read(
        self, text: str, function: Function, regs: _Regs | None, finish: Callable[[Expr], Expr]
    ) -> Expr:
        fresh = Declarations()
        fresh.constants, fresh.pures = self._declared.constants, self._declared.pures
        fresh.functions = self._declared.functions
        file = fresh.sources.add("<expression>", text)
        parser = ExpressionParser(lex(file, fresh.report), fresh.report)
        values = _Reader(fresh, set(), function)
        values.scope.names = names(function, regs)
        node: Node | None = None
        try:
            node = parser.expression()
            if parser.kinds[parser.i] not in (NEWLINE, END):
                parser.fail("the end of the expression")
            fresh.report.raise_if_failed()
            try:
                return finish(values.operand(node))
            except TypeFault as fault:
                values.fault(fault, node)
        except (Bad, Rejected):
            pass
        here = ", ".join(n for n, b in values.scope.names.items() if _is_live(b, regs))
        fresh.report.found[:] = [
            replace(d, hint=f"live here: {here}" if d.code == "A005" else d.hint)
            for d in fresh.report.found
        ]
        fresh.report.raise_if_failed()
        raise UsageError("U030", f"`{text}` can't be read as an expression")


def _is_live(binding: Binding, regs: _Regs | None) -> bool:
    return not isinstance(binding, Slot) or regs is None or regs[binding.reg] is not None


def names(function: Function, regs: _Regs | None = None) -> dict[str, Binding]:
    """The meanings of a frame's names."""
    out: dict[str, Binding] = {}
    for k in range(len(function.registers) - 1, -1, -1):
        register = function.registers[k]
        live = regs is None or regs[k] is not None
        if live or register.name not in out:
            out[register.name] = Slot(k, register.type, register.shape)
    for d in function.dims:
        slot = Slot(d.reg, function.registers[d.reg].type)
        out.setdefault(d.name, Length(slot, d.axis))
    for param in function.params:
        out[param.name] = _binding(function, param.layout)
    return out


def _binding(function: Function, layout: Layout) -> Slot | NameGroup:
    if not isinstance(layout, Record):
        register = function.registers[layout]
        return Slot(layout, register.type, register.shape)
    fields = {name: _binding(function, inner) for name, inner in layout.fields}
    first = next(iter(layout.slots()), None)
    rank = 0 if first is None else rank_of(function.registers[first].type)
    return NameGroup(layout.name, fields, rank, stacked=layout.name.startswith("stack["))


def record_leaves(function: Function, text: str) -> list[tuple[str, int]] | None:
    """The registers of a record that `text` names, with their names; None if it is not one."""
    path = text.strip().split(".")
    for param in function.params:
        if param.name == path[0]:
            layout: Layout | None = param.layout
            for step in path[1:]:
                layout = dict(layout.fields).get(step) if isinstance(layout, Record) else None
            if isinstance(layout, Record):
                return list(leaves(function, layout, text.strip()))
    return None


def value_of(node: Expr, function: Function, regs: _Regs) -> Any:
    """The raw value of an expression in a frame; UsageError U032 if something is not live."""
    for place in places(node):
        if regs[place.reg] is None:
            name = function.registers[place.reg].name
            if name[:1] == "\0":
                raise UsageError("U032", "there is no array on the stack")
            raise UsageError("U032", f"`{name}` is not live here")
    if isinstance(node, Place) and node.type is None:
        return regs[node.reg]
    with np.errstate(all="ignore"):
        return evaluate(node, regs)


def fixed_place(place: Place, function: Function, regs: _Regs) -> Place:
    """The place with its indices as they are now: one that stays where it is."""
    path: list[Step] = []
    for step in place.path:
        if not isinstance(step, Index):
            path.append(step)
            continue
        now = partial(_now, function=function, regs=regs)
        items = (i.through(now) if isinstance(i, Span) else now(i) for i in step.items)
        path.append(Index(tuple(items)))
    return Place(place.reg, tuple(path), place.type)


def _now(node: Expr, function: Function, regs: _Regs) -> Const:
    found = literal(int(value_of(node, function, regs)), I64)
    assert isinstance(found, Const)
    return found
