"""Sums and products of elements: in sequence, or in the order that all engines keep.

`combined` keeps the order of `rvm.numbers.reductions`.  Among the 64 partial results, those without
an element are -0, or 1 in a product, which changes no number; so the tree always has the same
shape, which LLVM can vectorise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from rvm.ir.builder import Builder, Indices
from rvm.ir.items import Parts, parts_of, value_of
from rvm.ir.node import I64, Node, number
from rvm.ir.places import Variables, kinds_of
from rvm.ir.values import body_of, put, raw, read
from rvm.numbers import system
from rvm.numbers.reductions import WIDTH
from rvm.types import Scalar

Element = Callable[[Indices], Parts]
"""Appends the value of an array expression at some indices."""
Step = Callable[[Parts, Parts], Parts]
BLOCK = 8
"""Partial results that are taken through the tree at once."""
FEW = 2 * BLOCK
"""So many elements are added up in machine registers, if each is quickly computed."""
QUICK = 24
"""The operations that such an element takes at most."""
LONG = frozenset(["written", "pure", "helper", "table", "if", "loop", "bound", "trouble"])
"""Operations that a quickly computed element does not have."""


def operation(b: Builder, fn: str, t: Scalar) -> Step:
    """A function of two numbers of a type."""
    body = body_of(fn, (t, t))
    return lambda p, q: b.put(body, p, q)


def identity(fn: str, t: Scalar) -> Parts:
    """The neutral element of a reduction, for real numbers: -0 for sums of floats."""
    zero = -0.0 if t.is_float else complex(-0.0, -0.0) if t.is_complex else system(t).zero
    return raw(system(t).literal(1) if fn == "*" else zero, t)


def chosen(b: Builder, condition: Node, x: Parts, y: Parts) -> Parts:
    """One of two numbers."""
    pairs = zip(parts_of(x), parts_of(y), strict=True)
    return value_of(tuple(b.select(condition, p, q) for p, q in pairs))


def unless_empty(b: Builder, fn: str, t: Scalar, count: Node, found: Parts) -> Parts:
    """The result, if there were any elements; else the number 0 or 1."""
    nothing = raw(system(t).literal(1 if fn == "*" else 0), t)
    return chosen(b, b.op("eq", count, b.i64(0)), nothing, found)


def accumulated(
    b: Builder,
    t: Scalar,
    dims: Sequence[Node],
    step: Callable[[Parts, Indices], Parts],
    begin: Parts | None = None,
) -> Parts:
    """A value that grows from zero, or what it begins with, over all indices, in order."""
    where = variables(b, t)
    keep, b.writes = b.writes, True
    put(b, where, raw(system(t).zero, t) if begin is None else begin)
    b.nest(dims, lambda i: put(b, where, step(read(b, where), i)))
    b.writes = keep
    return read(b, where)


def combined(b: Builder, fn: str, t: Scalar, dims: Sequence[Node], element: Element) -> Parts:
    """All elements added up or multiplied, in the order of `rvm.numbers.reductions`.

    Integers and fixed-point numbers, of which every order gives the same, come one by one.
    """
    step = operation(b, fn, t)
    if t.is_exact:
        return accumulated(b, t, dims, lambda s, i: step(s, element(i)), identity(fn, t))
    count = b.i64(1)
    for n in dims:
        count = b.product(count, n)
    where = variables(b, t)
    quick = _is_quick(b, dims, element)

    def few() -> None:
        put(b, where, _Partial(b, fn, t, count, BLOCK).of_few(element))

    def some() -> None:
        put(b, where, _Partial(b, fn, t, count, WIDTH // 2).of_some(element))

    def many() -> None:
        put(b, where, _Partial(b, fn, t, count, WIDTH).of_many(dims, element, quick, by_length))

    keep, b.writes = b.writes, True
    known = number(count)
    by_length = len(dims) == 1 and quick and not (fn == "*" and t.is_complex)
    if not by_length:
        many()
    elif known is None:
        more = partial(b.when, b.op("le", count, b.i64(WIDTH)), some, many)
        b.when(b.op("le", count, b.i64(FEW)), few, more)
    elif known <= FEW:
        few()
    elif known <= WIDTH:
        some()
    else:
        many()
    b.writes = keep
    return unless_empty(b, fn, t, count, read(b, where))


def variables(b: Builder, t: Scalar) -> Variables:
    """New variables for a number."""
    return Variables(tuple(b.variable(k, "sum") for k in kinds_of(t)), t)


def _is_quick(b: Builder, dims: Sequence[Node], element: Element) -> bool:
    """Whether an element takes few operations, so that many can be written in sequence."""
    items = b.inside(lambda: element((b.i64(1),) * len(dims)))
    return len(items) <= QUICK and LONG.isdisjoint(node.op for node in items)


class _Partial:
    """Partial results, in variables of their own."""

    def __init__(self, b: Builder, fn: str, t: Scalar, count: Node, width: int) -> None:
        self.b = b
        self.count = count
        self.type = t
        self.step = operation(b, fn, t)
        self.unit = identity(fn, t)
        self.padded = not (fn == "*" and t.is_complex)
        """Whether what has no element may be multiplied all the same."""
        self.parts = [b.variable(k, "part", many=width) for k in kinds_of(t)]

    def held(self, k: Node) -> Parts:
        """A partial result."""
        return value_of(tuple(self.b.get(p, k) for p in self.parts))

    def hold(self, k: Node, value: Parts) -> None:
        """Give a partial result a value."""
        for p, v in zip(self.parts, parts_of(value), strict=True):
            self.b.set(p, v, k)

    def fill(self, first: int, count: int, pace: str) -> None:
        """Begin some of them."""
        k = self.b.i64(first)
        self.b.nest((self.b.i64(count),), lambda i: self.hold(self.b.sum(i[0], k), self.unit), pace)

    def tree(self, values: Sequence[Parts], positions: Sequence[Node]) -> Parts:
        """Values taken together, each of the second half into its like of the first, and so on."""
        b, half = self.b, len(values) // 2
        if not half:
            return values[0]
        found = []
        for x, y, at in zip(values[:half], values[half:], positions[half:], strict=True):
            both = self.step(x, y)
            found.append(both if self.padded else chosen(b, b.op("lt", at, self.count), both, x))
        return self.tree(found, positions[:half])

    def all(self) -> Parts:
        """The first few taken together."""
        places = [self.b.i64(k) for k in range(BLOCK)]
        return self.tree([self.held(k) for k in places], places)

    # ------------------------------------------------------------ few elements

    def of_few(self, element: Element) -> Parts:
        """The reduction of as many elements as fit into registers; LLVM unrolls the loop."""
        b = self.b
        self.fill(0, BLOCK, "straight")

        def one(i: Indices) -> None:
            at = b.op("and", i[0], b.i64(BLOCK - 1))
            taken = partial(self.take_in, at, element, i)
            b.when(b.op("lt", i[0], self.count), taken)

        b.nest((b.i64(FEW),), one, "straight")
        return self.all()

    def take_in(self, at: Node, element: Element, i: Indices) -> None:
        """Take an element into a partial result."""
        value = element(i)
        self.hold(at, self.step(self.held(at), value))

    # ------------------------------------------------------------ some elements

    def of_some(self, element: Element) -> Parts:
        """The reduction of at most as many elements as there are partial results, in blocks.

        The second half is added to the first at once, which is what the tree begins with.
        """
        b, half = self.b, WIDTH // 2
        last, block = b.i64(half - 1), b.i64(BLOCK)
        self.fill(0, half, _whole(half))
        value = Variables(tuple(b.variable(p.kind, "element") for p in self.parts), self.type)

        def row(k: Node, all_there: bool) -> None:
            begun = b.op("wmul", k, block)
            first = b.op("and", begun, last)

            def one(i: Indices) -> None:
                into, at = b.op("wadd", first, i[0]), b.op("wadd", begun, i[0])
                if all_there:
                    self.take_in(into, element, (at,))
                    return
                # Vectors are loaded under a mask, and stored whole.
                put(b, value, self.unit)
                b.when(b.op("lt", at, self.count), lambda: put(b, value, element((at,))))
                self.hold(into, self.step(self.held(into), read(b, value)))

            b.nest((block,), one, _whole(BLOCK))

        rows = b.op("lshr", self.count, b.i64(BLOCK.bit_length() - 1))
        b.nest((rows,), lambda k: row(k[0], True))
        over = b.op("and", self.count, b.i64(BLOCK - 1))
        b.when(b.op("ne", over, b.i64(0)), lambda: row(rows, False))
        self._blocks(half)
        return self.all()

    # ------------------------------------------------------------ many elements

    def of_many(self, dims: Sequence[Node], element: Element, quick: bool, full: bool) -> Parts:
        """The reduction of any number of elements; `full`: at least one for each partial result."""
        b, half = self.b, WIDTH // 2
        more = b.op("gt", self.count, b.i64(half))
        if full:
            self.fill(0, WIDTH, _whole(WIDTH))
        else:
            self.fill(0, half, _whole(half))
            b.when(more, lambda: self.fill(half, half, _whole(half)))
        begun = b.variable(I64, "at")
        b.set(begun, b.i64(0))

        def line(front: Indices) -> None:
            self._line(b.get(begun) if front else b.i64(0), front, dims[-1], element, quick)
            if front:
                b.add_to(begun, dims[-1])

        b.nest(dims[:-1], line)
        if full:
            self._blocks(WIDTH)
        else:
            b.when(more, lambda: self._blocks(WIDTH), lambda: self._blocks(half))
        return self.all()

    def _line(
        self, begun: Node, front: Indices, length: Node, element: Element, quick: bool
    ) -> None:
        """The elements along the last axis, the first of which has the position `begun`.

        A row is what goes into each partial result once.
        """
        b, last, levels = self.b, self.b.i64(WIDTH - 1), self.b.i64(WIDTH.bit_length() - 1)
        phase = b.op("and", begun, last) if front else b.i64(0)

        def row(k: Indices) -> None:
            start = b.op("shl", k[0], levels)
            before = b.op("wsub", begun, phase) if front else b.i64(0)
            fresh = b.op("eq", b.sum(before, start), b.i64(0))
            if front:
                start = b.op("wsub", start, phase)
            first = b.intrinsic("smax", start, b.i64(0)) if front else start
            end = b.intrinsic("smin", length, b.op("wadd", start, b.i64(WIDTH)))
            into = b.op("wsub", first, start) if front else b.i64(0)

            def one(i: Indices) -> None:
                at = b.sum(into, i[0])
                value, old = element((*front, b.op("wadd", first, i[0]))), self.held(at)
                both = self.step(old, value)
                self.hold(at, both if self.padded else chosen(b, fresh, value, both))

            b.nest((b.op("wsub", end, first),), one, "vectors 2" if quick else "single")

        rows = b.op("lshr", b.op("wadd", b.sum(phase, length), last), levels)
        b.nest((rows,), row)

    def _blocks(self, width: int) -> None:
        """Take so many partial results into the first few."""
        b = self.b

        def lane(j: Indices) -> None:
            places = [b.sum(j[0], b.i64(k)) for k in range(0, width, BLOCK)]
            self.hold(j[0], self.tree([self.held(k) for k in places], places))

        b.nest((b.i64(BLOCK),), lane, _whole(BLOCK))


def _whole(count: int) -> str:
    """The pace of a loop over so many partial results, made of vectors of a block or less."""
    return f"whole {count // BLOCK}"
