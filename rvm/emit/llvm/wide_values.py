"""Values of several lanes: LLVM's vectors where lanes differ, single numbers where they do not.

What is printed for single numbers becomes an instruction on vectors as soon as an operand is one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol, cast

from rvm.emit.llvm.flow import Flow
from rvm.emit.llvm.function import FunctionPrinter
from rvm.emit.llvm.kind import Kind
from rvm.emit.llvm.loops import Counted
from rvm.emit.llvm.registers import Callees
from rvm.emit.llvm.values import Location, View, item_size
from rvm.emit.llvm.wide_text import NAMES, WIDTH, vector, widened
from rvm.emit.llvm.writer import COLD, Writer, operands
from rvm.emit.values import Unprintable
from rvm.expr import Expr, reads
from rvm.image import Code
from rvm.leaf import Function, Table
from rvm.leaf.llvm import Emitted, entry_of, symbol
from rvm.leaf.ops import LLVM_TYPES
from rvm.numbers.llvm import Value
from rvm.stmt import Stmt
from rvm.types import Array

COUNT = "v"
"""How variables are named that count what differs in arrays."""


class WideCallees(Callees, Protocol):
    """Where calls go: the module that is being made."""

    def wide(self, code: Code, scattered: frozenset[int], params: frozenset[int]) -> str:
        """The symbol of an inner function whose parameters `params` vary."""

    def varying(self, code: Code, params: frozenset[int]) -> frozenset[int]:
        """The registers that vary in a function where its parameters `params` do."""


class Grows(Exception):
    """A sum that was begun as a single number turns out to be one for each lane."""


class WideValues(FunctionPrinter):
    """Prints expressions and places of a function whose registers `varying` differ by lane."""

    def __init__(
        self,
        symbol: str,
        code: Code,
        kind: Kind,
        flow: Flow,
        loops: dict[int, Counted],
        callees: WideCallees,
        varying: Collection[int],
    ) -> None:
        self.vectors: dict[str, int] = {}
        """Pointers to vectors, and how far apart the lanes' values are (0: a variable)."""
        self.wide: set[str] = set()
        """Operands that are vectors."""
        self._sums_are_wide = False
        self._mask = ""
        super().__init__(symbol, code, kind, flow, loops, callees)
        self.turns = frozenset()  # the C library goes lane by lane
        self.module = callees
        self.varying = frozenset(varying)
        # All lanes go one way, and their values fill the registers as it is.
        self.choices = {}
        self.joins = False
        self.erased = self.vector_variable("i64", "erased")
        if flow.apart:
            raise Unprintable

    # ------------------------------------------------------------ operands

    def plain(self, text: str) -> str:
        """Append an instruction as it stands."""
        return Writer.op(self, text)

    def made(self, text: str) -> str:
        """Append an instruction as it stands, whose result is a vector."""
        name = self.plain(text)
        self.wide.add(name)
        return name

    def op(self, text: str) -> str:
        if self.wide.isdisjoint(NAMES.findall(text)):
            return self.plain(text)
        return self.made(widened(text, self.splat))

    def splat(self, t: str, operand: str) -> str:
        """An operand as a vector."""
        if operand in self.wide:
            return operand
        if not operand.startswith("%"):
            return f"splat ({t} {operand})" if operand != "null" else "zeroinitializer"
        one = self.plain(f"insertelement {vector(t)} poison, {t} {operand}, i64 0")
        zeros = f"<{WIDTH} x i32> zeroinitializer"
        return self.made(f"shufflevector {vector(t)} {one}, {vector(t)} poison, {zeros}")

    def lane(self, t: str, operand: str, k: int) -> str:
        """The value of an operand in a lane."""
        if operand not in self.wide:
            return operand
        return self.plain(f"extractelement {vector(t)} {operand}, i64 {k}")

    def each(self, t: str, one: Callable[[int], str]) -> str:
        """A vector of what is computed for each lane."""
        found = "poison"
        for k in range(WIDTH):
            value = one(k)
            found = self.made(f"insertelement {vector(t)} {found}, {t} {value}, i64 {k}")
        return found

    def any(self, condition: str) -> str:
        """Whether a condition holds in any lane."""
        if condition not in self.wide:
            return condition
        return self.plain(f"call i1 @llvm.vector.reduce.or.v{WIDTH}i1({vector('i1')} {condition})")

    def all(self, condition: str) -> str:
        """Whether a condition holds in every lane."""
        if condition not in self.wide:
            return condition
        return self.plain(f"call i1 @llvm.vector.reduce.and.v{WIDTH}i1({vector('i1')} {condition})")

    def pure(self, symbol: str, result: str, *args: tuple[str, str]) -> str:
        return self._lane_by_lane(super().pure, symbol, result, args)

    def helper(self, name: str, result: str, *args: tuple[str, str]) -> str:
        return self._lane_by_lane(super().helper, name, result, args)

    def written(self, function: Function, args: tuple[str, ...]) -> str:
        if self.wide.isdisjoint(args):
            return super().written(function, args)
        self.helpers.add(symbol(function))  # its tables, and the cold text
        emitted = Emitted(self, args)
        if function.guard is None or function.cold is None:
            return emitted(function.result)
        # The cold text goes lane by lane, where any lane is for it.
        cold = emitted(function.guard)
        usual = emitted(function.result)
        kind, begun = LLVM_TYPES[function.result.kind], self.block
        rare, done, text = self.fresh("rare"), self.fresh("done"), function.cold
        self.fork(self.any(cold), rare, done, COLD)
        self.label(rare)
        kinds = [LLVM_TYPES[p.kind] for p in function.params]

        def one(k: int) -> str:
            lane = (f"{t} {self.lane(t, a, k)}" for t, a in zip(kinds, args, strict=True))
            return self.plain(f"call {kind} @{symbol(text)}({', '.join(lane)})")

        mended = self.op(f"select i1 {cold}, {kind} {self.each(kind, one)}, {kind} {usual}")
        self.jump(done)
        self.label(done)
        return self.made(f"phi {vector(kind)} [{usual}, %{begun}], [{mended}, %{rare}]")

    def entry_of(self, table: Table, index: str) -> str:
        """The entry of a table of leaf operations, lane by lane."""
        return self.each(
            LLVM_TYPES[table.kind],
            lambda k: entry_of(self.plain, table, self.lane("i64", index, k)),
        )

    def _lane_by_lane(
        self, call: Callable[..., str], name: str, result: str, args: Sequence[tuple[str, str]]
    ) -> str:
        if not any(v in self.wide for _, v in args):
            return call(name, result, *args)
        if result.startswith("{"):
            raise Unprintable
        return self.each(
            result, lambda k: call(name, result, *((t, self.lane(t, v, k)) for t, v in args))
        )

    # ------------------------------------------------------------ memory

    def vector_variable(self, t: str, stem: str) -> str:
        """Room for a vector in the function's frame."""
        name = super().variable(vector(t), stem)
        self.vectors[name] = 0
        return name

    def variable(self, t: str, stem: str = COUNT) -> str:
        if stem == COUNT or (stem == "sum" and self._sums_are_wide):
            return self.vector_variable(t, stem)
        return super().variable(t, stem)

    def load(self, t: str, pointer: str, note: str = "") -> str:
        if pointer in self.vectors:
            aligned = f", align {size}" if (size := self.vectors[pointer]) else ""
            return self.made(f"load {vector(t)}, ptr {pointer}{aligned}{note}")
        if pointer in self.wide:
            return self.each(
                t, lambda k: self.plain(f"load {t}, ptr {self.lane('ptr', pointer, k)}{note}")
            )
        return super().load(t, pointer, note)

    def store(self, t: str, value: str, pointer: str, note: str = "") -> None:
        if pointer in self.vectors:
            aligned = f", align {size}" if (size := self.vectors[pointer]) else ""
            held = self.splat(t, value)
            self.line(f"store {vector(t)} {held}, ptr {pointer}{aligned}{note}")
        elif pointer in self.wide:
            for k in range(WIDTH):
                one, where = self.lane(t, value, k), self.lane("ptr", pointer, k)
                self.line(f"store {t} {one}, ptr {where}{note}")
        elif value in self.wide:
            raise Grows if pointer.startswith("%sum") else Unprintable
        else:
            super().store(t, value, pointer, note)

    def offset(self, pointer: str, distance: str) -> str:
        if distance == "0":
            return pointer
        if distance not in self.wide and pointer not in self.wide:
            moved = super().offset(pointer, distance)
            if pointer in self.vectors:
                self.vectors[moved] = self.vectors[pointer]
            return moved
        size = self.vectors.get(pointer, 0)
        one = f"{vector('ptr') if pointer in self.wide else 'ptr'} {pointer}"
        by = f"{vector('i64') if distance in self.wide else 'i64'} {distance}"
        moved = self.made(f"getelementptr i8, {one}, {by}")
        return self.spread(moved, size) if size else moved

    def spread(self, pointer: str, size: int) -> str:
        """Pointers for each lane, whose values lie `size` bytes apart."""
        one = f"{vector('ptr') if pointer in self.wide else 'ptr'} {pointer}"
        places = ", ".join(f"i64 {size * k}" for k in range(WIDTH))
        return self.made(f"getelementptr i8, {one}, {vector('i64')} <{places}>")

    def whole(self, reg: int, t: Array) -> View:
        if reg not in self.varying:
            return super().whole(reg, t)
        held, size = self.arrays[reg], item_size(t.elem)
        dims = tuple(self.load("i64", d) for d in held.dims)
        if held.strides:
            strides = tuple(self.load("i64", s) for s in held.strides)
        else:
            strides = self.contiguous(dims, WIDTH * size)
        pointer = self.load("ptr", held.pointer)
        if t.elem.is_complex:
            # Parts of numbers alternate, so there is no vector of real parts.
            pointer = self.spread(pointer, size)
        else:
            self.vectors[pointer] = size
        return View(pointer, t.elem, dims, strides, self.notes.get(reg, ""))

    def write(self, place: Location, value: Value) -> None:
        if self._mask and self._writes:
            old = operands(place.type, self.read(place))
            new = operands(place.type, value)
            parts = tuple(
                self.choose(self._mask, t, v, w) for (t, v), (_, w) in zip(new, old, strict=True)
            )
            value = (parts[0], parts[1]) if len(parts) == 2 else parts[0]
        super().write(place, value)

    def _reach(self, place: Location | View) -> tuple[str, str]:
        first = place.pointers[0] if isinstance(place, Location) else place.pointer
        if first in self.wide:
            raise Unprintable
        return super()._reach(place)

    # ------------------------------------------------------------ ways to go

    def trouble(self, condition: str) -> None:
        super().trouble(self.any(condition))

    def fork(self, condition: str, yes: str, no: str, hint: str = "") -> None:
        if condition in self.wide:
            some = self.any(condition)
            parted = self.plain(f"xor i1 {some}, {self.all(condition)}")
            Writer.trouble(self, parted)
            condition = some
        super().fork(condition, yes, no, hint)

    def _lazy(self, fn: str, a: Expr, b: Expr) -> str:
        left = cast(str, self.value(a))
        if left in self.wide:
            # What would have trouble on the right in some lanes leaves the function.
            return self.op(f"{fn} i1 {left}, {self.value(b)}")
        begun = self.block
        right, done = self.fresh("rhs"), self.fresh("both")
        self.fork(left, *((right, done) if fn == "and" else (done, right)))
        self.label(right)
        value = cast(str, self.value(b))
        ended = self.block
        self.jump(done)
        self.label(done)
        known = "false" if fn == "and" else "true"
        if value in self.wide:
            ways = f"[splat (i1 {known}), %{begun}], [{value}, %{ended}]"
            return self.made(f"phi {vector('i1')} {ways}")
        return self.plain(f"phi i1 [{known}, %{begun}], [{value}, %{ended}]")

    def _when(self, cond: Expr, body: Sequence[Stmt]) -> None:
        if not any(p.reg in self.varying for p in reads(cond)):
            super()._when(cond, body)
            return
        if len(body) > 1:
            raise Unprintable
        self._mask = cast(str, self.value(cond))
        self.statement(body[0])
        self._mask = ""
