"""Characters and texts as bytes: the contents of quotes, with the escapes of Python.

A text is its bytes in UTF-8.  Escapes are ``\\n \\t \\r \\0 \\\\ \\" \\'``, any byte as
``\\xff``, and a character by its number, ``\\u00e9``.
"""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.?))", re.DOTALL)
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", '"': b'"', "'": b"'", "\\": b"\\"}


class Misspelt(Exception):
    """The characters between quotes are not a valid text; `at` is the place of the fault in it."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


def bytes_of(body: str, errors: str = "strict") -> bytes:
    """The bytes of what stands between two quotes; `errors` as for `str.encode`.  Misspelt."""
    out = bytearray()
    at = 0
    for escape in _ESCAPE.finditer(body):
        out += encoded(body[at : escape.start()], errors, at)
        out += _escaped(escape, errors)
        at = escape.end()
    return bytes(out + encoded(body[at:], errors, at))


def encoded(text: str, errors: str = "strict", at: int = 0) -> bytes:
    """A text's bytes in UTF-8; Misspelt, counted from `at`, where a character has none."""
    try:
        return text.encode(errors=errors)
    except UnicodeEncodeError as error:
        raise Misspelt("half of a surrogate pair is not a character", at + error.start) from None


def _escaped(escape: re.Match[str], errors: str) -> bytes:
    """The bytes of an escape."""
    if escape[1]:
        return encoded(chr(int(escape[1], 16)), errors, escape.start())
    if escape[2]:
        return bytes.fromhex(escape[2])
    octal = escape[3] == "0" and escape.string[escape.end() : escape.end() + 1].isdigit()
    if octal or escape[3] not in _ESCAPES:
        shown = escape[0] + "…" * octal
        raise Misspelt(f"`{shown}` is not an escape", escape.start())
    return _ESCAPES[escape[3]]
