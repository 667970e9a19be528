"""Texts with holes for values, as `print` and `assert` have them.

`{}` takes the next value, `{:x}` in base sixteen, `{:[]}` with a pair of brackets; `{{` and `}}`
are braces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

BASE_SIXTEEN = "x"
_PIECE = re.compile(r"\{\{|\}\}|\{(?P<hole>:(?P<form>x|[^\w\s]{2}))?\}|\{[^{}]*\}|[{}]")


def holes(template: str) -> Iterator[tuple[str, str | None]]:
    """The braces of a text that are not doubled: the text of each, and its form.

    The form is "" for a plain value, "x" or a pair of brackets, None if the braces are not a hole.
    """
    for piece in _PIECE.finditer(template):
        if piece[0] not in ("{{", "}}"):
            yield piece[0], _form(piece)


def filled(template: str, fill: Callable[[str, str], str]) -> str:
    """A text with each hole replaced by `fill(form, hole)`."""

    def put(piece: re.Match[str]) -> str:
        if piece[0] in ("{{", "}}"):
            return piece[0][0]
        form = _form(piece)
        return piece[0] if form is None else fill(form, piece[0])

    return _PIECE.sub(put, template)


def escaped(text: str) -> str:
    """The template that is filled to be this text."""
    return text.replace("{", "{{").replace("}", "}}")


def _form(piece: re.Match[str]) -> str | None:
    if piece[0] == "{}":
        return ""
    return piece["form"]
