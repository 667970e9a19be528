"""What undoing a statement does to derivatives, prepared once for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, cast

from rvm.derive.taylor.arriving import arriving
from rvm.derive.taylor.field import Field
from rvm.derive.taylor.slots import Regs, SlotList, carries_slots, is_wide, locate
from rvm.engines.evaluate import evaluate
from rvm.expr import Expr, Place
from rvm.faults import DefinitionError
from rvm.isa import apply
from rvm.stmt import Data, Exchange, Map, Update, When
from rvm.types import ValueType, elem_of


class Undone(Protocol):
    """A statement that is undone in derivatives."""

    def apply(self, field: Field, regs: Regs, slots: SlotList) -> None:
        """Take the derivatives from after the statement to before it, as seen going forwards.

        Registers hold what was there before it.
        """


@dataclass(frozen=True, slots=True)
class Moved:
    """Two places exchanged contents."""

    a: Place
    b: Place

    def apply(self, field: Field, regs: Regs, slots: SlotList) -> None:
        """They do so again."""
        one, two = (locate(p, regs, slots) for p in (self.a, self.b))
        field.exchange(one, two, is_wide(self.a))


@dataclass(frozen=True, slots=True)
class Chosen:
    """A statement that happened if a condition holds."""

    cond: Expr
    body: Undone

    def apply(self, field: Field, regs: Regs, slots: SlotList) -> None:
        """It is undone if it was done."""
        if evaluate(self.cond, regs):
            self.body.apply(field, regs, slots)


def undone(stmt: Data, registers: int) -> Undone | None:
    """What undoing a data statement does to derivatives; None if nothing.

    DefinitionError D012 where a condition holds several statements, whose values in between
    would not be known, or an opcode computes numbers with derivatives among others without.
    """
    match stmt:
        case Update(dst, op, value):
            if not carries_slots(dst.type):
                return None
            if op in "+-" or elem_of(cast(ValueType, dst.type)).is_log:
                return arriving((dst,), (value,), registers, sign=1.0 if op in "+*" else -1.0)
            return arriving((dst,), (apply(op, dst, value),), registers, replace=True)
        case Exchange(a, b):
            return Moved(a, b) if carries_slots(a.type) else None
        case Map(dsts, values, _):
            able = [carries_slots(d.type) for d in dsts]
            if all(able):
                return arriving(dsts, values, registers, replace=True)
            if any(able):
                raise _refused("an opcode computes numbers with derivatives among others without")
            return None
        case When(cond, body):
            inner = [u for s in body if (u := undone(cast(Data, s), registers)) is not None]
            if len(body) > 1 and inner:
                raise _refused("an opcode has several statements within one condition")
            return Chosen(cond, inner[0]) if inner else None


def _refused(message: str) -> DefinitionError:
    return DefinitionError(
        "D012",
        f"{message}: Taylor propagation cannot undo it",
        hint='method="forward-over-reverse" takes second derivatives by other means',
    )
