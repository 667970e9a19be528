"""Copies of what a run may change of a caller's data, and their restoration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from rvm.host.signals import followed
from rvm.program import Function, Layout, Record
from rvm.run.binding import parts
from rvm.types import Stack

LARGE = 1 << 16
"""The size in bytes from which arrays are tested for zeros."""
TRIES = 1_000
"""The number of attempts to restore data."""


def snapshot(function: Function, regs: list[Any]) -> list[Any]:
    """Copies of everything of the caller's that a run could change."""
    return [copied(regs[k]) for k in range(function.n_args)]


def copied(v: Any) -> Any:
    """A raw value that a run may change."""
    return v.copy() if isinstance(v, np.ndarray) else list(v) if isinstance(v, list) else v


def before(v: np.ndarray) -> Any:
    """A backup of an array's contents: a copy, or False if all bits of a large array are 0.

    Results are often added to arrays of zeros.  Testing for zeros takes a third of the time of a
    copy, for which memory pages must be allocated.
    """
    if v.nbytes >= LARGE and v.flags.c_contiguous and not v.view(np.bool_).any():
        return False
    return v.copy()


class Saved:
    """Copies of the caller's arrays and lists that a run may change."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        self.pairs = tuple(pairs)
        """Buffers, and their backups."""

    def restore(self) -> BaseException | None:
        """Restore the caller's buffers, whatever is raised in the meantime; return that exception.

        It can be called again, and allocates no memory.
        """
        first, tries = None, 0
        while True:
            try:
                for buffer, copy in self.pairs:
                    if isinstance(buffer, list):
                        buffer[:] = copy
                    else:
                        np.copyto(buffer, copy)
                return first
            except BaseException as error:
                first, tries = followed(first, error), tries + 1
                if tries == TRIES:
                    raise


def saved(regs: list[Any], inout: frozenset[int], stacks: Mapping[int, list[Any]]) -> Saved:
    """Copies of the arrays in registers that may change, and of the caller's lists.

    An array is restored through a view, which stays writable whatever happens to the array.
    """
    arrays = ((regs[k].view(), before(regs[k])) for k in inout if isinstance(regs[k], np.ndarray))
    return Saved([*arrays, *((v, v.copy()) for v in stacks.values())])


def stacks_of(function: Function, inputs: Mapping[str, Any]) -> dict[int, list[Any]]:
    """The caller's lists, by the registers of their stacks."""
    found: dict[int, list[Any]] = {}

    def look(name: str, layout: Layout, value: Any) -> None:
        if isinstance(layout, Record):
            for part in parts(name, layout, value):
                look(*part)
        elif isinstance(function.registers[layout].type, Stack) and isinstance(value, list):
            found[layout] = value

    if any(isinstance(r.type, Stack) for r in function.registers[: function.n_args]):
        for p in function.params:
            if p.name in inputs:
                look(p.name, p.layout, inputs[p.name])
    return found
