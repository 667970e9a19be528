"""Fast conversion of arguments into slots, with cheaper forms of the checks in binding.

If any check fails, the call is made the ordinary way, which produces the error message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ctypes import addressof, c_char
from typing import TYPE_CHECKING, Any

import numpy as np

from rvm.expr import Apply, Const, Place
from rvm.numbers import system
from rvm.program import Function
from rvm.run.binding import check_lengths
from rvm.state import SCALAR_BYTES
from rvm.types import Array, Scalar

if TYPE_CHECKING:
    from rvm.engines.native.frames import Layout

_first: Callable[[Any], Any] = c_char.from_buffer
"""The first byte of an array that can be written to and has no gaps."""
ODD = (KeyError, TypeError, ValueError, OverflowError)
"""Exceptions for arguments that need the ordinary way."""


class Taken:
    """Arguments in slots: `flat` are the values to pack, `live` the number of bytes counted."""

    __slots__ = ("arrays", "flat", "live")

    def __init__(self, flat: list[Any], live: int) -> None:
        self.flat = flat
        self.live = live
        self.arrays: dict[int, Any] = {}
        """The arrays by register."""


class Intake:
    """The conversion of a function's scalar and array parameters into the slots of a layout.

    The layout may be that of another function whose registers begin with these.
    """

    def __init__(self, function: Function, layout: Layout, changed: frozenset[int]) -> None:
        self.function = function
        registers = function.registers
        self.names = tuple(p.name for p in function.params)
        self.scalars = [
            (name, layout.places[k], _quick(t), system(t), t.parts > 1)
            for k, name in enumerate(self.names)
            if isinstance(t := registers[k].type, Scalar)
        ]
        self._places = [
            (k, layout.places[k], t.parts > 1)
            for k in range(len(self.names))
            if isinstance(t := registers[k].type, Scalar)
        ]
        self._bytes = sum(SCALAR_BYTES * (1 + pair) for *_, pair in self.scalars)
        self.arrays = [
            (name, k, layout.places[k], d, d.alignment, d.itemsize, t.rank, k in changed)
            for k, name in enumerate(self.names)
            if isinstance(t := registers[k].type, Array)
            for d in (system(t.elem).dtype,)
        ]
        self._lengths = _lengths(function, layout)
        self._blank = [0] * layout.count

    def take(self, values: Mapping[str, Any]) -> Taken:
        """The arguments, arrays by their addresses; raises one of `ODD` for an unusual argument."""
        if len(values) != len(self.names):
            raise TypeError
        flat: list[Any] = self._blank.copy()
        for name, at, quick, sys, pair in self.scalars:
            v = values[name]
            if type(v) is not quick:
                v = sys.from_python(v)
            if pair:
                flat[at], flat[at + 1] = v.real, v.imag
            else:
                flat[at] = v
        found = Taken(flat, self._bytes)
        if self.arrays:
            self._take_arrays(values, found)
        return found

    def raw(self, taken: Taken) -> list[Any]:
        """Raw values by register, with arrays as views of fixed shape."""
        found: list[Any] = [None] * len(self.names)
        flat = taken.flat
        for k, at, pair in self._places:
            found[k] = complex(flat[at], flat[at + 1]) if pair else flat[at]
        for k, v in taken.arrays.items():
            found[k] = v.view()
        return found

    def _take_arrays(self, values: Mapping[str, Any], found: Taken) -> None:
        starts, ends = [], []
        flat, arrays, total = found.flat, found.arrays, 0
        for name, k, at, dtype, alignment, size, rank, changed in self.arrays:
            v = values[name]
            if type(v) is not np.ndarray or v.dtype is not dtype or v.ndim != rank:
                raise TypeError
            try:
                start = addressof(_first(v))
            except ODD:
                # Read-only, or empty; or with gaps.
                if (changed and not v.flags.writeable) or not v.flags.c_contiguous:
                    raise
                start = address_of(v)
            if start % alignment:
                raise TypeError
            flat[at] = start
            if rank == 1:
                flat[at + 2] = n = len(v)
                flat[at + 3] = size
                size *= n
            else:
                flat[at + 2 : at + 2 + 2 * rank] = v.shape + v.strides
                size = v.nbytes
            starts.append(start)
            ends.append(start + size)
            total += size
            arrays[k] = v
        if self._lengths is None:
            check_lengths(self.function, [arrays.get(k) for k in range(len(self.names))])
        else:
            for at, other, length in self._lengths:
                if flat[at] != (length if other is None else flat[other]):
                    raise TypeError
        if len(starts) > 1:
            # Each ends before the next one begins.
            starts.sort()
            ends.sort()
            for start, end in zip(starts[1:], ends):  # noqa: B905
                if start < end:
                    raise TypeError
        found.live += total


def takes(function: Function) -> bool:
    """Whether a function's parameters are all scalars and arrays."""
    return all(
        isinstance(p.layout, int) and isinstance(function.registers[p.layout].type, (Scalar, Array))
        for p in function.params
    )


def _quick(t: Scalar) -> type | None:
    """The Python type whose values are raw values already; None if there is none."""
    if t.name == "f64":
        return float
    return complex if t.parts > 1 else None


Length = tuple[int, int | None, int]
"""The slot of a length, and the slot with the same length; or None and a length."""


def _lengths(function: Function, layout: Layout) -> list[Length] | None:
    """The lengths that parameters must have; None if computing them needs evaluation."""
    first = [at + 2 for at in layout.places]
    found: list[Length] = []
    for k, register in enumerate(function.registers[: function.n_args]):
        for axis, dim in enumerate(register.dims):
            match dim:
                case None:
                    pass
                case Const(int(length)):
                    found.append((first[k] + axis, None, length))
                case Apply("dim", (Place(other, ()), Const(int(other_axis)))):
                    found.append((first[k] + axis, first[other] + other_axis, 0))
                case _:
                    return None
    return found


def address_of(v: np.ndarray) -> int:
    """The address of an array's first element."""
    try:
        # A third of the time that asking the array takes.
        return addressof(_first(v))
    except (TypeError, ValueError):
        # Read-only, empty or with gaps.
        start: int = v.__array_interface__["data"][0]
        return start
