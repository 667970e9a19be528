"""Reading whole files, up to a limit: a file that is endless or too large raises OSError.

A regular file may have as many bytes as its reader allows; a pipe or device, whose length is
unknown, at most `TEXT`.
"""

from __future__ import annotations

import os
import stat
from errno import EFBIG, EINVAL, EISDIR, ENOMEM
from pathlib import Path
from typing import BinaryIO

TEXT = 64 << 20
"""The largest size in bytes of a text, and of any input from a pipe or device."""
DATA = 4 << 30
"""The largest size in bytes of a regular data file, and of all arrays of an archive together."""
_PIECE = 1 << 20


class IrregularError(OSError):
    """A pipe or device was given where only a regular file is allowed."""


def read_bytes(path: str | os.PathLike[str], most: int = TEXT, *, regular: bool = False) -> bytes:
    """A file's bytes; OSError if it cannot be read or has more than `most`.

    With `regular`, only a regular file that is not a link is read.
    """
    with open_regular(path) if regular else open_any(path) as file:
        return read_stream(file, most)


def read_stream(file: BinaryIO, most: int = TEXT) -> bytes:
    """All bytes of an open file, with the limits of `read_bytes`."""
    try:
        status = os.fstat(file.fileno())
        size = status.st_size if stat.S_ISREG(status.st_mode) else 0
    except OSError:  # a stream that Python made up
        size = 0
    most = most if size else min(most, TEXT)
    parts: list[bytes] = []
    room = most
    try:
        # A regular file is one piece, which need not be copied.
        while piece := file.read(min(max(size, _PIECE), room) + 1):
            if len(piece) > room:
                raise OSError(EFBIG, f"it has more than {most:,} bytes")
            parts.append(piece)
            room -= len(piece)
        return b"".join(parts)
    except MemoryError:
        raise OSError(ENOMEM, "no memory is left for it") from None


def open_any(path: str | os.PathLike[str]) -> BinaryIO:
    """A file opened to be read; OSError also for a path that no file can have."""
    try:
        return Path(path).open("rb")
    except ValueError:
        raise OSError(EINVAL, "no file can have this path") from None


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """A regular file opened to be read, a link not followed; IrregularError for pipes and devices.

    Opening a pipe would wait for its writer.
    """
    flags = os.O_RDONLY
    for flag in ("O_NONBLOCK", "O_NOFOLLOW", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, flag, 0)
    try:
        handle = os.open(path, flags)
    except ValueError:
        raise OSError(EINVAL, "no file can have this path") from None
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
    raise IrregularError(EINVAL, "it is not a regular file")
