"""The first and second derivatives of a loss by everything that a machine holds.

A *slot* stands for one real number of the machine: that of a scalar is an int, those of an array an
integer array of its shape.  A complex number has two neighbouring slots, of which the first is
named.  `Field` holds the vector g of first and the symmetric matrix h of second derivatives by all
slots in use, and takes them from the new values of an instruction to the old:

    g' = Jᵀ g,    h' = Jᵀ h J + Σₖ gₖ d²Fₖ

where J is the Jacobian of the instruction F, the identity but for the slots that it touches.  Only
their rows and columns are computed.  Source: J.-G. Liu and T. Zhao, "Instruction level automatic
differentiation on a reversible Turing machine" (2020), section III.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rvm.faults import LimitError

Slots = int | NDArray[np.int64]
"""A scalar's slot, or an array of those of an array."""
Term = tuple[Slots, Any]
"""A place that is read, and the partial derivative by it, of one shape with what is computed."""
Bend = tuple[Slots, Slots, Any]
"""Two operands that are read, and the second derivative by them: half of it by one twice."""
FIRST = 32
"""Slots that a field begins with room for; more are made as they are needed."""
MOST_BYTES = 1 << 31
"""The largest matrix that is made, where no memory limit is set."""


class Field:
    """Derivatives by slots; `limit` is the most bytes that the matrix may take."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = MOST_BYTES if limit is None else limit
        self.g: NDArray[np.float64] = np.zeros(FIRST)
        self.h: NDArray[np.float64] = np.zeros((FIRST, FIRST))
        self.top = 0
        """Slots with a number from here on have never been used."""
        self.operations = 0
        """Sums of a product that were made in g and h so far."""
        self._free: dict[int, list[int]] = {1: [], 2: []}
        """Slots given back, alone and in pairs."""

    # ------------------------------------------------------------ slots

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

    def drop(self, slots: Slots, wide: bool) -> None:
        """Give slots up: derivatives by them are forgotten."""
        every = flat(slots, wide)
        n = self.top
        self.g[every] = 0.0
        self.h[every, :n] = 0.0
        self.h[:n, every] = 0.0
        self._free[1 + wide] += [slots] if isinstance(slots, int) else slots.ravel().tolist()

    def exchange(self, a: Slots, b: Slots, wide: bool) -> None:
        """Two places exchange their derivatives."""
        one, two = flat(a, wide), flat(b, wide)
        to, source = np.concatenate([one, two]), np.concatenate([two, one])
        n = self.top
        self.g[to] = self.g[source]
        self.h[to, :n] = self.h[source, :n]
        self.h[:n, to] = self.h[:n, source]

    # ------------------------------------------------------------ instructions undone

    def gain(
        self, d: int, terms: Sequence[tuple[int, float]], bends: Sequence[tuple[int, int, float]]
    ) -> None:
        """The scalar `d` was increased by a function of others: these gain."""
        g, h, n = self.g, self.h, self.top
        seed = g.item(d)
        row = h[d, :n].copy()
        corner = row.item(d)
        for s, a in terms:
            g[s] += a * seed
            part = a * row
            h[s, :n] += part
            h[:n, s] += part
        if corner != 0.0:
            for s, a in terms:
                for t, b in terms:
                    h[s, t] += a * b * corner
        for s, t, c in bends:
            h[s, t] += seed * c
            h[t, s] += seed * c
        self.operations += len(terms) * (2 * n + 1 + len(terms)) + 2 * len(bends)

    def pull(
        self, outs: Sequence[tuple[Slots, Sequence[Term], Sequence[Bend]]], replace: bool
    ) -> None:
        """New values were computed element by element; each out has its terms and bends.

        They were added to what was there, or, if `replace`, put in its place.
        """
        g, h, n = self.g, self.h, self.top
        dsts = [flat(out[0]) for out in outs]
        seeds = [g[d] for d in dsts]
        rows = [h[d, :n] for d in dsts]
        if replace:
            for d in dsts:
                g[d] = 0.0
                h[d, :n] = 0.0
        for (dst, terms, _), seed, row in zip(outs, seeds, rows, strict=True):
            for slots, a in terms:
                a, (s, single) = _line(dst, a), _along(dst, slots)
                if isinstance(s, int):
                    g[s] += a @ seed
                    h[s, :n] += a @ row
                elif single:
                    g[s] += a * seed
                    h[s, :n] += a[:, None] * row
                else:
                    np.add.at(g, s, a * seed)
                    np.add.at(h[:, :n], s, a[:, None] * row)
        columns = [h[:n, d] for d in dsts]
        if replace:
            for d in dsts:
                h[:n, d] = 0.0
        for (dst, terms, _), column in zip(outs, columns, strict=True):
            for slots, a in terms:
                a, (s, single) = _line(dst, a), _along(dst, slots)
                if isinstance(s, int):
                    h[:n, s] += column @ a
                elif single:
                    h[:n, s] += column * a
                else:
                    np.add.at(h[:n].T, s, (column * a).T)
                self.operations += (2 * n + 1) * len(a)
        for (dst, _, bends), seed in zip(outs, seeds, strict=True):
            for one, two, c in bends:
                line = _line(dst, c)
                self._bend(_along(dst, one)[0], _along(dst, two)[0], seed * line)
                self.operations += 2 * len(line)

    def _bend(self, s: Slots, t: Slots, c: Any) -> None:
        """Add second derivatives by s and t on both sides of the diagonal.

        Where the two are one operand, `c` is half of the derivative.
        """
        h = self.h
        if isinstance(s, int) and isinstance(t, int):
            total = float(np.sum(c))
            h[s, t] += total
            h[t, s] += total
        else:
            np.add.at(h, cast("Any", (s, t)), c)
            np.add.at(h, cast("Any", (t, s)), c)

    def transform(
        self,
        d: NDArray[np.int64],
        t: NDArray[np.int64],
        jacobian: NDArray[np.float64],
        bend: NDArray[np.float64],
        replace: bool,
    ) -> None:
        """The slots `d` got new values computed from those in `t`, which may name slots twice.

        `jacobian` has a row for each of `d`, a column for each of `t`; `bend` is the matrix of the
        second derivatives by `t` of the new values, each times its first derivative in g.
        """
        g, h, n = self.g, self.h, self.top
        seed, row = g[d], h[d, :n]
        if replace:
            g[d] = 0.0
            h[d, :n] = 0.0
        np.add.at(g, t, seed @ jacobian)
        np.add.at(h[:, :n], t, jacobian.T @ row)
        column = h[:n, d]
        if replace:
            h[:n, d] = 0.0
        np.add.at(h[:n].T, t, (column @ jacobian).T)
        np.add.at(h, (t[:, None], t[None, :]), bend)
        self.operations += len(d) * len(t) * (2 * n + 1) + bend.size


def flat(slots: Slots, wide: bool = False) -> NDArray[np.int64]:
    """Slots in a row; of complex numbers the real and the imaginary part of each in turn."""
    line = np.asarray(slots, np.int64).reshape(-1)
    return np.stack([line, line + 1], axis=1).reshape(-1) if wide else line


def _line(dst: Slots, a: Any) -> NDArray[np.float64]:
    """Numbers broadcast to the shape of `dst`, in a row."""
    if isinstance(dst, int):
        return np.array([a], np.float64)
    line = np.asarray(a, np.float64)
    return (line if line.shape == dst.shape else np.broadcast_to(line, dst.shape)).reshape(-1)


def _along(dst: Slots, slots: Slots) -> tuple[Slots, bool]:
    """Slots broadcast to the shape of `dst`, in a row; whether each is another, or they are one."""
    if isinstance(slots, int):
        return slots, True
    shape = np.shape(dst)
    if slots.shape == shape:
        return slots.reshape(-1), True
    return np.broadcast_to(slots, shape).reshape(-1), False
