"""Names as texts write them, in backquotes where they are not words, and as they are known."""

from __future__ import annotations

import re

from rvm_asm.literals import WORDS

RESERVED = frozenset({"and", "or", "not", *WORDS})
"""Words that name nothing."""
_WORD = re.compile(r"[^\W\d]\w*\Z")
_PARTS = frozenset({"re", "im", "T"})
_PART = re.compile(r"`([^`]*)`(?:#\d+)?|([^.`#]+)(?:#\d+)?")
_ESCAPE = re.compile(r"\\U([0-9a-fA-F]{8})")


def _is_word(name: str) -> bool:
    """Whether a name can be written without quotes."""
    return bool(_WORD.match(name)) and name not in RESERVED


def quoted(name: str) -> str:
    """A name as the text writes it: in backquotes if it is not a word."""
    return name if _is_word(name) else _quote(name)


def dotted(name: str) -> str:
    """The name of a register: words with dots stay as they are."""
    parts = name.split(".")
    if all(_is_word(p) for p in parts) and not _PARTS.intersection(parts[1:]):
        return name
    return _quote(name)


def _quote(name: str) -> str:
    return "`" + "".join(_escape(c) for c in name) + "`"


def _escape(c: str) -> str:
    if c in "`\\" or not c.isprintable():
        return f"\\U{ord(c):08x}"
    return c


def plain(name: str) -> str:
    """A register's name from its notation in the text: without quotes and number.

    `t#1` is another register called `t`; backquotes hold names that are not words.
    """
    if name.isidentifier():
        return name
    return ".".join([_plain(m) for m in _PART.finditer(name)])


def _plain(part: re.Match[str]) -> str:
    if part[1] is None:
        return part[2]
    return _ESCAPE.sub(lambda m: chr(min(int(m[1], 16), 0x10FFFF)), part[1])
