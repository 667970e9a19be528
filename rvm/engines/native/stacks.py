"""How far down generated code may go on a thread's stack."""

from __future__ import annotations

import ctypes
import sys
import threading
from typing import Any

from rvm.engines.native.host import library

RESERVE = 64 << 10
"""Bytes below the floor: for what generated code calls, and for handlers of signals."""
MOST = 64 << 20
"""Of a larger stack no more than this is used: a limit says nothing of what is there."""


class _Floor(threading.local):
    """The floor of each thread's stack, 0 if it is not known yet."""

    address = 0


_floor = _Floor()


def stack_floor() -> int:
    """The lowest address that frames of generated code may have in this thread.

    OSError where the system does not tell the thread's bounds.
    """
    found = _floor.address
    if not found:
        low, high = bounds()
        # Python lets threads have 32 KiB, of which most is taken before machine code is entered.
        reserve = min(RESERVE, (high - low) // 4)
        found = _floor.address = max(low + reserve, high - MOST)
    return found


def bounds() -> tuple[int, int]:
    """The lowest address of this thread's stack that can be used, and the one behind the last."""
    process = library()
    process.pthread_self.restype = ctypes.c_void_p
    me = ctypes.c_void_p(process.pthread_self())
    if sys.platform == "darwin":
        process.pthread_get_stackaddr_np.restype = ctypes.c_size_t
        process.pthread_get_stacksize_np.restype = ctypes.c_size_t
        end: int = process.pthread_get_stackaddr_np(me)
        return end - process.pthread_get_stacksize_np(me), end
    return _by_attributes(process, me)


def _by_attributes(process: Any, me: ctypes.c_void_p) -> tuple[int, int]:
    """As glibc and musl tell it."""
    # An attribute object has 56 bytes with glibc on x86-64; there is no constant for it here.
    attributes = (ctypes.c_uint64 * 64)()
    start, size, guard = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
    failed = process.pthread_getattr_np(me, attributes)
    if failed:
        raise OSError(failed, "the bounds of the thread's stack are not known")
    process.pthread_attr_getstack(attributes, ctypes.byref(start), ctypes.byref(size))
    process.pthread_attr_getguardsize(attributes, ctypes.byref(guard))
    process.pthread_attr_destroy(attributes)
    low = start.value or 0
    # Some versions count the guard pages as the stack's.
    return low + guard.value, low + size.value
