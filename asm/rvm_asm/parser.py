"""Parsing a file: declarations, each up to the next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rvm.isa import OPCODES
from rvm_asm.cursor import Bad
from rvm_asm.lexer import END, NAME, NEWLINE, WRONG, lex
from rvm_asm.messages import Reporter, did_you_mean
from rvm_asm.nodes import Declared, TypeParam, TypeRef, Word
from rvm_asm.source import SourceFile, SourceMap
from rvm_asm.statements import CLOSERS, TOP, StatementParser
from rvm_asm.stats import (
    Constant,
    Declaration,
    EntryDef,
    Func,
    Include,
    Keep,
    Macro,
    OpStat,
    Pure,
    RecordDef,
)

KEPT = ("none", "values", "numbers", "faults")
"""The comment of a disassembly about what it keeps."""


class _Parser(StatementParser):
    """Reads the declarations of one file."""

    def declarations(self) -> list[Declaration]:
        """All of the file's declarations that can be read."""
        out: list[Declaration] = []
        outside = False
        while self.kinds[self.i] != END:
            if self.kinds[self.i] == NEWLINE:
                self.i += 1
                continue
            first = self.i
            if self.texts[first] not in TOP:
                # A misspelt `func` is reported, whatever else stands outside already.
                if not outside or "(" in self.kinds[first + 2 : first + 3]:
                    self._outside()
                outside = True
                self.skip_line()
                continue
            outside = False
            try:
                out.append(self._declaration())
                if self.kinds[self.i] != END and self.texts[self.i] not in TOP:
                    self.end_line()
            except Bad:
                self.excuse(first)
                self.skip_line()
                self.blocks = 0
                if self.texts[first] in ("func", "macro", "record"):
                    # The head is lost; the body is still read, for its own errors.
                    self.statements(frozenset({"end"} if self.texts[first] != "func" else ()))
                    self.accept_word("end")
        return out

    def _outside(self) -> None:
        i = self.i
        text = self.texts[i]
        hint = ""
        if self.kinds[i] == WRONG:
            return
        if self.kinds[i] == NAME:
            hint = "" if text in CLOSERS or text in OPCODES else did_you_mean(text, TOP)
        self.report.error(
            "A010",
            f"`{text}` is outside of any function",
            self.starts[i],
            self.end_of(i),
            hint=hint or "begin one with `func name(x: f64)`",
        )

    def _declaration(self) -> Declaration:
        i = self.i
        self.i = i + 1
        start = self.starts[i]
        match self.texts[i]:
            case "func":
                return self._func(start)
            case "const":
                return self._const()
            case "keep":
                what = next(filter(self.accept_word, KEPT), None)
                return Keep(what or self.fail("`none`, `values`, `numbers` or `faults`"))
            case "record":
                return self._record(start)
            case "macro":
                return self._macro(start)
            case "pure":
                return self._pure()
            case "include":
                path = self.string()
                return Include(path, start, self.last_end())
            case _:
                name = self.word("the name of a function")
                return EntryDef(name, self.type_args())

    def _func(self, start: int) -> Func:
        name = self.word("the function's name")
        types = self._type_params()
        self.expect("(", "a function without parameters is `func name()`")
        params = self.declared_list(")")
        end = self.last_end()
        self.end_line()
        body = self.statements(frozenset())
        return Func(name, types, params, body, start, end)

    def _type_params(self) -> list[TypeParam]:
        """`[T: real, U: float | fixed, V: number[…], W]`."""
        out: list[TypeParam] = []
        if not self.accept("["):
            return out
        while True:
            name = self.word("the name of a type parameter")
            classes: list[Word] = []
            shaped = False
            if self.accept(":"):
                classes.append(self.word("a class of types"))
                while self.accept("|"):
                    classes.append(self.word("a class of types"))
                if self.accept("["):
                    shaped = True
                    if not (self.accept("…") or self.accept("...")):
                        self.fail("`…`", "numbers and arrays of them: `T: real[…]`")
                    self.expect("]")
            out.append(TypeParam(name, classes, shaped, self.last_end()))
            if self.accept("]"):
                return out
            if not self.accept(","):
                self.fail("`,` or `]`")

    def _const(self) -> Constant:
        name = self.word("the constant's name")
        self.expect("=")
        value = self.expression()
        return Constant(name, value)

    def _record(self, start: int) -> RecordDef:
        name = self.word("the record's name")
        types = self._type_params()
        self.end_line()
        fields: list[Declared] = []
        while True:
            if self.kinds[self.i] == NEWLINE:
                self.i += 1
                continue
            if self.accept_word("end"):
                return RecordDef(name, types, fields)
            if self.kinds[self.i] == END or (
                self.texts[self.i] in TOP and self.kinds[self.i + 1] != ":"
            ):
                self.report.error(
                    "A007",
                    f"the record `{name.text}` is not closed",
                    start,
                    name.end,
                    hint="close it with `end`",
                )
                return RecordDef(name, types, fields)
            first = self.i
            try:
                field = self.word("a field's name")
                self.expect(":", f"write its type: `{field.text}: f64`")
                fields.append(Declared(field.text, self.type_ref(), field.start, field.end))
                self.accept(",")
                self.end_line()
            except Bad:
                self.excuse(first)
                self.skip_line()

    def _formals(self, close: str) -> list[Word]:
        formals: list[Word] = []
        if self.kinds[self.i] == close:
            return formals
        while True:
            formals.append(self.word("a parameter's name"))
            if not self.accept(","):
                return formals

    def _macro(self, start: int) -> Macro:
        name = self.word("the macro's name")
        formals = self._formals(NEWLINE)
        self.end_line()
        body = self.block(frozenset({"end"}), Word("macro", start, start + 5))
        self.accept_word("end")
        return Macro(name, formals, body)

    def _pure(self) -> Pure:
        name = self.word("the function's name")
        self.expect("(")
        formals = self._formals(")")
        self.expect(")")
        self.expect("=")
        value = self.expression()
        return Pure(name, formals, value)


def parse_file(file: SourceFile, report: Reporter) -> tuple[list[Declaration], set[str]]:
    """The declarations of a file, and the names on lines that could not be read."""
    tokens = lex(file, report)
    for start, end in _hidden(file.text, tokens.texts):
        report.error(
            "A078",
            f"`;` begins a comment: `{file.text[start:end]}` is not executed",
            file.base + start,
            file.base + end,
            hint="each instruction needs a separate line",
            severity="warning",
        )
    parser = _Parser(tokens, report)
    return parser.declarations(), parser.excused


_BEHIND = re.compile(
    rf"""^[ \t]*(?:\w+:[ \t]*)?(?:{(words := "|".join(OPCODES))})\b[^;"\n]*    # an instruction
    ;+[ \t]*((?:{words})\b[^;\n]*[^;\s])""",
    re.VERBOSE | re.MULTILINE,
)


def _hidden(text: str, names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The positions of comments after instructions that could be instructions themselves."""
    known: set[str] = set()
    for m in _BEHIND.finditer(text):
        known = known or set(names)
        if _is_instruction(m[1], known):
            yield m.span(1)


def _is_instruction(text: str, known: set[str]) -> bool:
    """Whether a comment can be read as an instruction with all of its operands."""
    report = Reporter(SourceMap())
    tokens = lex(report.sources.add("", text), report)
    parser = _Parser(tokens, report)
    try:
        stat = parser.statement()
        parser.end_line()
    except Bad:
        return False
    row = OPCODES[tokens.texts[0]]
    fits = not isinstance(stat, OpStat) or len(stat.args) == len(row.operands)
    pairs = zip(tokens.kinds[1:], tokens.texts[1:], strict=True)
    return fits and known.issuperset(t for k, t in pairs if k == NAME)


def parse_named(text: str, report: Reporter) -> tuple[Word, list[TypeRef] | None]:
    """A function's name with its types, as callers outside of a text write it: `axpy[f32]`."""
    parser = _Parser(lex(report.sources.add_name(text), report), report)
    try:
        name = parser.word("the name of a function")
        types = parser.type_args()
        parser.end_line()
    except Bad:
        report.raise_if_failed()
    return name, types
