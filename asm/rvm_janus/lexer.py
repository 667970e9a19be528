"""Cutting a Janus text into tokens: three parallel lists, as those of the assembly language."""

from __future__ import annotations

import re

from rvm_asm.lexer import END, NAME, NUMBER, STRING, WRONG, Tokens
from rvm_asm.messages import Reporter
from rvm_asm.source import SourceFile

_PATTERN = re.compile(
    r"""\s*(?:
      ([^\W\d_][\w']*)                                                             # 1 name
    | (\*\*=|\*/=|<=>|\*\*|\*/|<<|>>|<=|>=|!=|&&|\|\||[-+^*/]=|[-+*/%&|^~!<>=(){}\[\],?:\\\#])
    | (0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|\d+)(?!\w)                         # 3 number
    | ("(?:[^"\\\n]|\\.)*")                                                        # 4 string
    | (//[^\n]*|/\*.*?\*/)                                                         # 5 comment
    | (\Z)                                                                         # 6 the end
    | ("[^\n]*|\d\w*|.)                                                        # 7 anything else
    )""",
    re.VERBOSE | re.DOTALL,
)
_SPELT = {"\\": "%", "#": "!="}
"""Signs of the language of 1982, and what they have been since."""
_COMMENT = re.compile(r"\s*(?://[^\n]*|/\*.*?\*/)", re.DOTALL)


def lex(file: SourceFile, report: Reporter) -> Tokens:
    """The tokens of a file; characters that begin none are reported (A001) and are WRONG."""
    kinds: list[str] = []
    texts: list[str] = []
    starts: list[int] = []
    i, text = 0, file.text
    while True:
        # A comment comes before the sign that it begins with.
        while (comment := _COMMENT.match(text, i)) is not None:
            i = comment.end()
        m = _PATTERN.match(text, i)
        assert m is not None and m.lastindex is not None
        k, i = m.lastindex, m.end()
        if text.startswith("/*", m.start(k)):
            _complain("/*", m.start(k) + file.base, report)
            i, k = len(text), 6
        if k == 6:
            break
        word, start = m[k], m.start(k) + file.base
        if k == 7:
            _complain(word, start, report)
        kinds.append({1: NAME, 2: _SPELT.get(word, word), 3: NUMBER, 4: STRING}.get(k, WRONG))
        texts.append(word)
        starts.append(start)
    kinds.append(END)
    texts.append("")
    starts.append(file.base + len(text))
    return Tokens(kinds, texts, starts)


def _complain(text: str, start: int, report: Reporter) -> None:
    message, hint = f"unexpected character `{text}`", ""
    if text == "/*":
        message, hint = "the comment is not closed", "close it with `*/`"
    elif text[0] == '"':
        message, hint = "the string is not closed", 'close it with `"`'
    elif text[0].isdigit():
        message, hint = f"`{text}` is not a number", "numbers are integers: 12, 0x1f, 0b101"
    elif text == ";":
        hint = "statements need no separator; a comment begins with `//`"
    elif not text.isprintable():
        message = f"unexpected character U+{ord(text):04X}"
    report.error("A001", message, start, start + len(text), hint=hint)
