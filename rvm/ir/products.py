"""Matrix products: elements next to each other are computed together.

An element is a sum in the order of its terms, in which each addition waits for the one before. The
sums of several elements do not wait for each other, and LLVM keeps them in machine registers. Those
whose terms are next to each other in memory become vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rvm.expr import Apply, Expr
from rvm.ir.builder import Builder, Indices
from rvm.ir.items import Parts, parts_of, value_of
from rvm.ir.node import Node
from rvm.ir.places import kinds_of
from rvm.ir.sums import Step, accumulated, identity, unless_empty
from rvm.types import Scalar, rank_of

ROW = 64
"""Elements that are held at a time, for a loop over them."""
FEW, MANY = 8, 32
"""Elements that are computed together, and those in a row of memory."""


@dataclass
class Row:
    """Elements along the last axis, from `first` on, for which a loop is made."""

    first: Node
    count: Node
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
        b, held = self.b, _Numbers(self.b, self.type, "row", ROW)

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

        keep, b.writes = b.writes, True
        row.before += b.inside(fill)
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
    """Loops over all indices; elements of products in `body` are computed for a row at a time."""
    if b.has_products:
        b.nest(dims[:-1], lambda front: _line(b, front, dims[-1], body))
    else:
        b.nest(dims, body)


def _line(b: Builder, front: Indices, length: Node, body: Callable[[Indices], object]) -> None:
    bits = b.i64(ROW.bit_length() - 1)
    found: list[Node] = []

    def line(k: Indices) -> None:
        first = b.op("shl", k[0], bits)
        row = Row(first, b.intrinsic("smin", b.i64(ROW), b.op("wsub", length, first)))

        def one(j: Indices) -> None:
            row.offset, row.index = j[0], b.op("wadd", first, j[0])
            body((*front, row.index))

        outer, b.present = b.present, row
        inside = b.inside(lambda: b.nest((row.count,), one))
        b.present = outer
        found.extend(row.before)
        b.items += [*row.before, *inside]

    begun = len(b.items)
    b.nest((b.op("lshr", b.op("wadd", length, b.i64(ROW - 1)), bits),), line)
    if not found:
        # They are part of sums.
        del b.items[begun:]
        b.nest((length,), lambda i: body((*front, *i)))


def everywhere(b: Builder, dims: Sequence[Node], body: Callable[[Indices], object]) -> None:
    """`Builder.everywhere`, with loops as those of `in_rows`."""
    if b.kind.anew:
        in_rows(b, dims, body)
        return
    b.beforehand(dims, body)
    b.trusting(lambda: in_rows(b, dims, body))


def is_in_row(x: Expr, y: Expr) -> bool:
    """Whether neighbouring elements of the product of two arrays have neighbouring terms."""
    of = x if rank_of(y.type) < 2 else y
    is_turned = isinstance(of, Apply) and of.fn == "transpose"
    return is_turned == (of is x)
