"""Which iterations depend on which: the places that a loop's body reaches, compared beforehand.

An element that an iteration changes may be reached by another only if that one comes before it (it
then reads what memory held), or so much later that a piece of the loop ends in between.
"""

from __future__ import annotations

from collections.abc import Hashable

from rvm.engines.vector.access import Access, access, relation
from rvm.engines.vector.loops import Counted, Declined
from rvm.expr import Expr, Place, children, reads
from rvm.image import Code
from rvm.stmt import (
    Alloc,
    Drop,
    Exchange,
    Free,
    Fresh,
    Pop,
    Push,
    Stmt,
    Update,
    When,
    values,
    writes,
)
from rvm.types import Array, Stack, rank_of
from rvm.verify.text import show

LEAST_DELAY = 64
"""Iterations that are nearer to each other are not taken apart: the pieces would be too short."""
MOST = 200
"""Elements that are compared with each other."""


class Survey:
    """What a body reaches.  Declined where iterations must come one after the other."""

    def __init__(self, code: Code, counted: Counted) -> None:
        self.code = code
        self.counted = counted
        self.function = code.function
        self._ops: dict[Hashable, set[str]] = {}
        """By register or element: the operators of updates, and "" for any other change."""
        self._first: dict[int, type] = {}
        """How each register that changes appears first."""
        self._written: dict[Hashable, Access] = {}
        self._read: dict[Hashable, Access] = {}
        for pc in range(counted.first, counted.stop):
            for stmt in (*code.stmts(pc), *code.notes(pc)):
                self._look(stmt)
        self.limit = 0
        """The most iterations that a piece may have; 0: any number."""
        self.apart: list[tuple[Access, Access]] = []
        """Elements that the run must find apart."""
        self.delayed: dict[Hashable, tuple[Access, Access]] = {}
        """Elements that the iteration before has changed: they themselves, and what it changed."""
        self.distinct: dict[Hashable, Access] = {}
        """Scattered elements that the run must find to be different in all iterations."""
        self.met: dict[Hashable, dict[Hashable, Access]] = {}
        """For scattered elements those that they must not be, in any iteration: the run finds."""
        self.summed: dict[int, list[Hashable]] = {}
        """Arrays that are only added to, by the keys of their elements: an element is reached by
        the first of them in an earlier iteration than by the next."""
        if len(self.reached) > MOST:
            raise Declined(f"it reaches more than {MOST} elements of the arrays that it changes")
        for reg in {one.reg for one in self._written.values()}:
            self._order(reg)
        self._compare()

    # ------------------------------------------------------------ what there is

    @property
    def carried(self) -> list[int]:
        """The scalar registers that are changed and were alive before."""
        registers = self.function.registers
        return [
            reg
            for reg, first in self._first.items()
            if first not in (Alloc, Fresh)
            and reg in self._ops
            and not isinstance(registers[reg].type, (Array, Stack))
        ]

    @property
    def cells(self) -> list[Access]:
        """The elements that are changed and are the same in every iteration."""
        return [a for a in self._written.values() if a.kind == "cell"]

    @property
    def reached(self) -> dict[Hashable, Access]:
        """All elements of arrays that are changed, by their keys."""
        return {**self._read, **self._written}

    def updates(self, key: Hashable) -> set[str]:
        """The operators that change a register or an element; none if anything else does."""
        ops = self._ops.get(key, set())
        return set() if "" in ops else ops

    def show(self, found: Access) -> str:
        """An element as the assembly language writes it."""
        return f"`{show(found.place, self.function)}`"

    def _look(self, stmt: Stmt) -> None:
        match stmt:
            case When(cond, body):
                self._reads(cond)
                for inner in body:
                    self._look(inner)
                return
            case Alloc(reg) | Free(reg) | Fresh(reg) | Drop(reg) if isinstance(
                self.function.registers[reg.reg].type, (Array, Stack)
            ):
                name = self.function.registers[reg.reg].name
                raise Declined(f"`{name}` is an array or a stack of each iteration's own")
            case Push(_, stack) | Pop(_, stack):
                name = self.function.registers[stack.reg].name
                raise Declined(f"iterations share the stack `{name}`")
        for value in (stmt.a, stmt.b) if isinstance(stmt, Exchange) else values(stmt):
            self._reads(value)
        for place in writes(stmt):
            self._writes(place, stmt.op if isinstance(stmt, Update) else "", stmt)

    def _reads(self, node: Expr) -> None:
        for place in reads(node):
            if place.reg in self.counted.changed:
                self._first.setdefault(place.reg, Place)
                if isinstance(self.function.registers[place.reg].type, Array):
                    found = self._access(place)
                    self._read.setdefault(found.key, found)

    def _writes(self, place: Place, op: str, stmt: Stmt) -> None:
        for child in children(place):
            self._reads(child)
        self._first.setdefault(place.reg, type(stmt))
        key: Hashable = place.reg
        if isinstance(self.function.registers[place.reg].type, Array):
            found = self._access(place)
            key = found.key
            self._written.setdefault(key, found)
        elif place.path:
            raise Declined(f"`{show(place, self.function)}` is a part of a number")
        self._ops.setdefault(key, set()).add(op)

    def _access(self, place: Place) -> Access:
        if not place.path or rank_of(place.type or Array(None, 1)):  # type: ignore[arg-type]
            name = self.function.registers[place.reg].name
            raise Declined(f"it changes `{name}` and uses more of it than an element")
        return access(place, self.counted)

    # ------------------------------------------------------------ dependences

    def _order(self, reg: int) -> None:
        """Enter an array among the summed ones if it is one, and iterations share its elements."""
        keys = [k for k, a in self._written.items() if a.reg == reg]
        if any(a.reg == reg for a in self._read.values()) or not all(
            self._written[k].kind == "stream" and self.updates(k) and self.updates(k) <= {"+", "-"}
            for k in keys
        ):
            return
        later: dict[Hashable, set[Hashable]] = {k: set() for k in keys}
        """What reaches an element before each key does."""
        for one in keys:
            for two in keys:
                if one == two:
                    continue
                found = relation(self._written[one], self._written[two], self.counted.stride)
                if found.never:
                    continue
                if found.delay is None:
                    return
                if found.delay > 0:
                    later[two].add(one)
        if not any(later.values()):
            return
        order: list[Hashable] = []
        while len(order) < len(keys):
            order.append(next(k for k in keys if k not in order and later[k] <= set(order)))
        self.summed[reg] = order

    def _compare(self) -> None:
        for key, one in self._written.items():
            for other_key, other in self.reached.items():
                if other.reg != one.reg or other_key == key or one.reg in self.summed:
                    continue
                if one.part != other.part and not (one.part and other.part):
                    raise Declined(f"it uses {self.show(one)} and {self.show(other)}")
                if one.kind == other.kind == "scattered":
                    raise Declined(
                        f"{self.show(other)} may be {self.show(one)} of another iteration"
                    )
                if "scattered" in (one.kind, other.kind):
                    a, b = (one, other) if one.kind == "scattered" else (other, one)
                    self.met.setdefault(a.key, {})[b.key] = b
                    continue
                self._pair(one, other, other_key in self._written)
            if one.kind == "scattered":
                self._scattered(key, one)

    def _scattered(self, key: Hashable, one: Access) -> None:
        """A scattered element that is changed: by sums in order, or each in one iteration only."""
        if self.is_summed(one):
            return
        places = [p for axis in one.axes for p in reads(axis.index)]
        if any(p.reg in self.counted.changed - {self.counted.var} for p in places):
            raise Declined(f"the index of {self.show(one)} changes within an iteration")
        if any(a.rest is not None and a.rate for a in one.axes):
            return
        if sum(a.rest is None for a in one.axes) > 1:
            raise Declined(f"{self.show(one)} may be one element in several iterations")
        self.distinct[key] = one

    def is_summed(self, found: Access) -> bool:
        """Whether a scattered element is only added to, and so may repeat."""
        ops = self.updates(found.key)
        return (
            found.kind == "scattered"
            and found.key not in self._read
            and bool(ops)
            and (ops <= {"+", "-"} or ops == {"^"})
        )

    def _pair(self, one: Access, other: Access, both: bool) -> None:
        """An element that is changed, and another access (`both`: that is a change too)."""
        found = relation(one, other, self.counted.stride)
        if found.never or found.delay == 0:
            return
        if found.delay is None:
            self.apart.append((one, other))
        elif found.delay > 0 or both:
            delay = abs(found.delay)
            if delay == 1 and not both and other.key not in self.delayed:
                self.delayed[other.key] = other, one
                return
            if delay < LEAST_DELAY:
                what = "changes" if both else "reads"
                first, then = (one, other) if found.delay > 0 else (other, one)
                raise Declined(
                    f"{self.show(then)} {what} what an iteration {delay} before "
                    f"has changed as {self.show(first)}"
                )
            self.limit = min(self.limit or delay, delay)
