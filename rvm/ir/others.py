"""For each element the product of all others, computed for a whole array in two passes.

One pass, from the last element, multiplies each result by the product of the elements after it, the
other, from the first, by the product of those before it.  So single elements cannot be computed,
only the whole array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from rvm.expr import Apply, Expr
from rvm.ir.builder import Builder, Indices
from rvm.ir.extremes import flat
from rvm.ir.node import PTR, Node, constant
from rvm.ir.places import item_size, kind_of
from rvm.ir.sums import Element, operation
from rvm.ir.typed import Unprintable, type_of
from rvm.types import Scalar, elem_of


def fill(b: Builder, t: Scalar, shape: Sequence[Node], element: Element, memory: Node) -> None:
    """Compute them for an array's elements, with which there must be no trouble, in a row."""
    kind, times = kind_of(t), operation(b, "*", t)
    product = b.variable(kind, "product")

    def place(i: Indices) -> Node:
        away = b.product(flat(b, shape, i), b.i64(item_size(t)))
        return b.op("moved", memory, away, kind=PTR)

    def take_in(i: Indices) -> None:
        b.set(product, cast(Node, times(b.get(product), element(i))))

    def behind(i: Indices) -> None:
        last = [b.op("wsub", n, b.i64(1)) for n in shape]
        k = [b.op("wsub", *pair) for pair in zip(last, i, strict=True)]
        b.poke(b.get(product), place(k))
        take_in(k)

    def before(i: Indices) -> None:
        at = place(i)
        both = cast(Node, times(b.get(product), b.peek(kind, at)))
        b.poke(b.op("fadd", both, constant(0.0, kind)), at)
        take_in(i)

    for step in (behind, before):
        b.set(product, constant(1.0, kind))
        b.nest(shape, step)


def others_of(b: Builder, value: Expr | None) -> Expr | None:
    """The array of whose elements a value is the products of all others; None of other values."""
    match value:
        case Apply("prod_others", (x,)):
            if b.lanes or b.way or elem_of(type_of(x)).parts > 1:
                raise Unprintable
            return x
    return None
