"""The stacks that generated code runs on: how far down it may go, and a large one for recursion."""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
import threading
from functools import cache
from typing import Any

from rvm.engines.native.elf import Block
from rvm.engines.native.host import library
from rvm.engines.native.memory import Run, loaded, protect

RESERVE = 64 << 10
"""Bytes reserved below the floor for functions called by generated code, and signal handlers."""
RESERVE_NOT = 0x4000 if sys.platform == "linux" else 0x40
"""The flag of `mmap` for memory that need not be there yet, which Python does not name yet."""
KEPT = 16 << 20
"""Bytes at its upper end that stay there, since getting memory takes longer than a call."""
TIDY = 16 << 20
"""Bytes of the account of memory that a recursion has to take before its stack is given back."""
MOST = 64 << 20
"""The largest usable size of a larger stack: the limit does not show how much exists."""
SIZES = (1 << 31, 1 << 29, 1 << 27)
"""Possible sizes in bytes of a large stack; the first one available is used. Unused pages take no
memory."""
GUARD = 1 << 16
"""Bytes at its lower end that nothing can be written to."""
SWITCH = bytes.fromhex("55 4889e5 4889cc ffd2 4889ec 5d c3")
"""x86-64 for a C function of slots, context, a function, and the end of a stack: it calls the
function with the first two on that stack.  `push rbp; mov rbp, rsp; mov rsp, rcx; call rdx;
mov rsp, rbp; pop rbp; ret`, by the System V ABI, in which `rbp` is the caller's."""


class Large:
    """A separate stack of a thread, besides the one given by the system."""

    def __init__(self, size: int) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", RESERVE_NOT)
        self._memory = mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        low = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        if protect(low, GUARD, 0):
            raise OSError("a guard cannot be set")
        self.floor = low + GUARD + RESERVE
        self._end = low + size
        self._switch = _switch()

    def run(self, function: Run, slots: int, fields: int) -> int:
        """Call machine code on it."""
        how: int = self._switch(slots, fields, function, self._end)
        return how

    def tidy(self, used: int = TIDY) -> None:
        """Return memory to the system, after frames counted for this many bytes."""
        if used >= TIDY:
            self._memory.madvise(mmap.MADV_DONTNEED, GUARD, len(self._memory) - GUARD - KEPT)


class _Stacks(threading.local):
    """The known facts about each thread's stacks: the floor of its own, 0 if not yet requested."""

    floor = 0
    large: Large | None = None
    asked = False


_stacks = _Stacks()


def large_stack() -> Large | None:
    """This thread's large stack, made at first use; None if there is none.

    Code running on it may not call Python, which checks the bounds of its thread's own stack.
    """
    if not _stacks.asked:
        _stacks.asked = True
        if sys.platform in ("linux", "darwin") and platform.machine() == "x86_64":
            for size in SIZES:
                try:
                    _stacks.large = Large(size)
                    break
                except (OSError, ValueError):
                    continue
    return _stacks.large


@cache
def _switch() -> Any:
    made = loaded(Block(SWITCH, 0, len(SWITCH), ()), {})
    if made is None:
        raise OSError("machine code cannot be made executable")
    code: Any = made
    pointer = ctypes.c_void_p
    address = ctypes.cast(code, pointer).value
    assert address is not None
    found = ctypes.CFUNCTYPE(ctypes.c_int32, pointer, pointer, pointer, pointer)(address)
    vars(found)["code"] = code
    return found


def stack_floor() -> int:
    """The lowest address that frames of generated code may have in this thread.

    OSError if the system does not provide the thread's bounds.
    """
    found = _stacks.floor
    if not found:
        low, high = bounds()
        # Python lets threads have 32 KiB, of which most is taken before machine code is entered.
        reserve = min(RESERVE, (high - low) // 4)
        found = _stacks.floor = max(low + reserve, high - MOST)
    return found


def bounds() -> tuple[int, int]:
    """The lowest address of this thread's stack that can be used, and the one after the last."""
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
    """The bounds as given by glibc and musl."""
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
