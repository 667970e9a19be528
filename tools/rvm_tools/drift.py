"""The distance of values from those they should have returned to, in bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.numbers import system
from rvm.numbers.rounding import magnitude, return_limit, returned
from rvm.program import Function
from rvm.types import elem_of
from rvm_tools.show import parameters


@dataclass(frozen=True, slots=True)
class Drift:
    """A parameter that did not come back: the bits lost in its worst number, and how many differ.

    A number k units in the last place off has lost the bits that are needed to write k.
    """

    name: str
    bits: int
    numbers: int
    of: int
    off: float
    """The largest distance of a number from its original."""
    within: bool
    """Whether every number is within the tolerance of its original."""

    def text(self, judged: bool = True) -> str:
        """A phrase: `x: 3 bits in 2 of 100 numbers`, and whether that is too much."""
        bits = f"{self.bits} bit{'s' * (self.bits != 1)}"
        where = "" if self.of == 1 else f" in {self.numbers} of {self.of} numbers"
        beyond = "" if self.within or not judged else ", beyond the tolerance"
        return f"{self.name}: {bits}{where} (off by {self.off:.1g}){beyond}"


def drifts(
    function: Function,
    before: Sequence[Any],
    after: Sequence[Any],
    tolerance: float | None = None,
    between: Sequence[Any] = (),
) -> list[Drift]:
    """The parameters whose registers `after` have not the bits of those `before`.

    They are measured as the values of a gradient are; `between` are the registers at the other end
    of the run, by which numbers are measured that began as zero.
    """
    out: list[Drift] = []
    for name, slot in parameters(function):
        sys = system(elem_of(function.registers[slot].type))
        a, b = np.asarray(before[slot], sys.dtype), np.asarray(after[slot], sys.dtype)
        if sys.same(a, b):
            continue
        if a.shape != b.shape:
            # A stack that has another height.
            n = max(a.size, b.size)
            out.append(Drift(name, sys.type.bits, abs(a.size - b.size), n, math.inf, False))
            continue
        lost = lost_bits(a, b)
        limit = return_limit(sys.type) if tolerance is None else tolerance
        held = magnitude(sys.type, between[slot]) if between else 0.0
        out.append(
            Drift(
                name,
                int(lost.max()),
                int(np.count_nonzero(lost)),
                int(lost.size),
                _distance(a, b) * sys.type.unit,
                bool(np.all(returned(sys.type, a, b, limit, held))),
            )
        )
    return out


def _distance(a: NDArray[Any], b: NDArray[Any]) -> float:
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        return float(np.max(np.abs(b.astype(wide) - a.astype(wide))))


def lost_bits(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """For each number the bits that it is off by; of a complex one those of its worse part."""
    a, b = np.atleast_1d(a), np.atleast_1d(b)
    if a.dtype.kind == "c":
        re, im = lost_bits(a.real.copy(), b.real.copy()), lost_bits(a.imag.copy(), b.imag.copy())
        return np.asarray(np.maximum(re, im))
    x, y = _ordinals(a), _ordinals(b)
    far = [abs(p - q).bit_length() for p, q in zip(x, y, strict=True)]
    same = (
        ((a == b) & (np.signbit(a) == np.signbit(b))) | ((a != a) & (b != b))
        if (a.dtype.kind == "f")
        else a == b
    )
    # A float has no more to lose than its significand.
    size = a.dtype.itemsize
    bits = {8: 53, 4: 24}[size] if a.dtype.kind == "f" else size * 8
    out = np.minimum(np.array(far, np.int64), bits)
    # Zeros of other sign are next to each other.
    return np.where(same.ravel(), 0, np.maximum(out, 1))


def _ordinals(a: NDArray[Any]) -> list[int]:
    """Integers in the order of the numbers, neighbours one apart."""
    if a.dtype.kind != "f":
        return [int(v) for v in a.ravel().tolist()]
    signed = np.ascontiguousarray(a).view(np.int64 if a.dtype.itemsize == 8 else np.int32)
    half = 1 << (a.dtype.itemsize * 8 - 1)
    return [v if v >= 0 else -half - v for v in map(int, signed.ravel().tolist())]
