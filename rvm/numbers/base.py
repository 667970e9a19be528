"""What a number system is: its literals, its values in Python, its equality, its code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import copysign
from typing import Any, ClassVar

import numpy as np

from rvm.numbers.code import Code
from rvm.types import Scalar


class NumberSystem(ABC):
    """The arithmetic of one scalar type.

    A *raw* value is what registers and constants hold: a Python bool, int, float or complex, or
    an array of the storage `dtype`.  `codes` are the functions that are this system's own.
    """

    exact: ClassVar[bool] = False
    """Whether an update and its inverse restore every bit."""

    def __init__(self, t: Scalar, dtype: Any, zero: Any, codes: Mapping[str, Code]) -> None:
        self.type = t
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.zero = zero
        """What a register of this type holds before anything is put into it."""
        self.codes = codes

    def __repr__(self) -> str:
        return f"<numbers {self.type}>"

    def code(self, fn: str, elems: tuple[Scalar, ...]) -> Code | None:
        """This system's code of a function on arguments of the types `elems`; None: it has none.

        The types differ for shifts, powers and mixed arithmetic only.
        """
        return self.codes.get(fn)

    @abstractmethod
    def literal(self, value: Any) -> Any:
        """A literal of the assembly language as a raw value; ValueError if it does not fit.

        Literals are bool, int, float, complex, `decimal.Decimal`, `fractions.Fraction`, `Fixed`
        or `LogNumber`.
        """

    def from_python(self, value: Any) -> Any:
        """An argument given in Python as a raw value; TypeError or ValueError if it is none."""
        return self.literal(plain(value))

    def to_python(self, raw: Any) -> Any:
        """A raw value as the Python API gives it back."""
        return raw

    def text(self, raw: Any) -> str:
        """A literal of the assembly language that is read back to the same bits."""
        return str(raw)

    def same(self, a: Any, b: Any) -> bool:
        """Whether two raw values or arrays have the same bits (all NaNs count as one)."""
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            return bool(np.shape(a) == np.shape(b) and np.all(np.equal(a, b)))
        return bool(a == b)

    def close(self, value: Any, expected: Any, tolerance: float) -> bool:
        """Whether a value passes a check against the expected one, all elements of an array.

        Exact types: if they are equal.  Others: |value - expected| <= tolerance max(1, |expected|);
        an infinity is close to itself, a NaN to nothing.  A tolerance of 0 asks for the same bits
        (all NaNs count as one).
        """
        return bool(np.all(np.equal(value, expected)))


class InexactSystem(NumberSystem):
    """A system whose updates round: checks have a tolerance, and zero has a sign."""

    def same(self, a: Any, b: Any) -> bool:
        if isinstance(a, float) and isinstance(b, float):
            return (a == b and copysign(1.0, a) == copysign(1.0, b)) or (a != a and b != b)
        x, y = np.asarray(a, self.dtype), np.asarray(b, self.dtype)
        return bool(x.shape == y.shape and not np.any(differing(x, y, bits=True)))

    def close(self, value: Any, expected: Any, tolerance: float) -> bool:
        if not tolerance:
            return not np.any(differing(value, expected, bits=True))
        if not isinstance(value, np.ndarray) and not isinstance(expected, np.ndarray):
            if value == expected:
                return True
            size = abs(expected)
            return bool(size != _INF and abs(value - expected) <= tolerance * max(1.0, size))
        with np.errstate(all="ignore"):
            size = np.abs(expected)
            near = np.abs(np.subtract(value, expected)) <= tolerance * np.maximum(1.0, size)
            return bool(np.all(np.equal(value, expected) | (near & np.isfinite(size))))


_INF = float("inf")


def differing(a: Any, b: Any, bits: bool = False) -> Any:
    """Where two numbers, or the elements of two arrays, differ: in value, or else in their bits.

    A NaN does not differ from a NaN; zeros of two signs do by their bits alone.
    """
    if bits and (np.iscomplexobj(a) or np.iscomplexobj(b)):
        return differing(np.real(a), np.real(b), bits) | differing(np.imag(a), np.imag(b), bits)
    off = np.not_equal(a, b)
    if np.any(off):
        off = off & ~(np.not_equal(a, a) & np.not_equal(b, b))
    if bits and np.asarray(a).dtype.kind == "f":
        off = off | (np.equal(a, 0) & np.equal(b, 0) & (np.signbit(a) != np.signbit(b)))
    return off


def plain(value: Any) -> Any:
    """A NumPy scalar or array of no dimensions as the Python number it holds; others as is."""
    if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0:
        return value.item()
    return value


def refuse(value: Any, what: str) -> TypeError:
    """The error for a value that is no number of the kind that is wanted."""
    return TypeError(f"expected {what}, not {value!r} of type {type(value).__name__}")
