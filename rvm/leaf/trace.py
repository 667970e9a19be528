"""Nodes of leaf operations, and the arithmetic by which bodies make them.

`+ - * /`, comparisons by `<` and `<=`, and on integers `& | ^ << >>` make nodes; so do the
functions here.  Python numbers become constants of the other operand's kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rvm.leaf.ops import BIT, F32, F64, OPS

FLOATS = (F64, F32)


SPECIAL = ("argument", "constant", "table", "check", "call")
"""Nodes that are not operations."""


def _operator(name: str, reflected: bool = False) -> Callable[[Node, Any], Node]:
    """A Python operator, as an operation of the operands' kind."""

    def operator(self: Node, other: Any) -> Node:
        return by_kind(name, other, self) if reflected else by_kind(name, self, other)

    return operator


class Node:
    """A value within a body: an operation of the table, or one of `SPECIAL`."""

    __slots__ = ("args", "aux", "kind", "op")

    def __init__(self, op: str, kind: str, args: tuple[Node, ...] = (), aux: Any = None) -> None:
        self.op = op
        self.kind = kind
        self.args = args
        self.aux = aux

    def __repr__(self) -> str:
        inside = ", ".join(map(repr, self.args))
        return f"{self.op}({inside})" if self.aux is None else f"{self.op}({self.aux!r} {inside})"

    __add__ = _operator("add")
    __radd__ = _operator("add", reflected=True)
    __sub__ = _operator("sub")
    __rsub__ = _operator("sub", reflected=True)
    __mul__ = _operator("mul")
    __rmul__ = _operator("mul", reflected=True)
    __truediv__ = _operator("div")
    __rtruediv__ = _operator("div", reflected=True)
    __lt__ = _operator("lt")
    __le__ = _operator("le")
    __gt__ = _operator("gt")
    __ge__ = _operator("ge")

    def __neg__(self) -> Node:
        return apply("fneg", self) if self.kind in FLOATS else apply("sub", 0, self)

    def __and__(self, other: Any) -> Node:
        return apply("both" if self.kind == BIT else "and", self, other)

    def __or__(self, other: Any) -> Node:
        return apply("either" if self.kind == BIT else "or", self, other)

    def __xor__(self, other: Any) -> Node:
        return apply("xor", self, other)

    def __invert__(self) -> Node:
        return apply("not", self)

    def __lshift__(self, other: Any) -> Node:
        return apply("shl", self, other)

    def __rshift__(self, other: Any) -> Node:
        return apply("ashr", self, other)

    def __bool__(self) -> bool:
        raise TypeError("a node has no truth value; use `select(condition, a, b)`")


def by_kind(name: str, a: Any, b: Any) -> Node:
    """An operation that floats have by a name of their own: add, sub, mul, div, lt, le, …, ne."""
    return apply(f"f{name}" if _kind(a, b) in FLOATS else name, a, b)


def _kind(*args: Any) -> str:
    """The kind of the first node among arguments; that of a float where all are numbers."""
    return next((a.kind for a in args if isinstance(a, Node)), F64)


def constant(value: Any, kind: str) -> Node:
    """A constant of a kind."""
    return Node("constant", kind, (), float(value) if kind in FLOATS else value)


def apply(name: str, *args: Any) -> Node:
    """An operation by its short name; Python numbers become constants. TypeError for other kinds.

    Where several kinds have the operation, the arguments' kind decides.
    """
    op = OPS.get(f"{name}_{_kind(*args)}") or OPS[name]
    nodes = tuple(
        a if isinstance(a, Node) else constant(a, kind)
        for a, kind in zip(args, op.takes, strict=True)
    )
    if tuple(n.kind for n in nodes) != op.takes:
        raise TypeError(f"`{op.name}` takes {op.takes}, not {tuple(n.kind for n in nodes)}")
    return Node(op.name, op.gives, nodes)


@dataclass(frozen=True, eq=False, slots=True)
class Fault:
    """The error of a failed check: `make` makes it from values; `name` is its name in source.

    `implied`: the Python text after the check raises it without the check; `safe` is the constant
    with which LLVM code continues after a failed check, if needed.
    """

    name: str
    make: Callable[..., Exception]
    implied: bool = False
    safe: Any = None


def unless(value: Node, bad: Node, fault: Fault, *shown: Node) -> Node:
    """A value, after a check: where `bad` holds, the fault is raised with the values `shown`."""
    return Node("check", value.kind, (bad, value, *shown), fault)


def called(function: Any, *args: Any) -> Node:
    """A function over leaf operations at values."""
    kinds = [p.kind for p in function.params]
    nodes = (a if isinstance(a, Node) else constant(a, k) for a, k in zip(args, kinds, strict=True))
    return Node("call", function.result.kind, tuple(nodes), function)


def converted(value: Node, kind: str) -> Node:
    """An integer or truth value as an integer of another kind, with wrapping."""
    return value if value.kind == kind else apply(f"{kind}_of_{value.kind}", value)


def select(condition: Node, a: Any, b: Any) -> Node:
    """`a` where the condition holds, else `b`; both are computed."""
    kind = next((v.kind for v in (a, b) if isinstance(v, Node)), F64)
    return apply(f"select_{kind}", condition, a, b)


def equal(a: Any, b: Any) -> Node:
    """Whether two numbers are equal (Python's `==` compares nodes for identity)."""
    return by_kind("eq", a, b)


def unequal(a: Any, b: Any) -> Node:
    """Whether two numbers differ; a NaN differs from itself."""
    return by_kind("ne", a, b)


def fabs(x: Any) -> Node:
    """The absolute value of a float."""
    return apply("fabs", x)


def sqrt(x: Any) -> Node:
    """The square root of a float that is not negative."""
    return apply("sqrt", x)


def bits(x: Any) -> Node:
    """The bits of a float as an integer."""
    return apply("bits", x)


def of_bits(n: Any) -> Node:
    """The float whose bits an integer holds."""
    return apply("of_bits", n)


def to_float(n: Any) -> Node:
    """An integer as the nearest float."""
    return apply("float", n)


def to_int(x: Any) -> Node:
    """A float that is an integer below 2**63 in size, as one."""
    return apply("int", x)


def fitting(value: Node, kind: str) -> Node:
    """An integer as one of another kind, in whose range it is."""
    return value if value.kind == kind else apply(f"{kind}_from_{value.kind}", value)


MAGIC = 6755399441055744.0
"""1.5 * 2**52: added and subtracted again, it rounds to an integer."""


def nearest(x: Node) -> Node:
    """A float below 2**51 in size rounded to the nearest integer, ties to even; 0 for -0."""
    return (x + MAGIC) - MAGIC


def with_sign(size: Node, of: Node) -> Node:
    """A nonnegative number with the sign of another, bit by bit."""
    return of_bits(bits(size) | (bits(of) & SIGN))


SIGN = -(1 << 63)
"""The bit of the sign, as an integer."""


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """Constants of one kind, reached by an index; their number is a power of 2."""

    name: str
    kind: str
    values: Sequence[Any]
    is_placed: bool = False
    """Whether machine code finds the values where it is loaded, so that tables of one name share
    it."""

    def __post_init__(self) -> None:
        if len(self.values) & (len(self.values) - 1):
            raise ValueError(f"the table `{self.name}` has {len(self.values)} entries")

    def __getitem__(self, index: Node) -> Node:
        """The entry at an index, whose bits above the table's are left out."""
        inside = apply("and", index, len(self.values) - 1)
        return Node("table", self.kind, (inside,), self)
