"""The contents of a loop's body: values and checks, each in an arm.

Each register is assigned once. `uses` are the expressions from which something is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rvm.engines.vector.slots import Slot
from rvm.expr import Expr, Place, reads
from rvm.ir.flow import Edge


@dataclass(slots=True, eq=False)
class Arm:
    """The code of some lanes: those of the enclosing arm in which a condition is `want`, or all.

    `ticks` are those that an iteration spends in it, without inner arms; `passed` the edges that it
    passes, and how often: -1 if outer arms have counted one.
    """

    arm: Arm | None = None
    uses: tuple[Expr, ...] = ()
    """The condition, if it has one."""
    want: bool = True
    is_used: bool = False
    """Whether anything is computed in the arm."""
    ticks: int = 0
    passed: list[tuple[Edge, int]] = field(default_factory=list)

    @property
    def outer(self) -> Iterator[Arm]:
        """This arm and those that enclose it."""
        arm: Arm | None = self
        while arm is not None:
            yield arm
            arm = arm.arm

    @property
    def conditions(self) -> list[Expr]:
        """The conditions that select its lanes."""
        return [node for arm in self.outer for node in arm.uses]


@dataclass(frozen=True, slots=True, eq=False)
class Let:
    """A register's value; `op` and `by` if it results from an update of a slot."""

    arm: Arm
    reg: int
    value: Expr
    op: str = ""
    by: Expr | None = None
    slot: Slot | None = None

    @property
    def uses(self) -> tuple[Expr, ...]:
        return (self.value,)


@dataclass(frozen=True, slots=True, eq=False)
class Merge:
    """A register with the value `old`, except in the lanes of some arms, which have their own."""

    arm: Arm
    reg: int
    old: Place | None
    sides: tuple[tuple[Arm, Place], ...]

    @property
    def uses(self) -> tuple[Expr, ...]:
        return (*(() if self.old is None else (self.old,)), *(side for _, side in self.sides))


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """A condition that must be `want` in all lanes."""

    arm: Arm
    uses: tuple[Expr]
    want: bool


@dataclass(frozen=True, slots=True, eq=False)
class End:
    """A register's end, by the instruction at `pc`: it must hold `value`, or is forgotten."""

    arm: Arm
    pc: int
    held: Place
    value: Expr | None
    sizes: tuple[Expr, ...] = ()
    returns: bool = False

    @property
    def uses(self) -> tuple[Expr, ...]:
        return (self.held, *(() if self.value is None else (self.value,)), *self.sizes)


Item = Arm | Let | Check | End


def regs_in(*nodes: Expr) -> set[int]:
    """The registers that expressions depend on."""
    return {place.reg for node in nodes for place in reads(node)}
