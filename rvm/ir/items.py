"""Operations in order, as they are appended: pure ones, and the bodies of functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from rvm.ir.node import BIT, F64, I64, NONE, PTR, Node, Var, constant, number
from rvm.ir.operations import CASTS, COMPARISONS
from rvm.ir.places import ArrayVariable
from rvm.leaf import Function
from rvm.leaf.ops import C128, NATIVE, OPS, WIDTHS
from rvm.leaf.python import NAMES, text_of

FALSE, TRUE = constant(False, BIT), constant(True, BIT)
Parts = Node | tuple[Node, Node]
"""A value, or the two parts of a complex one."""

Indices = Sequence[Node]
"""Indices, one for each axis."""


def parts_of(value: Parts) -> tuple[Node, ...]:
    """The parts of a value: one, or two of a complex number."""
    return value if isinstance(value, tuple) else (value,)


def value_of(parts: Sequence[Node]) -> Parts:
    """The value of some parts."""
    return (parts[0], parts[1]) if len(parts) == 2 else parts[0]


SHIFTS = ("shl", "ashr", "lshr", "rotl", "rotr")
"""Operations, of any kind, whose second argument is a number of bits less than the first has."""


class Operations(ABC):
    """Appends operations to `items`, over its variables."""

    def __init__(self) -> None:
        self.items: list[Node] = []
        """The list to which operations are appended: a block, or a conditional part of one."""
        self.variables: list[Var] = []
        self.arrays: dict[int, ArrayVariable] = {}

    @abstractmethod
    def trouble(self, condition: Node) -> None:
        """Leave the function at the present instruction if a condition holds."""

    def op(self, name: str, *args: Node, kind: str = "", aux: Any = None) -> Node:
        """Append a pure operation; its kind is that of its first argument, unless it is named."""
        node = Node(name, kind or (BIT if name in COMPARISONS else args[0].kind), args, aux)
        self.items.append(node)
        return node

    def do(self, name: str, *args: Node, aux: Any = None) -> None:
        """Append an operation without a value."""
        self.items.append(Node(name, NONE, args, aux))

    def number(self, value: int, like: Node) -> Node:
        """An integer constant of the same kind as another node."""
        return constant(value, like.kind)

    def truth(self, value: bool) -> Node:
        """A truth value."""
        return TRUE if value else FALSE

    def i64(self, value: int) -> Node:
        """A constant."""
        return Node("constant", I64, (), value)

    def larger(self, a: Node, b: Node) -> Node:
        """The larger of two floats; the second if either is NaN."""
        return self.select(self.op("fgt", a, b), a, b)

    def select(self, condition: Node, a: Node, b: Node) -> Node:
        """One of two values, both computed."""
        return self.op("select", condition, a, b, kind=a.kind)

    def invert(self, condition: Node) -> Node:
        """Whether a condition does not hold."""
        return self.op("xor", condition, TRUE)

    def all(self, tests: Sequence[Node]) -> Node:
        """Whether all conditions hold."""
        found = tests[0]
        for test in tests[1:]:
            found = self.op("and", found, test)
        return found

    def intrinsic(self, name: str, *args: Node, aux: str = "") -> Node:
        """A function that targets know by name: `fabs`, `smax` and others."""
        return self.op("intrinsic", *args, kind=args[0].kind, aux=name + aux)

    def helper(self, name: str, kind: str, *args: Node) -> Node:
        """Call a function of the runtime or the prelude."""
        return self.op("helper", *args, kind=kind, aux=name)

    def pure(self, name: str, kind: str, *args: Node) -> Node:
        """Call a function of the C library that has no effects."""
        return self.op("pure", *args, kind=kind, aux=name)

    def product(self, a: Node, b: Node) -> Node:
        """The product of two lengths or indices."""
        m, n = number(a), number(b)
        if m is not None and n is not None:
            return self.i64(m * n)
        if 0 in (m, n):
            return self.i64(0)
        if m == 1:
            return b
        return a if n == 1 else self.op("wmul", a, b)

    def sum(self, a: Node, b: Node) -> Node:
        """The sum of two lengths or indices."""
        m, n = number(a), number(b)
        if m == 0:
            return b
        return a if n == 0 else self.op("wadd", a, b)

    def variable(
        self, kind: str, stem: str = "v", size: int = 0, many: int = 0, pace: str = ""
    ) -> Var:
        """A new variable."""
        made = Var(kind, f"{stem}{len(self.variables)}", size, many, pace)
        self.variables.append(made)
        return made

    # ------------------------------------------------------------ variables and memory

    def get(self, variable: Var, *at: Node) -> Node:
        """A variable's value; of one that has many, that at an index."""
        node = Node("get", variable.kind, at, variable)
        self.items.append(node)
        return node

    def set(self, variable: Var, value: Node, *at: Node) -> None:
        """Set a variable to a value."""
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
        """Set a field of the context to a value."""
        self.poke(value, self.field(k))

    def peek(self, kind: str, pointer: Node) -> Node:
        """The value behind a pointer."""
        return self.op("peek", pointer, kind=kind)

    def poke(self, value: Node, pointer: Node) -> None:
        """Put a value behind a pointer."""
        self.do("poke", value, pointer)

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
        """Execute `yes` if a condition holds, otherwise `no`."""
        parts = self.inside(yes), [] if no is None else self.inside(no), unlikely
        self.do("if", condition, aux=parts)

    def nest(self, dims: Sequence[Node], body: Callable[[Indices], object], pace: str = "") -> None:
        """Loops over all indices below `dims`.

        `pace` is the form in machine code: "whole n", a row of n vectors; "vectors n", vectors, n
        at a time; "straight", no loop at all; "single", one index after another.
        """
        self._nest(list(dims), [], body, pace)

    def _nest(
        self, dims: list[Node], at: list[Node], body: Callable[[Indices], object], pace: str
    ) -> None:
        if not dims:
            body(tuple(at))
            return
        k = self.variable(I64, "i", pace=pace)
        inside = self.inside(lambda: self._nest(dims[1:], [*at, self.get(k)], body, pace))
        self.do("loop", dims[0], aux=(k, inside))

    # ------------------------------------------------------------ functions over leaf operations

    def put(self, function: Function, *args: Parts) -> Any:
        """Append the computation of a function of some arguments; return its value."""
        return self.graft(function, args)[-1]

    def graft(self, function: Function, args: Sequence[Parts]) -> list[Any]:
        """Append a function's guard, if it has one, and its body; their values."""
        found: dict[int, Any] = {}
        for node in function.ordered.nodes:
            inner = [found[id(a)] for a in node.args]
            match node.op:
                case "argument":
                    made: Any = args[node.aux]
                case "constant":
                    made = raw_constant(node.aux, node.kind)
                case "table":
                    made = self.op("table", *inner, kind=NATIVE[node.kind], aux=node.aux)
                case "call":
                    made = self.op("written", *inner, kind=NATIVE[node.kind], aux=node.aux)
                case "check":
                    made = self._checked(node, inner[0], inner[1])
                case name:
                    made = self._leaf(name, inner)
            found[id(node)] = made
        return [found[id(r)] for r in function.ordered.results]

    def _leaf(self, name: str, args: Sequence[Any]) -> Any:
        """Append a leaf operation; that of constant integers is a constant."""
        op = OPS[name]
        if name.startswith("select_"):
            return self._chosen(*args)
        if all(k in WIDTHS or k == BIT for k in op.takes) and all(a.op == "constant" for a in args):
            given = [_unsigned(a.aux, k) for a, k in zip(args, op.takes, strict=True)]
            # What has no value is an error of the run.
            shifts = name.partition("_")[0] in SHIFTS
            if not shifts or 0 <= given[1] < WIDTHS[op.takes[0]]:
                with suppress(ArithmeticError):
                    return raw_constant(_on_numbers(name)(*given), op.gives)
        if not isinstance(op.native, str):
            return op.native(self, *args)
        if op.native in CASTS:
            return self.op(op.native, *args, kind=NATIVE[op.gives])
        return self.op(op.native, *args)

    def _chosen(self, condition: Node, x: Parts, y: Parts) -> Parts:
        if condition.op == "constant":
            return x if condition.aux else y
        pairs = zip(parts_of(x), parts_of(y), strict=True)
        return value_of([self.select(condition, p, q) for p, q in pairs])

    def _checked(self, check: Node, bad: Node, value: Parts) -> Parts:
        """A value after a check: where that fails the instruction is given up."""
        if bad.op == "constant" and not bad.aux:
            return value
        self.trouble(bad)
        if check.aux.safe is None:
            return value
        return self._chosen(bad, raw_constant(check.aux.safe, check.kind), value)


def raw_constant(value: Any, kind: str) -> Any:
    """A constant of a leaf operation's kind; integers are those with a sign of the same bits."""
    if kind == C128:
        return constant(value.real, F64), constant(value.imag, F64)
    if kind in WIDTHS and value >> (WIDTHS[kind] - 1) > 0:
        value -= 1 << WIDTHS[kind]
    return constant(value, NATIVE[kind])


def _unsigned(value: Any, kind: str) -> Any:
    return value if kind == BIT or kind[0] == "i" else value % (1 << WIDTHS[kind])


@cache
def _on_numbers(name: str) -> Callable[..., Any]:
    """An operation on Python's numbers."""
    args = [f"a{k}" for k in range(len(OPS[name].takes))]
    text = text_of(name, total=True).format(*args, t="_t", u="_u")
    return eval(f"lambda {', '.join(args)}: {text}", dict(NAMES))  # type: ignore[no-any-return]
