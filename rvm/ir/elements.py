"""Elements of array expressions: the code before a loop over them, and inside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from rvm.expr import Apply, Expr, Place, Transposed
from rvm.ir.builder import Builder, Indices
from rvm.ir.extremes import extreme, one_at
from rvm.ir.items import Parts, parts_of, value_of
from rvm.ir.node import Node
from rvm.ir.places import kinds_of
from rvm.ir.sums import (
    Element,
    Step,
    accumulated,
    combined,
    identity,
    operation,
    unless_empty,
    variables,
)
from rvm.ir.typed import Unprintable, type_of
from rvm.ir.values import at, body_of, put, read, value, viewed, widened
from rvm.isa.functions import machine
from rvm.isa.rules import CLASSES
from rvm.numbers import has_own_system
from rvm.types import Scalar, elem_of, rank_of

Found = tuple[tuple[Node, ...], Element]
"""The shape of an array expression, and its elements."""
LARGE = 1 << 32
"""Matrix products of more multiplications are left to the reference engine: they take a second or
longer, and machine code does not stop within an instruction for Ctrl-C."""
ROW, LONG_ROW = 64, 512
"""Elements that are held at a time, for a loop over them: of many rows, and of one."""
FEW, MANY = 8, 32
"""Elements that are computed together, and those in a row of memory."""


def matching(
    b: Builder,
    shape: Sequence[Node],
    dims: Sequence[Node],
    exactly: bool = False,
    element: Element | None = None,
) -> None:
    """Trouble unless a shape equals the last axes of another.

    An array with this `element` is repeated along the other axes.
    """
    if len(shape) > len(dims) or (exactly and len(shape) != len(dims)):
        raise Unprintable
    for x, y in zip(shape, dims[len(dims) - len(shape) :], strict=True):
        if x is not y and not (x.op == y.op and not x.args and x.aux == y.aux):
            b.trouble(b.op("ne", x, y))
    if element is not None and shape:
        repeated(b, (tuple(shape), element), dims[: len(dims) - len(shape)])


def repeated(b: Builder, found: Found, times: Sequence[Node]) -> None:
    """Trouble if an array is repeated no times, and its elements, then asked for by nobody, may
    have trouble: the reference engine computes them."""
    shape, element = found
    if times and b.may_fail(lambda: element((b.i64(0),) * len(shape))):
        for n in times:
            b.trouble(b.op("eq", n, b.i64(0)))


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
            repeated(b, (rows, left), columns)
            repeated(b, (columns, right), rows)
            return (*rows, *columns), lambda i: times(left(i[:1]), right(i[1:]))
        case Apply("spread_like", (g, x)):
            shape, inner = elements(b, g)
            like, other = elements(b, x)
            b.surely(like, other)
            matching(b, shape, like, element=inner)
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
    for other, element in found:
        if other is not shape:
            matching(b, other, shape, element=element)
    return shape, lambda i: b.put(body, *(e(i[len(i) - len(s) :]) for s, e in found))


def _summed_like(b: Builder, g: Expr, x: Expr) -> Found:
    """`g` summed over the axes that `x` does not have; where `x` is longer, repeated."""
    shape, inner = elements(b, g)
    like, other = elements(b, x)
    b.surely(like, other)
    lead = len(shape) - len(like)
    if lead < 0:
        matching(b, shape, like, element=inner)
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
    # Elements at no index are computed, too.
    b.surely((length,), inner)

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
    repeated(b, (rows, left), columns[1:])
    repeated(b, (columns, right), rows[:-1])

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
            if fn == "prod" and t.is_fixed:
                raise Unprintable
            return _total(b, "+" if fn == "sum" else "*", t, lambda: elements(b, x))
        case "amin" | "amax", (x,):
            shape, element = elements(b, x)
            return extreme(b, fn[1:], elem_of(type_of(x)), shape, element)
        case "dot" | "@", (x, y):
            t, times = _factors(b, x, y)

            def found() -> Found:
                (n,), left = elements(b, x)
                (m,), right = elements(b, y)
                matching(b, (n,), (m,))
                return (n,), lambda i: times(left(i), right(i))

            return _total(b, "+", t, found)
    raise Unprintable


def _total(b: Builder, fn: str, t: Scalar, found: Callable[[], Found]) -> Parts:
    """The sum or product of elements; few that have matrix products are held, as in `in_rows`."""
    outer, b.has_products = b.has_products, False
    dims, element = found()
    inner, b.has_products = b.has_products, outer or b.has_products
    if not inner or t.is_exact or len(dims) > 1:
        return combined(b, fn, t, dims, element)
    where, held = variables(b, t), _Numbers(b, t, "term", ROW)

    def few() -> None:
        in_rows(b, dims, lambda i: held.set(i[0], element(i)))
        put(b, where, combined(b, fn, t, dims, lambda i: held.get(i[0])))

    def many() -> None:
        put(b, where, combined(b, fn, t, dims, element))

    keep, b.writes = b.writes, True
    b.when(b.op("le", dims[0], b.i64(ROW)), few, many)
    b.writes = keep
    return read(b, where)


# ------------------------------------------------------------------------- matrix products
#
# An element is a sum in the order of its terms, in which each addition waits for the one before.
# The sums of several elements do not wait for each other, and LLVM keeps them in machine registers.
# Those whose terms are next to each other in memory become vectors.


@dataclass
class Row:
    """Elements along the last axis, from `first` on, for which a loop is made."""

    first: Node
    count: Node
    most: int
    """The largest count."""
    index: Node | None = None
    """The index of the loop's element."""
    offset: Node | None = None
    """Its distance from the first one."""
    before: list[Node] = field(default_factory=list)
    """Operations in front of the loop."""


class Products:
    """The elements of a product: sums of `count` terms, with indices of element and term."""

    def __init__(
        self,
        b: Builder,
        t: Scalar,
        count: Node,
        add: Step,
        term: Callable[[Indices, Indices], Parts],
        in_row: bool,
    ) -> None:
        self.b, self.type, self.count, self.add, self.term = b, t, count, add, term
        self.in_row = in_row
        """Whether neighbouring elements have neighbouring terms."""
        self.zero = identity("+", t)
        b.has_products = True

    def element(self, i: Indices) -> Parts:
        """The element at some indices."""
        row = self.b.present
        if isinstance(row, Row) and i and i[-1] is row.index:
            return self._held(row, i[:-1])
        return self._alone(i)

    def _alone(self, i: Indices) -> Parts:
        def step(s: Parts, at: Indices) -> Parts:
            return self.add(s, self.term(i, at))

        return self._sum(accumulated(self.b, self.type, (self.count,), step, self.zero))

    def _sum(self, found: Parts) -> Parts:
        if self.type.is_exact:
            return found
        return unless_empty(self.b, "+", self.type, self.count, found)

    def _held(self, row: Row, front: Indices) -> Parts:
        """The loop's element, with all of the row computed in front of the loop."""
        b, held = self.b, _Numbers(self.b, self.type, "element", row.most)

        def together(start: Node, many: int) -> None:
            sums = _Numbers(b, self.type, "part", many)
            every = (b.i64(many),)
            pace = f"whole {many // FEW}" if self.in_row else "straight"

            def add(at: Indices) -> None:
                def one(j: Indices) -> None:
                    where = (*front, b.op("wadd", row.first, b.sum(start, j[0])))
                    sums.set(j[0], self.add(sums.get(j[0]), self.term(where, at)))

                b.nest(every, one, pace)

            b.nest(every, lambda j: sums.set(j[0], self.zero), pace)
            b.nest((self.count,), add)
            b.nest(every, lambda j: held.set(b.sum(start, j[0]), self._sum(sums.get(j[0]))), pace)

        def fill() -> None:
            done = b.i64(0)
            if self.in_row:
                bits = b.i64(MANY.bit_length() - 1)
                blocks = b.op("lshr", row.count, bits)
                b.nest((blocks,), lambda k: together(b.op("shl", k[0], bits), MANY))
                done = b.op("shl", blocks, bits)
            rest, bits = b.op("wsub", row.count, done), b.i64(FEW.bit_length() - 1)
            last = b.op("wsub", row.count, b.i64(FEW))

            def some() -> None:
                blocks = b.op("lshr", b.op("wadd", rest, b.i64(FEW - 1)), bits)
                # The last are computed with some before them.
                b.nest(
                    (blocks,),
                    lambda k: together(
                        b.intrinsic("smin", b.op("wadd", done, b.op("shl", k[0], bits)), last), FEW
                    ),
                )

            def few() -> None:
                b.nest(
                    (row.count,),
                    lambda k: held.set(k[0], self._alone((*front, b.op("wadd", row.first, k[0])))),
                )

            b.when(b.op("ge", row.count, b.i64(FEW)), some, few)

        def add_all(begun: Node, many: int) -> None:
            """Add so many terms to each of the row's elements."""

            def one(j: Indices) -> None:
                found = held.get(j[0])
                for k in range(many):
                    where = (*front, b.op("wadd", row.first, j[0]))
                    found = self.add(found, self.term(where, (b.sum(begun, b.i64(k)),)))
                held.set(j[0], found)

            b.nest((row.count,), one)

        def stream() -> None:
            every, bits = (row.count,), b.i64(FEW.bit_length() - 1)
            blocks = b.op("lshr", self.count, bits)
            b.nest(every, lambda j: held.set(j[0], self.zero))
            b.nest((blocks,), lambda k: add_all(b.op("shl", k[0], bits), FEW))
            done = b.op("shl", blocks, bits)
            b.nest((b.op("wsub", self.count, done),), lambda k: add_all(b.sum(done, k[0]), 1))
            b.nest(every, lambda j: held.set(j[0], self._sum(held.get(j[0]))))

        def fill_or_stream() -> None:
            if self.in_row and row.most > ROW:
                b.when(b.op("gt", row.count, b.i64(ROW)), stream, fill)
            else:
                fill()

        keep, b.writes = b.writes, True
        row.before += b.inside(fill_or_stream)
        b.writes = keep
        assert row.offset is not None
        return held.get(row.offset)


class _Numbers:
    """Variables that hold a few numbers."""

    def __init__(self, b: Builder, t: Scalar, stem: str, many: int) -> None:
        self._b, self._parts = b, [b.variable(k, stem, many=many) for k in kinds_of(t)]

    def get(self, k: Node) -> Parts:
        return value_of(tuple(self._b.get(p, k) for p in self._parts))

    def set(self, k: Node, value: Parts) -> None:
        for p, v in zip(self._parts, parts_of(value), strict=True):
            self._b.set(p, v, k)


def in_rows(b: Builder, dims: Sequence[Node], body: Callable[[Indices], object]) -> None:
    """Loops over all indices; elements of products in `body` are computed for a row at a time.

    Of more than one row, all have their turn before the elements that follow in them: what these
    are computed from stays in the cache.
    """
    if not b.has_products:
        b.nest(dims, body)
        return
    most = ROW if len(dims) > 1 else LONG_ROW
    bits = b.i64(most.bit_length() - 1)
    found: list[Node] = []

    def block(k: Indices) -> None:
        first = b.op("shl", k[0], bits)
        count = b.intrinsic("smin", b.i64(most), b.op("wsub", dims[-1], first))

        def line(front: Indices) -> None:
            row = Row(first, count, most)

            def one(j: Indices) -> None:
                row.offset, row.index = j[0], b.op("wadd", first, j[0])
                body((*front, row.index))

            outer, b.present = b.present, row
            inside = b.inside(lambda: b.nest((count,), one))
            b.present = outer
            found.extend(row.before)
            b.items += [*row.before, *inside]

        b.nest(dims[:-1], line)

    begun = len(b.items)
    b.nest((b.op("lshr", b.op("wadd", dims[-1], b.i64(most - 1)), bits),), block)
    if not found:
        # They are part of sums.
        del b.items[begun:]
        b.nest(dims, body)


def everywhere(b: Builder, dims: Sequence[Node], body: Callable[[Indices], object]) -> None:
    """`Builder.everywhere`, with loops as those of `in_rows`."""
    if b.kind.anew:
        in_rows(b, dims, body)
        return
    b.beforehand(dims, body)
    b.trusting(lambda: in_rows(b, dims, body))


def is_in_row(x: Expr, y: Expr) -> bool:
    """Whether neighbouring elements of the product of two arrays have neighbouring terms."""
    of = x if rank_of(type_of(y)) < 2 else y
    return _is_turned(of) == (of is x)


def _is_turned(node: Expr) -> bool:
    """Whether neighbours in a matrix are those along its first axis."""
    match node:
        case Place(_, path):
            return sum(isinstance(step, Transposed) for step in path) % 2 == 1
        case Apply("transpose", (a,)):
            return not _is_turned(a)
        case Apply(_, args):
            return any(_is_turned(a) for a in args)
    return False
