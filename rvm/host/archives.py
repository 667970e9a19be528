"""Arrays in files, `.npy` and `.npz`: read with one kind of error for anything that is wrong."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from os import SEEK_END, PathLike
from struct import Struct
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rvm.host.read import DATA, open_any, open_regular

END = Struct("<4s4H2LH")
"""The record at the end of an archive: mark, disks, counts of entries, directory, comment."""
MANY = 0xFFFF
"""The value of a count that does not fit its field and is stored elsewhere."""


def read_array(path: str | PathLike[str], *, regular: bool = False) -> Any:
    """The array in an `.npy` file.  OSError if it cannot be read, ValueError if it is damaged.

    With `regular`, only a regular file that is not a link is opened.
    """
    with _opened(path, regular) as file:
        found = np.load(file, allow_pickle=False)
    if not isinstance(found, np.ndarray):
        raise ValueError("it is an archive, not an array")
    return found


def read_arrays(
    path: str | PathLike[str], most: int = DATA, *, regular: bool = False
) -> dict[str, NDArray[Any]]:
    """The arrays in an `.npz` file by name; errors as for `read_array`.

    Nothing is decompressed if the archive's directory has more than `most` bytes in it together.
    """
    with _opened(path, regular) as file:
        found = np.load(file, allow_pickle=False)
        if isinstance(found, np.ndarray):
            raise ValueError("it is an array, not an archive")
        at = file.tell()
        file.seek(-END.size, SEEK_END)
        mark, *_, count, _, _, _ = END.unpack(file.read(END.size))
        file.seek(at)
        # Zipfile relies on the size of the directory alone, and would silently lose entries.
        if mark == b"PK\5\6" and count not in (len(found.files), MANY):
            raise ValueError(f"it has {len(found.files)} of {count} arrays")
        # Zipfile gives no more bytes of an entry than the directory says.
        if sum(entry.file_size for entry in found.zip.infolist()) > most:
            raise ValueError(f"its arrays have more than {most:,} bytes")
        arrays = {name: found[name] for name in found.files}
        if not all(isinstance(array, np.ndarray) for array in arrays.values()):
            raise ValueError("it holds something else than arrays")
        return arrays


@contextmanager
def _opened(path: str | PathLike[str], regular: bool) -> Iterator[BinaryIO]:
    """An open file, within which every error is one of its contents."""
    with open_regular(path) if regular else open_any(path) as file:
        try:
            with warnings.catch_warnings():
                # NumPy says of some damaged heads that they are from Python 2.
                warnings.simplefilter("ignore")
                yield file
        except Exception as error:
            # A damaged archive makes zipfile, zlib, tokenize and ast raise whatever they meet.
            if "allow_pickle" in str(error):
                raise ValueError("it holds objects of Python, no numbers") from error
            raise ValueError(str(error) or type(error).__name__) from error
