"""Slices of an axis: where one begins, how many elements it has, how far they are apart."""

from __future__ import annotations

from rvm.ir.builder import Builder
from rvm.ir.node import Node, number
from rvm.ir.typed import Unprintable

Ends = tuple[Node | None, ...]
"""lo, hi and by of a slice as i64, or None where they are left out."""
Cut = tuple[Node | None, Node, Node | None]
"""The first index (None: 0), the number of elements, and the step (None: 1)."""


def cut(b: Builder, ends: Ends, length: Node, signed: bool = True, checked: bool = True) -> Cut:
    """A slice of an axis of some length.

    If it is checked, there is trouble unless it is within bounds; `signed` says whether the step
    may be negative. Going down from lo to before hi is going up from hi + 1 to before lo + 1, from
    the other end.
    """
    lo, hi, step = ends
    known = 1 if step is None else number(step)
    if known == 0:
        raise Unprintable
    one, zero = b.i64(1), b.i64(0)
    down: Node | bool = False
    if known is not None:
        down = known < 0
    elif step is not None and signed:
        down = b.op("lt", step, zero)

    def either(upwards: Node, downwards: Node) -> Node:
        if isinstance(down, Node):
            return b.select(down, downwards, upwards)
        return downwards if down else upwards

    bottom = either(zero if lo is None else lo, zero if hi is None else b.sum(hi, one))
    top = either(length if hi is None else hi, length if lo is None else b.sum(lo, one))
    if checked:
        if step is not None and known is None:
            b.trouble(b.op("eq" if signed else "le", step, zero))
        if down is not False:
            for end in (lo, hi):
                if end is not None:
                    b.trouble(b.op("lt", end, zero))
        if top is not length:
            b.trouble(b.op("ugt", top, length))
        if bottom is not zero:
            b.trouble(b.op("ugt", bottom, top))
    count = top if bottom is zero else b.op("wsub", top, bottom)
    if step is None or known == 1:
        return lo, count, None
    size = either(step, b.op("wsub", zero, step))
    if known is None:
        # What is measured but not checked must not be divided by zero.
        size = b.select(b.op("eq", size, zero), one, size)
    count = b.op("udiv", b.op("wadd", count, b.op("wsub", size, one)), size)
    return either(bottom, b.op("wsub", top, one)), count, step
