"""The least and the greatest element, and its index: the first of equals, a NaN before all.

If elements were compared one after the other, each would wait for the one before.  So floats are
compared as integers in the same order, which LLVM can vectorise.  This does not find the first of
several NaNs, or of zeros with different signs; that is searched for afterwards if necessary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from rvm.ir.builder import Builder, Indices
from rvm.ir.items import Parts
from rvm.ir.node import F32, F64, I32, I64, Node, constant
from rvm.ir.places import kind_of
from rvm.ir.sums import Element, accumulated
from rvm.ir.values import body_of, raw
from rvm.numbers import system
from rvm.types import Scalar

WORDS = {F64: (I64, 64), F32: (I32, 32)}
"""Integers as wide as floats, and their bits."""


def extreme(b: Builder, which: str, t: Scalar, shape: Sequence[Node], element: Element) -> Parts:
    """The least or greatest ("min", "max") of the elements; there must be at least one."""
    _refuse_empty(b, shape)
    if kind_of(t) not in WORDS:
        body = body_of(which, (t, t))
        begin = element((b.i64(0),) * len(shape))
        return accumulated(b, t, shape, lambda s, i: b.put(body, s, element(i)), begin)
    best, has_nan = _compared(b, which, kind_of(t), shape, element)
    result = b.variable(best.kind, "best")
    b.set(result, best)
    untold = b.op("or", has_nan, b.op("feq", best, constant(0.0, best.kind)))

    def look_up() -> None:
        place = _place(b, _test(b, best, has_nan), shape, element, first=True)
        b.set(result, cast(Node, element(_indices(b, shape, place))))

    b.when(untold, look_up, unlikely=True)
    return b.get(result)


def one_at(b: Builder, which: str, t: Scalar, shape: Sequence[Node], inner: Element) -> Element:
    """One at the first greatest ("max") or last least ("min") element, zero elsewhere."""
    _refuse_empty(b, shape)
    if kind_of(t) in WORDS:
        same = _test(b, *_compared(b, which, kind_of(t), shape, inner))
    else:
        best = cast(Node, extreme(b, which, t, shape, inner))
        same = partial(b.op, "eq", best)
    at = _place(b, same, shape, inner, first=which == "max")
    one, zero = (cast(Node, raw(system(t).literal(v), t)) for v in (1, 0))
    return lambda i: b.select(b.op("eq", flat(b, shape, i), at), one, zero)


def _place(
    b: Builder,
    same: Callable[[Node], Node],
    shape: Sequence[Node],
    element: Element,
    first: bool,
) -> Node:
    """The position in C order of the first or last of the elements that are the `same`."""
    place = b.variable(I64, "place")
    none = b.i64((1 << 63) - 1 if first else -1)
    b.set(place, none)

    def look(i: Indices) -> None:
        here = b.select(same(cast(Node, element(i))), flat(b, shape, i), none)
        b.set(place, b.intrinsic("smin" if first else "smax", b.get(place), here))

    b.nest(shape, look)
    return b.get(place)


def _test(b: Builder, best: Node, has_nan: Node) -> Callable[[Node], Node]:
    """A test whether a float equals the extreme, or is a NaN if there is one."""
    return lambda x: b.select(has_nan, b.op("funo", x, x), b.op("feq", x, best))


def _compared(
    b: Builder, which: str, kind: str, shape: Sequence[Node], element: Element
) -> tuple[Node, Node]:
    """The extreme of floats that are all numbers, and whether one is a NaN."""
    word, bits = WORDS[kind]
    least = -1 << (bits - 1)
    best, nans = b.variable(word, "best"), b.variable(word, "nans")
    b.set(best, constant(least if which == "max" else -1 - least, word))
    b.set(nans, constant(0, word))

    def turned(v: Node) -> Node:
        """The bits of a negative number except its sign, inverted (and inverted back)."""
        sign = b.op("ashr", v, constant(bits - 1, word))
        return b.op("xor", v, b.op("and", sign, constant(-1 - least, word)))

    def look(i: Indices) -> None:
        v = cast(Node, element(i))
        key = turned(b.op("bitcast", v, kind=word))
        b.set(best, b.intrinsic("s" + which, b.get(best), key))
        b.set(nans, b.op("or", b.get(nans), b.op("zext", b.op("funo", v, v), kind=word)))

    b.nest(shape, look)
    found = b.op("bitcast", turned(b.get(best)), kind=kind)
    return found, b.op("ne", b.get(nans), constant(0, word))


def flat(b: Builder, shape: Sequence[Node], i: Indices) -> Node:
    """An element's position in C order."""
    found = i[0]
    for k, n in zip(i[1:], shape[1:], strict=True):
        found = b.op("wadd", b.product(found, n), k)
    return found


def _indices(b: Builder, shape: Sequence[Node], place: Node) -> Indices:
    """The indices of a position in C order."""
    found = []
    for n in reversed(shape[1:]):
        found.append(b.op("urem", place, n))
        place = b.op("udiv", place, n)
    return (place, *reversed(found))


def _refuse_empty(b: Builder, shape: Sequence[Node]) -> None:
    for n in shape:
        b.trouble(b.op("eq", n, b.i64(0)))
