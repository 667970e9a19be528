"""Standard streams that accept every character, whatever their encoding."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path
from typing import Any

_DRAWN = str.maketrans(
    {
        **dict.fromkeys("█▓■▇▆▅", "#"),
        **dict.fromkeys("▒▄▃", "+"),
        **dict.fromkeys("░□▂▁·", "."),
        **dict.fromkeys("─━", "-"),
        **dict.fromkeys("│╵", "|"),
        **dict.fromkeys("└┤┬", "+"),
        **dict.fromkeys("●○◆◇", "o"),
        **dict.fromkeys("▲△", "^"),
        **dict.fromkeys("▸→", ">"),
    }
)
"""The characters of pictures, for streams that have none of them; all others become escapes."""


def json_text(value: Any, default: Callable[[Any], Any] | None = None) -> str:
    """A value as JSON for standard output: in ASCII where that is not in UTF-8, as JSON is."""
    known = codecs.lookup(getattr(sys.stdout, "encoding", None) or "utf-8").name
    return json.dumps(value, ensure_ascii=known != "utf-8", default=default)


def prepare() -> None:
    """Let standard output and error write what they can't encode as escapes, `\\u2264`.

    Standard input may begin with a byte order mark, and what is not text there is shown as such,
    not an error.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by who started us; no other file may take its place
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
    codecs.register_error("rvm", _escaped)
    for out in (sys.stdout, sys.stderr):
        if isinstance(out, TextIOWrapper):
            out.reconfigure(errors="rvm")
    if isinstance(sys.stdin, TextIOWrapper) and not sys.stdin.isatty():
        known = codecs.lookup(sys.stdin.encoding).name
        sys.stdin.reconfigure(
            encoding="utf-8-sig" if known == "utf-8" else None, errors="backslashreplace"
        )


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """The replacement for characters that an encoding does not have."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_DRAWN)
    return "".join(c if c.isascii() else _escape(c) for c in text), error.end


def _escape(c: str) -> str:
    """A character as JSON escapes it: by its number, beyond 65535 in two halves."""
    units = c.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[k : k + 4]}" for k in range(0, len(units), 4))
