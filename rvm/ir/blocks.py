"""A function's graph as it grows: blocks, variables, ways out."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol, cast

from rvm.image import Code
from rvm.image.traps import Changed
from rvm.ir import context
from rvm.ir.builder import Builder
from rvm.ir.flow import Flow
from rvm.ir.items import Parts
from rvm.ir.kind import ANYWHERE, INNER, Kind
from rvm.ir.node import F64, I32, I64, Argument, Block, Node, constant
from rvm.ir.places import kinds_of
from rvm.ir.statements import combined, disjoint, factor, whole_statement
from rvm.ir.typed import Unprintable
from rvm.ir.values import applied, peeked, raw
from rvm.types import Scalar


class Callees(Protocol):
    """Where calls go: the module that is being made."""

    def inner(self, code: Code, scattered: frozenset[int], varying: frozenset[int] | None) -> str:
        """The symbol of an inner function.

        Its array parameters `scattered` have strides, its parameters `varying` differ by lane;
        None: it is for one lane.
        """

    def single(self, b: FunctionBuilder) -> str:
        """The symbol of the function by which each lane goes on where they have parted."""

    def number(self, code: Code) -> int:
        """The number by which a stopped frame names its code."""

    def cell(self, guard: Changed) -> int:
        """The number of what a guard compares with, and of the element that it looks at."""


@dataclass(frozen=True, slots=True)
class Left:
    """What a function for several lanes has left, for each to go on by itself.

    They have parted at one of the branches `at`; the registers `varying` differed.
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
    combined = combined
    factor = factor
    statement = whole_statement
    disjoint = disjoint

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
        """What the function goes on from, if lanes have parted."""
        self.partings: list[int] = []
        """The branches at which lanes may part."""
        self.symbol = symbol
        self.code = code
        self.flow = flow
        self.callees = cast(Callees, callees)  # of a trial there are none
        self.blocks: list[Block] = []
        self.tail: list[Block] = []
        """Ways out, which stand behind all other blocks."""
        self.arguments: list[Argument] = []
        self._labels = 0
        self.ticks = self.variable(I64, "ticks")
        self.position = self.variable(I64, "position")
        self.how = self.variable(I32, "how")
        self.erased = self.variable(I64, "erased")
        if self.lanes:
            self.drift = self.variable(F64, "drift")

    @property
    def from_beginning(self) -> bool:
        """Whether the code is entered at its beginning only."""
        return self.kind.entry in (0, INNER)

    @property
    def anywhere(self) -> bool:
        """Whether the code is entered at any gate."""
        return self.kind.entry == ANYWHERE

    def keep(self, *pairs: tuple[Scalar, Parts, Parts]) -> None:
        raise Unprintable

    def taken(self, t: Scalar, guess: Parts) -> Parts:
        raise Unprintable

    def given(self, argument: Argument) -> Node:
        """An argument's value."""
        return Node("argument", argument.kind, (), argument)

    def argument(self, argument: Argument) -> Node:
        """A new argument's value."""
        self.arguments.append(argument)
        return self.given(argument)

    # ------------------------------------------------------------ blocks

    def fresh(self, stem: str) -> str:
        """A label that is not used yet."""
        self._labels += 1
        return f"{stem}{self._labels}"

    def block(self, label: str) -> None:
        """Begin a block; the one before must have ended."""
        made = Block(label)
        self.blocks.append(made)
        self.items = made.items

    def aside(self, label: str, body: Callable[[], None]) -> None:
        """A block behind all others."""
        self.tail.append(Block(label, self.inside(body)))

    def jump(self, target: str) -> None:
        """End the block by going on in another."""
        self.do("jump", aux=target)

    def fork(self, condition: Node, yes: str, no: str, unlikely: bool = False) -> None:
        """End the block by going on in one of two others; `unlikely` says that of the first."""
        self.do("fork", condition, aux=(yes, no, unlikely))

    def stay(self, condition: Node, otherwise: str) -> None:
        """Go on only where a condition holds."""
        going = self.fresh("go")
        self.fork(condition, going, otherwise)
        self.block(going)

    def way_out(self, pc: int, done: int, how: int = context.STOPPED) -> Callable[[], str]:
        """The way out at an instruction of which nothing is done, `done` ticks into its block."""
        made: list[str] = []

        def body() -> None:
            self.count(done)
            self.set(self.position, self.i64(pc))
            self.set(self.how, constant(how, I32))
            self.jump("stop")

        def label() -> str:
            if not made:
                made.append(self.fresh("out"))
                self.aside(made[0], body)
            return made[0]

        return label

    def count(self, ticks: int | Node) -> None:
        """Count ticks as done."""
        if ticks != 0:
            taken = self.i64(ticks) if isinstance(ticks, int) else ticks
            self.set(self.ticks, self.op("wsub", self.get(self.ticks), taken))
