"""Blocks of machine code in memory, and the addresses of the functions that they call."""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from rvm.emit.llvm.prelude import SYMBOLS
from rvm.emit.llvm.rooms import PLACES, POOL
from rvm.engines.native.elf import Block
from rvm.engines.native.host import library

Run = Callable[[Any, Any], int]
"""Takes the addresses of a frame's slots and of a context; how the run ended."""
WORD = struct.Struct("<Q")
PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)


def loaded(block: Block, memory: Mapping[str, int]) -> Run | None:
    """A block as a function, which keeps the memory alive; None where it cannot be loaded.

    `memory` are addresses of the program's own symbols; others are functions of the C library.
    """
    addresses = [w if isinstance(w, int) else memory.get(w) or address(w) for w in block.words]
    if None in addresses:
        return None
    place = mmap.mmap(-1, len(block.data))
    start = ctypes.addressof(ctypes.c_char.from_buffer(place))
    place.write(block.data)
    for k, (word, found) in enumerate(zip(block.words, addresses, strict=True)):
        assert found is not None
        WORD.pack_into(place, block.table + 8 * k, found + (start if isinstance(word, int) else 0))
    if protect(start, len(block.data), mmap.PROT_READ | mmap.PROT_EXEC):
        return None
    function = PROTOTYPE(start + block.entry)
    vars(function)["memory"] = place
    return function


def protect(start: int, size: int, how: int) -> int:
    """Set the access rights of some memory; nonzero if this fails."""
    failed: int = _mprotect()(start, size, how)
    return failed


@cache
def _mprotect() -> Any:
    found = library().mprotect
    found.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return found


@cache
def libm() -> Any:
    """The library of Python's `math`."""
    try:
        return ctypes.CDLL("libm.so.6")
    except OSError:
        # Elsewhere than with glibc; finding it takes a moment, or another program.
        from ctypes.util import find_library

        return ctypes.CDLL(find_library("m"))


_pool = (ctypes.c_void_p * PLACES)()
"""Memory that local arrays have given up, see `rvm.emit.llvm.rooms`."""


@cache
def address(symbol: str) -> int | None:
    """The address of a C function, ours (`rvm_fmod`) or the library's; None if there is none.

    So is that of the memory that all machine code shares.
    """
    if symbol == POOL:
        return ctypes.addressof(_pool)
    if symbol in SYMBOLS:
        return _address(libm(), SYMBOLS[symbol])
    found = _address(library(), symbol) or _address(libm(), symbol)
    if found is None:
        # Divisions of 128 bits are functions of the compiler's library.
        try:
            found = _address(ctypes.CDLL("libgcc_s.so.1"), symbol)
        except OSError:
            return None
    return found


def _address(library: Any, name: str) -> int | None:
    function = getattr(library, name, None)
    return None if function is None else ctypes.cast(function, ctypes.c_void_p).value
