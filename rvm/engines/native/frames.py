"""Conversion of a frame's registers to the slots of generated code, and back.

See `rvm.ir.context` for the contents of slots.
"""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections.abc import Container, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.engines.native.host import library
from rvm.host.once import once
from rvm.image import Code
from rvm.ir.context import MINE, slots
from rvm.numbers import system
from rvm.types import Array, RegisterType, Scalar, elem_of

STACK = struct.Struct("<Qqq")


@cache
def _libc() -> Any:
    """The C library, for its `malloc` and `free`."""
    found = library()
    found.free.argtypes = [ctypes.c_void_p]
    found.malloc.argtypes = [ctypes.c_size_t]
    found.malloc.restype = ctypes.c_void_p
    return found


def slots_of(t: Scalar) -> str:
    """The `struct` format of a scalar's slots, of eight bytes each."""
    gap = 8 - t.row.bytes // t.row.parts
    return (t.row.letter + (f"{gap}x" if gap else "")) * t.row.parts


class Layout:
    """The slots of a function's registers, of which the first `n_args` are its parameters."""

    def __init__(self, types: tuple[RegisterType, ...], n_args: int) -> None:
        self.types = types
        self.n_args = n_args
        text = []
        for t in self.types:
            if isinstance(t, Scalar):
                text.append(slots_of(t))
            else:
                text.append("Q" if not isinstance(t, Array) else f"Qq{2 * t.rank}q")
        self.struct = struct.Struct("<" + "".join(text))
        self.dtypes = tuple(system(elem_of(t)).dtype for t in self.types)
        self.places, self.count = slots(self.types)
        """The index of each register among the unpacked values, and the number of these."""

    # ------------------------------------------------------------ in

    def packed(self, regs: Sequence[Any]) -> bytearray:
        """The registers' slots; stacks are moved to memory of their own."""
        return bytearray(self.struct.pack(*self.flat(regs)))

    def flat(self, regs: Sequence[Any]) -> list[Any]:
        """The values to pack into slots; registers that are not given are empty."""
        values: list[Any] = []
        for t, v in zip(self.types, regs, strict=False):
            if isinstance(t, Scalar):
                if t.parts > 1:
                    values += (0.0, 0.0) if v is None else (v.real, v.imag)
                else:
                    values.append(0 if v is None else v)
            elif isinstance(t, Array):
                if v is None:
                    values += (0,) * (2 + 2 * t.rank)
                else:
                    address = v.__array_interface__["data"][0]
                    values += (address, 0, *v.shape, *v.strides)
            else:
                values.append(0 if v is None else moved_in(v, elem_of(t)))
        values += [0] * (self.count - len(values))
        return values

    def scattered(self, regs: Sequence[Any]) -> frozenset[int]:
        """The parameters that are arrays with gaps or out of C order."""
        return frozenset(
            k
            for k in range(self.n_args)
            if isinstance(regs[k], np.ndarray) and not regs[k].flags.c_contiguous
        )

    # ------------------------------------------------------------ out

    def unpack(
        self, data: Any, live: Container[int], regs: list[Any], stacks: dict[int, list[Any]]
    ) -> None:
        """Unpack registers from slots into `regs`, which keep the objects that they hold.

        Those not in `live` are empty, and those for which `regs` has no room are left out. `stacks`
        are the lists of stacks in memory, by address.
        """
        values = iter(self.struct.unpack_from(data))
        for k, t in enumerate(self.types[: len(regs)]):
            if isinstance(t, Scalar):
                v = complex(next(values), next(values)) if t.parts > 1 else next(values)
                regs[k] = v if k in live else None
            elif isinstance(t, Array):
                address, owner = next(values), next(values)
                shape = tuple(next(values) for _ in range(t.rank))
                strides = tuple(next(values) for _ in range(t.rank))
                if k not in live:
                    regs[k] = None
                elif k >= self.n_args or regs[k] is None:
                    held = regs[k]
                    if held is None or held.__array_interface__["data"][0] != address or owner:
                        regs[k] = array_at(address, self.dtypes[k], shape, strides, owner == MINE)
            else:
                address = next(values)
                if k in live:
                    regs[k] = moved_out(address, self.dtypes[k], regs[k], stacks)
                else:
                    regs[k] = None


def array_at(
    address: int,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    owned: bool,
) -> NDArray[Any]:
    """Memory as an array; if it is owned it is freed with the array."""
    size, first = dtype.itemsize, 0
    for n, stride in zip(shape, strides, strict=True):
        whole = max(n - 1, 0) * stride
        size += abs(whole)
        first -= min(whole, 0)
    if 0 in shape:
        size = first = 0
    buffer = (ctypes.c_char * size).from_address(address - first)
    if owned:
        weakref.finalize(buffer, _libc().free, address)
    return np.ndarray(shape, dtype, memoryview(buffer), first, strides)


def moved_in(values: list[Any], t: Scalar) -> int:
    """Copy a stack's values into memory for generated code; return the stack's address."""
    data = np.array(values, system(t).dtype)
    room = max(len(values), 16)
    place = _libc().malloc(room * data.itemsize)
    stack: int | None = _libc().malloc(STACK.size)
    if not place or not stack:
        _libc().free(place)
        _libc().free(stack)
        raise MemoryError
    ctypes.memmove(place, data.ctypes.data, data.nbytes)
    ctypes.memmove(stack, STACK.pack(place, len(values), room), STACK.size)
    return stack


def moved_out(
    address: int, dtype: np.dtype[Any], held: list[Any] | None, stacks: dict[int, list[Any]]
) -> list[Any]:
    """The list of a stack in memory, which is freed; the previous list is filled again."""
    known = stacks.get(address)
    if known is not None:
        return known
    place, count, _ = STACK.unpack(ctypes.string_at(address, STACK.size))
    raw = ctypes.string_at(place, count * dtype.itemsize) if count else b""
    values = np.frombuffer(raw, dtype).tolist()
    if place:
        _libc().free(place)
    _libc().free(address)
    if held is None:
        held = values
    else:
        held[:] = values
    stacks[address] = held
    return held


def free(address: int) -> None:
    """Free memory that generated code allocated."""
    _libc().free(address)


def layout_of(code: Code) -> Layout:
    """The layout of a code's registers, made once."""
    return once(code.compiled, Layout, Layout, lambda: _layout(code))


def _layout(code: Code) -> Layout:
    return Layout(tuple(r.type for r in code.function.registers), code.function.n_args)
