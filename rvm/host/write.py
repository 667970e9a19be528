"""Writing files completely: the old contents remain until all of the new are on the disk.

The contents go to a file without a name, or to one next to the target, which then replaces it.  If
a write fails, or the process is killed, the old file is unchanged. Links are followed and modes are
kept; other hard links to a file keep the old contents. Streams and devices are written directly,
and so is the target of standard output or standard error, under any name.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, EBADF
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

PREFIX = ".rvm-"
"""The prefix of the names of unfinished files."""
_OPEN = re.compile(r"//?(?:dev/fd|proc/(\d+)(?:/task/\d+)?/fd)/(\d+)")
"""An open file of a process, of this one if none is named."""
_NAMED = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
MOST_LINKS = 40
"""The largest number of links to follow, as in Linux."""


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Make a text, in UTF-8, the contents of a file; OSError leaves the file as it was."""
    write_bytes(path, text.encode())


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Make some bytes the contents of a file; OSError leaves the file as it was."""
    with writing(path) as file:
        file.write(data)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file to write to; when the block is left without an error it is the file `path`."""
    name = os.fspath(path)
    stream = _stream(name)
    if stream is not None:
        # The same open file, so that what else is put out goes after it.
        for text in (sys.stdout, sys.stderr):
            if text is not None:
                text.flush()
        with os.fdopen(_duplicate(stream), "wb") as file:
            yield file
        return
    target = Path(os.path.realpath(name))
    try:
        old = target.stat()
    except FileNotFoundError:
        old = None
    if old is not None and not stat.S_ISREG(old.st_mode):
        with target.open("wb") as file:
            yield file
        return
    if old is not None and not _is_writable(target):
        raise PermissionError(EACCES, os.strerror(EACCES), name)
    with _replacing(target, old) as file:
        yield file


def is_direct(path: str | os.PathLike[str]) -> bool:
    """Whether a path is that of a stream or a device, whatever its suffix."""
    name = os.fspath(path)
    return _stream(name) is not None or (Path(name).exists() and not Path(name).is_file())


def _stream(name: str) -> int | str | None:
    """The open file that a path denotes, if any: its number, or its name in another process."""
    path, others = Path(name), None
    for _ in range(MOST_LINKS):
        # Links to folders only: the last would lead past the open file to the one that it is of.
        path = Path(os.path.realpath(path.parent)) / path.name
        if found := _OPEN.fullmatch(str(path)):
            if found[1] in (None, str(os.getpid())):
                return int(found[2])
            others = str(path)
            break
        if not path.is_symlink():
            break
        path = path.parent / path.readlink()
    if str(path) in _NAMED:
        return _NAMED[str(path)]
    with suppress(OSError):
        there = Path(name).stat()
        for number in (1, 2):
            if not _is_closed(number) and os.path.samestat(there, os.fstat(number)):
                return number
    return others


def _is_closed(number: int) -> bool:
    """Whether a standard stream was closed at the start; its number may be another file's."""
    return number < 3 and (sys.__stdin__, sys.__stdout__, sys.__stderr__)[number] is None


def _duplicate(stream: int | str) -> int:
    """An open file once more; OSError if it is closed."""
    if isinstance(stream, str):
        return os.open(stream, os.O_WRONLY | os.O_APPEND)
    if _is_closed(stream):
        raise OSError(EBADF, "the stream is closed")
    return os.dup(stream)


@contextmanager
def _replacing(target: Path, old: os.stat_result | None) -> Iterator[BinaryIO]:
    """A file that takes the place of `target` when it is whole."""
    beside = target.parent / f"{PREFIX}{os.getpid()}-{token_hex(6)}"
    number, named = _opened(beside)
    try:
        with os.fdopen(number, "wb") as file:
            yield file
            file.flush()
            if old is not None and hasattr(os, "fchmod"):
                _like(number, old)
            os.fsync(number)
            if not named:
                named = True
                _name(number, beside)
        beside.replace(target)
    except BaseException:
        if named:
            beside.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _is_writable(target: Path) -> bool:
    return os.access(target, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _opened(beside: Path) -> tuple[int, bool]:
    """A new file to write to, and whether it has its name already.

    One without a name is gone with the process, however that ends.
    """
    if hasattr(os, "O_TMPFILE") and Path("/proc/self/fd").is_dir():
        with suppress(OSError):
            return os.open(beside.parent, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666), False
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
    flags |= getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    return os.open(beside, flags, 0o666), True


def _name(number: int, path: Path) -> None:
    """Give a name to an open file without one."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Through the folder's number, since plain link() does not follow the link in /proc.
        os.link(f"/proc/self/fd/{number}", path.name, dst_dir_fd=folder)
    finally:
        os.close(folder)


def _like(number: int, old: os.stat_result) -> None:
    """Give an open file the owner and mode of the file that it replaces, as far as allowed."""
    now = os.fstat(number)
    if (now.st_uid, now.st_gid) != (old.st_uid, old.st_gid):
        with suppress(OSError):
            os.fchown(number, old.st_uid, old.st_gid)
    os.fchmod(number, stat.S_IMODE(old.st_mode))


def _sync_folder(folder: Path) -> None:
    """Put a folder's names on the disk, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        with suppress(OSError):
            number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(number)
            finally:
                os.close(number)
