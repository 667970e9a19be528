"""Dependences between iterations, found in advance from the elements that a loop's body uses.

An element that an iteration changes may be used by another only if that one comes before it (it
then reads the old memory), or so much later that a piece of the loop ends in between.
"""

from __future__ import annotations

from typing import cast

from rvm.engines.vector.access import Access, Relation, relation
from rvm.engines.vector.body import Arm, Merge
from rvm.engines.vector.loops import Declined
from rvm.engines.vector.slots import Slot, combiner
from rvm.engines.vector.trace import Trace
from rvm.expr import reads

LEAST_DELAY = 64
"""The least distance of dependent iterations: for a smaller one, pieces would be too short."""


class Dependences:
    """The dependences between a body's elements. Declined where iterations must wait for others."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.counted = trace.counted
        self._slots = [s for s in trace.slots.values() if s.found is not None]
        self.cells = [s for s in trace.slots.values() if s.is_cell]
        self.limit = 0
        """The most iterations that a piece may have; 0: any number."""
        self.apart: list[tuple[Access, Access]] = []
        """Pairs of elements that the run must find to be disjoint."""
        self.delayed: dict[Slot, Slot] = {}
        """Elements that the previous iteration changed, each with the slot in which it did so."""
        self.distinct: set[Access] = set()
        """Scattered elements that the run must find to be different in all iterations."""
        self.met: dict[Access, list[Access]] = {}
        """For scattered elements those from which they are checked to differ in all iterations."""
        self.summed: list[Slot] = []
        """The elements of arrays that are only added to: an element is reached by the first of
        those of its array in an earlier iteration than by the next."""
        for reg in dict.fromkeys(_access(s).reg for s in self._slots):
            self._order([s for s in self._slots if _access(s).reg == reg])
        self._compare()
        self.elements = [s for s in self._slots if s.ops and not (s.is_cell or self.is_sum(s))]
        """Elements that each iteration changes separately."""
        for slot in trace.slots.values():
            if self.is_apart(slot):
                combiner(slot.ops, slot.type)

    def is_sum(self, slot: Slot) -> bool:
        """Whether an element is only added to, in an order of its own."""
        return slot.is_summed or slot in self.summed

    def is_apart(self, slot: Slot) -> bool:
        """Whether a slot's value is not computed by iterations, but at the end."""
        return slot.is_running or self.is_sum(slot)

    def is_handed(self, slot: Slot) -> bool:
        """Whether iterations receive in a slot the value left by the previous one."""
        return slot.is_cell or slot in self.delayed

    def left(self, slot: Slot) -> tuple[Arm, int]:
        """The arm that stores a slot, and the value left there; other lanes do not change it."""
        trace = self.trace
        arm, reg = trace.root, cast(int, trace.env[slot.key])
        while isinstance(made := trace.made[reg], Merge) and slot in self.elements:
            if (
                len(made.sides) > 1
                or reg in trace.asked
                or made.old != trace.place(slot.entry)
                or slot in self.delayed.values()
            ):
                break
            arm, reg = made.sides[0][0], made.sides[0][1].reg
        return arm, reg

    def _relation(self, one: Slot, other: Slot) -> Relation:
        return relation(_access(one), _access(other), self.counted.stride)

    def _order(self, slots: list[Slot]) -> None:
        """Enter an array's elements if they are only added to, and iterations share them."""
        if any(s.is_read or _access(s).kind != "stream" or not s.ops <= {"+", "-"} for s in slots):
            return
        later: dict[Slot, set[Slot]] = {s: set() for s in slots}
        """Uses of an element that precede each slot."""
        for one in slots:
            for two in slots:
                if one is two:
                    continue
                found = self._relation(one, two)
                if found.never:
                    continue
                if found.delay is None:
                    return
                if found.delay > 0:
                    later[two].add(one)
        if not any(later.values()):
            return
        order: list[Slot] = []
        while len(order) < len(slots):
            order.append(next(s for s in slots if s not in order and later[s] <= set(order)))
        self.summed += order

    def _compare(self) -> None:
        for one in (s for s in self._slots if s.ops):
            a = _access(one)
            for other in self._slots:
                b = _access(other)
                if b.reg != a.reg or other is one or one in self.summed:
                    continue
                if a.part != b.part and not (a.part and b.part):
                    raise Declined(f"it uses {one.label} and {other.label}")
                if a.kind == b.kind == "scattered":
                    raise Declined(f"{other.label} may be {one.label} of another iteration")
                if "scattered" in (a.kind, b.kind):
                    loose, firm = (a, b) if a.kind == "scattered" else (b, a)
                    if firm not in self.met.setdefault(loose, []):
                        self.met[loose].append(firm)
                    continue
                self._pair(one, other)
            if a.kind == "scattered":
                self._scattered(one)

    def _scattered(self, one: Slot) -> None:
        """A scattered element that is changed: by sums in order, or each in one iteration only."""
        if one.is_summed:
            return
        axes = _access(one).axes
        steady = self.counted.fixed | {self.counted.var}
        if any(p.reg not in steady for axis in axes for p in reads(axis.index)):
            raise Declined(f"the index of {one.label} changes within an iteration")
        if any(a.rest is not None and a.rate for a in axes):
            return
        if sum(a.rest is None for a in axes) > 1:
            raise Declined(f"{one.label} may be one element in several iterations")
        self.distinct.add(_access(one))

    def _pair(self, one: Slot, other: Slot) -> None:
        """An element that is changed, and another one."""
        found, both = self._relation(one, other), bool(other.ops)
        if found.never or found.delay == 0:
            return
        if found.delay is None:
            self.apart.append((_access(one), _access(other)))
        elif found.delay > 0 or both:
            delay = abs(found.delay)
            if delay == 1 and not both and other not in self.delayed:
                self.delayed[other] = one
                return
            if delay < LEAST_DELAY:
                what = "changes" if both else "reads"
                first, then = (one, other) if found.delay > 0 else (other, one)
                raise Declined(
                    f"{then.label} {what} what an iteration {delay} before "
                    f"has changed as {first.label}"
                )
            self.limit = min(self.limit or delay, delay)


def _access(slot: Slot) -> Access:
    assert slot.found is not None
    return slot.found
