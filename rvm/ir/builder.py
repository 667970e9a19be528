"""A function's graph as it grows: operations in order, blocks, variables, ways out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, cast

from rvm.expr import Expr
from rvm.image import Code
from rvm.image.traps import Changed
from rvm.ir import context
from rvm.ir.flow import Flow
from rvm.ir.items import FALSE as FALSE
from rvm.ir.items import TRUE as TRUE
from rvm.ir.items import Operations
from rvm.ir.kind import ANYWHERE, INNER, Kind
from rvm.ir.node import (
    I32,
    I64,
    NONE,
    PTR,
    Argument,
    Block,
    Node,
    Var,
    constant,
)
from rvm.ir.oneway import OneWay

Indices = Sequence[Node]
"""Indices, one for each axis."""


class Callees(Protocol):
    """Where calls go: the module that is being made."""

    def inner(self, code: Code, scattered: frozenset[int], varying: frozenset[int]) -> str:
        """The symbol of an inner function.

        Its array parameters `scattered` have strides, its parameters `varying` differ by lane.
        """

    def number(self, code: Code) -> int:
        """The number by which a stopped frame names its code."""

    def cell(self, guard: Changed) -> int:
        """The number of what a guard compares with, and of the element that it looks at."""


class Builder(Operations):
    """Appends operations to the function that is being made.

    Without `kind.checks` nothing asks whether what is done can be undone: come-froms, freed values
    and factors are taken on trust.  Indices and divisions are checked all the same.
    """

    def __init__(
        self,
        symbol: str,
        code: Code,
        kind: Kind,
        flow: Flow,
        callees: Callees | None = None,
        varying: Collection[int] | None = None,
    ) -> None:
        self.symbol = symbol
        self.code = code
        self.function = code.function
        self.kind = kind
        self.flow = flow
        self.callees = cast(Callees, callees)  # of a trial there are none
        self.varying = None if varying is None else frozenset(varying)
        """The registers that differ by lane; None where there are no lanes."""
        super().__init__()
        self.blocks: list[Block] = []
        self.tail: list[Block] = []
        """Ways out, which stand behind all other blocks."""
        self.arguments: list[Argument] = []
        self.scalars: dict[int, tuple[Var, ...]] = {}
        """Variables of the scalar registers: one, or two of a complex number."""
        self.stacks: dict[int, Var] = {}
        self.frames: dict[int, Var] = {}
        """Room in the frame for small arrays, by register."""
        self.passed: frozenset[int] = frozenset()
        """Registers that calls take: a stopped callee must find them where they were."""
        self.proved: frozenset[int] = frozenset()
        """The `id`s of index expressions that are known to lie inside."""
        self.certain: frozenset[int] = frozenset()
        """The `id`s of statements that free an ancilla which surely holds their value."""
        self.turns: frozenset[Expr] = frozenset()
        """Angles of type f64 of which both sine and cosine are asked for."""
        self.one_ways: Mapping[int, OneWay] = {}
        self.uniform: Any = None
        """The value of the expression that `elements` was last asked for, if it is a scalar."""
        self.writes = True
        self._troubles = 0
        self._trusting = False
        self._labels = 0
        self._leave: Callable[[], str] | None = None
        self.ticks = self.variable(I64, "ticks")
        self.position = self.variable(I64, "position")
        self.how = self.variable(I32, "how")
        self.erased = self.variable(I64, "erased")
        """Bits erased since the function was entered."""

    @property
    def checks(self) -> bool:
        return self.kind.checks

    @property
    def lanes(self) -> bool:
        """Whether the function is for several lanes."""
        return self.varying is not None

    @property
    def from_beginning(self) -> bool:
        """Whether the code is entered at its beginning only."""
        return self.kind.entry in (0, INNER)

    @property
    def anywhere(self) -> bool:
        """Whether the code is entered at any gate."""
        return self.kind.entry == ANYWHERE

    # ------------------------------------------------------------ variables and memory

    def get(self, variable: Var, *at: Node) -> Node:
        """A variable's value; of one that has many, that at an index."""
        node = Node("get", variable.kind, at, variable)
        self.items.append(node)
        return node

    def set(self, variable: Var, value: Node, *at: Node) -> None:
        """Give a variable a value."""
        self.items.append(Node("set", NONE, (value, *at), variable))

    def add_to(self, variable: Var, amount: Node) -> None:
        """Add to a variable of kind i64."""
        self.set(variable, self.op("wadd", self.get(variable), amount))

    def dim(self, reg: int, axis: int) -> Node:
        """The length of an array register's axis."""
        return self.op("dim", kind=I64, aux=(reg, axis))

    def field(self, k: int) -> Node:
        """A pointer to a field of the context."""
        return self.op("field", kind=PTR, aux=k)

    def read_field(self, k: int, kind: str = I64) -> Node:
        """A field of the context."""
        return self.peek(kind, self.field(k))

    def write_field(self, k: int, value: Node) -> None:
        """Give a field of the context a value."""
        self.poke(value, self.field(k))

    def peek(self, kind: str, pointer: Node) -> Node:
        """The value behind a pointer."""
        return self.op("peek", pointer, kind=kind)

    def poke(self, value: Node, pointer: Node) -> None:
        """Put a value behind a pointer."""
        self.do("poke", value, pointer)

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

    # ------------------------------------------------------------ what is done conditionally

    def inside(self, body: Callable[[], object]) -> list[Node]:
        """The operations that `body` appends."""
        outer, self.items = self.items, []
        try:
            body()
            return self.items
        finally:
            self.items = outer

    def when(
        self,
        condition: Node,
        yes: Callable[[], object],
        no: Callable[[], object] | None = None,
        unlikely: bool = False,
    ) -> None:
        """Do `yes` where a condition holds, otherwise `no`."""
        parts = self.inside(yes), [] if no is None else self.inside(no), unlikely
        self.do("if", condition, aux=parts)

    def nest(self, dims: Sequence[Node], body: Callable[[Indices], object]) -> None:
        """Loops over all indices below `dims`."""
        self._nest(list(dims), [], body)

    def _nest(self, dims: list[Node], at: list[Node], body: Callable[[Indices], object]) -> None:
        if not dims:
            body(tuple(at))
            return
        k = self.variable(I64, "i")
        inside = self.inside(lambda: self._nest(dims[1:], [*at, self.get(k)], body))
        self.do("loop", dims[0], aux=(k, inside))

    # ------------------------------------------------------------ trouble

    def trouble(self, condition: Node) -> None:
        """Leave the function at the present instruction if a condition holds."""
        if not self._trusting and not (condition.op == "constant" and condition.aux is False):
            self._troubles += 1
            assert self._leave is not None, "no instruction is being made"
            self.do("trouble", condition, aux=self._leave())

    def bound(self, index: Node, length: Node) -> None:
        """Trouble unless an index lies inside."""
        if not self._trusting:
            self._troubles += 1
            assert self._leave is not None, "no instruction is being made"
            self.do("bound", index, length, aux=self._leave())

    def part(self, condition: Node) -> None:
        """Trouble if lanes differ in a condition."""
        if self.lanes:
            assert self._leave is not None, "no instruction is being made"
            self.do("part", condition, aux=self._leave())

    def leaving(self, way: Callable[[], str] | None) -> None:
        """Where `trouble` goes from now on: gives a label, made when it is first asked for."""
        self._leave = way

    def way_out(self, pc: int, done: int) -> Callable[[], str]:
        """The way out at an instruction of which nothing is done, `done` ticks into its block."""
        made: list[str] = []

        def body() -> None:
            self.count(done)
            self.set(self.position, self.i64(pc))
            self.set(self.how, constant(context.STOPPED, I32))
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

    def trusting(self, body: Callable[[], object]) -> None:
        """Do what has been found out to be free of trouble."""
        before, self._trusting = self._trusting, True
        body()
        self._trusting = before

    def surely(self, dims: Sequence[Node], body: Callable[[Indices], object]) -> None:
        """Find out whether `body` has trouble at any indices; it must change nothing."""
        begun, before = len(self.items), self._troubles
        self.nest(dims, body)
        if self._troubles == before:
            del self.items[begun:]

    def everywhere(self, dims: Sequence[Node], body: Callable[[Indices], object]) -> None:
        """Do `body` at all indices, or, if it has trouble at any, at none.

        Lanes begin anew where there is trouble, so there nothing is tried before.
        """
        if self.lanes:
            self.nest(dims, body)
            return
        keep, self.writes = self.writes, False
        self.surely(dims, body)
        self.writes = keep
        self.trusting(lambda: self.nest(dims, body))


def checked(items: Sequence[Node], changed: bool = False) -> bool:
    """Refuse trouble that may come behind a change that others see; whether there is a change."""
    for node in items:
        if node.op in ("trouble", "bound"):
            assert not changed, "there may be trouble behind a change"
        elif node.op == "if":
            yes, no = (checked(part, changed) for part in node.aux[:2])
            changed = yes or no
        elif node.op == "loop":
            changed = checked(node.aux[1], changed)
            checked(node.aux[1], changed)
        elif node.op in ("store", "poke", "set"):
            changed = changed or node.op != "set" or cast(Var, node.aux).name.startswith("r")
    return changed


Rule = Callable[[Node], None]
"""Appends what stands in the place of an operation."""


def rewrite(b: Builder, blocks: Sequence[Block], rules: Mapping[str, Rule]) -> None:
    """Replace operations by what their rules append, those within others among them."""
    for block in blocks:
        block.items = b.inside(partial(_rewrite, b, block.items, rules))


def _rewrite(b: Builder, items: Sequence[Node], rules: Mapping[str, Rule]) -> None:
    for node in items:
        rule = rules.get(node.op)
        if rule is not None:
            rule(node)
        elif node.op == "if":
            yes, no, unlikely = node.aux
            parts = [b.inside(partial(_rewrite, b, part, rules)) for part in (yes, no)]
            b.do("if", *node.args, aux=(*parts, unlikely))
        elif node.op == "loop":
            variable, body = node.aux
            b.do("loop", *node.args, aux=(variable, b.inside(partial(_rewrite, b, body, rules))))
        else:
            b.items.append(node)
