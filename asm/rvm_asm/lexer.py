"""The lexer: one regular expression that cuts a text into tokens.

Tokens are three parallel lists, which is much faster than an object each.  The
kind of a sign or operator is its own text; other kinds are the constants below.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rvm_asm.messages import Reporter
from rvm_asm.source import SourceFile

NAME = "name"
NUMBER = "number"
STRING = "string"
NEWLINE = "newline"
END = "end of file"
WRONG = "wrong"
SEPARATOR = ";"
"""What stands between the arguments of a derivative and its bars; anywhere else, a comment."""

PATTERN = re.compile(
    r"""[ \t\r\f]*(?:
      ([^\W\d]\w*(?:\#\d+)?|`[^`\n]*`(?:\#\d+)?)                          # 1 name
    | (\*\*|//|<<|>>|<=|>=|==|!=|->|\.\.\.(?!\d)|[-+*/%@&|^~<>=(){}\[\],:'…]|\.(?!\d))  # 2 sign
    | ((?:0[xX]_*[0-9a-fA-F][0-9a-fA-F_]*|0[bB]_*[01][01_]*|0[oO]_*[0-7][0-7_]*
        |(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][-+]?\d+)?j?)(?!\w))  # 3 number
    | (\n)                                                                 # 4 newline
    | (;[^\n]*|\Z)                                                         # 5 comment, or the end
    | ("(?:[^"\\\n]++|\\.)*+")                                             # 6 string
    | (\\[ \t\r]*(?:;[^\n]*)?\n)                                           # 7 continued line
    | ([\d.]\w*|"[^\n]*|`[^\n]*|.)                                         # 8 anything else
    )""",
    re.VERBOSE,
)


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
            if k == 5 and m[5] and separates(kinds):
                at = m.start(5) + 1
                add_kind(SEPARATOR)
                add_text(SEPARATOR)
                add_start(at - 1 + base)
                break
            if k == 5 or k == 7 or (k == 4 and kinds and kinds[-1] is NEWLINE):
                # Empty lines are not tokens.
                continue
            text = m[k]  # type: ignore[index]
            start = m.start(k) + base  # type: ignore[arg-type]
            if k == 2:
                add_kind(text)
            elif k == 1:
                add_kind(NAME)
            elif k == 3:
                add_kind(NUMBER)
            elif k == 4:
                add_kind(NEWLINE)
            elif k == 6:
                add_kind(STRING)
            else:
                # The parser gives up the line at this token, without a word more.
                _complain(text, start, report)
                add_kind(WRONG)
            add_text(text)
            add_start(start)
    last = base + len(file.text)
    kinds += (NEWLINE, END)
    texts += ("\n", "")
    starts += (last, last)
    return Tokens(kinds, texts, starts)


def separates(kinds: Sequence[str]) -> bool:
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
                return kinds[k - 1] in ("'", ".")
    return False


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
    else:
        shown = text if text.isprintable() else f"U+{ord(text):04X}"
        report.error("A001", f"unexpected character `{shown}`", start, end)
