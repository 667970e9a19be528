"""A function's graph under construction: operations in order, blocks, variables, exits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from rvm.expr import Apply, Expr, Place
from rvm.image import Code
from rvm.image.traps import Changed
from rvm.ir.context import STOPPED
from rvm.ir.counters import Meter
from rvm.ir.flow import Flow
from rvm.ir.items import FALSE as FALSE
from rvm.ir.items import TRUE as TRUE
from rvm.ir.items import Indices as Indices
from rvm.ir.items import Operations, Parts
from rvm.ir.kind import ANYWHERE, INNER, Kind
from rvm.ir.node import I64, Block, Node, Var
from rvm.ir.oneway import OneWay
from rvm.program import Function
from rvm.stmt import Stmt
from rvm.types import Scalar

Way = Callable[[], Any]
"""Gives the label of an exit of a function, made at first use."""


@dataclass(frozen=True, slots=True)
class Log:
    """The variables of the log: how many codes it has, and the word of the last one.

    Where gaps are pushed the bits above the last code are 0.
    """

    count: Var
    word: Var


class Builder(Operations):
    """Appends operations to the code under construction.

    Without `kind.checks` there are no checks of reversibility: come-froms, freed values and factors
    are trusted.  Indices and divisions are always checked.
    """

    erased: Var
    """Bits erased since the function was entered."""
    drift: Var
    """In lanes: the largest residue since then, relative to the allowed residue."""
    ticks: Var
    """The ticks that are left."""
    code: Code
    """The code whose function is made, if it is a whole one, and the shape of that."""
    flow: Flow

    def __init__(
        self, function: Function, kind: Kind, varying: Collection[int] | None = None
    ) -> None:
        super().__init__()
        self.function = function
        self.kind = kind
        self.varying = None if varying is None else frozenset(varying)
        """The registers that differ by lane; None where there are no lanes."""
        self.scalars: dict[int, tuple[Var, ...]] = {}
        """Variables of the scalar registers: one, or two of a complex number."""
        self.stacks: dict[int, Var] = {}
        self.frames: dict[int, Var] = {}
        """Room in the frame for small arrays, by register."""
        self.passed: frozenset[int] = frozenset()
        """Registers that calls take: a stopped callee must find them where they were."""
        self.proved: frozenset[int] = frozenset()
        """The `id`s of index expressions that are known to be within bounds."""
        self.certain: frozenset[int] = frozenset()
        """The `id`s of statements that free an ancilla which must hold their value."""
        self.filling: frozenset[int] = frozenset()
        """The `id`s of statements that add to an array of zeros in which nothing is yet."""
        self.infinite = Var(I64, "infinite")
        """Whether a number was found that is not finite, where `kind.finite` asks for that."""
        self.looking: frozenset[int] = frozenset()
        """The `id`s of statements that do so."""
        self.turns: frozenset[Expr] = frozenset()
        """Angles of type f64 of which both sine and cosine are needed."""
        self.one_ways: Mapping[int, OneWay] = {}
        self.sums: frozenset[int] = frozenset()
        """The registers that begin at -0 rather than at 0."""
        self.made: Mapping[int, Sequence[tuple[Place, Expr]]] = {}
        """Values made from these that are live at a position, with the expressions of their
        values."""
        self.uniform: Any = None
        """The value of the expression last given to `elements`, if it is a scalar."""
        self.way = 0
        """The use of the strict log by the present instruction: push (1), pop (-1), none (0)."""
        self.rounding: int | None = None
        """The present instruction's position if the bits that it loses to rounding are counted."""
        self.lost: Var | None = None
        """The variable that sums the rounding losses in the elements of an array."""
        self.log: Log | None = None
        """The variables of the strict log, if the function uses it."""
        self.instead: Mapping[Place, Parts] = {}
        """Values that places are to have in expressions."""
        self.has_products = False
        self.present: Any = None
        """Whether the present instruction has matrix products, and the elements for which a loop is
        being made: see `rvm.ir.elements`."""
        self.writes = True
        self._troubles = 0
        self._trusting = False
        self._leave: Way | None = None
        self.blocks: list[Block] = []
        self.tail: list[Block] = []
        """Exits, which are placed after all other blocks."""
        self._labels = 0

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

    # ------------------------------------------------------------ what targets do each in their way

    @abstractmethod
    def kinds(self, t: Scalar) -> tuple[str, ...]:
        """The kinds of the storage of a scalar: of one value, or of two parts."""

    @abstractmethod
    def raw(self, value: Any, t: Scalar) -> Parts:
        """A raw value as a constant."""

    @abstractmethod
    def applied(self, node: Apply) -> Parts:
        """A function's value."""

    @abstractmethod
    def peeked(self, place: Place, what: str) -> Parts:
        """The `top` of a stack, or a part of it, or its `len`."""

    @abstractmethod
    def measured(self, place: Place, axis: int) -> Node:
        """The length of a view of an array."""

    @abstractmethod
    def combined(self, op: str, t: Scalar, old: Parts, by: Parts) -> Parts:
        """The result of an update of an old value."""

    @abstractmethod
    def keep(self, *pairs: tuple[Scalar, Parts, Parts]) -> None:
        """Push on the strict log the gaps from the results of undoing to the old values.

        They are given as pairs, with their types; all are pushed or, in case of trouble, none.
        """

    @abstractmethod
    def rounded(self, *pairs: tuple[Scalar, Parts, Parts]) -> None:
        """Count as lost the bits of the gaps from the results of undoing to the old values."""

    @abstractmethod
    def reserve(self, gaps: Node) -> None:
        """Trouble unless the strict log has room for this many gaps, however large."""

    @abstractmethod
    def ask(self, gaps: Node) -> None:
        """Trouble unless the strict log has this many gaps."""

    @abstractmethod
    def taken(self, t: Scalar, guess: Parts) -> Parts:
        """The old values, from the results of undoing and the gap on top of the strict log.

        That there is one has been checked before.
        """

    @abstractmethod
    def factor(self, by: Parts, t: Scalar) -> None:
        """Trouble unless a factor can be divided out again."""

    @abstractmethod
    def statement(self, stmt: Stmt) -> None:
        """A statement on whole arrays or stacks, or one that makes or ends a register."""

    @abstractmethod
    def disjoint(self, x: Place, y: Place, same_ok: bool) -> None:
        """Trouble unless two places share no memory, or are the same if that is allowed."""

    @abstractmethod
    def way_out(self, pc: int, done: int, how: int = STOPPED) -> Way:
        """The exit at an instruction before it is executed, `done` ticks into its block."""

    @abstractmethod
    def changed(self, guard: Changed) -> Node:
        """Whether a watched value is not its cell's."""

    @abstractmethod
    def row(self) -> Node:
        """The row of counters of this function and call path."""

    @abstractmethod
    def pass_on(self, row: Node, pc: int, meter: Meter) -> None:
        """Write down how often an instruction has found the sizes in its meter."""

    # ------------------------------------------------------------ trouble

    def trouble(self, condition: Node) -> None:
        """Leave the function at the present instruction if a condition holds."""
        if not self._trusting and not (condition.op == "constant" and condition.aux is False):
            self._troubles += 1
            assert self._leave is not None, "no instruction is being made"
            self.do("trouble", condition, aux=self._leave())

    def bound(self, index: Node, length: Node, cut: bool = False) -> None:
        """Trouble unless an index is within bounds; `cut` if the axis is a part of a register's."""
        if not self._trusting:
            self._troubles += 1
            assert self._leave is not None, "no instruction is being made"
            self.do("bound", index, length, aux=self._leave())

    def leaving(self, way: Way | None) -> None:
        """Set the exit for `trouble` from now on."""
        self._leave = way

    def trusting(self, body: Callable[[], object]) -> None:
        """Execute code that is known to be free of trouble."""
        before, self._trusting = self._trusting, True
        body()
        self._trusting = before

    def surely(self, dims: Sequence[Node], body: Callable[[Indices], object]) -> None:
        """Find out whether `body` has trouble at any indices; it must change nothing."""
        begun, before = len(self.items), self._troubles
        self.nest(dims, body)
        if self._troubles == before:
            del self.items[begun:]

    def may_fail(self, body: Callable[[], object]) -> bool:
        """Whether code, which is not appended, may have trouble."""
        before = self._troubles
        self.inside(body)
        return self._troubles > before

    def everywhere(self, dims: Sequence[Node], body: Callable[[Indices], object]) -> None:
        """Execute `body` at all indices, or, if it bails out at any, at none.

        If a run that bails out starts again, nothing is tried before.
        """
        if self.kind.anew:
            self.nest(dims, body)
            return
        self.beforehand(dims, body)
        self.trusting(lambda: self.nest(dims, body))

    def beforehand(self, dims: Sequence[Node], body: Callable[[Indices], object]) -> None:
        """Find out whether `body` has trouble at any indices, without what it changes."""
        keep, self.writes = self.writes, False
        self.surely(dims, body)
        self.writes = keep

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
        self.anew()

    def anew(self) -> None:
        """Begin a point that values found elsewhere need not reach."""

    def aside(self, label: str, body: Callable[[], None]) -> None:
        """A block after all others."""
        self.tail.append(Block(label, self.inside(body)))

    def jump(self, target: Any) -> None:
        """End the block by continuing in another."""
        self.do("jump", aux=target)

    def again(self, target: Any, pace: str) -> None:
        """End the block, and an iteration of a loop that begins at `target`.

        `pace` is the loop's form in machine code: see `nest`.
        """
        self.do("again", aux=(target, pace))

    def fork(self, condition: Node, yes: str, no: str, unlikely: bool = False) -> None:
        """End the block by continuing in one of two others; `unlikely` refers to the first."""
        self.do("fork", condition, aux=(yes, no, unlikely))

    def stay(self, condition: Node, otherwise: str) -> None:
        """Continue only if a condition holds."""
        going = self.fresh("go")
        self.fork(condition, going, otherwise)
        self.block(going)

    def count(self, ticks: int | Node) -> None:
        """Count ticks as done."""
        if ticks != 0:
            taken = self.i64(ticks) if isinstance(ticks, int) else ticks
            self.set(self.ticks, self.op("wsub", self.get(self.ticks), taken))


LASTING = "r", "log"
"""The prefixes of variables that outlive an instruction: registers, the strict log."""


def checked(items: Sequence[Node], changed: bool = False) -> bool:
    """Refuse possible trouble after an observable change; return whether there is a change."""
    for node in items:
        if node.op in ("trouble", "bound"):
            assert not changed, "there may be trouble after a change"
        elif node.op == "if":
            yes, no = (checked(part, changed) for part in node.aux[:2])
            changed = yes or no
        elif node.op == "loop":
            changed = checked(node.aux[1], changed)
            checked(node.aux[1], changed)
        elif node.op in ("store", "poke", "set"):
            name = "" if node.op != "set" else cast(Var, node.aux).name
            changed = changed or not name or name.startswith(LASTING)
    return changed


Rule = Callable[[Node], None]
"""Appends the replacement of an operation."""


def rewrite(b: Builder, blocks: Sequence[Block], rules: Mapping[str, Rule]) -> None:
    """Replace operations by those that their rules append, including nested operations."""
    for block in blocks:
        block.items = b.inside(partial(_rewrite, b, block.items, rules))


def _rewrite(b: Builder, items: Sequence[Node], rules: Mapping[str, Rule]) -> None:
    for node in items:
        rule = rules.get(node.op)
        if rule is not None:
            b.anew()
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
