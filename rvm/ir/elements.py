"""Elements of array expressions: what to do before a loop over them, and inside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from rvm.expr import Apply, Expr, Place
from rvm.ir.builder import Builder, Indices
from rvm.ir.items import Parts
from rvm.ir.node import F32, F64, I64, Node
from rvm.ir.places import Variables, kind_of, kinds_of
from rvm.ir.typed import Unprintable, type_of
from rvm.ir.values import at, body_of, put, raw, read, value, viewed, widened
from rvm.numbers import has_own_system, system
from rvm.types import Scalar, elem_of, rank_of

Element = Callable[[Indices], Parts]
"""Appends the value of an array expression at some indices."""
Found = tuple[tuple[Node, ...], Element]
"""The shape of an array expression, and its elements."""
LARGE = 1 << 15
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
            return view.dims, lambda i: read(b, at(b, view, i))
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
            return _product(b, a, c)
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
    if t.is_log or has_own_system(t):
        raise Unprintable
    add = _plus(b, t)

    def element(i: Indices) -> Parts:
        return accumulated(b, t, shape[:lead], lambda s, front: add(s, inner((*front, *i))))

    return shape[lead:], element


def _one_at(b: Builder, fn: str, x: Expr) -> Found:
    """One at the first greatest or last least element, zero elsewhere; a NaN is before all."""
    t = elem_of(type_of(x))
    if t.is_complex or t.is_log or t.is_bool:
        raise Unprintable
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


def _product(b: Builder, x: Expr, y: Expr) -> Found:
    """Matrix times vector, vector times matrix, matrix times matrix."""
    (rows, left), (columns, right) = elements(b, x), elements(b, y)
    matching(b, (rows[-1],), (columns[0],))
    if len(rows) + len(columns) == 4:
        count = b.product(b.product(rows[0], rows[1]), columns[1])
        b.trouble(b.op("ugt", count, b.i64(LARGE)))
    n = len(rows) - 1
    total = _sum_of_products(b, x, y)

    def element(i: Indices) -> Parts:
        return total(rows[-1], lambda k: left((*i[:n], k)), lambda k: right((k, *i[n:])))

    return (*rows[:-1], *columns[1:]), element


def _binary(b: Builder, fn: str, x: Expr, y: Expr) -> Callable[[Parts, Parts], Parts]:
    body = body_of(fn, (elem_of(type_of(x)), elem_of(type_of(y))))
    return lambda p, q: b.put(body, p, q)


def _plus(b: Builder, t: Scalar) -> Callable[[Parts, Parts], Parts]:
    body = body_of("+", (t, t))
    return lambda p, q: b.put(body, p, q)


def _sum_of_products(
    b: Builder, x: Expr, y: Expr
) -> Callable[[Node, Callable[[Node], Parts], Callable[[Node], Parts]], Parts]:
    t = elem_of(type_of(x))
    if t.is_fixed or t.is_log or t.is_bool or has_own_system(t) or t != elem_of(type_of(y)):
        raise Unprintable
    times, add = _binary(b, "*", x, y), _plus(b, t)

    def total(n: Node, left: Callable[[Node], Parts], right: Callable[[Node], Parts]) -> Parts:
        return accumulated(b, t, (n,), lambda s, i: add(s, times(left(i[0]), right(i[0]))))

    return total


# ------------------------------------------------------------------------- reductions


def reduced(b: Builder, fn: str, args: tuple[Expr, ...]) -> Parts:
    """A scalar made of arrays."""
    match fn, args:
        case "sum", (x,):
            t = elem_of(type_of(x))
            if t.is_log or t.is_bool or has_own_system(t):
                raise Unprintable
            add = _plus(b, t)
            shape, element = elements(b, x)
            return accumulated(b, t, shape, lambda s, i: add(s, element(i)))
        case "amin" | "amax", (x,):
            return _extreme(b, fn[1:], x)
        case "dot" | "@", (x, y):
            (n,), left = elements(b, x)
            (m,), right = elements(b, y)
            matching(b, (n,), (m,))
            return _sum_of_products(b, x, y)(n, lambda k: left((k,)), lambda k: right((k,)))
    raise Unprintable


def _extreme(b: Builder, fn: str, x: Expr) -> Parts:
    """The least or greatest of the elements, of which there must be one."""
    t = elem_of(type_of(x))
    if t.is_complex:
        raise Unprintable
    body = body_of(fn, (t, t))
    shape, element = elements(b, x)
    for n in shape:
        b.trouble(b.op("eq", n, b.i64(0)))
    first = element((b.i64(0),) * len(shape))
    return accumulated(b, t, shape, lambda s, i: b.put(body, s, element(i)), first)


def accumulated(
    b: Builder,
    t: Scalar,
    dims: Sequence[Node],
    step: Callable[[Parts, Indices], Parts],
    begin: Parts | None = None,
) -> Parts:
    """A value that grows from zero, or what it begins with, over all indices, in order."""
    where = Variables(tuple(b.variable(k, "sum") for k in kinds_of(t)), t)
    keep, b.writes = b.writes, True
    put(b, where, raw(system(t).zero, t) if begin is None else begin)
    b.nest(dims, lambda i: put(b, where, step(read(b, where), i)))
    b.writes = keep
    return read(b, where)
