"""From statements on arrays to LLVM's assembly language: loops over elements.

Shapes must agree in their last axes; where a length of 1 is to be stretched, the reference engine
does the instruction.  So it does large matrix products, which NumPy leaves to a tuned library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from rvm.emit.llvm.context import FRAMED, MINE
from rvm.emit.llvm.elements import Elements, Indices
from rvm.emit.llvm.values import View, item_size
from rvm.emit.llvm.writer import constant
from rvm.emit.values import Unprintable
from rvm.expr import Apply, Expr, Place, walk
from rvm.isa import implementation
from rvm.numbers import system
from rvm.numbers.llvm import register_type
from rvm.stmt import Update
from rvm.types import Array, Scalar, elem_of, rank_of

SMALL = 512
"""Arrays of constant lengths up to so many bytes live in the function's frame."""


class Arrays(Elements):
    """Prints array statements of one function."""

    # ------------------------------------------------------------ data

    def update_array(self, stmt: Update) -> None:
        t = elem_of(cast(Array, stmt.dst.type))
        place = self.viewed(stmt.dst)
        shape, element = self.elements(stmt.value)
        self.matching(shape, place.dims)
        rank = len(shape)

        def new(at: Indices) -> None:
            value = element(at[len(at) - rank :])
            if stmt.op in "*/" and self.checks:
                self.factor(value, t)
            where = self.at(place, at)
            self.write(where, self.combined(stmt.op, t, self.read(where), value))

        self.everywhere(place.dims, new)

    def exchange_arrays(self, a: Place, b: Place) -> None:
        one, two = self.viewed(a), self.viewed(b)
        self.matching(one.dims, two.dims, exactly=True)

        def swap(at: Indices) -> None:
            x, y = self.at(one, at), self.at(two, at)
            v, w = self.read(x), self.read(y)
            self.write(x, w)
            self.write(y, v)

        self.everywhere(one.dims, swap)

    def map_arrays(self, dsts: Sequence[Place], values: Sequence[Expr]) -> None:
        if len({rank_of(cast(Array, d.type)) for d in dsts}) > 1 or not all(
            map(_pointwise, values)
        ):
            raise Unprintable
        views = [self.viewed(d) for d in dsts]
        for view in views[1:]:
            self.matching(view.dims, views[0].dims, exactly=True)
        found = [self.elements(v) for v in values]
        for shape, _ in found:
            self.matching(shape, views[0].dims)

        def store(at: Indices) -> None:
            new = [element(at[len(at) - len(shape) :]) for shape, element in found]
            for view, value in zip(views, new, strict=True):
                self.write(self.at(view, at), value)

        self.everywhere(views[0].dims, store)

    # ------------------------------------------------------------ coming and going

    def make_array(self, reg: int, value: Expr | None) -> None:
        register = self.function.registers[reg]
        t = cast(Array, register.type)
        dims = [self.whole_number(cast(Expr, d)) for d in register.dims]
        size = self._size(dims, t.elem)
        shape, element = ((), None) if value is None else self.elements(value)
        self.matching(shape, dims)
        held = self.arrays[reg]
        if element is not None:
            self.surely(dims, lambda at: element(at[len(at) - len(shape) :]))
        total = self.room(size)
        zero = self.fill_zero(element, shape, t.elem)
        if size.isdigit() and int(size) <= SMALL and reg not in self.passed:
            pointer = self.framed(reg, int(size))
            owner = FRAMED
            if zero:
                self.line(
                    f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 0, i64 {size}, i1 false)"
                )
        else:
            helper = "rvm_zeros" if zero else "rvm_room"
            pointer = self.helper(helper, "ptr", ("i64", size))
            self.trouble(self.op(f"icmp eq ptr {pointer}, null"))
            owner = MINE
        self.store("ptr", pointer, held.pointer)
        self.store("i64", str(owner), held.owner)
        for dim, variable in zip(dims, held.dims, strict=True):
            self.store("i64", dim, variable)
        self.grow(total)
        if element is not None and not zero:
            view = self.whole(reg, t)
            self.trusting(
                lambda: self.nest(
                    dims,
                    lambda at: self.write(self.at(view, at), element(at[len(at) - len(shape) :])),
                )
            )

    def fill_zero(self, element: object, shape: Sequence[str], t: Scalar) -> bool:
        """Whether a new array is all zero bytes."""
        if element is None:
            zero = constant(system(t).zero, t)
        elif shape or self.uniform is None:
            return False
        else:
            zero = self.uniform
        parts = zero if isinstance(zero, tuple) else (zero,)
        return all(p in ("0", "false", "0x0000000000000000") for p in parts)

    def framed(self, reg: int, size: int) -> str:
        """Room for a small array in the function's frame, the same each time."""
        found = self.frames.get(reg)
        if found is None:
            found = self.frames[reg] = self.variable(f"[{size} x i8], align 16", f"m{reg}_")
        return found

    def free_array(self, reg: int, value: Expr | None, check: bool) -> None:
        register = self.function.registers[reg]
        t = cast(Array, register.type)
        held = self.whole(reg, t)
        if value is not None:
            if check:
                dims = [self.whole_number(cast(Expr, d)) for d in register.dims]
                self.matching(dims, held.dims, exactly=True)
                self._check(held, value)
        else:
            self._count_differing(held, lambda v: self.nonzero(t.elem, v))
        self.shrink(self._size(held.dims, t.elem, checked=False))
        owner = self.load("i64", self.arrays[reg].owner)
        release, done = self.fresh("release"), self.fresh("gone")
        self.fork(self.compare("eq", "i64", owner, str(MINE)), release, done)
        self.label(release)
        self.helper("rvm_release", "i64", ("ptr", held.pointer))
        self.jump(done)
        self.label(done)
        self.store("i64", "0", self.arrays[reg].owner)

    def _check(self, held: View, value: Expr) -> None:
        """Trouble unless an array has its value everywhere; what differs a little is erased.

        Nothing is changed here, so it is asked once, behind a loop that is never left.
        """
        shape, element = self.elements(value)
        self.matching(shape, held.dims)
        t = held.elem
        count, bad = self.variable("i64"), self.variable("i64")
        for variable in (count, bad):
            self.store("i64", "0", variable)

        def note(far: str) -> None:
            old = self.load("i64", bad)
            self.store("i64", self.op(f"or i64 {old}, {self.op(f'zext i1 {far} to i64')}"), bad)

        def compare(at: Indices) -> None:
            v, want = self.read(self.at(held, at)), element(at[len(at) - len(shape) :])
            if t.is_exact:
                note(self.compare("ne", register_type(t), cast(str, v), cast(str, want)))
                return
            known = self.op(f"xor i1 {self.both_nan(t, v, want)}, true")
            altered = self.op(f"and i1 {self.altered(t, v, want)}, {known}")
            note(self.op(f"and i1 {altered}, {self.distant(t, v, want)}"))
            differs = self.op(f"and i1 {self.unequal(t, v, want)}, {known}")
            self.add_to(count, self.op(f"zext i1 {differs} to i64"))

        self.nest(held.dims, compare)
        self.trouble(self.compare("ne", "i64", self.load("i64", bad), "0"))
        self._erase_many(count, t)

    def _count_differing(self, held: View, test: Callable[..., str]) -> None:
        count = self.variable("i64")
        self.store("i64", "0", count)
        self.nest(
            held.dims,
            lambda at: self.add_to(
                count, self.op(f"zext i1 {test(self.read(self.at(held, at)))} to i64")
            ),
        )
        self._erase_many(count, held.elem)

    def _erase_many(self, count: str, t: Scalar) -> None:
        self.erase("true", self.product(self.load("i64", count), str(t.bits)))

    def _size(self, dims: Sequence[str], t: Scalar, checked: bool = True) -> str:
        """The bytes of an array; trouble for lengths that are negative or beyond all memory."""
        size = item_size(t)
        if all(d.isdigit() for d in dims):
            for d in dims:
                size *= int(d)
            if size >= 1 << 47:
                raise Unprintable
            return str(size)
        total = str(size)
        for dim in dims:
            if checked:
                self.trouble(self.compare("ugt", "i64", dim, str(1 << 47)))
                self.trouble(self.compare("ugt", "i64", total, str(1 << 47)))
                both = self.op(
                    f"call {{i64, i1}} @llvm.umul.with.overflow.i64(i64 {total}, i64 {dim})"
                )
                self.trouble(self.op(f"extractvalue {{i64, i1}} {both}, 1"))
                total = self.op(f"extractvalue {{i64, i1}} {both}, 0")
            else:
                total = self.product(total, dim)
        return total


def _pointwise(value: Expr) -> bool:
    """Whether an expression's elements depend on the same elements of its arrays only."""
    for node in walk(value):
        if isinstance(node, Apply) and any(rank_of(cast(Array, a.type)) for a in node.args):
            elems = tuple(elem_of(cast(Array, a.type)) for a in node.args)
            if node.fn not in ("dim", "len") and implementation(node.fn, elems).llvm is None:
                return False
    return True
