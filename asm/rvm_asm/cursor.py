"""A cursor over tokens, shared by the parsers of expressions and statements."""

from __future__ import annotations

import ast
from typing import NoReturn

from rvm_asm.characters import Misspelt, bytes_of
from rvm_asm.lexer import END, NAME, NEWLINE, STRING, WRONG, Tokens
from rvm_asm.messages import Reporter
from rvm_asm.names import RESERVED
from rvm_asm.nodes import Word

_ESCAPES = "escapes are \\n \\t \\r \\0 \\\\ \\\" \\', \\xff and \\u00e9"


class Bad(Exception):
    """A syntax error, already reported; the statement that it is in is given up."""


class Cursor:
    """A position in the tokens of a file, and the steps that parsers take from there."""

    def __init__(self, tokens: Tokens, report: Reporter) -> None:
        self.kinds, self.texts, self.starts = tokens
        self.report = report
        self.i = 0
        self.depth = 0

    def end_of(self, i: int) -> int:
        """The end of token `i`."""
        return self.starts[i] + len(self.texts[i])

    def last_end(self) -> int:
        """The end of the token before the cursor."""
        return self.end_of(self.i - 1)

    def fail(self, expected: str, hint: str = "") -> NoReturn:
        """Report that something else was expected here, and stop parsing the line."""
        i = self.i
        kind = self.kinds[i]
        if kind == WRONG:
            raise Bad
        found = {NEWLINE: "the end of the line", END: "the end of the file"}.get(
            kind, f"`{self.texts[i]}`"
        )
        start = self.starts[i]
        end = start + (1 if kind in (NEWLINE, END) else len(self.texts[i]))
        self.habitual()
        self.report.error("A002", f"expected {expected}, found {found}", start, end, hint=hint)
        raise Bad

    def habitual(self) -> None:
        """If the line is in another language's notation, report ours, and stop parsing the line."""

    def too_deep(self, what: str, most: int, hint: str = "") -> NoReturn:
        """Report that something is nested too deeply (A046), and stop."""
        i = self.i
        message = f"{what} deeper than {most} levels"
        self.depth = 0
        self.report.error("A046", message, self.starts[i], self.end_of(i), hint=hint)
        raise Bad

    def expect(self, kind: str, hint: str = "") -> None:
        if self.kinds[self.i] != kind:
            self.fail(f"`{kind}`", hint)
        self.i += 1

    def accept(self, kind: str) -> bool:
        if self.kinds[self.i] == kind:
            self.i += 1
            return True
        return False

    def at_word(self, word: str) -> bool:
        return self.texts[self.i] == word and self.kinds[self.i] == NAME

    def accept_word(self, word: str) -> bool:
        if self.at_word(word):
            self.i += 1
            return True
        return False

    def word(self, what: str) -> Word:
        """A name that is not reserved."""
        i = self.i
        if self.kinds[i] != NAME:
            self.fail(what)
        text, start = self.texts[i], self.starts[i]
        if text in RESERVED:
            self.report.error("A062", f"`{text}` is a reserved word", start, start + len(text))
            raise Bad
        self.i += 1
        return Word(text, start, start + len(text))

    def dotted(self, what: str) -> Word:
        """A name with dots, such as that of a register for a record's leaf."""
        word = self.word(what)
        while self.kinds[self.i] == ".":
            self.i += 1
            more = self.word("a name")
            word = Word(f"{word.text}.{more.text}", word.start, more.end)
        return word

    def string(self) -> str:
        """The value of a string literal."""
        i = self.i
        if self.kinds[i] != STRING:
            self.fail("a string")
        self.i += 1
        try:
            value = ast.literal_eval(self.texts[i])
        except (SyntaxError, ValueError):
            self.report.error(
                "A001", "the string has a wrong escape", self.starts[i], self.end_of(i)
            )
            raise Bad from None
        return str(value)

    def quoted(self) -> bytes | int:
        """The bytes of a text, or the byte of a character, which is the token before this."""
        i = self.i - 1
        text, start = self.texts[i], self.starts[i]
        try:
            found = bytes_of(text[1:-1])
        except Misspelt as wrong:
            at = start + 1 + wrong.at
            self.report.error("A001", str(wrong), at, at + 2, hint=_ESCAPES)
            raise Bad from None
        if self.kinds[i] == STRING:
            return found
        if len(found) != 1:
            self.report.error(
                "A001",
                f"{text} has {len(found)} bytes in UTF-8, and a character literal is one",
                start,
                self.end_of(i),
                hint='a text is written between double quotes: "…"',
            )
            raise Bad
        return found[0]
