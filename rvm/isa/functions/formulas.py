"""Notation for derivative rules: functions by name, and constants of an operand's type.

The arguments of a rule are typed expressions; what it gives is a template, for
`rvm.isa.typing.typed`.
"""

from __future__ import annotations

from keyword import iskeyword
from typing import Any

from rvm.expr import Apply, Const, Expr
from rvm.isa.rows import FunctionRow, add_function
from rvm.isa.rules import Rule
from rvm.numbers import system
from rvm.types import Scalar, elem_of, rank_of

Partials = tuple[Expr | None, ...]


def enter(head: str, rule: Rule, doc: str, **facts: Any) -> FunctionRow:
    """Enter a row in the function table; `facts` are its other columns.

    `head` is the function's name, and those of its arguments.  A name that is no identifier is a
    symbol.
    """
    name, *operands = head.split()
    if iskeyword(name) or not name.isidentifier():
        facts = {"symbol": name} | facts
    return add_function(FunctionRow(name, tuple(operands), rule, doc, **facts))


MAX_BITS = 4096
"""The largest integer that a constant may be."""


def exact_power(a: Any, b: Any) -> Any:
    """A power of Python's numbers; OverflowError where it is an integer too large to hold."""
    if isinstance(a, int) and isinstance(b, int) and a.bit_length() * abs(b) > MAX_BITS:
        raise OverflowError("the number is too large")
    return a**b


def exact_shift(a: Any, b: Any) -> Any:
    """A shift to the left of Python's integers; OverflowError where it is too large to hold."""
    if b > MAX_BITS:
        raise OverflowError("the number is too large")
    return a << b


def fn(name: str, *args: Any) -> Apply:
    """The function `name` applied to expressions and numbers."""
    return Apply(name, tuple(a if isinstance(a, Expr) else Const(a) for a in args))


def elem(x: Expr) -> Scalar | None:
    """The element type of a typed expression, None of a template."""
    return None if x.type is None else elem_of(x.type)


def rank(x: Expr) -> int:
    """The number of dimensions of an expression; 0 where it is not typed."""
    return 0 if x.type is None else rank_of(x.type)


def const(value: Any, like: Expr) -> Expr:
    """A number in the type of `like`, where that is known.

    `select(c, const(1, x), const(0, x))` then needs no neighbour to have a type.
    """
    t = elem(like)
    return Const(value) if t is None else Const(system(t).literal(value), t)


def select(cond: Expr, a: Any, b: Any, like: Expr) -> Apply:
    """`select(cond, a, b)`, numbers taken in the type of `like`."""
    return fn(
        "select",
        cond,
        a if isinstance(a, Expr) else const(a, like),
        b if isinstance(b, Expr) else const(b, like),
    )


def equal(a: Expr, b: Any) -> Apply:
    """The comparison a == b (Python's `==` on expressions compares their structure)."""
    return fn("==", a, b if isinstance(b, Expr) else const(b, a))


def is_complex(x: Expr) -> bool:
    """Whether a typed expression is complex."""
    t = elem(x)
    return t is not None and t.is_complex


def conj(x: Expr) -> Expr:
    """The complex conjugate; a real expression itself."""
    return fn("conj", x) if is_complex(x) else x


def safe_divisor(x: Expr) -> Expr:
    """`x`, and 1 where it is 0: what is divided by it has no NaN, nor have its derivatives."""
    return select(equal(x, 0), 1, x, x)
