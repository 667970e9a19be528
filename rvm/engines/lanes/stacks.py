"""Stacks over lanes: a rectangle of values, and how many of them each lane holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rvm.engines.lanes.faults import Failing


class _Store:
    """The values of all stacks of a register, shape (capacity, lanes), and their depths.

    Values at or above a lane's depth are meaningless.
    """

    __slots__ = ("depth", "values")

    def __init__(self, values: Any, depth: Any) -> None:
        self.values = values
        self.depth = depth


class _Columns:
    """Some columns of a matrix, read and written by rows as in `pick` and `put`."""

    ndim = 2

    def __init__(self, values: Any, columns: Any) -> None:
        self.held, self.columns = values, columns

    def __getitem__(self, at: tuple[Any, Any]) -> Any:
        return self.held[at[0], self.columns]

    def __setitem__(self, at: tuple[Any, Any], value: Any) -> None:
        self.held[at[0], self.columns] = value

    @property
    def real(self) -> _Columns:
        return _Columns(self.held.real, self.columns)

    @property
    def imag(self) -> _Columns:
        return _Columns(self.held.imag, self.columns)


class LaneStack:
    """A stack of scalars in each of some lanes of a store; `lanes` is None for all of them.

    Unlike other registers' values a part of the lanes is not a copy: each works on its own column.
    """

    __slots__ = ("lanes", "store")

    def __init__(self, dtype: np.dtype[Any], width: int) -> None:
        self.store = _Store(np.zeros((4, width), dtype), np.zeros(width, np.int64))
        self.lanes: Any = None

    @classmethod
    def of(cls, lists: Sequence[Sequence[Any]], dtype: np.dtype[Any]) -> LaneStack:
        """A stack from each lane's list."""
        made = cls(dtype, len(lists))
        made.store.depth[:] = [len(held) for held in lists]
        made._reserve(int(made.store.depth.max(initial=0)))
        for k, held in enumerate(lists):
            made.store.values[: len(held), k] = held
        return made

    @property
    def depth(self) -> Any:
        """The number of values in each lane."""
        return self.store.depth if self.lanes is None else self.store.depth[self.lanes]

    @property
    def dtype(self) -> Any:
        """The storage type of the values."""
        return self.store.values.dtype

    def lists(self) -> list[list[Any]]:
        """Each lane's values as a list of Python numbers."""
        rows = np.ascontiguousarray(self.store.values[:, self._columns()].T)
        return [row[:n].tolist() for row, n in zip(rows, self.depth.tolist(), strict=True)]

    def _reserve(self, n: int) -> None:
        capacity, width = self.store.values.shape
        if n > capacity:
            more = np.zeros((max(n, 2 * capacity) - capacity, width), self.dtype)
            self.store.values = np.concatenate([self.store.values, more])

    def _columns(self) -> Any:
        return np.arange(len(self.store.depth)) if self.lanes is None else self.lanes

    def push(self, x: Any) -> None:
        """Put a value on every lane's stack."""
        depth, columns = self.depth, self._columns()
        self._reserve(int(depth.max(initial=0)) + 1)
        self.store.values[depth, columns] = x
        self.store.depth[columns] += 1

    def ready(self, w: int) -> None:
        """Failing where a stack is empty."""
        bad = self.depth == 0
        if bad.any():
            raise Failing(bad)

    @property
    def values(self) -> Any:
        """The values, a row for each height and a column for each of these lanes."""
        return self.store.values if self.lanes is None else _Columns(self.store.values, self.lanes)

    def last(self, mask: Any) -> Any:
        """The row of every lane's top; Failing where a lane (of the mask) has none."""
        bad = self.depth == 0
        if mask is not None:
            bad = bad & mask
        if bad.any():
            raise Failing(bad)
        return np.maximum(self.depth - 1, 0)

    def count(self) -> Any:
        """The number of values in each lane, as a copy."""
        return np.array(self.depth)

    def pop(self) -> Any:
        """Pop a value from every lane's stack."""
        columns = self._columns()
        self.store.depth[columns] -= 1
        return self.store.values[self.store.depth[columns], columns]

    def empty(self) -> None:
        """Failing where a stack is not empty."""
        bad = self.depth != 0
        if bad.any():
            raise Failing(bad)

    def part(self, lanes: Any) -> LaneStack:
        """The stacks of some lanes, in the same store."""
        made = LaneStack.__new__(LaneStack)
        made.store = self.store
        made.lanes = lanes if self.lanes is None else self.lanes[lanes]
        return made

    def copy(self, lanes: Any) -> LaneStack:
        """The stacks of some lanes, copied."""
        columns = self._columns()[lanes]
        made = LaneStack.__new__(LaneStack)
        made.store = _Store(self.store.values[:, columns], self.store.depth[columns])
        made.lanes = None
        return made

    def put(self, lanes: Any, other: LaneStack) -> None:
        """Store the stacks of some lanes, where they are not here already."""
        if other.store is self.store:
            return
        columns, theirs = self._columns()[lanes], other._columns()
        values = other.store.values
        self._reserve(len(values))
        self.store.values[: len(values), columns] = values[:, theirs]
        self.store.depth[columns] = other.store.depth[theirs]
