"""The folder in which machine code is kept from one process to the next.

A file is named by a hash of all that its code depends on.  It is written whole and then given its
name, so that processes may come at once, and begins with a hash of the rest: what is damaged, or
belongs elsewhere, is as if it were not there.  Without a folder, or room in it, nothing is kept.
"""

from __future__ import annotations

import os
import sys
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
UNFINISHED = "new-"
"""What the names of files begin with that are being written."""


def digest(*parts: bytes) -> bytes:
    """The hash of some parts, one after the other."""
    made = blake2b(digest_size=DIGEST)
    for part in parts:
        made.update(len(part).to_bytes(8, "little"))
        made.update(part)
    return made.digest()


def folder() -> Path | None:
    """Where machine code is kept; None if nowhere.

    It is `RVM_CACHE_DIR`, by default `rvm` in the user's cache folder; if that is empty, nowhere.
    """
    given = os.environ.get("RVM_CACHE_DIR")
    if given is not None:
        return Path(given) if given else None
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "rvm" if base else None


def found(key: str) -> bytes | None:
    """What is kept under a key; None if nothing is, or it has been damaged."""
    home = folder()
    if home is None:
        return None
    path = home / key
    try:
        data = path.read_bytes()
        os.utime(path)
    except OSError:
        return None
    body = data[DIGEST:]
    return body if digest(key.encode(), body) == data[:DIGEST] else None


def keep(key: str, body: bytes) -> None:
    """Keep something under a key, whole or not at all."""
    home = folder()
    if home is None:
        return
    import tempfile

    try:
        home.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=home, prefix=UNFINISHED)
        with os.fdopen(handle, "wb") as file:
            file.write(digest(key.encode(), body) + body)
        Path(name).replace(home / key)
        _trim(home)
    except OSError:
        return


@cache
def _trim(home: Path) -> None:
    """Remove what was not used for longest where there is too much; once in a process."""
    held = []
    with os.scandir(home) as entries:
        for entry in entries:
            if _is_ours(entry.name):
                status = entry.stat()
                held.append((status.st_mtime_ns, status.st_size, entry.path))
    total = sum(size for _, size, _ in held)
    for _, size, path in sorted(held):
        if total <= MOST_BYTES:
            return
        Path(path).unlink(missing_ok=True)
        total -= size


def _is_ours(name: str) -> bool:
    """Whether a file was made here: the folder may have been given, and hold others."""
    return name.startswith(UNFINISHED) or (
        len(name) == 2 * DIGEST and set(name) <= set("0123456789abcdef")
    )
