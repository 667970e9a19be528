"""The leaves of states: arrays, numbers, bytes; their kinds, and operations on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

NUMBERS: dict[type, tuple[type, ...]] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (float, np.floating),
    complex: (complex, np.complexfloating),
    bytes: (bytes,),
}
"""The types of leaves besides arrays, and those that a step may return for each."""
NUMBER_BYTES = {bool: 8, int: 8, float: 8, complex: 16}
COMPARED = 1 << 14
"""Elements that are compared at a time."""
TYPICAL = "an array, a number or bytes, or tuples and dicts of these"


@dataclass(frozen=True, slots=True)
class ArrayLeaf:
    """An array of the input: its dtype and shape."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


@dataclass(frozen=True, slots=True)
class PlainLeaf:
    """A number or bytes of the input."""

    type: type
    size: int

    def __str__(self) -> str:
        return self.type.__name__


Leaf = ArrayLeaf | PlainLeaf


class OddError(Exception):
    """An unusual value that must be examined more closely."""


def leaf_keeper(leaf: Leaf) -> Callable[[Any], Any]:
    """A function that makes a leaf read-only, if all about it is in order."""
    if isinstance(leaf, PlainLeaf):
        accepted = NUMBERS[leaf.type]

        def keep_plain(value: Any) -> Any:
            if not isinstance(value, accepted):
                raise OddError
            return value

        return keep_plain
    dtype, shape, array = leaf.dtype, leaf.shape, np.ndarray

    def keep_array(value: Any) -> Any:
        if type(value) is not array or value.dtype is not dtype or value.shape != shape:
            raise OddError
        if value.base is not None:
            value = value.copy()
        value.setflags(write=False)
        return value

    return keep_array


def protected(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A read-only view of an array."""
    view = array.view()
    view.setflags(write=False)
    return view


def owned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array with its own memory that can't be changed: a copy of a part of another."""
    if array.base is not None:
        array = array.copy()
    array.setflags(write=False)
    return array


def opened(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array that can be changed again: a copy of a part of another."""
    if array.base is not None:
        return array.copy()
    array.setflags(write=True)
    return array


def leaf_bytes(leaf: Leaf) -> int:
    """The size of a leaf."""
    if isinstance(leaf, PlainLeaf):
        return leaf.size
    return int(np.prod(leaf.shape, dtype=np.int64)) * leaf.dtype.itemsize


def fits(leaf: Leaf, value: Any) -> bool:
    """Whether a value has the kind and shape of a leaf."""
    if isinstance(leaf, PlainLeaf):
        return isinstance(value, NUMBERS[leaf.type])
    return isinstance(value, np.ndarray) and value.dtype == leaf.dtype and value.shape == leaf.shape


def same(a: Any, b: Any) -> bool:
    """Whether two leaves have the same values; of large arrays a part is compared at a time."""
    if not isinstance(a, np.ndarray) or a.size <= COMPARED:
        equal = a == b
        return bool(np.all(equal)) or bool(np.all(equal | ((a != a) & (b != b))))
    if len(a) == 1:
        return same(a[0], b[0])
    rows = max(1, COMPARED * len(a) // a.size)
    return all(same(a[k : k + rows], b[k : k + rows]) for k in range(0, len(a), rows))


def in_words(value: Any) -> str:
    """A description of a value, for messages."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, tuple):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, dict):
        return f"a dict of {', '.join(map(repr, value)) or 'nothing'}"
    return "None" if value is None else f"a {type(value).__name__}"
