"""Files compressed and encrypted by the examples, and back: ratios and speeds.

Beside them stand `zlib` at level 1 and `bz2` of Python's library, which do the same in C.  Speeds
are megabytes per second of processor time.  Without a file it is the project's own documentation,
all pages in one.

    python examples/files.py [FILE]
"""

from __future__ import annotations

import bz2
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

import rvm

HERE = Path(__file__).parent
Way = Callable[[bytes], bytes]


def documentation() -> bytes:
    """The pages of the documentation, one after the other."""
    return b"".join(page.read_bytes() for page in sorted((HERE.parent / "docs").glob("*.md")))


def packer(*names: str) -> tuple[Way, Way]:
    """The functions `pack` of some examples one after the other, and all of them run backwards."""
    packs = [rvm.load(HERE / f"{n}.rasm").pack.with_options(engine="native") for n in names]

    def there(data: bytes) -> bytes:
        for pack in packs:
            data = bytes(pack(text=data, packed=[]).packed)
        return data

    def back(data: bytes) -> bytes:
        for pack in reversed(packs):
            data = bytes((~pack)(text=[], packed=data).text)
        return data

    return there, back


def cipher() -> tuple[Way, Way]:
    """`chacha20.rasm`; the key is one for measuring only."""
    encrypt = rvm.load(HERE / "chacha20.rasm").encrypt.with_options(engine="native")
    given = {"key": np.arange(8, dtype=np.uint32), "nonce": np.zeros(3, np.uint32), "counter": 1}

    def there(data: bytes) -> bytes:
        return bytes(encrypt(text=bytearray(data), **given).text)

    def back(data: bytes) -> bytes:
        return bytes((~encrypt)(text=bytearray(data), **given).text)

    return there, back


def seconds(way: Way, data: bytes) -> tuple[bytes, float]:
    """What a way makes of data, and the least time of three runs, once machine code is made."""
    made = way(data)
    times = []
    for _ in range(3):
        start = time.process_time()
        way(data)
        times.append(time.process_time() - start)
    return made, min(times)


def main() -> None:
    data = Path(sys.argv[1]).read_bytes() if sys.argv[1:] else documentation()
    ways: dict[str, tuple[Way, Way]] = {
        "lz": packer("lz"),
        "lz, rans": packer("lz", "rans"),
        "zlib, level 1": (lambda x: zlib.compress(x, 1), zlib.decompress),
        "bwt, rans": packer("bwt", "rans"),
        "bz2": (bz2.compress, bz2.decompress),
        "chacha20": cipher(),
    }
    print(f"{len(data):,} bytes    ratio   MB/s   MB/s back")
    for name, (there, back) in ways.items():
        packed, t = seconds(there, data)
        again, u = seconds(back, packed)
        if again != data:
            raise SystemExit(f"{name}: what came back is not the file")
        size = len(data) / 1e6
        print(f"{name:14} {len(packed) / len(data):7.3f} {size / t:7.2f} {size / u:7.2f}")


if __name__ == "__main__":
    main()
