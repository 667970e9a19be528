"""Messages on a stream of bytes: a header with the length, an empty line, a JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, BinaryIO

_MAX_BYTES = 64 << 20
"""The longest message that is read."""
_MAX_HEADER = 1 << 13


class BrokenStream(Exception):
    """The input is not a message, and the start of the next one cannot be found."""


class BadMessage(Exception):
    """A message of sound length whose content is not a JSON object."""


def read_message(stream: BinaryIO) -> dict[str, Any] | None:
    """The next message; None at the end of the stream."""
    length = _length(stream)
    if length is None:
        return None
    data = stream.read(length)
    if len(data) < length:
        return None
    try:
        found = json.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise BadMessage(f"the message is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadMessage("the message is not a JSON object")
    return found


def _length(stream: BinaryIO) -> int | None:
    length = None
    for count in range(20):
        line = stream.readline(_MAX_HEADER)
        if not line:
            return None
        if line in (b"\r\n", b"\n"):
            if length is None:
                raise BrokenStream("the header has no Content-Length")
            return length
        name, colon, value = line.partition(b":")
        if not colon or not line.endswith(b"\n"):
            raise BrokenStream(f"line {count + 1} of the header is not a header: {line[:40]!r}")
        if name.strip().lower() == b"content-length":
            if not value.strip().isdigit() or int(value) > _MAX_BYTES:
                raise BrokenStream(f"a Content-Length of {value.strip()[:40]!r}")
            length = int(value)
    raise BrokenStream("the header is too long")


def write_message(stream: BinaryIO, message: Mapping[str, Any]) -> None:
    """Write a message and flush."""
    data = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    stream.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
    stream.flush()
