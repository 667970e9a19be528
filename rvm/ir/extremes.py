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

PART = 1024
"""Elements of a part that is searched for its extreme."""
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
    at = place_of(b, which, t, shape, inner)
    one, zero = (cast(Node, raw(system(t).literal(v), t)) for v in (1, 0))
    return lambda i: b.select(b.op("eq", flat(b, shape, i), at), one, zero)


def place_of(b: Builder, which: str, t: Scalar, shape: Sequence[Node], inner: Element) -> Node:
    """The position in C order of the first greatest ("max") or last least ("min") element."""
    _refuse_empty(b, shape)
    is_first = which == "max"
    if kind_of(t) not in WORDS:
        best = cast(Node, extreme(b, which, t, shape, inner))
        return _place(b, partial(b.op, "eq", best), shape, inner, is_first)
    if len(shape) > 1:
        same = _test(b, *_compared(b, which, kind_of(t), shape, inner))
        return _place(b, same, shape, inner, is_first)
    return _place_in_part(b, which, kind_of(t), shape[0], inner)


def _place_in_part(b: Builder, which: str, kind: str, count: Node, element: Element) -> Node:
    """The same for floats in a row, of which only a part is searched for the extreme."""
    bits = b.i64(PART.bit_length() - 1)
    search = _Search(b, which, kind)
    part = b.variable(I64, "part")
    b.set(part, b.i64(0))

    def of_part(k: Indices) -> None:
        first = b.op("shl", k[0], bits)
        many = b.intrinsic("smin", b.i64(PART), b.op("wsub", count, first))
        found = _Search(b, which, kind)
        b.nest((many,), lambda i: found.look(cast(Node, element((b.op("wadd", first, i[0]),)))))
        # The least element is the last one of equals.
        new = b.op(*search.order, b.get(found.best), b.get(search.best))
        b.set(part, b.select(new, first, b.get(part)))
        search.take(found)

    b.nest((b.op("lshr", b.op("wadd", count, b.i64(PART - 1)), bits),), of_part)
    best, has_nan = search.result()
    # Zeros of either sign are equal, and the first NaN comes first.
    anywhere = b.op("or", has_nan, b.op("feq", best, constant(0.0, kind)))
    first = b.select(anywhere, b.i64(0), b.get(part))
    most = b.select(anywhere, count, b.i64(PART))
    many = b.intrinsic("smin", most, b.op("wsub", count, first))
    at = _place(
        b,
        _test(b, best, has_nan),
        (many,),
        lambda i: element((b.op("wadd", first, i[0]),)),
        first=which == "max",
    )
    return b.op("wadd", first, at)


def _place(
    b: Builder, same: Callable[[Node], Node], shape: Sequence[Node], element: Element, first: bool
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
    search = _Search(b, which, kind)
    b.nest(shape, lambda i: search.look(cast(Node, element(i))))
    return search.result()


class _Search:
    """The extreme of floats that have been looked at, as an integer, and whether one is a NaN."""

    def __init__(self, b: Builder, which: str, kind: str) -> None:
        self.b, self.which, self.kind = b, which, kind
        self.order = ("gt",) if which == "max" else ("le",)
        self.word, self._bits = WORDS[kind]
        self._least = -1 << (self._bits - 1)
        self.best, self.nans = b.variable(self.word, "best"), b.variable(self.word, "nans")
        begin = self._least if which == "max" else -1 - self._least
        b.set(self.best, constant(begin, self.word))
        b.set(self.nans, constant(0, self.word))

    def _turned(self, v: Node) -> Node:
        """The bits of a negative number except its sign, inverted (and inverted back)."""
        b, word = self.b, self.word
        sign = b.op("ashr", v, constant(self._bits - 1, word))
        return b.op("xor", v, b.op("and", sign, constant(-1 - self._least, word)))

    def look(self, v: Node) -> None:
        """Look at another number."""
        b = self.b
        key = self._turned(b.op("bitcast", v, kind=self.word))
        nan = b.op("zext", b.op("funo", v, v), kind=self.word)
        self._meet(key, nan)

    def take(self, other: _Search) -> None:
        """Look at all that another has looked at."""
        self._meet(self.b.get(other.best), self.b.get(other.nans))

    def _meet(self, key: Node, nan: Node) -> None:
        b = self.b
        b.set(self.best, b.intrinsic("s" + self.which, b.get(self.best), key))
        b.set(self.nans, b.op("or", b.get(self.nans), nan))

    def result(self) -> tuple[Node, Node]:
        """The extreme, and whether there was a NaN."""
        b = self.b
        found = b.op("bitcast", self._turned(b.get(self.best)), kind=self.kind)
        return found, b.op("ne", b.get(self.nans), constant(0, self.word))


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
