"""Tables of numbers, from `.csv` files: the texts of cells, still to be given a type."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.codes.words import count
from rvm.faults import InputError
from rvm.numbers.base import NumberSystem
from rvm_tools.literals import Typed, plain_number, read_literal

MAX_REASON = 300
"""The number of characters of a reason that are shown: NumPy quotes lines of the file."""
MAX_CELL = 40
"""The number of characters of a table cell that are shown."""
_WORDS = ("inf", "infinity", "nan")
"""Numbers as other programs write them, in small letters or capitals."""


def unreadable(path: Path, reason: object) -> InputError:
    """InputError I011: a file has no values, for a reason."""
    if isinstance(reason, OSError) and reason.strerror:
        reason = reason.strerror.lower()
    text = " ".join(str(reason).split()) or type(reason).__name__
    return InputError("I011", f"can't read values from {path}: {text[:MAX_REASON]}")


@contextmanager
def memory_for(path: Path) -> Iterator[None]:
    """A context for reading a file, in which lack of memory is an error of the file."""
    try:
        yield
    except MemoryError:
        raise unreadable(path, "no memory is left for it") from None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, a line of the file each, with these lines' numbers; or one column of them.

    Cells remain texts until a type is known, so that every number is rounded once.
    """

    path: Path
    lines: Sequence[str]
    numbers: Sequence[int]
    column: int | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        if not self.lines:
            return (0, 0)
        return len(self.lines), 1 if self.column is not None else _width(self.lines[0])

    def cells(self) -> Iterator[str]:
        """The texts, row by row."""
        k = self.column
        if k is None:
            return chain.from_iterable(line.split(",") for line in self.lines)
        return (line.split(",", k + 1)[k] for line in self.lines)

    def check(self) -> None:
        """InputError I011 for a row of another length than the first, or without the column."""
        k = self.column
        widths = set(map(_width, self.lines))
        if min(widths, default=math.inf) > k if k is not None else len(widths) <= 1:
            return
        first = self.lines[0]
        for number, line in zip(self.numbers, self.lines, strict=True):
            if k is None and _width(line) != _width(first):
                other = f"and line {self.numbers[0]} has {_width(first)}"
            elif k is not None and _width(line) <= k:
                other = f"too few for column {k + 1}"
            else:
                continue
            here = f"line {number} has {count(_width(line), 'number')}"
            raise unreadable(self.path, f"{here}, {other}")

    def array(self, sys: NumberSystem, raw: Callable[[Any], Any]) -> NDArray[Any]:
        """The numbers as arrays of a type store them.

        `raw` gives the raw value of a literal.  ValueError for a number that has none, with its
        place; InputError I011 for a cell that is not a number.
        """
        with memory_for(self.path):
            found, unsure = self._plain(sys)
            if unsure.any():
                for k, cell in enumerate(self.cells()):
                    if unsure[k]:
                        found[k] = self._raw(k, cell, raw)
            return found.reshape(self.shape)

    def literals(self) -> list[Any]:
        """The numbers as literals, row by row; InputError I011 or I003 if one is not a literal."""
        with memory_for(self.path):
            try:
                return list(map(int, self.cells()))
            except ValueError:
                return [self._literal(k, cell) for k, cell in enumerate(self.cells())]

    def _plain(self, sys: NumberSystem) -> tuple[NDArray[Any], NDArray[Any]]:
        """The numbers read all together, and where this may differ from what their texts say."""
        t, dtype = sys.type, sys.dtype
        size = self.shape[0] * self.shape[1]
        one_by_one = np.zeros(size, dtype), np.ones(size, bool)
        kind: type = int
        if t.is_complex:
            kind = complex
        elif t.is_float and np.finfo(dtype).eps == sys.unit:
            kind, dtype = float, np.dtype(np.float64)
        elif not t.is_integer:
            return one_by_one
        try:
            with warnings.catch_warnings():
                # NumPy 1 only warns of a number out of range.
                warnings.simplefilter("error", DeprecationWarning)
                found = np.fromiter(map(kind, self.cells()), dtype, size)
        except (ValueError, OverflowError, DeprecationWarning):
            return one_by_one
        if kind is int:
            return found, np.zeros(size, bool)
        unsure: NDArray[np.bool_] = _unsure(found.view(np.float64), sys.dtype)
        if t.is_complex:
            unsure = np.any(unsure.reshape(-1, 2), axis=1)
        with np.errstate(over="ignore", under="ignore"):
            return found.astype(sys.dtype, copy=False), unsure

    def _raw(self, k: int, cell: str, raw: Callable[[Any], Any]) -> Any:
        """The raw value of a cell."""
        value = self._literal(k, cell)
        try:
            return raw(value)
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"{self._place(k)} of {self.path}: {error}") from None

    def _literal(self, k: int, cell: str) -> Any:
        """The number that a cell is."""
        text = cell.strip()
        try:
            return _number(text)
        except InputError as error:
            if error.code != "I010":
                error.message = f"{self._place(k)} of {self.path}: {error.message}"
                raise
            wrong = error.message
        if not text:
            wrong = "is empty"
        elif not _is_number(text):
            wrong = f"`{text[:MAX_CELL]}` is not a number"
        raise unreadable(self.path, f"{self._place(k)}: {wrong}")

    def _place(self, k: int) -> str:
        """Where in the file a number is."""
        row, column = divmod(k, self.shape[1])
        return f"line {self.numbers[row]}, column {(self.column or 0) + column + 1}"


def read_table(text: str, path: Path, column: str | None) -> tuple[list[str], Table]:
    """The names in a table's header, none if it has no header, and the table below.

    The first line is a header if no cell of it is a number, or if one is the name of `column`.
    """
    lines = text.splitlines()
    numbers: Sequence[int] = range(1, len(lines) + 1)
    if "#" in text or not all(map(str.strip, lines)):
        numbers = [n for n in numbers if lines[n - 1].partition("#")[0].strip()]
        lines = [lines[n - 1] for n in numbers]
    header: list[str] = []
    if lines:
        header = [cell.strip().strip('"') for cell in lines[0].split(",")]
        first = lines[0].partition("#")[0].split(",")
        if column not in header and any(map(_is_number, map(str.strip, first))):
            header = []
    if header:
        lines, numbers = lines[1:], numbers[1:]
    if "#" in text:
        lines = [line.partition("#")[0] for line in lines]
    return header, Table(path, lines, numbers)


def _width(line: str) -> int:
    return line.count(",") + 1


def _unsure(read: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Where floats of type f64, nearest to texts, may differ from the texts' values in a type.

    These are whole numbers that need not be exact, infinities that may be finite, -0, which as a
    whole number has no sign, and what is midway between two f32, perhaps only by rounding.
    """
    size, info = np.abs(read), np.finfo(dtype)
    unsure: NDArray[Any] = (size >= 2 / float(info.eps)) | ((read == 0) & np.signbit(read))
    if dtype == np.float32:
        rest = read.view(np.int64) & ((1 << 29) - 1)
        unsure |= (rest == 1 << 28) | ((size < float(info.smallest_normal)) & (read != 0))
    return unsure


def _number(text: str) -> Any:
    """The number that a text is; InputError I010 or I003 if it is not one."""
    value = plain_number(text)
    if value is not None:
        return value
    if text.lstrip("+-").lower() in _WORDS:
        return float(text)
    value = read_literal(text, files=None)
    if not isinstance(value, (bool, int, Decimal, float, complex, Typed)):
        raise InputError("I010", "this is not a number")
    return value


def _is_number(text: str) -> bool:
    """Whether a text is a number, also one that is out of all range."""
    try:
        _number(text)
    except InputError as error:
        if error.code == "I010":
            return _is_large(text.partition("'")[0])
    return True


def _is_large(text: str) -> bool:
    try:
        # `j` alone is a column's name.
        complex(text) if any(map(str.isdigit, text)) else float(text)
    except ValueError:
        return False
    return True
