"""One-way registers: whole numbers that begin at a known value and only go one way, by ones.

In a run that makes such a register itself it never lies on the other side of what it began with:
it would have to wrap, which takes more ticks than a run is ever given.  LLVM is told, since it
cannot see that from the text of a `while` loop; then one comparison does for both ends of an index,
and what a come-from has asked need not be asked again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from rvm.emit.llvm.flow import Flow
from rvm.emit.llvm.kind import INNER, Kind
from rvm.emit.llvm.reading import LENGTHS, live_at
from rvm.emit.llvm.registers import Callees, Registers
from rvm.expr import Apply, Const, Expr, Place
from rvm.image import Code
from rvm.numbers.llvm import Value
from rvm.probes.accesses import changed_places
from rvm.stmt import Alloc, Free, Update
from rvm.types import I64

MOST = 1 << 60
"""Beginnings lie within ± this; lengths of arrays do anyway."""


@dataclass(frozen=True, slots=True)
class OneWay:
    """A register that is `begin` or more, if it goes up, or `begin` or less."""

    reg: int
    begin: Expr
    up: bool


def one_way(code: Code) -> tuple[OneWay, ...]:
    """The one-way registers among a code's locals."""
    begun: dict[int, Expr] = {}
    ways: dict[int, set[bool]] = {}
    others = set(range(code.function.n_args))
    for pc in range(len(code)):
        match code.stmts(pc):
            case (Alloc(Place(reg, (), t), value),) if t == I64 and reg not in begun:
                if value is not None and _is_known(code, value):
                    begun[reg] = value
                else:
                    others.add(reg)
            case (Update(Place(reg, (), t), "+" | "-" as op, Const(1 | -1 as by)),) if t == I64:
                ways.setdefault(reg, set()).add((op == "+") == (by == 1))
            case (Free(),):
                pass
            case _:
                others |= {place.reg for place in changed_places(code, pc)}
    return tuple(
        OneWay(reg, begin, True in ways[reg])
        for reg, begin in begun.items()
        if reg not in others and len(ways.get(reg, ())) == 1
    )


def _is_known(code: Code, value: Expr) -> bool:
    match value:
        case Const(int(v)):
            return abs(v) <= MOST
        case Apply(fn, (Place(reg, ()), *_)):
            return fn in LENGTHS and reg < code.function.n_args
    return False


ORDERS = {"<": "ult", "<=": "ule", ">": "ugt", ">=": "uge"}


class OneWays(Registers):
    """Prints what the one-way registers of one function are known for.

    A run that is entered in its middle may have been given anything, so nothing is known there.
    """

    def __init__(self, symbol: str, code: Code, kind: Kind, flow: Flow, callees: Callees) -> None:
        super().__init__(symbol, code, kind, flow, callees)
        known = one_way(code) if kind.entry in (0, INNER) else ()
        self.one_ways = {c.reg: c for c in known}

    def remind(self, position: int) -> None:
        """Tell LLVM on which side of their beginnings one-way registers lie that live here."""
        living = live_at(self.code, position)
        for register in self.one_ways.values():
            if register.reg in living:
                held = self.load("i64", self.scalars[register.reg][0])
                begin = cast(str, self.value(register.begin))
                fact = self.compare("sge" if register.up else "sle", "i64", held, begin)
                self.line(f"call void @llvm.assume(i1 {fact})")

    def value(self, node: Expr) -> Value:
        """The operand of a scalar expression; one-way registers are compared as indices are."""
        if node in self.known:
            return super().value(node)
        match node:
            case Apply("<" | "<=" | ">" | ">=" as fn, (a, b)) if self._natural(a, b):
                left, right = (cast(str, self.value(side)) for side in (a, b))
                return self.compare(ORDERS[fn], "i64", left, right)
            case Apply(">", (Place(reg, ()) as place, Const(0))):
                register = self.one_ways.get(reg)
                if register is not None and not register.up and self._natural(register.begin):
                    # The index before this one lies inside: not negative, as it is not too large.
                    before = self.op(f"sub i64 {self.value(place)}, 1")
                    return self.compare("ult", "i64", before, cast(str, self.value(register.begin)))
        return super().value(node)

    def _natural(self, *nodes: Expr) -> bool:
        """Whether whole numbers are never negative."""
        for node in nodes:
            match node:
                case Const(int(v)) if node.type == I64 and v >= 0:
                    pass
                case Place(reg, ()) if reg in self.one_ways:
                    register = self.one_ways[reg]
                    if not (register.up and self._natural(register.begin)):
                        return False
                case Apply(fn, (Place(_, ()), *_)) if fn in LENGTHS:
                    pass
                case _:
                    return False
        return True
