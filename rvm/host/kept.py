"""The folder in which machine code and programs are kept from one process to the next.

The name of a file is a hash of everything that its contents depend on.  It is written completely
before it gets its name, so that several processes can do this at once, and begins with a hash of
the rest: a file that is damaged, or belongs elsewhere, is treated as missing.  Without a folder, or
space in it, nothing is kept.

Machine code is executed, and a hash is not a signature.  So folder and file must belong to the user
for whom this process acts, and nobody else may be able to write to them; otherwise they are
ignored, with a warning.  On systems without such owners nothing is kept.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

try:
    # `hashlib` loads OpenSSL first, which takes longer than all that is hashed here.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

DIGEST = 32
"""Bytes of a hash."""
MOST_BYTES = 256 << 20
"""When the folder holds more, files that were not used for longest go."""
LEAST = 1 << 15
"""Bytes that a file counts as at least, since each takes time when the folder is gone through."""
LARGEST = 64 << 20
"""Bytes of a file; a larger one was not written here."""
UNFINISHED = "new-"
"""The prefix of the names of unfinished files."""
ABANDONED = 600.0
"""The age in seconds from which such a file belongs to a process that was killed."""
OPEN = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK if hasattr(os, "O_NOFOLLOW") else 0
"""The flags for opening files: no links are followed, and no FIFO is waited for."""


def digest(*parts: bytes) -> bytes:
    """The hash of some parts, one after the other."""
    made = blake2b(digest_size=DIGEST)
    for part in parts:
        made.update(len(part).to_bytes(8, "little"))
        made.update(part)
    return made.digest()


def folder() -> Path | None:
    """The folder; None if there is none.

    It is `RVM_CACHE_DIR`, by default `rvm` in the user's cache folder; none if the variable is
    empty, or the user has no home folder.
    """
    if not OPEN:
        return None
    given = os.environ.get("RVM_CACHE_DIR")
    if given is not None:
        return Path(given) if given else None
    base = os.environ.get("XDG_CACHE_HOME") if sys.platform != "darwin" else None
    if base:
        return Path(base) / "rvm"
    try:
        home = Path.home()
    except RuntimeError:
        # The user is in no list, and HOME is not set.
        return None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "rvm"


def found(key: str) -> bytes | None:
    """The contents cached under a key; None if there are none, or they are damaged or not ours."""
    home = folder()
    if home is None:
        return None
    try:
        with _opened(home) as here:
            handle = os.open(key, os.O_RDONLY | OPEN, dir_fd=here)
            try:
                data = _read(handle, home / key)
            finally:
                os.close(handle)
    except OSError as error:
        if error.errno == errno.ELOOP:
            _refused(home / key, "it is a link")
        return None
    body = data[DIGEST:]
    return body if digest(key.encode(), body) == data[:DIGEST] else None


def keep(key: str, body: bytes) -> None:
    """Keep something under a key, whole or not at all."""
    home = folder()
    if home is None or len(body) > LARGEST - DIGEST:
        return
    name = f"{UNFINISHED}{os.getpid()}-{os.urandom(8).hex()}"
    try:
        home.mkdir(0o700, parents=True, exist_ok=True)
        with _opened(home) as here:
            try:
                handle = os.open(
                    name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | OPEN, 0o600, dir_fd=here
                )
                with os.fdopen(handle, "wb") as file:
                    file.write(digest(key.encode(), body) + body)
                os.replace(name, key, src_dir_fd=here, dst_dir_fd=here)
            except BaseException:
                with suppress(OSError):
                    os.unlink(name, dir_fd=here)
                raise
        _room.take(home, len(body) + DIGEST)
    except OSError:
        return


# ---------------------------------------------------------------- what it depends on


def sources(folder: str) -> str:
    """The state of the modules and tables of a package in a folder: their files' sizes and times.

    It is not known ("") if one of them has been changed since this process began to read them.
    """
    # The package stands above this module, but it is there.
    return _sources(folder, sys.modules[__name__.partition(".")[0]].BEGAN)


@cache
def _sources(folder: str, began: int) -> str:
    seen = []
    waiting = [folder]
    try:
        while waiting:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.name.endswith((".py", ".txt")):
                        if entry.stat().st_mtime_ns >= began:
                            return ""
                        seen.append(state(entry))
                    elif entry.name != "__pycache__" and entry.is_dir():
                        waiting.append(entry.path)
    except OSError:
        return ""
    return "\n".join(sorted(seen))


def state(entry: os.DirEntry[str]) -> str:
    """The size and the time of a file."""
    status = entry.stat()
    return f"{entry.path} {status.st_size} {status.st_mtime_ns}"


# ---------------------------------------------------------------- whose it is


@contextmanager
def _opened(home: Path) -> Iterator[int]:
    """The folder, open, if it is ours alone; OSError if it is not, or not there."""
    here = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _is_trusted(os.fstat(here), home)
        yield here
    finally:
        os.close(here)


def _read(handle: int, path: Path) -> bytes:
    """The contents of an open file of ours; it counts as used from now on."""
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        raise _refused(path, "it is not a regular file")
    _is_trusted(status, path)
    if status.st_size > LARGEST:
        raise OSError
    with os.fdopen(os.dup(handle), "rb") as file:
        data = file.read(status.st_size)
    with suppress(OSError):
        os.utime(handle)
    return data


def _is_trusted(status: os.stat_result, path: Path) -> None:
    """OSError, and a warning, unless the effective user owns a file and alone may write to it."""
    me = os.geteuid()
    if status.st_uid != me:
        raise _refused(path, f"it belongs to user {status.st_uid}, and this process acts for {me}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _refused(path, "users other than its owner may write to it")


_warned = False


def _refused(path: Path, why: str) -> OSError:
    """The error for a file or folder that is not ours; the first in a process is a warning."""
    global _warned
    if not _warned:
        _warned = True
        text = f"what is kept in {path} is ignored: {why}; see RVM_CACHE_DIR"
        # Where warnings are errors a run goes on all the same: nothing is wrong with it.
        with suppress(RuntimeWarning):
            warnings.warn(text, RuntimeWarning, 2)
    return OSError(why)


# ---------------------------------------------------------------- how much it is


class _Room:
    """The amount that may be written before the folder is examined again."""

    def __init__(self) -> None:
        self._left: dict[Path, int] = {}

    def take(self, home: Path, size: int) -> None:
        """Record that a file of this size has been written."""
        left = self._left.get(home, 0) - max(size, LEAST)
        if left < 0:
            # Other processes write too, so that what is free now is not all for this one.
            left = max(0, MOST_BYTES - _trimmed(home)) // 8
        self._left[home] = left


_room = _Room()


def _trimmed(home: Path) -> int:
    """Remove unfinished files and the least recently used ones; return the remaining size."""
    held = []
    total = 0
    now = time.time()
    with os.scandir(home) as entries:
        for entry in entries:
            if not _is_ours(entry.name):
                continue
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if not entry.name.startswith(UNFINISHED):
                    size = max(status.st_size, LEAST)
                    held.append((status.st_mtime_ns, size, entry.path))
                    total += size
                elif now - status.st_mtime > ABANDONED:
                    Path(entry.path).unlink()
    if total > MOST_BYTES:
        # Some more than must go, or each file that is written would take another look.
        for _, size, path in sorted(held):
            if total <= MOST_BYTES - MOST_BYTES // 8:
                break
            with suppress(OSError):
                Path(path).unlink()
                total -= size
    return total


def _is_ours(name: str) -> bool:
    """Whether a file was made by rvm: the user's folder may hold others."""
    return name.startswith(UNFINISHED) or (
        len(name) == 2 * DIGEST and set(name) <= set("0123456789abcdef")
    )
