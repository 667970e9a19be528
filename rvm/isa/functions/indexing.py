"""Lengths, elements by index, shapes, and the end of a counting loop.

An index outside of its array is an error (R003): negative ones do not count from the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.expr import Expr
from rvm.isa.functions.arrays import both, numbers
from rvm.isa.functions.formulas import enter, fn, rank
from rvm.isa.rules import gather, length, like, of, scatter, transposition
from rvm.leaf import Function, Node, select
from rvm.leaf.trace import Fault, apply, by_kind, converted, equal, unless
from rvm.numbers.code import Code
from rvm.numbers.reductions import stretched, sum_over
from rvm.numbers.support import index_fault, name, outside_domain, unequal_lengths
from rvm.types import I64

LOW, HIGH = -(1 << 63), (1 << 63) - 1


@name
def dim_of(x: Any, k: int) -> int:
    """The length of an axis."""
    if not 0 <= k < x.ndim:
        raise index_fault(k, x.ndim, "the array has no such axis")
    length_: int = x.shape[k]
    return length_


def _check(idx: Any, n: int) -> None:
    bad = (idx < 0) | (idx >= n)
    if np.any(bad):
        raise index_fault(int(idx[bad].flat[0]), n, "the index is out of bounds")


@name
def gather_array(x: Any, idx: Any) -> NDArray[Any]:
    """The elements of x at the indices."""
    _check(idx, len(x))
    return np.asarray(x[idx])


@name
def scatter_array(v: Any, idx: Any, n: int) -> NDArray[Any]:
    """A vector of length n with each v added at its index."""
    if len(v) != len(idx):
        raise unequal_lengths(v.shape, idx.shape)
    if n < 0:
        raise outside_domain("a negative length", length=n)
    _check(idx, n)
    out = np.zeros(n, v.dtype)
    np.add.at(out, idx, v)
    return out


@name
def sum_like(g: Any, x: Any, dtype: Any) -> Any:
    """`g` summed over the axes along which an array like x would have been broadcast to it."""
    shape = np.shape(x)
    if np.ndim(g) < len(shape):
        return spread_like(g, x, dtype)
    axes = stretched(shape, g.shape)
    if not axes:
        return g
    out = sum_over(g, axes).reshape(shape)
    return out if shape else out.item()


@name
def spread_like(g: Any, x: Any, dtype: Any) -> NDArray[Any]:
    """`g` broadcast to the shape of x; a number alone does not say how wide it is."""
    return np.array(np.broadcast_to(g, np.shape(x)), dtype)


enter(
    "len x",
    length,
    "the length of an array's first axis",
    cost="MOVES",
    code={"*": both("len({0})")},
    exactly=len,
)
enter(
    "dim x k",
    length,
    "the length of an array's axis k, from 0",
    cost="MOVES",
    code={"*": both("dim_of({0}, {1})")},
)


@name
def for_end(a: int, b: int, s: int) -> int:
    """The value after the last that a loop visits, wrapped; R015 if that is the first again."""
    if s == 0:
        raise outside_domain("a loop of step 0 has no end", start=a, stop=b, step=s)
    way = max(0, (b - a) // s + 1) * s
    if way and not way % (1 << 64):
        raise outside_domain("the loop would end where it begins", start=a, stop=b, step=s)
    return (a + way - LOW) % (1 << 64) + LOW


ENDLESS = Fault("endless", ArithmeticError)


def _behind_last(a: Node, b: Node, s: Node) -> Node:
    zero, up = equal(s, 0), s > 0
    # The way from a to b and the length of a step are unsigned: they need 64 bits.
    none = select(up, by_kind("lt", b, a), by_kind("gt", b, a))
    way = converted(select(up, apply("wsub", b, a), apply("wsub", a, b)), "u64")
    step = converted(select(zero, 1, select(up, s, apply("wneg", s))), "u64")
    rounds = apply("wadd", converted(apply("floordiv", way, step), "i64"), 1)
    covered = apply("wmul", rounds, s)
    endless = zero | (equal(covered, 0) & ~none)
    return select(none, a, apply("wadd", a, unless(covered, endless, ENDLESS)))


BEHIND_LAST = Function("for_end", _behind_last, (I64.name,) * 3)
enter(
    "for_end a b s",
    of(I64, I64, I64, result=I64, scalars=True),
    "the first value that `for i = a to b step s` does not visit (downto: s < 0)",
    cost="ADDS",
    code={"i64": Code("for_end({0}, {1}, {2})", "", None, BEHIND_LAST)},
    partial="int",
)
enter(
    "gather x indices",
    gather,
    "the elements of x at the indices",
    cost="MOVES",
    vjp=lambda g, x, idx: (fn("scatter", g, idx, fn("len", x)), None),
    code={"*": both("gather_array({0}, {1})")},
    linear=True,
    partial="any",
    indexed=True,
)
enter(
    "scatter x indices n",
    scatter,
    "a vector of length n with each value added at its index",
    cost="ADDS",
    vjp=lambda g, v, idx, n: (fn("gather", g, idx), None, None),
    code=numbers("scatter_array({0}, {1}, {2})"),
    linear=True,
    partial="any",
    indexed=True,
)
enter(
    "transpose a",
    transposition,
    "the matrix with rows and columns exchanged",
    cost="MOVES",
    vjp=lambda g, a: (fn("transpose", g),),
    code={"*": both("{0}.T")},
    linear=True,
)


def _likewise(name: str, g: Expr, v: Expr, x: Expr) -> Expr:
    """The term for v in `sum_like(v, x)` or `spread_like(v, x)`: as a rule `name(g, v)`.

    Where v was broadcast g is summed; for a scalar v that is done for any function.
    """
    if v.type is not None and not rank(v):
        return g if rank(g) else fn("spread_like", g, x)
    return fn("sum_like" if rank(v) < rank(x) else name, g, v)


enter(
    "sum_like v x",
    like("number"),
    "g summed over the axes along which x would have been broadcast to it",
    cost="ADDS",
    vjp=lambda g, v, x: (_likewise("spread_like", g, v, x), None),
    code=numbers("sum_like({0}, {1}, DTYPE)"),
    linear=True,
)
enter(
    "spread_like v x",
    like("any"),
    "g broadcast to the shape of x",
    cost="MOVES",
    vjp=lambda g, v, x: (_likewise("sum_like", g, v, x), None),
    code={"*": lambda t: both(f"spread_like({{0}}, {{1}}, dtype_{t.name})")},
    linear=True,
)
