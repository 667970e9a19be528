"""Elements of array expressions: what to do before a loop over them, and inside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from rvm.emit.llvm.statements import Statements
from rvm.emit.llvm.values import Location, View
from rvm.emit.llvm.writer import constant
from rvm.emit.values import Unprintable, type_of
from rvm.expr import Apply, Expr, Place
from rvm.isa import implementation
from rvm.numbers import has_own_system, system
from rvm.numbers.llvm import Value, register_type
from rvm.program import Function
from rvm.types import Scalar, elem_of, rank_of

Indices = Sequence[str]
"""Operands of indices, one for each axis."""
Element = Callable[[Indices], Value]
"""Prints the value of an array expression at some indices."""
LARGE = 1 << 15
"""Matrix products of more multiplications are left to the reference engine's library."""


class Elements(Statements):
    """Prints array expressions element by element."""

    def __init__(self, function: Function, checks: bool) -> None:
        super().__init__(function, checks)
        self.frames: dict[int, str] = {}
        """Room in the frame for small arrays, by register."""
        self.passed: frozenset[int] = frozenset()
        """Registers that calls take: a stopped callee must find them where they were."""
        self.uniform: Value | None = None
        """The value of the expression that `elements` was last asked for, if it is a scalar."""
        self._troubles = 0
        self._trusting = False
        self._writes = True

    # ------------------------------------------------------------ loops

    def trouble(self, condition: str) -> None:
        if not self._trusting:
            self._troubles += 1
            super().trouble(condition)

    def trusting(self, body: Callable[[], None]) -> None:
        """Print what has been found out to be free of trouble."""
        before, self._trusting = self._trusting, True
        body()
        self._trusting = before

    def nest(self, dims: Sequence[str], body: Callable[[Indices], object]) -> None:
        """Loops over all indices below `dims`."""
        self._nest(list(dims), [], body)

    def _nest(self, dims: list[str], at: list[str], body: Callable[[Indices], object]) -> None:
        if not dims:
            body(tuple(at))
            return
        k = self.variable("i64", "i")
        self.store("i64", "0", k)
        head, inside, out = self.fresh("head"), self.fresh("body"), self.fresh("done")
        self.jump(head)
        self.label(head)
        i = self.load("i64", k)
        self.fork(self.compare("slt", "i64", i, dims[0]), inside, out)
        self.label(inside)
        self._nest(dims[1:], [*at, i], body)
        self.store("i64", self.op(f"add nsw i64 {i}, 1"), k)
        self.jump(head)
        self.label(out)

    def surely(self, dims: Sequence[str], body: Callable[[Indices], object]) -> None:
        """Find out whether `body` has trouble at any indices; it must change nothing."""
        lines, block, before = len(self.lines), self.block, self._troubles
        self.nest(dims, body)
        if self._troubles == before:
            del self.lines[lines:]
            self.block = block

    def everywhere(self, dims: Sequence[str], body: Callable[[Indices], object]) -> None:
        """Do `body` at all indices, or, if it has trouble at any, at none."""
        keep, self._writes = self._writes, False
        self.surely(dims, body)
        self._writes = keep
        self.trusting(lambda: self.nest(dims, body))

    def write(self, place: Location, value: Value) -> None:
        if self._writes:
            super().write(place, value)

    def add_to(self, variable: str, amount: str) -> None:
        """Add to a variable of type i64."""
        self.store("i64", self.op(f"add i64 {self.load('i64', variable)}, {amount}"), variable)

    # ------------------------------------------------------------ shapes

    def matching(self, shape: Sequence[str], dims: Sequence[str], exactly: bool = False) -> None:
        """Trouble unless a shape is that of the last axes of another."""
        if len(shape) > len(dims) or (exactly and len(shape) != len(dims)):
            raise Unprintable
        for a, b in zip(shape, dims[len(dims) - len(shape) :], strict=True):
            if a != b:
                self.trouble(self.compare("ne", "i64", a, b))

    def at(self, view: View, at: Indices) -> Location:
        """An element of a view."""
        pointer = view.pointer
        for i, stride in zip(at, view.strides, strict=True):
            pointer = self.offset(pointer, self.product(i, stride))
        return self.element(pointer, view.elem, view.note)

    # ------------------------------------------------------------ expressions

    def elements(self, node: Expr) -> tuple[tuple[str, ...], Element]:
        """The shape of an expression, and what prints its elements; prints what comes before."""
        if not rank_of(type_of(node)):
            value = self.value(node)
            self.uniform = value
            return (), lambda at: value
        found = self._elements(node)
        self.uniform = None
        return found

    def _elements(self, node: Expr) -> tuple[tuple[str, ...], Element]:
        match node:
            case Place():
                view = self.viewed(node)
                return view.dims, lambda at: self.read(self.at(view, at))
            case Apply("transpose", (a,)):
                shape, inner = self.elements(a)
                return shape[::-1], lambda at: inner(at[::-1])
            case Apply("outer", (a, b)):
                return self._outer(a, b)
            case Apply("spread_like", (g, x)):
                return self._spread(g, x)
            case Apply("sum_like", (g, x)):
                return self._summed_like(g, x)
            case Apply("first_max" | "last_min" as fn, (x,)):
                return self._one_at(fn, x)
            case Apply("gather", (x, idx)):
                return self._gather(x, idx)
            case Apply("@" | "matvec" | "matmul", (a, b)):
                return self._product(a, b)
            case Apply(fn, args):
                return self._pointwise(fn, args)
        raise Unprintable

    def _pointwise(self, fn: str, args: Sequence[Expr]) -> tuple[tuple[str, ...], Element]:
        elems = tuple(elem_of(type_of(a)) for a in args)
        code = implementation(fn, elems)
        if code.llvm is None:
            raise Unprintable
        f = code.llvm
        found = [self.elements(a) for a in args]
        shape = max((s for s, _ in found), key=len)
        for other, _ in found:
            if other is not shape:
                self.matching(other, shape)
        return shape, lambda at: f(self, *(e(at[len(at) - len(s) :]) for s, e in found))

    def _outer(self, a: Expr, b: Expr) -> tuple[tuple[str, ...], Element]:
        (rows, left), (columns, right) = self.elements(a), self.elements(b)
        times = self._binary("*", a, b)
        return (*rows, *columns), lambda at: times(left(at[:1]), right(at[1:]))

    def _spread(self, g: Expr, x: Expr) -> tuple[tuple[str, ...], Element]:
        shape, inner = self.elements(g)
        like, _ = self.elements(x)
        self.matching(shape, like)
        return like, lambda at: inner(at[len(at) - len(shape) :])

    def _summed_like(self, g: Expr, x: Expr) -> tuple[tuple[str, ...], Element]:
        """`g` summed over the axes that `x` does not have; where `x` is longer, repeated."""
        shape, inner = self.elements(g)
        like, _ = self.elements(x)
        lead = len(shape) - len(like)
        if lead < 0:
            self.matching(shape, like)
            return like, lambda at: inner(at[len(at) - len(shape) :])
        self.matching(like, shape)
        if not lead:
            return shape, inner
        t = elem_of(type_of(g))
        plus = implementation("+", (t, t)).llvm
        if t.is_log or has_own_system(t) or plus is None:
            raise Unprintable
        add = plus

        def element(at: Indices) -> Value:
            return self._accumulated(
                t, shape[:lead], lambda s, front: add(self, s, inner((*front, *at)))
            )

        return shape[lead:], element

    def _one_at(self, fn: str, x: Expr) -> tuple[tuple[str, ...], Element]:
        """One at the first greatest or last least element, zero elsewhere; a NaN is before all."""
        t = elem_of(type_of(x))
        if t.is_complex or t.is_log or t.is_bool:
            raise Unprintable
        shape, inner = self.elements(x)
        for n in shape:
            self.trouble(self.compare("eq", "i64", n, "0"))
        kind = register_type(t)
        best, at_best, count = self.variable(kind), self.variable("i64"), self.variable("i64")
        self.store(kind, cast(str, inner(("0",) * len(shape))), best)
        self.store("i64", "0", at_best)
        self.store("i64", "0", count)

        def look(at: Indices) -> None:
            value, held = cast(str, inner(at)), self.load(kind, best)
            if fn == "first_max":
                better = self._better("max", t, value, held)
            else:
                better = self.op(f"xor i1 {self._better('min', t, held, value)}, true")
            here = self.load("i64", count)
            self.store(kind, self.choose(better, kind, value, held), best)
            found = self.choose(better, "i64", here, self.load("i64", at_best))
            self.store("i64", found, at_best)
            self.add_to(count, "1")

        self.nest(shape, look)
        found = self.load("i64", at_best)
        one, zero = (cast(str, constant(system(t).literal(v), t)) for v in (1, 0))

        def element(at: Indices) -> Value:
            flat = at[0]
            for i, n in zip(at[1:], shape[1:], strict=True):
                flat = self.op(f"add i64 {self.product(flat, n)}, {i}")
            return self.choose(self.compare("eq", "i64", flat, found), kind, one, zero)

        return shape, element

    def _better(self, which: str, t: Scalar, value: str, held: str) -> str:
        kind = register_type(t)
        how = "gt" if which == "max" else "lt"
        if kind not in ("double", "float"):
            sign = "s" if t.is_signed else "u"
            return self.compare(sign + how, kind, value, held)
        beyond = self.op(f"fcmp o{how} {kind} {value}, {held}")
        nan = self.op(f"fcmp uno {kind} {value}, {value}")
        known = self.op(f"fcmp ord {kind} {held}, {held}")
        return self.op(f"and i1 {known}, {self.op(f'or i1 {beyond}, {nan}')}")

    def _gather(self, x: Expr, idx: Expr) -> tuple[tuple[str, ...], Element]:
        (length,), inner = self.elements(x)
        shape, which = self.elements(idx)
        t = elem_of(type_of(idx))

        def element(at: Indices) -> Value:
            k = cast(str, which(at))
            wide = k if t.bits == 64 else self.op(f"{_extension(t)} {register_type(t)} {k} to i64")
            self.trouble(self.compare("uge", "i64", wide, length))
            return inner((wide,))

        return shape, element

    def _product(self, a: Expr, b: Expr) -> tuple[tuple[str, ...], Element]:
        """Matrix times vector, vector times matrix, matrix times matrix."""
        (rows, left), (columns, right) = self.elements(a), self.elements(b)
        self.matching((rows[-1],), (columns[0],))
        if len(rows) + len(columns) == 4:
            count = self.product(self.product(rows[0], rows[1]), columns[1])
            self.trouble(self.compare("ugt", "i64", count, str(LARGE)))
        n = len(rows) - 1
        total = self._sum_of_products(a, b)

        def element(at: Indices) -> Value:
            return total(
                rows[-1],
                lambda k: left((*at[:n], k)),
                lambda k: right((k, *at[n:])),
            )

        return (*rows[:-1], *columns[1:]), element

    def _binary(self, fn: str, a: Expr, b: Expr) -> Callable[[Value, Value], Value]:
        code = implementation(fn, (elem_of(type_of(a)), elem_of(type_of(b))))
        f = code.llvm
        if f is None:
            raise Unprintable
        return lambda x, y: f(self, x, y)

    def _sum_of_products(
        self, a: Expr, b: Expr
    ) -> Callable[[str, Callable[[str], Value], Callable[[str], Value]], Value]:
        t = elem_of(type_of(a))
        if t.is_fixed or t.is_log or t.is_bool or has_own_system(t) or t != elem_of(type_of(b)):
            raise Unprintable
        times, plus = self._binary("*", a, b), implementation("+", (t, t)).llvm
        if plus is None:
            raise Unprintable
        add = plus

        def total(n: str, left: Callable[[str], Value], right: Callable[[str], Value]) -> Value:
            return self._accumulated(
                t, (n,), lambda s, at: add(self, s, times(left(at[0]), right(at[0])))
            )

        return total

    # ------------------------------------------------------------ reductions

    def reduced(self, fn: str, args: tuple[Expr, ...]) -> Value:
        match fn, args:
            case "sum", (x,):
                t = elem_of(type_of(x))
                plus = implementation("+", (t, t)).llvm
                if t.is_log or t.is_bool or has_own_system(t) or plus is None:
                    raise Unprintable
                shape, element = self.elements(x)
                add = plus
                return self._accumulated(t, shape, lambda s, at: add(self, s, element(at)))
            case "amin" | "amax", (x,):
                return self._extreme(fn[1:], x)
            case "dot" | "@", (a, b):
                (n,), left = self.elements(a)
                (m,), right = self.elements(b)
                self.matching((n,), (m,))
                return self._sum_of_products(a, b)(n, lambda k: left((k,)), lambda k: right((k,)))
        raise Unprintable

    def _extreme(self, fn: str, x: Expr) -> Value:
        """The least or greatest of the elements, of which there must be one."""
        t = elem_of(type_of(x))
        choose = implementation(fn, (t, t)).llvm
        if t.is_complex or choose is None:
            raise Unprintable
        better = choose
        shape, element = self.elements(x)
        for n in shape:
            self.trouble(self.compare("eq", "i64", n, "0"))
        first = element(("0",) * len(shape))
        return self._accumulated(t, shape, lambda s, at: better(self, s, element(at)), first)

    def _accumulated(
        self,
        t: Scalar,
        dims: Sequence[str],
        step: Callable[[Value, Indices], Value],
        begin: Value | None = None,
    ) -> Value:
        """A value that grows from zero, or what it begins with, over all indices, in order."""
        kind = register_type(t)
        parts = tuple(self.variable(kind, "sum") for _ in range(2 if t.is_complex else 1))
        where = Location(parts, t, variable=True)
        super().write(where, constant(system(t).zero, t) if begin is None else begin)
        self.nest(dims, lambda at: super(Elements, self).write(where, step(self.read(where), at)))
        return self.read(where)


def _extension(t: Scalar) -> str:
    return "sext" if t.is_signed else "zext"
