"""The base of number systems: literals, values in Python, equality, code."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from decimal import Context, Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, ClassVar

import numpy as np

from rvm.codes.words import described
from rvm.numbers.code import Code
from rvm.numbers.support import NAMES
from rvm.types import Scalar

ADDITIVE = {"add": "+-", "mul": "*/", "xor": "^"}
"""Updates with their signs; the first that a system has is that of its raw values."""


class NumberSystem(ABC):
    """The arithmetic of one scalar type.

    A *raw* value is a value in a register or constant: a Python bool, int, float or complex, or an
    array of the storage `dtype`.  `codes` are the functions specific to this system.
    """

    updates: ClassVar[frozenset[str]] = frozenset()
    """The updates that can be undone: `add` if `-` undoes `+`, `mul`, `xor`."""
    factors: ClassVar[str] = "any"
    """The condition for dividing a factor out again: "finite", "nonzero" (and finite), or "any"."""
    start: ClassVar[Any] = 0
    """The number that an ancilla begins with where none is named."""
    whole = 1 << 24
    """For a float type: the largest integer up to which all whole numbers belong to it."""
    unit = 2.0**-52
    """The relative gap between its numbers, of a fixed-point type the absolute one."""
    grain = 0.0
    """The absolute gap between fixed-point numbers; 0 of other types."""
    least = 2.0**-1022
    """For a type that rounds: the least normal number; smaller ones have the gaps of this one."""
    converts: ClassVar[bool] = False
    """Whether `rvm.numbers.conversions` takes numbers to other types and back."""
    kinds: ClassVar[tuple[type, ...]] = (Real, Decimal)
    """The types of the Python numbers whose values it may hold; bools are given to bool alone."""
    kind: ClassVar[str] = "a real number"
    """What these are, in messages."""

    def __init__(self, t: Scalar, zero: Any, codes: Mapping[str, Code]) -> None:
        self.type = t
        self.exact = t.is_exact
        self.dtype: np.dtype[Any] = np.dtype(t.row.dtype)
        NAMES[f"dtype_{t.name}"] = self.dtype
        self.zero = zero
        """The initial contents of a register of this type."""
        self.codes = codes

    def __repr__(self) -> str:
        return f"<numbers {self.type}>"

    @property
    def gathers(self) -> str:
        """The update that adds raw values, by which a register at zero becomes any value."""
        return next(name for name in ADDITIVE if name in self.updates)

    held_as = ""
    """The storage format of arrays of these numbers, if they do not hold the numbers themselves."""

    @property
    def additive(self) -> str:
        """The signs of the updates that add raw values and take them away: `*/` of logarithms."""
        return ADDITIVE[self.gathers]

    def code(self, fn: str, elems: tuple[Scalar, ...]) -> Code | None:
        """This system's code of a function on arguments of the types `elems`; None: it has none.

        The types differ for shifts, powers and mixed arithmetic only.
        """
        return self.codes.get(fn)

    def offers(self, name: str) -> bool:
        """Whether there is an update, or code of a unary or binary function, of this name."""
        return name in self.updates or self.code(name, (self.type,) * 2) is not None

    @abstractmethod
    def literal(self, value: Any) -> Any:
        """A number as a raw value; ValueError if it does not fit.

        Numbers are bool, int, float, complex, `decimal.Decimal`, `fractions.Fraction`, `Fixed` or
        `LogNumber`.  Whole numbers must be exact, finite ones must stay finite; others are rounded
        to nearest.
        """

    def raw(self, value: Any) -> Any:
        """The raw value of a typed literal, `3'u8`; ValueError if there is none."""
        return self.literal(value)

    def holds(self, number: float) -> bool:
        """Whether a float is a raw value of this type."""
        with np.errstate(over="ignore"):
            return number != number or float(self.dtype.type(number)) == number

    def from_python(self, value: Any) -> Any:
        """An argument given in Python as a raw value; TypeError or ValueError if it is not one."""
        value = plain(value)
        if isinstance(value, bool) or not isinstance(value, self.kinds):
            found = "a bool" if isinstance(value, bool) else described(value)
            raise TypeError(f"expected {self.kind}, not {found}")
        return self.literal(value)

    def list_from_python(self, values: list[Any]) -> list[Any]:
        """The raw values of a list of numbers; TypeError or ValueError if one has none."""
        return [self.from_python(v) for v in values]

    def array_from_python(self, value: Any) -> np.ndarray[Any, Any]:
        """An array of the storage `dtype` unchanged; in others, and in lists, each number's value.

        TypeError or ValueError if one has none.
        """
        if isinstance(value, np.ndarray) and value.dtype == self.dtype:
            return plain_array(value)
        given = np.asarray(value, object)
        raws = [self.from_python(v) for v in given.flat]
        return np.array(raws, self.dtype).reshape(given.shape)

    def stored(self, name: str) -> str:
        """NumPy's text for an array as it is stored, from one of numbers called `name`."""
        return f"{name}.astype(np.{self.dtype.name})"

    def to_python(self, raw: Any) -> Any:
        """A raw value as the Python API gives it back."""
        return raw

    def told(self, raw: Any) -> Any:
        """A raw value, or an array or list of raw values, in the form for messages."""
        if isinstance(raw, list):
            return [self.to_python(v) for v in raw]
        if isinstance(raw, np.ndarray) and raw.ndim:
            is_own = type(self).to_python is NumberSystem.to_python
            return raw if is_own else [self.told(v) for v in raw]
        return self.to_python(raw)

    def text(self, raw: Any) -> str:
        """A literal of the assembly language that is read back to the same bits."""
        return str(raw)

    def same(self, a: Any, b: Any) -> bool:
        """Whether two raw values or arrays have the same bits (all NaNs count as one)."""
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            return bool(np.shape(a) == np.shape(b) and np.all(np.equal(a, b)))
        return bool(a == b)

    def close(self, value: Any, expected: Any, tolerance: float) -> bool:
        """Whether a value passes a check against the expected one, in all elements of an array.

        Exact types: if they are equal. Others: |value - expected| <= tolerance max(1, |expected|);
        an infinity is close to itself, a NaN to nothing.  A tolerance of 0 demands the same bits
        (all NaNs are treated as equal).
        """
        return bool(np.all(np.equal(value, expected)))


class InexactSystem(NumberSystem):
    """A system whose updates round: checks have a tolerance, and zero has a sign."""

    def same(self, a: Any, b: Any) -> bool:
        if isinstance(a, float) and isinstance(b, float):
            return (a == b and math.copysign(1.0, a) == math.copysign(1.0, b)) or (
                a != a and b != b
            )
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


def words(names: str) -> frozenset[str]:
    """The names in a text, separated by spaces."""
    return frozenset(names.split())


def differing(a: Any, b: Any, bits: bool = False) -> Any:
    """Where two numbers, or the elements of two arrays, differ: in value, or in their bits.

    A NaN does not differ from a NaN; zeros of different sign differ only in their bits.
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
    """A NumPy scalar or zero-dimensional array as a Python number; other values unchanged."""
    if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0:
        value = plain_array(value).item() if isinstance(value, np.ndarray) else value.item()
        if isinstance(value, np.longdouble):
            exact = np.isfinite(value) and float(value) != value
            return Fraction(*value.as_integer_ratio()) if exact else float(value)
        if isinstance(value, np.clongdouble):
            parts = plain(value.real), plain(value.imag)
            if any(map(math.isinf, map(nearest, parts))) and np.isfinite(value):
                raise ValueError(f"{value} is beyond the largest c128")
            return complex(*map(nearest, parts))
    return value


BUFFERS = (bytes, bytearray, memoryview)
"""Python's own memory types: arrays of u8, and memoryviews with their own element type."""


def plain_array(value: Any) -> np.ndarray[Any, Any]:
    """An array or buffer as a plain `np.ndarray` over the same memory.

    TypeError if it would not be equivalent: the elements of a subclass may mean more than its
    memory shows.
    """
    if type(value) is np.ndarray:
        return value
    if isinstance(value, memoryview):
        return np.asarray(value)
    if isinstance(value, BUFFERS):
        return np.frombuffer(value, np.uint8)
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError("some numbers of a masked array do not count")
    plain: np.ndarray[Any, Any] = value.view(np.ndarray)
    return plain


def nearest(value: Any) -> float:
    """A real number as the nearest float, an infinity where it is beyond the largest."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


MOST_DIGITS = 40
"""Numbers of more digits before or after the point are not looked at in full."""


def shortened(value: Any) -> Any:
    """A decimal as an exact fraction: of many digits one of few, as near to 0 or as far away.

    One that is not finite is a float; other numbers are as they are.
    """
    if not isinstance(value, Decimal):
        return value
    if not value.is_finite():
        return float(value)
    if abs(value.adjusted()) > MOST_DIGITS:
        size = MOST_DIGITS if value.adjusted() > 0 else -MOST_DIGITS
        value = Decimal((value.is_signed(), (1,), size)) if value else 0
    return Fraction(value)


def shown(value: Any) -> str:
    """A number, which may have thousands of digits, in a message."""
    size = int(value.numerator).bit_length() if isinstance(value, Rational) else 0
    if size > 4 * MOST_DIGITS:
        return f"a number of {int(size * math.log10(2)) + 1} digits or so"
    if isinstance(value, Fraction):
        # As it was written, if that was a decimal.
        decimal = Context(prec=30).divide(Decimal(value.numerator), Decimal(value.denominator))
        if Fraction(decimal) == value:
            return format(decimal, "f")
    return str(value)
