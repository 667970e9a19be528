"""Memory of large arrays, which is used again for the next array of its size.

Memory from the operating system is cleared page by page when it is first written, which takes
longer than most computations on it. `rvm.emit.llvm.rooms` does the same for local arrays of machine
code.
"""

from __future__ import annotations

import threading
import weakref
from ctypes import c_char
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

LARGE = 1 << 18
"""The bytes from which on memory is kept."""
MOST = 1 << 26
"""The most that is kept."""

_kept: list[NDArray[np.uint8]] = []
"""Memory that nobody uses, the longest unused first."""
_lock = threading.Lock()
"""Nobody waits for it, since the collector may want to keep memory at any moment."""


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of any contents. Its memory is kept for another one when all its views are gone."""
    # Untouched, it takes no memory, and less time than to find out its size.
    found = np.empty(shape, dtype)
    if not LARGE <= (size := found.nbytes) <= MOST:
        return found
    del found
    block = _taken(size)
    buffer = (c_char * size).from_buffer(cast("Any", block))
    weakref.finalize(buffer, _keep, block).atexit = False
    return np.ndarray(shape, dtype, memoryview(buffer))


def zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of zeros, like `empty`."""
    found = np.zeros(shape, dtype)
    if found.nbytes < LARGE:
        return found
    found = empty(shape, dtype)
    found.fill(0)
    return found


def _taken(size: int) -> NDArray[np.uint8]:
    if _lock.acquire(blocking=False):
        try:
            for k, block in enumerate(_kept):
                if block.nbytes == size:
                    return _kept.pop(k)
        finally:
            _lock.release()
    return np.empty(size, np.uint8)


def _keep(block: NDArray[np.uint8]) -> None:
    if _lock.acquire(blocking=False):
        try:
            _kept.append(block)
            while sum(b.nbytes for b in _kept) > MOST:
                del _kept[0]
        finally:
            _lock.release()
