"""Cutting a pure text into tokens: three parallel lists, as those of the assembly language.

Layout is handled here.  White space is free inside brackets and within a definition.  A token
begins something new if it begins a line no further right than its definition, or than the lines of
its block; then a NEWLINE precedes it.
"""

from __future__ import annotations

import re

from rvm_asm.lexer import END, NAME, NEWLINE, NUMBER, WRONG, Tokens
from rvm_asm.messages import Reporter
from rvm_asm.source import SourceFile

_PATTERN = re.compile(
    r"""([^\W\d][\w']*|`[^\W\d][\w']*`)                                         # 1 name
    | (\*\*|//|<<|>>|<=|>=|==|!=|->|[-+*/%@&|^~<>=(){}\[\],:.;])               # 2 sign
    | (0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+
       |\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][-+]?\d+)?j?)(?:'(\w+))?(?!\w)           # 3 number, 4 type
    | (\s+|\#[^\n]*)                                                           # 5 nothing
    | (\d\w*|.)                                                                # 6 anything else
    """,
    re.VERBOSE,
)
_CONTINUES = frozenset({"in", "then", "else", "do", ")", "]"})
"""Tokens that do not begin a line."""


def lex(file: SourceFile, report: Reporter) -> Tokens:
    """The tokens of a file; characters that begin none are reported (A001) and are WRONG."""
    kinds: list[str] = []
    texts: list[str] = []
    starts: list[int] = []
    layout = _Layout(file.text)
    for m in _PATTERN.finditer(file.text):
        k = m.lastindex
        if k == 5:
            continue
        if k == 4:
            k = 3
        text = m[k]  # type: ignore[index]
        start = m.start(k)  # type: ignore[arg-type]
        if layout.begins(start, text):
            kinds.append(NEWLINE)
            texts.append("")
            starts.append(start + file.base)
        layout.enter(text)
        if k == 6:
            _complain(text, start + file.base, report)
        kinds.append({1: NAME, 2: text, 3: NUMBER}.get(k or 0, WRONG))
        texts.append(m[0] if k == 3 else text)
        starts.append(start + file.base)
    last = file.base + len(file.text)
    return Tokens([*kinds, NEWLINE, END], [*texts, "", ""], [*starts, last, last])


class _Layout:
    """The columns at which lines of a text begin something new."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.brackets = 0
        self.columns = [0]
        """Of the definition, and of the lines of its block."""
        self.head = False
        """Whether the `=` of a definition is still to come."""
        self.opens = False
        """Whether a block may begin here."""
        self.first = True

    def begins(self, start: int, text: str) -> bool:
        line = self.text.rfind("\n", 0, start) + 1
        fresh = not self.text[line:start].strip()
        column = start - line
        if fresh and column == 0:
            # A bracket that is not closed ends with its definition.
            self.columns, self.brackets, self.head = [0], 0, False
        elif fresh and self.opens:
            self.columns.append(column)
        opens, self.opens = self.opens, False
        if not fresh or self.brackets or text in _CONTINUES or self.first or opens:
            self.first = False
            return False
        return column <= self.columns[-1]

    def enter(self, text: str) -> None:
        if text in "([":
            self.brackets += 1
        elif text in ")]":
            self.brackets = max(0, self.brackets - 1)
        elif text in ("def", "unf") and not self.brackets:
            self.head = True
        elif text == "=" and self.head and not self.brackets:
            self.head, self.opens = False, True


def _complain(text: str, start: int, report: Reporter) -> None:
    message, hint = f"unexpected character `{text}`", ""
    if text[0].isdigit():
        message, hint = f"`{text}` is not a number", "numbers look like 12, 0xff, 1.5, 2e-3"
    elif text == "\\":
        hint = "a function is written `fun (x) -> e`, and in a map `(x. e)`"
    elif text == "!":
        hint = "write `not` or `!=`"
    elif not text.isprintable():
        message = f"unexpected character U+{ord(text):04X}"
    report.error("A001", message, start, start + len(text), hint=hint)
