"""Stacks over lanes: a rectangle of values, and how many of them each lane holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rvm.engines.lanes.faults import Failing


class LaneStack:
    """A stack of scalars in each of `width` lanes.

    `values` has the shape (capacity, width); what lies at or above a lane's depth is of no account.
    """

    __slots__ = ("depth", "values")

    def __init__(self, dtype: np.dtype[Any], width: int) -> None:
        self.values: Any = np.zeros((4, width), dtype)
        self.depth: Any = np.zeros(width, np.int64)

    @classmethod
    def of(cls, lists: Sequence[Sequence[Any]], dtype: np.dtype[Any]) -> LaneStack:
        """A stack from each lane's list."""
        made = cls(dtype, len(lists))
        made.depth = np.array([len(held) for held in lists], np.int64)
        made._reserve(int(made.depth.max(initial=0)))
        for k, held in enumerate(lists):
            made.values[: len(held), k] = held
        return made

    def lists(self) -> list[list[Any]]:
        """Each lane's values as a list of Python numbers."""
        return [self.values[:n, k].tolist() for k, n in enumerate(self.depth)]

    def _reserve(self, n: int) -> None:
        capacity, width = self.values.shape
        if n > capacity:
            more = np.zeros((max(n, 2 * capacity) - capacity, width), self.values.dtype)
            self.values = np.concatenate([self.values, more])

    def push(self, x: Any) -> None:
        """Put a value on every lane's stack."""
        self._reserve(int(self.depth.max(initial=0)) + 1)
        self.values[self.depth, np.arange(len(self.depth))] = x
        self.depth += 1

    def ready(self, w: int) -> None:
        """Failing where there is nothing to take."""
        bad = self.depth == 0
        if bad.any():
            raise Failing(bad)

    def pop(self) -> Any:
        """Take a value from every lane's stack."""
        self.depth -= 1
        return self.values[self.depth, np.arange(len(self.depth))]

    def empty(self) -> None:
        """Failing where a stack is not empty."""
        bad = self.depth != 0
        if bad.any():
            raise Failing(bad)

    def take(self, lanes: Any) -> LaneStack:
        """The stacks of some lanes, copied."""
        made = LaneStack.__new__(LaneStack)
        made.values, made.depth = self.values[:, lanes], self.depth[lanes]
        return made

    def put(self, lanes: Any, other: LaneStack) -> None:
        """Store the stacks of some lanes."""
        self._reserve(len(other.values))
        self.values[: len(other.values), lanes] = other.values
        self.depth[lanes] = other.depth
