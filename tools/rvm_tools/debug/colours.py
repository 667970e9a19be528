"""Rows of source and bytecode in colours, for a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from rich.syntax import Syntax
from rich.text import Text

_ROW = re.compile(r"(?P<margin>[> ][b ]?\s*@?\d+  )(?P<code>.*)")
_GAP = re.compile(r"(?<=\S)\s{3,}(?=\S)")
_OPCODE = re.compile(r"\s*(?:\w+:\s+)?\w+\s+")
"""An instruction's word, perhaps with a label, and the space up to its operands."""
_REMARK = re.compile(r"\[(inside|undoing it): |now (true|false|without a value)$")


def row(text: str, base: str = "") -> Text:
    """A row of a listing: margin, code, and optionally a second column or a remark."""
    found = _ROW.fullmatch(text)
    if found is None:
        return Text(text, style=base)
    out = Text()
    out.append(found["margin"], style=base or "dim")
    paint = _highlighter()
    for part in _columns(found["code"]):
        if _REMARK.match(part.lstrip()):
            out.append(part, style="dim")
        else:
            out.append_text(paint(part))
    return out


def _columns(code: str) -> Iterator[str]:
    """An instruction and its inverse, or a line and a remark, which wide gaps part."""
    while code:
        word = _OPCODE.match(code)
        gap = _GAP.search(code, word.end() if word is not None else 0)
        end = gap.end() if gap is not None else len(code)
        yield code[:end]
        code = code[end:]


@cache
def _highlighter() -> Callable[[str], Text]:
    from rvm_asm.highlight import RasmLexer

    syntax = Syntax("", RasmLexer(stripnl=False, ensurenl=False), theme="ansi_dark")

    def paint(code: str) -> Text:
        # What is highlighted may end in another way; the text is the given one.
        return Text(code, spans=syntax.highlight(code).spans)

    return paint
