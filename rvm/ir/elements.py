"""Elements of array expressions: the code before a loop over them, and inside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from rvm.expr import Apply, Expr, Place
from rvm.ir.builder import Builder, Indices
from rvm.ir.extremes import extreme, one_at
from rvm.ir.items import Parts
from rvm.ir.node import Node
from rvm.ir.products import Products, is_in_row
from rvm.ir.sums import Element, combined, operation
from rvm.ir.typed import Unprintable, type_of
from rvm.ir.values import at, body_of, read, value, viewed, widened
from rvm.isa.functions import machine
from rvm.isa.rules import CLASSES
from rvm.numbers import has_own_system
from rvm.types import Scalar, elem_of, rank_of

Found = tuple[tuple[Node, ...], Element]
"""The shape of an array expression, and its elements."""
LARGE = 1 << 23
"""Matrix products of more multiplications are left to the reference engine's library."""


def matching(
    b: Builder, shape: Sequence[Node], dims: Sequence[Node], exactly: bool = False
) -> None:
    """Trouble unless a shape equals the last axes of another."""
    if len(shape) > len(dims) or (exactly and len(shape) != len(dims)):
        raise Unprintable
    for x, y in zip(shape, dims[len(dims) - len(shape) :], strict=True):
        if x is not y and not (x.op == y.op and not x.args and x.aux == y.aux):
            b.trouble(b.op("ne", x, y))


def elements(b: Builder, node: Expr) -> Found:
    """The shape of an expression, and its elements; appends the code before the loop."""
    if not rank_of(type_of(node)):
        found = value(b, node)
        b.uniform = found
        return (), lambda _: found
    made = _elements(b, node)
    b.uniform = None
    return made


def _elements(b: Builder, node: Expr) -> Found:
    match node:
        case Place():
            view = viewed(b, node)
            return (
                view.dims,
                lambda i: b.instead[node] if node in b.instead else read(b, at(b, view, i)),
            )
        case Apply("transpose", (a,)):
            shape, inner = elements(b, a)
            return shape[::-1], lambda i: inner(i[::-1])
        case Apply("outer", (a, c)):
            (rows, left), (columns, right) = elements(b, a), elements(b, c)
            times = _binary(b, "*", a, c)
            return (*rows, *columns), lambda i: times(left(i[:1]), right(i[1:]))
        case Apply("spread_like", (g, x)):
            shape, inner = elements(b, g)
            like, _ = elements(b, x)
            matching(b, shape, like)
            return like, lambda i: inner(i[len(i) - len(shape) :])
        case Apply("sum_like", (g, x)):
            return _summed_like(b, g, x)
        case Apply("first_max" | "last_min" as fn, (x,)):
            shape, inner = elements(b, x)
            return shape, one_at(b, fn.partition("_")[2], elem_of(type_of(x)), shape, inner)
        case Apply("gather", (x, idx)):
            return _gather(b, x, idx)
        case Apply("@" | "matvec" | "matmul", (a, c)):
            return _product(b, a, c, LARGE)
        case Apply("blas.@" | "blas.matmul", (a, c)):
            return _product(b, a, c, machine.LARGE)
        case Apply("choose"):
            raise Unprintable
        case Apply(fn, args):
            return _pointwise(b, fn, args)
    raise Unprintable


def _pointwise(b: Builder, fn: str, args: Sequence[Expr]) -> Found:
    body = body_of(fn, tuple(elem_of(type_of(a)) for a in args))
    found = [elements(b, a) for a in args]
    shape = max((s for s, _ in found), key=len)
    for other, _ in found:
        if other is not shape:
            matching(b, other, shape)
    return shape, lambda i: b.put(body, *(e(i[len(i) - len(s) :]) for s, e in found))


def _summed_like(b: Builder, g: Expr, x: Expr) -> Found:
    """`g` summed over the axes that `x` does not have; where `x` is longer, repeated."""
    shape, inner = elements(b, g)
    like, _ = elements(b, x)
    lead = len(shape) - len(like)
    if lead < 0:
        matching(b, shape, like)
        return like, lambda i: inner(i[len(i) - len(shape) :])
    matching(b, like, shape)
    if not lead:
        return shape, inner
    t = elem_of(type_of(g))
    if has_own_system(t):
        raise Unprintable

    def element(i: Indices) -> Parts:
        return combined(b, "+", t, shape[:lead], lambda front: inner((*front, *i)))

    return shape[lead:], element


def _gather(b: Builder, x: Expr, idx: Expr) -> Found:
    (length,), inner = elements(b, x)
    shape, which = elements(b, idx)
    t = elem_of(type_of(idx))

    def element(i: Indices) -> Parts:
        k = widened(b, cast(Node, which(i)), t)
        b.bound(k, length)
        return inner((k,))

    return shape, element


def _product(b: Builder, x: Expr, y: Expr, large: int) -> Found:
    """Matrix times vector, vector times matrix, matrix times matrix."""
    (rows, left), (columns, right) = elements(b, x), elements(b, y)
    matching(b, (rows[-1],), (columns[0],))
    if len(rows) + len(columns) == 4:
        count = b.product(b.product(rows[0], rows[1]), columns[1])
        b.trouble(b.op("ugt", count, b.i64(large)))
    n = len(rows) - 1
    t, times = _factors(b, x, y)

    def term(i: Indices, at: Indices) -> Parts:
        return times(left((*i[:n], *at)), right((*at, *i[n:])))

    made = Products(b, t, rows[-1], operation(b, "+", t), term, is_in_row(x, y))
    return (*rows[:-1], *columns[1:]), made.element


def _binary(b: Builder, fn: str, x: Expr, y: Expr) -> Callable[[Parts, Parts], Parts]:
    body = body_of(fn, (elem_of(type_of(x)), elem_of(type_of(y))))
    return lambda p, q: b.put(body, p, q)


def _factors(b: Builder, x: Expr, y: Expr) -> tuple[Scalar, Callable[[Parts, Parts], Parts]]:
    """The type of two arrays' elements, and their product."""
    t = elem_of(type_of(x))
    if t.is_fixed or has_own_system(t) or t != elem_of(type_of(y)):
        raise Unprintable
    return t, _binary(b, "*", x, y)


# ------------------------------------------------------------------------- reductions


def reduced(b: Builder, fn: str, args: tuple[Expr, ...]) -> Parts:
    """A scalar computed from arrays."""
    match fn, args:
        case "sum" | "prod", (x,):
            t = elem_of(type_of(x))
            if not CLASSES["number"](t) or has_own_system(t):
                raise Unprintable
            shape, element = elements(b, x)
            if fn == "prod" and t.is_fixed:
                raise Unprintable
            return combined(b, "+" if fn == "sum" else "*", t, shape, element)
        case "amin" | "amax", (x,):
            shape, element = elements(b, x)
            return extreme(b, fn[1:], elem_of(type_of(x)), shape, element)
        case "dot" | "@", (x, y):
            (n,), left = elements(b, x)
            (m,), right = elements(b, y)
            matching(b, (n,), (m,))
            t, times = _factors(b, x, y)
            return combined(b, "+", t, (n,), lambda i: times(left(i), right(i)))
    raise Unprintable
