"""Elements of array expressions: what to do before a loop over them, and inside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from rvm.expr import Apply, Expr, Place
from rvm.ir.builder import Builder, Indices
from rvm.ir.items import Parts
from rvm.ir.node import F32, F64, I32, I64, Node, constant
from rvm.ir.places import kind_of
from rvm.ir.sums import Element, accumulated, combined, identity, operation, unless_empty
from rvm.ir.typed import Unprintable, type_of
from rvm.ir.values import at, body_of, raw, read, value, viewed, widened
from rvm.isa.functions import machine
from rvm.isa.rules import CLASSES
from rvm.numbers import has_own_system, system
from rvm.types import Scalar, elem_of, rank_of

Found = tuple[tuple[Node, ...], Element]
"""The shape of an array expression, and its elements."""
LARGE = 1 << 23
"""Matrix products of more multiplications are left to the reference engine's library."""


def matching(
    b: Builder, shape: Sequence[Node], dims: Sequence[Node], exactly: bool = False
) -> None:
    """Trouble unless a shape is that of the last axes of another."""
    if len(shape) > len(dims) or (exactly and len(shape) != len(dims)):
        raise Unprintable
    for x, y in zip(shape, dims[len(dims) - len(shape) :], strict=True):
        if x is not y and not (x.op == y.op and not x.args and x.aux == y.aux):
            b.trouble(b.op("ne", x, y))


def elements(b: Builder, node: Expr) -> Found:
    """The shape of an expression, and its elements; appends what comes before."""
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
            return _one_at(b, fn, x)
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


def _one_at(b: Builder, fn: str, x: Expr) -> Found:
    """One at the first greatest or last least element, zero elsewhere; a NaN is before all."""
    t = elem_of(type_of(x))
    shape, inner = elements(b, x)
    for n in shape:
        b.trouble(b.op("eq", n, b.i64(0)))
    kind = kind_of(t)
    best, at_best, count = (b.variable(k, "best") for k in (kind, I64, I64))
    b.set(best, cast(Node, inner((b.i64(0),) * len(shape))))
    b.set(at_best, b.i64(0))
    b.set(count, b.i64(0))

    def look(i: Indices) -> None:
        found, held = cast(Node, inner(i)), b.get(best)
        if fn == "first_max":
            better = _better(b, "max", t, found, held)
        else:
            better = b.invert(_better(b, "min", t, held, found))
        here = b.get(count)
        b.set(best, b.select(better, found, held))
        b.set(at_best, b.select(better, here, b.get(at_best)))
        b.add_to(count, b.i64(1))

    b.nest(shape, look)
    place = b.get(at_best)
    one, zero = (cast(Node, raw(system(t).literal(v), t)) for v in (1, 0))

    def element(i: Indices) -> Parts:
        flat = i[0]
        for k, n in zip(i[1:], shape[1:], strict=True):
            flat = b.op("wadd", b.product(flat, n), k)
        return b.select(b.op("eq", flat, place), one, zero)

    return shape, element


def _better(b: Builder, which: str, t: Scalar, found: Node, held: Node) -> Node:
    how = "gt" if which == "max" else "lt"
    if found.kind not in (F64, F32):
        return b.op(how if t.is_signed else "u" + how, found, held)
    beyond = b.op("f" + how, found, held)
    nan = b.op("funo", found, found)
    return b.op("and", b.op("ford", held, held), b.op("or", beyond, nan))


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
    add = operation(b, "+", t)

    def element(i: Indices) -> Parts:
        def step(s: Parts, at: Indices) -> Parts:
            return add(s, times(left((*i[:n], *at)), right((*at, *i[n:]))))

        found = accumulated(b, t, rows[-1:], step, identity("+", t))
        return found if t.is_exact else unless_empty(b, "+", t, rows[-1], found)

    return (*rows[:-1], *columns[1:]), element


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
    """A scalar made of arrays."""
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
            return _extreme(b, fn[1:], x)
        case "dot" | "@", (x, y):
            (n,), left = elements(b, x)
            (m,), right = elements(b, y)
            matching(b, (n,), (m,))
            t, times = _factors(b, x, y)
            return combined(b, "+", t, (n,), lambda i: times(left(i), right(i)))
    raise Unprintable


def _extreme(b: Builder, fn: str, x: Expr) -> Parts:
    """The least or greatest of the elements, of which there must be one."""
    t = elem_of(type_of(x))
    shape, element = elements(b, x)
    for n in shape:
        b.trouble(b.op("eq", n, b.i64(0)))
    if fn == "max" and t.is_float and isinstance(x, Apply) and x.fn == "abs":
        return _largest(b, kind_of(t), shape, element)
    body = body_of(fn, (t, t))
    first = element((b.i64(0),) * len(shape))
    return accumulated(b, t, shape, lambda s, i: b.put(body, s, element(i)), first)


def _largest(b: Builder, kind: str, shape: Sequence[Node], magnitude: Element) -> Node:
    """The greatest of some magnitudes: that of their bits as integers, of which NaN is greatest.

    LLVM makes vectors of integers' maxima, but not of floats', where a NaN is to win.
    """
    whole = I32 if kind == F32 else I64
    best = b.variable(whole, "best")
    b.set(best, constant(0, whole))

    def look(i: Indices) -> None:
        bits = b.op("bitcast", cast(Node, magnitude(i)), kind=whole)
        b.set(best, b.intrinsic("smax", b.get(best), bits))

    b.nest(shape, look)
    return b.op("bitcast", b.get(best), kind=kind)
