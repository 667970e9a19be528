"""Pure expressions and places: the operands of instructions.

An expression is a tree of `Const`, `Place` and `Apply` (a function of the function table).  A
`Place` is a register with a path of steps into it.  Nodes are immutable and carry their type; a
node whose type is None is a *template*, made by the tracer of `rvm.isa.define` and typed by
`rvm.isa.typing`. Arithmetic operators build `Apply` nodes, so that opcode bodies and derivative
rules are written as ordinary formulas.

`==` compares structure, except in the body of a user's definition, which `recording` surrounds:
there it is a formula too, so that it cannot be decided by Python for all numbers at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Number
from threading import get_ident
from typing import Any

from rvm.types import Scalar, ValueType

_recorders: set[int] = set()
"""The threads that record a user's body."""


@contextmanager
def recording() -> Iterator[None]:
    """Where expressions are compared by formulas."""
    thread = get_ident()
    if thread in _recorders:
        yield
        return
    _recorders.add(thread)
    try:
        yield
    finally:
        _recorders.discard(thread)


def _is_recorded() -> bool:
    return get_ident() in _recorders


def _operator(fn: str, reflected: bool = False) -> Callable[[Expr, Any], Apply]:
    """A Python operator, as a function of the table."""

    def operator(self: Expr, other: Any) -> Apply:
        args = self, lift(other)
        return Apply(fn, args[::-1] if reflected else args)

    return operator


class Expr:
    """Base class of expression nodes, with arithmetic operators."""

    __slots__ = ()
    type: ValueType | None

    __add__ = _operator("+")
    __radd__ = _operator("+", reflected=True)
    __sub__ = _operator("-")
    __rsub__ = _operator("-", reflected=True)
    __mul__ = _operator("*")
    __rmul__ = _operator("*", reflected=True)
    __truediv__ = _operator("/")
    __rtruediv__ = _operator("/", reflected=True)
    __pow__ = _operator("**")
    __rpow__ = _operator("**", reflected=True)
    __and__ = _operator("&")
    __or__ = _operator("|")
    __lt__ = _operator("<")
    __le__ = _operator("<=")
    __gt__ = _operator(">")
    __ge__ = _operator(">=")

    def __ne__(self, other: object) -> Any:
        equal = self == other
        return Apply("!=", equal.args) if isinstance(equal, Apply) else not equal

    def __neg__(self) -> Apply:
        return Apply("neg", (self,))

    def __bool__(self) -> bool:
        raise TypeError(
            "an expression has no truth value while an opcode is being defined; "
            "use `with when(condition):` or `select(condition, a, b)`"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Const(Expr):
    """A constant.  Equality is that of the bits: 0.0 differs from -0.0, and NaN equals itself."""

    value: Any
    type: Scalar | None = None

    def __eq__(self, other: object) -> Any:
        if _recorders and _is_recorded():
            return Apply("==", (self, lift(other)))
        return (
            isinstance(other, Const)
            and self.type == other.type
            and type(self.value) is type(other.value)
            and repr(self.value) == repr(other.value)
        )

    def __hash__(self) -> int:
        return hash((repr(self.value), self.type))


@dataclass(frozen=True, slots=True)
class Formal(Expr):
    """The n-th operand of an opcode or function during its definition."""

    index: int
    type: ValueType | None = None

    def __eq__(self, other: object) -> Any:
        if _recorders and _is_recorded():
            return Apply("==", (self, lift(other)))
        return (
            self.__class__ is other.__class__
            and self.index == other.index
            and self.type == other.type
        )

    def __hash__(self) -> int:
        if _recorders and _is_recorded():
            raise TypeError("an operand is not a number that can be looked up")
        return hash((self.index, self.type))


@dataclass(frozen=True, slots=True)
class Apply(Expr):
    """A function of the function table, applied."""

    fn: str
    args: tuple[Expr, ...]
    type: ValueType | None = None
    memo: Any = field(default=None, init=False, repr=False, compare=False)
    """The implementation that the reference engine found for this node."""

    def __eq__(self, other: object) -> Any:
        if _recorders and _is_recorded():
            return Apply("==", (self, lift(other)))
        return (
            self.__class__ is other.__class__
            and self.fn == other.fn
            and self.args == other.args
            and self.type == other.type
        )


@dataclass(frozen=True, slots=True)
class Span:
    """The slice `lo:hi:by` of one dimension, as in NumPy;

    None means that end of it, or a step of 1.

    It must lie within the bounds; negative indices do not count from the end.  With a negative
    step, `lo` is the first index (by default the last of the dimension), and the slice goes down to
    before `hi`.
    """

    lo: Expr | None = None
    hi: Expr | None = None
    by: Expr | None = None

    @property
    def ends(self) -> tuple[Expr | None, ...]:
        """Its three ends, in order."""
        return self.lo, self.hi, self.by

    @property
    def given(self) -> tuple[Expr, ...]:
        """The expressions that it contains."""
        return tuple(e for e in self.ends if e is not None)

    def through(self, f: Callable[[Expr], Expr]) -> Span:
        """The span with `f` applied to its expressions."""
        return Span(*(None if e is None else f(e) for e in self.ends))

    @property
    def is_whole(self) -> bool:
        """Whether it covers the whole dimension, in order."""
        return self == Span()


@dataclass(frozen=True, slots=True)
class Index:
    """A step to elements, one item per leading dimension: an `Expr` drops it, a `Span` keeps it."""

    items: tuple[Expr | Span, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A step to the `re` or `im` part of a complex number or array."""

    name: str


@dataclass(frozen=True, slots=True)
class Transposed:
    """A step to the transposed view (all axes reversed)."""


@dataclass(frozen=True, slots=True)
class Shaped:
    """A step from a view with one axis to its elements as an array of these lengths, row by row.

    The number of elements must match.  The last axis runs fastest, as in NumPy.
    """

    dims: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Peek:
    """A step into a stack: to its `top`, the value that would be popped, or its `len`."""

    name: str


Step = Index | Part | Transposed | Shaped | Peek


@dataclass(frozen=True, slots=True)
class Place(Expr):
    """A register and a path into it: `x`, `x[i, j]`, `x[a:b]`, `z.re`, `A.T[i]`."""

    reg: int
    path: tuple[Step, ...] = ()
    type: ValueType | None = None

    def __eq__(self, other: object) -> Any:
        if _recorders and _is_recorded():
            return Apply("==", (self, lift(other)))
        return (
            self.__class__ is other.__class__
            and self.reg == other.reg
            and self.path == other.path
            and self.type == other.type
        )


def is_count(place: Expr) -> bool:
    """Whether a place is the length of a stack, which only `push` and `pop` change."""
    return isinstance(place, Place) and place.path[:1] == (Peek("len"),)


def lift(value: Any) -> Expr:
    """`value` as an expression: a Python number becomes an untyped constant."""
    return value if isinstance(value, Expr) else Const(value)


def is_formula(node: Expr) -> bool:
    """Whether all constants in an expression are numbers."""
    return all(isinstance(n.value, Number) for n in walk(node) if isinstance(n, Const))


def inside(step: Step) -> Iterator[Expr]:
    """The expressions directly inside a step."""
    if isinstance(step, Shaped):
        yield from step.dims
    elif isinstance(step, Index):
        for item in step.items:
            if isinstance(item, Span):
                yield from item.given
            else:
                yield item


def children(node: Expr) -> Sequence[Expr]:
    """The expressions directly inside `node`, those in index steps of a place included."""
    if isinstance(node, Apply):
        return node.args
    if isinstance(node, Place) and node.path:
        return [e for step in node.path for e in inside(step)]
    return ()


def walk(node: Expr) -> Iterator[Expr]:
    """`node` and every expression inside it, parents first."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(children(top))


def places(node: Expr) -> Iterator[Place]:
    """Every place that evaluating `node` reads (those inside indices too)."""
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, Place):
            yield top
        stack.extend(children(top))


OPPOSITES = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
"""Comparisons with the ones that hold where they do not, unless a side is NaN."""
MIRRORED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""Comparisons with their sides exchanged."""

LENGTHS = frozenset({"len", "dim"})
"""Functions that use only the shape of their first argument, not its value."""


def reads(node: Expr) -> Iterator[Place]:
    """Every place whose value `node` depends on.

    Places inside indices count; an array of which only a length is used does not.
    """
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, Apply) and top.fn in LENGTHS and top.args:
            first = top.args[0]
            stack.extend(children(first) if isinstance(first, Place) else (first,))
            stack.extend(top.args[1:])
            continue
        if isinstance(top, Place):
            yield top
        stack.extend(children(top))


def index_reads(place: Place) -> Iterator[Place]:
    """Every place whose value determines which cells `place` denotes."""
    for child in children(place):
        yield from reads(child)


def index_places(place: Place) -> Iterator[Place]:
    """Every place that is read to find `place`: those inside its indices."""
    for child in children(place):
        yield from places(child)


def rebuild(node: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """`node` with `f` applied to its direct children."""
    if isinstance(node, Apply):
        return Apply(node.fn, tuple(f(a) for a in node.args), node.type)
    if isinstance(node, Place) and node.path:
        return Place(node.reg, tuple(through(s, f) for s in node.path), node.type)
    return node


def through(step: Step, f: Callable[[Expr], Expr]) -> Step:
    """A step with `f` applied to its expressions."""
    if isinstance(step, Shaped):
        return Shaped(tuple(map(f, step.dims)))
    if not isinstance(step, Index):
        return step
    return Index(tuple([i.through(f) if isinstance(i, Span) else f(i) for i in step.items]))


def substitute(node: Expr, operands: tuple[Expr, ...]) -> Expr:
    """A template with its formals replaced by operands; untyped nodes remain untyped."""
    if isinstance(node, Formal):
        return operands[node.index]
    return rebuild(node, lambda child: substitute(child, operands))
