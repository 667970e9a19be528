"""A function's graph under construction: blocks, variables, exits."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Protocol, cast

from rvm.expr import Expr, Place, reads
from rvm.image import Code
from rvm.image.traps import Changed
from rvm.ir import context, strict
from rvm.ir.builder import Builder, Log, Way
from rvm.ir.counters import Meter
from rvm.ir.flow import Flow
from rvm.ir.items import parts_of
from rvm.ir.kind import Kind
from rvm.ir.node import F64, FLOATS, I32, I64, PTR, Argument, Node, constant
from rvm.ir.places import Behind, Location, kinds_of
from rvm.ir.statements import combined, disjoint, factor, rounded, whole_statement
from rvm.ir.typed import Unprintable
from rvm.ir.values import applied, located, measured, peeked, put, raw, read, scalar
from rvm.types import Scalar


class Callees(Protocol):
    """The module under construction, which provides the targets of calls."""

    def inner(self, code: Code, scattered: frozenset[int], varying: frozenset[int] | None) -> str:
        """The symbol of an inner function.

        Its array parameters `scattered` have strides, its parameters `varying` differ by lane;
        None: it is for one lane.
        """

    def single(self, b: FunctionBuilder) -> str:
        """The symbol of the function in which lanes continue alone after they have diverged."""

    def number(self, code: Code) -> int:
        """The number by which a stopped frame names its code."""

    def cell(self, guard: Changed) -> int:
        """The number of the values with which a guard compares, and of its element."""


@dataclass(frozen=True, slots=True)
class Left:
    """The point at which a function for several lanes was left, for each lane to continue alone.

    They have diverged at one of the branches `at`; the registers `varying` differed.
    """

    at: tuple[int, ...]
    varying: frozenset[int]


class FunctionBuilder(Builder):
    """Appends operations and blocks to the function that is being made.

    Its target has leaf operations on numbers, memory, and a runtime for its stacks.
    """

    kinds = staticmethod(kinds_of)
    raw = staticmethod(raw)
    applied = applied
    peeked = peeked
    measured = measured
    combined = combined
    factor = factor
    rounded = rounded
    statement = whole_statement
    disjoint = disjoint
    keep = strict.keep
    reserve = strict.reserve
    ask = strict.ask
    taken = strict.taken

    def __init__(
        self,
        symbol: str,
        code: Code,
        kind: Kind,
        flow: Flow,
        callees: Callees | None = None,
        varying: Collection[int] | None = None,
        left: Left | None = None,
    ) -> None:
        super().__init__(code.function, kind, varying)
        self.left = left
        """The point from which the function continues after lanes have diverged."""
        self.partings: list[int] = []
        """The branches at which lanes may part."""
        self.symbol = symbol
        self.code = code
        self.flow = flow
        self.callees = cast(Callees, callees)  # of a trial there are none
        self.arguments: list[Argument] = []
        self.ticks = self.variable(I64, "ticks")
        self.position = self.variable(I64, "position")
        self.how = self.variable(I32, "how")
        self.erased = self.variable(I64, "erased")
        if self.lanes:
            self.drift = self.variable(F64, "drift")
        if any(code.logging(pc, kind.strict) for pc in range(len(code))):
            self.log = Log(self.variable(I64, "log"), self.variable(I64, "logword"))

    def given(self, argument: Argument) -> Node:
        """An argument's value."""
        return Node("argument", argument.kind, (), argument)

    def argument(self, argument: Argument) -> Node:
        """A new argument's value."""
        self.arguments.append(argument)
        return self.given(argument)

    # ------------------------------------------------------------ ways out

    def way_out(self, pc: int, done: int, how: int = context.STOPPED) -> Way:
        made: list[str] = []

        def body() -> None:
            self.make_again(pc)
            self.count(done)
            self.set(self.position, self.i64(pc))
            self.set(self.how, constant(how, I32))
            self.jump("stop")

        def label() -> str:
            if not made:
                made.append(self.fresh("out" if how == context.STOPPED else "spent"))
                self.aside(made[0], body)
            return made[0]

        return label

    def from_zero(self, reg: int) -> None:
        """Give a sum that began at -0 the value that it would have if it had begun at 0."""
        (v,) = self.scalars[reg]
        self.set(v, self.op("fadd", self.get(v), constant(0.0, v.kind)))

    def make_again(self, pc: int) -> None:
        """Recompute live values made from sums that began at -0, with those that begin at 0."""
        made = self.made.get(pc, ())
        for reg in sorted({p.reg for _, value in made for p in reads(value)} & self.sums):
            self.from_zero(reg)
        for place, value in made:
            self.trusting(partial(self._make, place, value))

    def _make(self, place: Place, value: Expr) -> None:
        put(self, located(self, place), scalar(self, value))

    def changed(self, guard: Changed) -> Node:
        """Whether the value differs from the cell's; parts are compared as they are stored.

        A cell is separate memory, which the engine fills before each run: a flag that is set if
        there is no such value, and the value's parts.
        """
        where: Location
        if guard.place is not None:
            where, t = located(self, guard.place), guard.place.type
            number = self.callees.cell(guard)
        elif guard.element is not None:
            t = guard.element[1]
            number = self.callees.cell(guard)
            kinds = range(len(kinds_of(t)))
            where = Behind(tuple(self.op("element", kind=PTR, aux=(number, k)) for k in kinds), t)
        else:
            raise Unprintable
        assert isinstance(t, Scalar)
        cell = self.op("cell", kind=PTR, aux=(number, 0))
        test = self.op("ne", self.peek(I64, cell), self.i64(0))
        for k, found in enumerate(parts_of(read(self, where)), 1):
            held = self.peek(found.kind, self.op("cell", kind=PTR, aux=(number, k)))
            differs = self.op("fne" if found.kind in FLOATS else "ne", found, held)
            test = self.op("or", test, differs)
        return test

    def row(self) -> Node:
        if self.kind.root:
            return self.read_field(context.ROW, PTR)
        return self.argument(Argument("row", PTR))

    def pass_on(self, row: Node, pc: int, meter: Meter) -> None:
        at = self.op("slot", row, kind=PTR, aux=meter.at)
        args = (row, self.i64(pc), at, self.i64(meter.words))
        self.helper("rvm_sizes", "void", self.field(0), *args)
