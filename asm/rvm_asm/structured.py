"""Declarations as a text in the assembly language, to read what front ends make of others.

With position comments it assembles to the program that the declarations become.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import singledispatchmethod
from typing import Any

from rvm.isa import FUNCTIONS
from rvm.stmt import BACKWARD, FORWARD
from rvm_asm.expressions import BINARY, COMPARE, NOT, POWER, UNARY
from rvm_asm.literals import plain_literal
from rvm_asm.nodes import Declared, FieldStep, Lit, Node, Operator, Range, Ref, TypeRef
from rvm_asm.positions import mark, source_lines
from rvm_asm.source import SourceMap
from rvm_asm.stats import (
    AllocStat,
    EffectStat,
    Empty,
    Extern,
    For,
    From,
    Func,
    IfStat,
    Invoke,
    OpStat,
    Routine,
    Stat,
    While,
)

_ATOM = 99
_DIRECTIONS = {FORWARD: "forward", BACKWARD: "backward", FORWARD | BACKWARD: "both"}


def structured(functions: Iterable[Func], sources: SourceMap, *, positions: bool = True) -> str:
    """The text of some functions; `;@` comments hold where statements stand in their sources."""
    writer = _Writer(sources if positions else None)
    for func in functions:
        writer.function(func)
    if positions:
        writer.lines += source_lines(sources.sources())
    return "\n".join(writer.lines) + "\n"


class _Writer:
    """The lines of a text as it grows."""

    def __init__(self, sources: SourceMap | None) -> None:
        self.sources = sources
        self.lines: list[str] = []
        self.depth = 0

    def function(self, func: Func) -> None:
        params = ", ".join(map(_declared, func.params))
        self.line(f"func {func.name.text}({params})")
        self.block(func.body)
        self.lines.append("")

    def line(self, text: str, at: Stat | None = None) -> None:
        text = "    " * self.depth + text
        if self.sources is not None and at is not None:
            text = f"{text:<48} {mark(self.sources.span(at.start, at.end))}"
        self.lines.append(text)

    def block(self, body: Sequence[Stat]) -> None:
        self.depth += 1
        for stat in body:
            self.statement(stat)
        self.depth -= 1

    @singledispatchmethod
    def statement(self, stat: Stat) -> None:
        """A statement, with those inside."""
        raise TypeError(f"a {type(stat).__name__} is not printed")

    @statement.register
    def _(self, stat: Empty) -> None:
        pass

    @statement.register
    def _(self, stat: OpStat) -> None:
        self.line(f"{stat.name} {_list(stat.args)}", stat)

    @statement.register
    def _(self, stat: AllocStat) -> None:
        value = "" if stat.value is None else f" = {expression(stat.value)}"
        self.line(f"{stat.name} {_declared(stat.declared)}{value}", stat)

    @statement.register
    def _(self, stat: Invoke) -> None:
        bars = f"; {_list(stat.bars)}" if stat.marks else ""
        callee = stat.callee.text + "".join(stat.marks)
        self.line(f"{stat.name} {callee}({_list(stat.args)}{bars})", stat)

    @statement.register
    def _(self, stat: EffectStat) -> None:
        text = '"' + stat.text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
        args = _list(stat.args)
        if stat.name == "assert":
            self.line(f"assert {args}" + f", {text}" * bool(stat.text), stat)
        else:
            self.line(f"{stat.name} {text}" + f", {args}" * bool(args), stat)

    @statement.register
    def _(self, stat: Extern) -> None:
        self.line(f"extern {_DIRECTIONS[stat.when]}")
        self.block(stat.body)
        self.line("end")

    @statement.register
    def _(self, stat: IfStat) -> None:
        for k, arm in enumerate(stat.arms):
            post = "" if arm.post is None else f", {expression(arm.post)}"
            word = "elseif" if k else "if"
            self.line(f"{word} {expression(arm.cond)}{post}", Empty(arm.start, arm.end))
            self.block(arm.body)
        if stat.orelse is not None:
            self.line("else")
            self.block(stat.orelse)
        self.line("end")

    @statement.register
    def _(self, stat: While) -> None:
        self.line(f"while {expression(stat.cond)}, {expression(stat.post)}", stat)
        self.block(stat.body)
        self.line("end")

    @statement.register
    def _(self, stat: From) -> None:
        self.line(f"from {expression(stat.entry)}", stat)
        self.block(stat.body)
        if stat.again:
            self.line("loop")
            self.block(stat.again)
        self.line(f"until {expression(stat.until)}")

    @statement.register
    def _(self, stat: For) -> None:
        way = "downto" if stat.down else "to"
        step = "" if stat.step is None else f" step {expression(stat.step)}"
        ends = f"{expression(stat.first)} {way} {expression(stat.last)}{step}"
        self.line(f"for {stat.var.text} = {ends}", stat)
        self.block(stat.body)
        self.line("end")

    @statement.register
    def _(self, stat: Routine) -> None:
        # One without a name is known by where it stands.
        self.line("routine" + f" {stat.name.text}" * (stat.name.text[:1] != " "), stat)
        self.block(stat.body)
        if stat.result is not None:
            self.line("result")
            self.block(stat.result)
        self.line("end")


def _list(args: Sequence[Node]) -> str:
    return ", ".join(map(expression, args))


def _declared(d: Declared) -> str:
    register = f" as {d.register}" if d.register else ""
    return f"{d.name}{register}" + (f": {_type(d.type)}" if d.type else "") + " = 0" * d.zero


def _type(t: TypeRef) -> str:
    text = t.name
    if t.frac is not None:
        text += f"({t.frac})"
    if t.name == "stack" and t.fields and t.fields[0].type:
        text += f"[{_type(t.fields[0].type)}]"
    elif t.fields is not None:
        text += "{" + ", ".join(map(_declared, t.fields)) + "}"
    if t.dims:
        text += "[" + ", ".join(":" if d is None else expression(d) for d in t.dims) + "]"
    return text


def expression(node: Node) -> str:
    """An expression, with brackets where its operators need them."""
    return _printed(node)[0]


def _printed(node: Node) -> tuple[str, int]:
    """An expression, and how tight its outermost operator binds."""
    if isinstance(node, Ref):
        return _place(node), _ATOM
    if isinstance(node, Lit):
        return _literal(node)
    if not isinstance(node, Operator):
        return f"{node.name}({_list(node.args)})", _ATOM
    sign = FUNCTIONS[node.name].symbol or node.name if node.name in FUNCTIONS else node.name
    if len(node.args) == 1:
        power = NOT if sign == "not" else UNARY
        gap = " " if sign == "not" else ""
        return f"{sign}{gap}{_inside(node.args[0], power)}", power
    power = BINARY[sign]
    # Comparisons do not chain, and powers go from the right.
    left = power + (power in (COMPARE, POWER))
    right = power + (power != POWER)
    return f"{_inside(node.args[0], left)} {sign} {_inside(node.args[1], right)}", power


def _inside(node: Node, least: int) -> str:
    text, power = _printed(node)
    return text if power >= least else f"({text})"


def _literal(node: Lit) -> tuple[str, int]:
    value: Any = node.value
    text = plain_literal(value)
    assert text is not None
    if node.type is not None:
        text += f"'{_type(node.type)}"
    return text, UNARY if text.startswith("-") else _ATOM


def _place(node: Ref) -> str:
    text = node.name
    for step in node.steps:
        if isinstance(step, FieldStep):
            text += f".{step.name}"
        else:
            text += "[" + ", ".join(map(_item, step.items)) + "]"
    return text


def _item(item: Node | Range) -> str:
    if not isinstance(item, Range):
        return expression(item)
    ends = item.ends if item.by is not None else item.ends[:2]
    return ":".join("" if e is None else expression(e) for e in ends)
