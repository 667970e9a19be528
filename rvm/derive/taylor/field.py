"""The first and second derivatives of a loss with respect to all values in a machine.

A *slot* represents one real number of the machine: that of a scalar is an int, those of an array an
integer array of its shape.  A complex number has two neighbouring slots, and is identified by the
first.  `Field` holds the vector g of first and the symmetric matrix h of second derivatives with
respect to all slots in use, and converts them from the new values of an instruction to the old:

    g' = Jᵀ g,    h' = Jᵀ h J + Σₖ gₖ d²Fₖ

where J is the Jacobian of the instruction F, which is the identity except for the slots that it
touches.  Only their rows and columns are computed.  Slots whose entries in g and h are still zero
pass nothing on, even through infinite derivatives.  Source: J.-G. Liu and T. Zhao, "Instruction
level automatic differentiation on a reversible Turing machine" (2020), section III.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.engines.evaluate import evaluate
from rvm.expr import Expr, Index, Part, Peek, Place, Shaped, Span, Transposed
from rvm.faults import LimitError

Slots = int | NDArray[np.int64]
"""A scalar's slot, or an array of those of an array."""
Term = tuple[Slots, Any]
"""A term of a derivative: the slots read, and the partial derivatives, one per value or a
matrix."""
Bend = tuple[Any, Any, Any]
"""Two slots read together, and the second derivative by them (half of it if they are one)."""
Regs = Sequence[Any]
FIRST = 32
"""The number of slots that a new field has room for."""
MOST_BYTES = 1 << 31
"""The size in bytes of the largest matrix without a memory limit."""


class Field:
    """Derivatives by slots; `limit` is the most bytes that the matrix may take."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = MOST_BYTES if limit is None else limit
        self.g: NDArray[np.float64] = np.zeros(FIRST)
        self.h: NDArray[np.float64] = np.zeros((FIRST, FIRST))
        self._seeded: NDArray[np.bool_] = np.zeros(FIRST, bool)
        self._bent: NDArray[np.bool_] = np.zeros(FIRST, bool)
        """The slots with derivatives that may not be zero, in g and in h."""
        self.top = 0
        """The first slot that has never been used."""
        self.operations = 0
        """Sums of a product that were made in g and h so far."""
        self._free: dict[int, list[int]] = {1: [], 2: []}
        """Slots to be used again, single ones and pairs."""

    def new(self, shape: tuple[int, ...] | None, wide: bool) -> Slots:
        """Slots of zero derivatives for a scalar (None) or an array; `wide`: complex numbers."""
        if shape is None:
            return self._take(1 + wide)
        size = int(np.prod(shape, dtype=np.int64))
        return np.array([self._take(1 + wide) for _ in range(size)], np.int64).reshape(shape)

    def _take(self, width: int) -> int:
        free = self._free[width]
        if free:
            return free.pop()
        slot = self.top
        if slot + width > len(self.g):
            self._grow()
        self.top = slot + width
        return slot

    def _grow(self) -> None:
        old, size = len(self.g), 2 * len(self.g)
        if 8 * size * size > self.limit:
            raise LimitError(
                "R011",
                f"the second derivatives by more than {old} numbers at once take too much memory",
                values={"would take": 8 * size * size, "limit": self.limit},
                hint='method="forward-over-reverse" holds one row of them at a time',
            )
        g, h = np.zeros(size), np.zeros((size, size))
        g[:old], h[:old, :old] = self.g, self.h
        self.g, self.h = g, h
        more = np.zeros(old, bool)
        self._seeded, self._bent = np.append(self._seeded, more), np.append(self._bent, more)

    def begin(self, slot: Slots) -> None:
        """The derivative of the loss with respect to itself."""
        self.g[slot] = 1.0
        self._seeded[slot] = True

    def is_seeded(self, slots: Slots) -> bool:
        """Whether any of the slots may have a nonzero derivative in g."""
        return bool(self._seeded[slots].any())

    def weighed(self, factors: Iterable[Any], slots: Slots) -> list[Any]:
        """Numbers times the first derivatives by slots; zero for slots without one."""
        g, seeded = self.g[slots], self._seeded[slots]
        if not seeded.any():
            return []
        return [c * g if _is_finite(c) else np.where(seeded, c * g, 0.0) for c in factors]

    def drop(self, slots: Slots, wide: bool) -> None:
        """Free slots, discarding the derivatives with respect to them."""
        every = flat(slots, wide)
        n = self.top
        self.g[every] = 0.0
        self.h[every, :n] = 0.0
        self.h[:n, every] = 0.0
        self._seeded[every] = self._bent[every] = False
        self._free[1 + wide] += [slots] if isinstance(slots, int) else slots.ravel().tolist()

    def exchange(self, a: Slots, b: Slots, wide: bool) -> None:
        """Two places exchange their derivatives."""
        one, two = flat(a, wide), flat(b, wide)
        to, source = np.concatenate([one, two]), np.concatenate([two, one])
        n = self.top
        self.g[to] = self.g[source]
        self.h[to, :n] = self.h[source, :n]
        self.h[:n, to] = self.h[:n, source]
        self._seeded[to], self._bent[to] = self._seeded[source], self._bent[source]

    def pull(
        self, outs: Sequence[tuple[Slots, Sequence[Term]]], bends: Iterable[Bend], replace: bool
    ) -> None:
        """Propagate from new values in the slots `outs`, numbers or rows, to the values read.

        They were added to what was there, or, if `replace`, put in its place.  `bends` are
        second derivatives of the new values, each times its derivative in g.
        """
        n = self.top
        self.operations += (2 * n + 1) * sum(np.size(a) for _, terms in outs for _, a in terms)
        finite = all(_is_finite(a) for _, terms in outs for _, a in terms)
        seeded, bent = [self._seeded[d] for d, _ in outs], [self._bent[d] for d, _ in outs]
        columns = None if finite else self._bent[:n].copy()
        for held, known in ((self.g[None].T, seeded), (self.h[:, :n], bent), (self.h[:n].T, bent)):
            rows = [held[d].copy() for d, _ in outs]
            if replace:
                for d, _ in outs:
                    held[d] = 0.0
            for (_, terms), row, mine in zip(outs, rows, known, strict=True):
                for s, a in terms:
                    if columns is None:
                        _add(held, s, _passed(a, row))
                    elif mine.any():
                        others = np.ones(1, bool) if known is seeded else columns
                        _add(held, s, _masked(a, row, mine, others))
                        if known is bent:
                            columns[s] = True
        if replace:
            for d, _ in outs:
                self._seeded[d] = self._bent[d] = False
        for (_, terms), one, two in zip(outs, seeded, bent, strict=True):
            for s, _ in terms if one.any() else ():
                self._seeded[s] = True
            for s, _ in terms if two.any() else ():
                self._bent[s] = True
        for s, t, c in bends:
            self._bent[s] = self._bent[t] = True
            _add(self.h, (s, t), c)
            _add(self.h, (t, s), c)
            self.operations += 2 * np.size(c)


def _is_finite(a: Any) -> bool:
    return isfinite(a) if isinstance(a, float) else bool(np.isfinite(a).all())


def _passed(a: Any, row: Any) -> Any:
    """Rows of derivatives of new values, times their derivatives by the values read."""
    if isinstance(a, float):
        return a * row
    return a.T @ row if a.ndim == 2 else a[:, None] * row


def _masked(a: Any, row: Any, mine: Any, others: NDArray[np.bool_]) -> Any:
    """The same, restricted to nonzero derivatives: rows in `mine`, columns in `others`."""
    if isinstance(a, float):
        return np.where(mine & others, a * row, 0.0)
    known = mine[:, None] & others
    if a.ndim == 1:
        return np.where(known, a[:, None] * row, 0.0)
    return np.where(known[:, None], a[..., None] * row[:, None], 0.0).sum(axis=0)


def _add(held: Any, at: Any, part: Any) -> None:
    """Add to rows or elements, which may be named several times."""
    if isinstance(at, int) or (isinstance(at, np.ndarray) and len(set(at.tolist())) == len(at)):
        held[at] += part
    else:
        np.add.at(held, at, part)


def flat(slots: Slots, wide: bool = False) -> NDArray[np.int64]:
    """Slots in a row; for complex numbers alternating real and imaginary parts."""
    line = np.asarray(slots, np.int64).reshape(-1)
    return np.stack([line, line + 1], axis=1).reshape(-1) if wide else line


def locate(place: Place, regs: Regs, slots: Sequence[Any]) -> Any:
    """The slots of a place: an int, an array in the place's shape, or a stack's own list.

    `slots` holds for each register an int, an array of ints, a list for a stack, or None.
    """
    base = slots[place.reg]
    part = 0
    for step in place.path:
        if isinstance(step, Index):
            base = base[tuple(_item(i, regs) for i in step.items)]
        elif isinstance(step, Part):
            part = step.name == "im"
        elif isinstance(step, Peek):
            base = base[-1]
        elif isinstance(step, Transposed):
            base = base.T
        elif isinstance(step, Shaped):
            base = base.reshape([int(evaluate(d, regs)) for d in step.dims])
    if part:
        base = base + 1
    return base if isinstance(base, (np.ndarray, list)) else int(base)


def _item(item: Expr | Span, regs: Regs) -> Any:
    if isinstance(item, Span):
        return slice(*(None if e is None else evaluate(e, regs) for e in item.ends))
    return evaluate(item, regs)
