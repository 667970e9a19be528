"""The lexer: one regular expression that cuts a text into tokens.

Tokens are three parallel lists, which is much faster than an object each.  The
kind of a sign or operator is its own text; other kinds are the constants below.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rvm_asm.literals import WORDS
from rvm_asm.messages import Reporter
from rvm_asm.source import SourceFile

NAME = "name"
NUMBER = "number"
STRING = "string"
CHARACTER = "character"
NEWLINE = "newline"
END = "end of file"
WRONG = "wrong"
QUOTE = "'"
"""Around a character, before the type of a literal, and the mark of a gradient."""
SEPARATOR = ";"
"""The separator between a derivative's arguments and its bars; elsewhere, a comment."""

PATTERN = re.compile(
    r"""[ \t\r\f]*(?:
      ([^\W\d]\w*(?:\#\d+)?|`[^`\n]*`(?:\#\d+)?)                          # 1 name
    | ('(?:[^'\\\n]|\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^ux\n]))')       # 2 character
    | (\*\*|//|<<|>>|<=|>=|==|!=|->|\.\.\.(?!\d)|[-+*/%@&|^~<>=(){}\[\],:'…]|\.(?!\d))  # 3 sign
    | ((?:0[xX]_*[0-9a-fA-F][0-9a-fA-F_]*|0[bB]_*[01][01_]*|0[oO]_*[0-7][0-7_]*
        |(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][-+]?\d+)?j?)(?!\w))  # 4 number
    | (\n)                                                                 # 5 newline
    | (;[^\n]*|\Z)                                                         # 6 comment, or the end
    | ("(?:[^"\\\n]++|\\.)*+")                                             # 7 string
    | (\\[ \t\r]*(?:;[^\n]*)?\n)                                           # 8 continued line
    | ([\d.]\w*|"[^\n]*|`[^\n]*|.)                                         # 9 anything else
    )""",
    re.VERBOSE,
)
(IS_NAME, IS_CHARACTER, IS_SIGN, IS_NUMBER, IS_NEWLINE, IS_COMMENT, IS_STRING, IS_CONTINUED,
 IS_WRONG) = range(1, 10)  # fmt: skip
"""The groups of the pattern."""


_ENDS = frozenset({NUMBER, STRING, CHARACTER, ")", "]", QUOTE, "."})
"""Tokens after which no operand follows."""


class Tokens(NamedTuple):
    """Kinds, texts and positions of all tokens; the last one is END, and a NEWLINE before it."""

    kinds: list[str]
    texts: list[str]
    starts: list[int]


def lex(file: SourceFile, report: Reporter) -> Tokens:
    """The tokens of a file; characters that begin none are reported (A001) and are WRONG."""
    kinds: list[str] = []
    texts: list[str] = []
    starts: list[int] = []
    base = file.base
    add_kind, add_text, add_start = kinds.append, texts.append, starts.append
    at = 0
    while at >= 0:
        begin, at = at, -1
        for m in PATTERN.finditer(file.text, begin):
            k = m.lastindex
            if k in (IS_COMMENT, IS_CHARACTER) and is_sign(m[k], kinds, texts):
                at = m.start(k) + 1
                add_kind(m[k][0])
                add_text(m[k][0])
                add_start(at - 1 + base)
                break
            if k in (IS_COMMENT, IS_CONTINUED):
                continue
            if k == IS_NEWLINE and kinds and kinds[-1] is NEWLINE:
                # Empty lines are not tokens.
                continue
            text = m[k]  # type: ignore[index]
            start = m.start(k) + base  # type: ignore[arg-type]
            if k == IS_SIGN:
                add_kind(text)
            elif k == IS_NAME:
                add_kind(NAME)
            elif k == IS_NUMBER:
                add_kind(NUMBER)
            elif k == IS_NEWLINE:
                add_kind(NEWLINE)
            elif k == IS_STRING:
                add_kind(STRING)
            elif k == IS_CHARACTER:
                add_kind(CHARACTER)
            else:
                # The parser abandons the line at this token, without another message.
                _complain(text, start, report)
                add_kind(WRONG)
            add_text(text)
            add_start(start)
    last = base + len(file.text)
    kinds += (NEWLINE, END)
    texts += ("\n", "")
    starts += (last, last)
    return Tokens(kinds, texts, starts)


def is_sign(text: str, kinds: Sequence[str], texts: Sequence[str]) -> bool:
    """Whether an apparent comment or character begins with an operator, after these tokens."""
    if text[:1] == SEPARATOR:
        return _separates(kinds)
    return text[:1] == QUOTE and not _operand_begins(kinds, texts)


def _separates(kinds: Sequence[str]) -> bool:
    """Whether a `;` behind tokens of these kinds stands in the brackets of `f'(…)` or `f.(…)`.

    There is one in such brackets; a second begins a comment.
    """
    depth = 0
    for k in range(len(kinds) - 1, 0, -1):
        kind = kinds[k]
        if kind is NEWLINE or kind == SEPARATOR:
            return False
        if kind == ")":
            depth += 1
        elif kind == "(":
            depth -= 1
            if depth < 0:
                return kinds[k - 1] in (QUOTE, ".")
    return False


def _operand_begins(kinds: Sequence[str], texts: Sequence[str]) -> bool:
    """Whether an operand may follow tokens, and not `'` before a type or behind a callee's name."""
    k = len(kinds) - 1
    while k >= 0 and kinds[k] == "~":
        k -= 1  # of `f~'(…)`, or flips the bits of a character
    if k < 0:
        return True
    if kinds[k] == NAME:
        return texts[k] not in WORDS and (k == 0 or texts[k - 1] not in ("call", "uncall"))
    return kinds[k] not in _ENDS


def _complain(text: str, start: int, report: Reporter) -> None:
    end = start + len(text)
    if text[0] == '"':
        report.error("A001", "the string is not closed", start, end, hint='close it with `"`')
    elif text[0] == "`":
        report.error("A001", "the quoted name is not closed", start, end)
    elif text[0] in ".0123456789":
        report.error(
            "A001",
            f"`{text}` is not a number",
            start,
            end,
            hint="numbers look like 12, 1_000, 0xff, 0b101, 1.5, 2e-3, 2.5j",
        )
    elif text == "!":
        report.error("A001", "unexpected character `!`", start, end, hint="write `not` or `!=`")
    elif text == "#":
        report.error(
            "A001", "unexpected character `#`", start, end, hint="a comment starts with `;`"
        )
    elif text == "?":
        hint = "a choice between values is `select(condition, a, b)`"
        report.error("A001", "unexpected character `?`", start, end, hint=hint)
    else:
        shown = text if text.isprintable() else f"U+{ord(text):04X}"
        report.error("A001", f"unexpected character `{shown}`", start, end)
