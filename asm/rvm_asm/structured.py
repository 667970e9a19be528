"""Declarations as a text in the assembly language, to show the programs made by front ends.

With position comments it assembles to the same program as the declarations.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from functools import singledispatchmethod

from rvm.stmt import BACKWARD, FORWARD
from rvm_asm.nodes import Node
from rvm_asm.positions import mark, source_lines
from rvm_asm.source import SourceMap
from rvm_asm.stats import (
    MAPS,
    AllocStat,
    EffectStat,
    Empty,
    Extern,
    For,
    From,
    Func,
    IfStat,
    Invoke,
    Iterate,
    OpStat,
    RecordDef,
    Routine,
    Stat,
    Undo,
    While,
    With,
)
from rvm_asm.syntax_text import Texts

_DIRECTIONS = {FORWARD: "forward", BACKWARD: "backward", FORWARD | BACKWARD: "both"}


Printed = tuple[str, Func, Texts]
"""A function in printed form: its name there, and the facts in it that follow from types."""


def structured(
    functions: Iterable[Func | Printed],
    sources: SourceMap,
    *,
    positions: bool = True,
    records: Iterable[RecordDef] = (),
    linked: Iterable[str] = (),
    mapped: Container[Func] = (),
    entry: str = "",
) -> str:
    """The text of some functions; `;@` comments hold the statements' source positions.

    `linked` are the lines of other programs' functions.  Loops that are made to map a function are
    positioned where it is declared.
    """
    writer = _Writer(sources if positions else None, mapped)
    for definition in records:
        writer.record(definition)
    for one in functions:
        name, func, texts = (one.name.text, one, Texts({}, {})) if isinstance(one, Func) else one
        writer.function(func, name, texts)
    writer.lines += linked
    if entry:
        writer.line(f"entry {entry}")
    if positions:
        writer.lines += source_lines(sources.sources())
    return "\n".join(writer.lines) + "\n"


class _Writer:
    """The lines of a text as it grows."""

    def __init__(self, sources: SourceMap | None, mapped: Container[Func]) -> None:
        self.sources = sources
        self.mapped = mapped
        self.lines: list[str] = []
        self.depth = 0
        self.texts = Texts({}, {})

    def record(self, definition: RecordDef) -> None:
        self.line(f"record {definition.name.text}")
        self.depth += 1
        for field in definition.fields:
            self.line(self.texts.declared(field))
        self.depth -= 1
        self.line("end")
        self.lines.append("")

    def function(self, func: Func, name: str, texts: Texts) -> None:
        self.texts = texts
        params = ", ".join(map(self.texts.declared, func.params))
        at = Empty(func.start, func.end) if func in self.mapped else None
        self.line(f"func {name}({params})", at)
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
        self.line(f"{stat.name} {self.texts.list(stat.args)}", stat)

    @statement.register
    def _(self, stat: AllocStat) -> None:
        value = "" if stat.value is None else f" = {self.texts.expression(stat.value)}"
        self.line(f"{stat.name} {self.texts.declared(stat.declared)}{value}", stat)

    @statement.register
    def _(self, stat: Invoke) -> None:
        name, args = self._callee(stat)
        if stat.name in MAPS and id(stat) in self.texts.became:
            self.line(f"{MAPS[stat.name]} {name}({self.texts.list(args)})", stat)
            return
        bars = f"; {self.texts.list(stat.bars)}" if stat.marks else ""
        callee = name + "".join(stat.marks)
        self.line(f"{stat.name} {callee}({self.texts.list(args)}{bars})", stat)

    def _callee(self, stat: Invoke | Iterate) -> tuple[str, Sequence[Node]]:
        """The function that a call runs, and its arguments; for a generic one, the instance."""
        found: tuple[str, Sequence[Node]] | None = self.texts.became.get(id(stat))
        return (stat.callee.text, stat.args) if found is None else found

    @statement.register
    def _(self, stat: Iterate) -> None:
        name, args = self._callee(stat)
        count = f"times {self.texts.expression(stat.last)}"
        if stat.var is not None and stat.first is not None:
            way = "downto" if stat.down else "to"
            ends = map(self.texts.expression, (stat.first, stat.last))
            count = f"for {stat.var.text} = {f' {way} '.join(ends)}"
        policy = ", ".join(f"{w.text} = {self.texts.expression(v)}" for w, v in stat.policy)
        self.line(f"iterate {name}({self.texts.list(args)}) {count} with {policy}", stat)

    @statement.register
    def _(self, stat: Routine) -> None:
        # One without a name is known by where it stands.
        self.line("routine" + f" {stat.name.text}" * (stat.name.text[:1] != " "), stat)
        self.block(stat.body)
        if stat.result is not None:
            self.line("result")
            self.block(stat.result)
        self.line("end")

    @statement.register
    def _(self, stat: Undo) -> None:
        self.line(f"undo {stat.name.text}", stat)

    @statement.register
    def _(self, stat: With) -> None:
        held = []
        for d, value in stat.held:
            text = self.texts.declared(d)
            held.append(text if value is None else f"{text} = {self.texts.expression(value)}")
        self.line(f"with {', '.join(held)}", stat)
        self.block(stat.body)
        self.line("end")

    @statement.register
    def _(self, stat: EffectStat) -> None:
        text = '"' + stat.text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
        args = self.texts.list(stat.args)
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
            self._conditions("elseif" if k else "if", arm.cond, arm.post)
            self.block(arm.body)
        if stat.orelse is not None:
            self.line("else")
            self.block(stat.orelse)
        self.line("end")

    @statement.register
    def _(self, stat: While) -> None:
        self._conditions("while", stat.cond, stat.post)
        self.block(stat.body)
        self.line("end")

    @statement.register
    def _(self, stat: From) -> None:
        self._conditions("from", stat.entry)
        self.block(stat.body)
        if stat.again:
            self.line("loop")
            self.block(stat.again)
        self._conditions("until", stat.until)

    def _conditions(self, word: str, cond: Node, post: Node | None = None) -> None:
        """A line for each condition: a jump's position is that of its condition."""
        first, *more = [self._condition(c) for c in (cond, post) if c is not None]
        if self.sources is None:
            self.line(", ".join((f"{word} {first[0]}", *(text for text, _ in more))))
            return
        self.line(f"{word} {first[0]}" + ", \\" * len(more), first[1])
        for text, at in more:
            self.line(f"    {text}", at)

    def _condition(self, node: Node) -> tuple[str, Empty]:
        at = Empty(node.start, node.end)
        if self.sources is not None:
            at = Empty(*self.sources.bracketed(node.start, node.end))
        return self.texts.expression(node), at

    @statement.register
    def _(self, stat: For) -> None:
        way = "downto" if stat.down else "to"
        step = "" if stat.step is None else f" step {self.texts.expression(stat.step)}"
        ends = f"{self.texts.expression(stat.first)} {way} {self.texts.expression(stat.last)}{step}"
        self.line(f"for {stat.var.text} = {ends}", stat)
        self.block(stat.body)
        self.line("end")
