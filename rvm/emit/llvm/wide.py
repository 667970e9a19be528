"""One function for several lanes: LLVM's vectors where lanes differ, single numbers where not.

Registers that vary are vectors; those of arrays have the lanes' axis last in memory, so that an
element is a vector too.  All lanes go one way: where they would part, or where there is trouble in
any, the function is left, and its lanes are run one by one from their inputs.  So nothing needs to
be in order when it is left, except that memory is given back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from rvm.emit.llvm import context
from rvm.emit.llvm.arrays import SMALL
from rvm.emit.llvm.context import FRAMED, MINE
from rvm.emit.llvm.elements import Element, Indices
from rvm.emit.llvm.loops import Counted
from rvm.emit.llvm.values import View, variable_types
from rvm.emit.llvm.wide_text import WIDTH, vector
from rvm.emit.llvm.wide_values import Grows, WideValues
from rvm.emit.llvm.writer import COLD
from rvm.emit.values import Unprintable
from rvm.expr import Expr, reads
from rvm.numbers.llvm import Value
from rvm.types import Array, Scalar


class WideFunctionPrinter(WideValues):
    """Prints one function for `WIDTH` lanes."""

    def _enter(self, loop: Counted, copy: int) -> None:
        # Bounds that differ are asked in each round, as whatever differs is.
        nodes = [loop.end, loop.start, *(i.item for i in loop.indices)]
        nodes += [bound for inner in loop.inner for bound in (inner.low, inner.high)]
        involved = {loop.variable, *(inner.variable for inner in loop.inner)}
        involved |= {place.reg for node in nodes for place in reads(node)}
        if involved & self.varying:
            self.goto(copy, loop.cycle.head + 1)
        else:
            super()._enter(loop, copy)

    def remind(self, position: int) -> None:
        """Nothing: a fact on vectors is none that LLVM takes."""

    # ------------------------------------------------------------ values of arrays

    def everywhere(self, dims: Sequence[str], body: Callable[[Indices], object]) -> None:
        # Where there is trouble the lanes begin anew, so nothing is tried before.
        self.nest(dims, body)

    def _accumulated(
        self,
        t: Scalar,
        dims: Sequence[str],
        step: Callable[[Value, Indices], Value],
        begin: Value | None = None,
    ) -> Value:
        lines, block, before = len(self.lines), self.block, self._sums_are_wide
        try:
            self._sums_are_wide = False
            return super()._accumulated(t, dims, step, begin)
        except Grows:
            del self.lines[lines:]
            self.block = block
            self._sums_are_wide = True
            return super()._accumulated(t, dims, step, begin)
        finally:
            self._sums_are_wide = before

    def freed(self, t: Scalar, held: Value, expected: Value) -> None:
        parts = [p for v in (held, expected) for p in (v if isinstance(v, tuple) else (v,))]
        if t.is_exact or self.wide.isdisjoint(parts):
            super().freed(t, held, expected)
            return
        known = self.op(f"xor i1 {self.both_nan(t, held, expected)}, true")
        differs = self.op(f"and i1 {self.altered(t, held, expected)}, {known}")
        look, same = self.fresh("differs"), self.fresh("freed")
        self.fork(self.any(differs), look, same, COLD)
        self.label(look)
        self.trouble(self.op(f"and i1 {differs}, {self.distant(t, held, expected)}"))
        self.erase(self.op(f"and i1 {self.unequal(t, held, expected)}, {known}"), t.bits)
        self.jump(same)
        self.label(same)

    def make_array(self, reg: int, value: Expr | None) -> None:
        if reg not in self.varying:
            super().make_array(reg, value)
            return
        register = self.function.registers[reg]
        t = cast(Array, register.type)
        dims = [self.whole_number(cast(Expr, d)) for d in register.dims]
        size = self._size(dims, t.elem)
        shape, element = ((), None) if value is None else self.elements(value)
        self.matching(shape, dims)
        total = self.room(size)
        zero = self.fill_zero(element, shape, t.elem)
        room = self.product(size, str(WIDTH)) if not size.isdigit() else str(WIDTH * int(size))
        held = self.arrays[reg]
        if room.isdigit() and int(room) <= WIDTH * SMALL:
            pointer, owner = self.framed(reg, int(room)), FRAMED
            if zero:
                where = f"ptr align 16 {pointer}, i8 0, i64 {room}, i1 false"
                self.line(f"call void @llvm.memset.p0.i64({where})")
        else:
            pointer = self.helper("rvm_zeros" if zero else "rvm_room", "ptr", ("i64", room))
            self.trouble(self.op(f"icmp eq ptr {pointer}, null"))
            owner = MINE
        self.store("ptr", pointer, held.pointer)
        self.store("i64", str(owner), held.owner)
        for dim, variable in zip(dims, held.dims, strict=True):
            self.store("i64", dim, variable)
        self.grow(total)
        if element is not None and not zero:
            self._fill(self.whole(reg, t), dims, len(shape), element)

    def _fill(self, view: View, dims: Sequence[str], rank: int, element: Element) -> None:
        self.nest(dims, lambda at: self.write(self.at(view, at), element(at[len(at) - rank :])))

    # ------------------------------------------------------------ registers

    def _variables(self) -> None:
        super()._variables()
        if self.stacks:
            raise Unprintable
        for k in self.varying & self.scalars.keys():
            types = variable_types(cast(Scalar, self.function.registers[k].type))
            self.scalars[k] = tuple(self.vector_variable(t, f"r{k}_") for t in types)
            for part in range(len(types)):
                self.vectors[f"%a{k}p{part}"] = 0

    def _argument(self, kind: str, name: str, pointer: str) -> None:
        if pointer in self.vectors:
            self._arguments.append(f"{vector(kind)} {name}")
            # The name was that of a pointer, if the parameter were changed.
            self.vectors.pop(name, None)
            self.wide.add(name)
            self.store(kind, name, pointer)
        else:
            super()._argument(kind, name, pointer)

    def _from_slots(self) -> None:
        for k in range(self.function.n_args):
            t, start = self.function.registers[k].type, self.starts[k]
            if isinstance(t, Scalar):
                for part, pointer in enumerate(self.scalars[k]):
                    slot = self._row(start + part, k)
                    if t.is_bool:
                        byte = self.load("i8", slot)
                        self.store("i1", self.op(f"trunc i8 {byte} to i1"), pointer)
                    else:
                        self._fetch(variable_types(t)[part], slot, pointer)
            else:
                held = self.arrays[k]
                self._fetch("ptr", self._row(start), held.pointer)
                for axis, dim in enumerate(held.dims):
                    self._fetch("i64", self._row(start + 2 + axis), dim)
        for held in self.arrays.values():
            if held.owner:
                self.store("i64", "0", held.owner)

    def _row(self, slot: int, reg: int = -1) -> str:
        """A slot's room: a vector, or, of what does not vary, a number at its beginning."""
        pointer = self._slot("%regs", WIDTH * slot)
        if reg in self.varying:
            self.vectors[pointer] = 8
        return pointer

    def field(self, k: int) -> str:
        if k != context.ERASED:
            return super().field(k)
        pointer = super().field(context.FIELDS)
        self.vectors[pointer] = 8
        return pointer

    # ------------------------------------------------------------ ends

    def _finish(self) -> None:
        if not self.kind.root:
            super()._finish()
            return
        for k in sorted(self.changed):
            t = self.function.registers[k].type
            if isinstance(t, Scalar):
                for part, pointer in enumerate(self.scalars[k]):
                    slot = self._row(self.starts[k] + part, k)
                    kind = variable_types(t)[part]
                    value = self.load(kind, pointer)
                    if t.is_bool:
                        kind, value = "i8", self.op(f"zext i1 {value} to i8")
                    self.store(kind, value, slot)
        self._settle()
        self.line(f"ret i32 {context.DONE}")

    def _stop(self) -> None:
        self.label("stop")
        for held in self.arrays.values():
            if held.owner:
                release, gone = self.fresh("release"), self.fresh("gone")
                owner = self.load("i64", held.owner)
                self.fork(self.compare("eq", "i64", owner, str(MINE)), release, gone)
                self.label(release)
                self.helper("rvm_release", "i64", ("ptr", self.load("ptr", held.pointer)))
                self.jump(gone)
                self.label(gone)
        self._settle()
        self.line(f"ret i32 {self.load('i32', self.how)}")

    def call(self, pc: int, done: int) -> None:
        """A call: see `rvm.emit.llvm.wide_calls`."""
        from rvm.emit.llvm.wide_calls import print_wide_call

        print_wide_call(self, pc, done)
