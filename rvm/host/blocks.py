"""Arrays that share memory, as plain data: the blocks of memory, and each array's place in them.

Registers of inner frames are views of those of outer ones.  If they were pickled one by one, they
would become separate arrays, and a callee's writes would not reach its caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class View(NamedTuple):
    """An array in block number `block`; -1 for one without elements, which is in none."""

    block: int
    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    writeable: bool


def packed(arrays: Sequence[NDArray[Any]]) -> tuple[list[NDArray[np.uint8]], list[View]]:
    """Copies of the memory of some arrays, and each as a view of one of them."""
    bounds = [_bounds(a) for a in arrays]
    stretches: list[list[int]] = []
    for lo, hi in sorted(b for b in bounds if b[0] < b[1]):
        if stretches and lo < stretches[-1][1]:
            stretches[-1][1] = max(stretches[-1][1], hi)
        else:
            stretches.append([lo, hi])
    starts = [lo for lo, _ in stretches]
    views = []
    for array, (lo, hi) in zip(arrays, bounds, strict=True):
        block = int(np.searchsorted(starts, lo, side="right")) - 1 if lo < hi else -1
        offset = array.ctypes.data - starts[block] if lo < hi else 0
        views.append(
            View(block, offset, array.dtype, array.shape, array.strides, array.flags.writeable)
        )
    return [np.array(_Memory(lo, hi)) for lo, hi in stretches], views


def unpacked(blocks: Sequence[NDArray[np.uint8]], view: View) -> NDArray[Any]:
    """The array that is a view of one of the blocks."""
    block, offset, dtype, shape, strides, writeable = view
    if block < 0:
        array: NDArray[Any] = np.empty(shape, dtype)
    else:
        array = np.ndarray(shape, dtype, blocks[block].data, offset, strides)
    array.flags.writeable = writeable
    return array


def _bounds(array: NDArray[Any]) -> tuple[int, int]:
    """The addresses of an array's first byte and after its last one."""
    at = array.ctypes.data
    if not array.size:
        return at, at
    spans = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    low, high = (sum(s for s in spans if (s > 0) == up) for up in (False, True))
    return at + low, at + high + array.itemsize


class _Memory:
    """A stretch of memory that arrays hold, as NumPy takes it."""

    def __init__(self, lo: int, hi: int) -> None:
        self.__array_interface__ = {
            "data": (lo, True),
            "shape": (hi - lo,),
            "typestr": "|u1",
            "version": 3,
        }
