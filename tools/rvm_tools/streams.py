"""Standard streams that accept every character, whatever their encoding."""

from __future__ import annotations

import codecs
import sys
from io import TextIOWrapper

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


def prepare() -> None:
    """Let standard output and error write what they can't encode as escapes, `\\u2264`.

    Those are read back where they stand in strings of JSON.  Standard input may begin with a byte
    order mark, and what is not text there is shown as such, not an error.
    """
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
