"""A graph as a function for several lanes: vectors if lanes differ, single numbers if not.

Registers that vary are vectors; arrays that vary have the lanes as their last axis in memory, so an
element is a vector too.  All lanes take the same path.  Where they diverge, each continues by
itself to the end of the function, in a second function for a single lane.  If any lane bails out,
so does the function, and its lanes are run one by one from their inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rvm.emit.llvm.printer import COLD, TYPES, Module, Printer, symbol
from rvm.ir import context
from rvm.ir.blocks import FunctionBuilder
from rvm.ir.context import WIDTH
from rvm.ir.node import BIT, I8, Argument, Node, Var
from rvm.ir.registers import LANE
from rvm.ir.typed import Unprintable
from rvm.ir.widen import differing, inline
from rvm.types import elem_of


def vector(t: str) -> str:
    """The type of a vector of a type's values."""
    return f"<{WIDTH} x {t}>"


class LanesPrinter(Printer):
    """Prints one function for `WIDTH` lanes."""

    def __init__(self, b: FunctionBuilder, module: Module) -> None:
        inline(b, b.blocks)
        self.wide, self._vectors = differing(b, b.blocks)
        self._mask = ""
        """The mask of lanes for which code is being printed; empty: all."""
        self._agreed: set[Node] = set()
        """Conditions that are the same in all lanes by now."""
        super().__init__(b, module)

    @property
    def frame(self) -> int:
        return 8 * WIDTH * (len(self.lines) + len(self.b.variables)) + WIDTH * self._arrays()

    def _varies(self, reg: int | None) -> bool:
        return reg in (self.b.varying or ())

    def _argument(self, a: Argument) -> str:
        if self._varies(a.reg) and not a.is_alone:
            return f"{vector(TYPES[a.kind])} %{a.name}"
        return super()._argument(a)

    # ------------------------------------------------------------ operands

    def is_wide(self, node: Node) -> bool:
        """Whether a node's operand is a vector."""
        if node.op == "argument":
            return self._varies(node.aux.reg) and not node.aux.is_alone
        return node in self.wide

    def splat(self, node: Node) -> str:
        """An operand as a vector."""
        operand, t = self.operand(node), TYPES[node.kind]
        if self.is_wide(node):
            return operand
        if node.op == "constant":
            return "zeroinitializer" if operand == "null" else f"splat ({t} {operand})"
        one = self.op(f"insertelement {vector(t)} poison, {t} {operand}, i64 0")
        zeros = f"<{WIDTH} x i32> zeroinitializer"
        return self.op(f"shufflevector {vector(t)} {one}, {vector(t)} poison, {zeros}")

    def lane(self, node: Node, k: int) -> str:
        """The value of an operand in a lane."""
        operand = self.operand(node)
        if not self.is_wide(node):
            return operand
        return self.op(f"extractelement {vector(TYPES[node.kind])} {operand}, i64 {k}")

    def each(self, t: str, one: Callable[[int], str]) -> str:
        """A vector of values computed separately for each lane."""
        found = "poison"
        for k in range(WIDTH):
            found = self.op(f"insertelement {vector(t)} {found}, {t} {one(k)}, i64 {k}")
        return found

    def any(self, vector_of_bits: str, how: str = "or") -> str:
        """Whether a condition holds in any lane (`and`: in every lane)."""
        name = f"@llvm.vector.reduce.{how}.v{WIDTH}i1"
        return self.op(f"call i1 {name}({vector('i1')} {vector_of_bits})")

    def _among(self, condition: str) -> str:
        """A condition where the present lanes do something."""
        return self.op(f"and {vector('i1')} {condition}, {self._mask}") if self._mask else condition

    # ------------------------------------------------------------ pure operations

    def type(self, kind: str, of: Node | Var | None = None) -> str:
        if of not in self.wide and of not in self._vectors:
            return super().type(kind)
        if kind not in TYPES:
            raise Unprintable
        return vector(TYPES[kind])

    def given(self, node: Node, to: Node | None = None) -> str:
        return self.splat(node) if to in self.wide else self.operand(node)

    def suffix(self, node: Node) -> str:
        return f"v{WIDTH}" if node in self.wide else ""

    def _do_helper(self, node: Node) -> str | None:
        self.helpers.add(node.aux)
        return self._by_lane(node, node.aux, super()._do_helper)

    def _do_pure(self, node: Node) -> str | None:
        self.symbols.add(node.aux)
        return self._by_lane(node, node.aux, super()._do_pure)

    def _by_lane(self, node: Node, name: str, single: Callable[[Node], str | None]) -> str | None:
        """A call for each lane."""
        if node not in self.wide:
            return single(node)
        if node.kind not in TYPES:
            raise Unprintable
        t = TYPES[node.kind]
        return self.each(t, lambda k: self.op(f"call {t} @{name}({self._lane(node.args, k)})"))

    def _lane(self, nodes: Sequence[Node], k: int) -> str:
        return ", ".join(f"{TYPES[n.kind]} {self.lane(n, k)}" for n in nodes)

    def _do_same(self, node: Node) -> str:
        self.functions.add(node.aux)  # its tables, and the cold text
        return self.operand(node.args[0])

    def _do_table(self, node: Node) -> str:
        if node not in self.wide:
            return super()._do_table(node)
        (index,) = node.args
        t = TYPES[node.kind]
        return self.each(t, lambda k: self.entry(node.aux, self.lane(index, k)))

    def _do_cold(self, node: Node) -> str:
        """A function's cold text, executed in the lanes that need it, if there are any."""
        cold, usual, *args = node.args
        name, t = symbol(node.aux), TYPES[node.kind]
        test, found = self.splat(cold), self.splat(usual)
        begun, rare, done = self.block, self.fresh(), self.fresh()
        self.line(f"br i1 {self.any(test)}, label %{rare}, label %{done}, {COLD}")
        self.label(rare)
        each = self.each(t, lambda k: self.op(f"call {t} @{name}({self._lane(args, k)})"))
        mended = self.op(f"select {vector('i1')} {test}, {vector(t)} {each}, {vector(t)} {found}")
        self.line(f"br label %{done}")
        self.label(done)
        return self.op(f"phi {vector(t)} [{found}, %{begun}], [{mended}, %{rare}]")

    # ------------------------------------------------------------ variables and memory

    def held(self, v: Var, t: str, at: Sequence[Node]) -> str:
        if any(map(self.is_wide, at)):
            raise Unprintable
        return super().held(v, t, at)

    def _do_set(self, node: Node) -> None:
        if node.aux not in self._vectors:
            super()._do_set(node)
            return
        value, *at = node.args
        t = vector(TYPES[value.kind])
        found, pointer = self.splat(value), self.held(node.aux, t, at)
        if self._mask:
            found = self._chosen(t, found, self.op(f"load {t}, ptr {pointer}"))
        self.line(f"store {t} {found}, ptr {pointer}")

    def _chosen(self, t: str, new: str, old: str) -> str:
        return self.op(f"select {vector('i1')} {self._mask}, {t} {new}, {t} {old}")

    def distance(self, reg: int) -> int:
        return super().distance(reg) * (WIDTH if self._varies(reg) else 1)

    def _places(self, reg: int, part: int, at: Sequence[Node]) -> list[str]:
        """The addresses of the elements of each lane."""
        held = self.b.arrays[reg]
        pointer = self.op(f"load ptr, ptr %{held.pointer.name}")
        size = super().distance(reg) if self._varies(reg) else 0
        strides = list(reversed(self.strides(reg)))
        found = []
        for k in range(WIDTH):
            place = self.offset(pointer, str(size * k + 8 * part))
            for i, stride in zip(at, strides, strict=True):
                place = self.offset(place, self.op(f"mul i64 {self.lane(i, k)}, {stride}"))
            found.append(place)
        return found

    def _alike(self, reg: int, at: Sequence[Node]) -> bool:
        """Whether the lanes' elements are contiguous."""
        if elem_of(self.b.function.registers[reg].type).parts > 1:
            return False
        return not any(map(self.is_wide, at))

    def _do_load(self, node: Node) -> str:
        if node not in self.wide:
            return super()._do_load(node)
        reg, part = node.aux
        note = self.note(reg, True)
        if self._alike(reg, node.args):
            pointer = self.address(reg, part, node.args)
            return self._vector_at(node.kind, pointer, super().distance(reg), note)
        places = self._places(reg, part, node.args)
        return self.each(TYPES[node.kind], lambda k: self.fetch(node.kind, places[k], note))

    def _vector_at(self, kind: str, pointer: str, align: int, note: str = "") -> str:
        if kind == BIT:
            t = vector("i8")
            held = self.op(f"load {t}, ptr {pointer}, align {align}{note}")
            return self.op(f"icmp ne {t} {held}, zeroinitializer")
        return self.op(f"load {vector(TYPES[kind])}, ptr {pointer}, align {align}{note}")

    def _keep_vector(self, kind: str, value: str, pointer: str, align: int, note: str = "") -> None:
        if kind == BIT:
            value = self.op(f"zext {vector('i1')} {value} to {vector('i8')}")
            kind = I8
        t = vector(TYPES[kind])
        self.line(f"store {t} {value}, ptr {pointer}, align {align}{note}")

    def _do_store(self, node: Node) -> None:
        reg, part = node.aux
        value, *at = node.args
        note, t = self.note(reg), vector(TYPES[value.kind])
        if not self._varies(reg):
            if self._mask or self.is_wide(value) or any(map(self.is_wide, at)):
                raise Unprintable
            super()._do_store(node)
            return
        new = self.splat(value)
        if self._alike(reg, at):
            align = super().distance(reg)
            pointer = self.address(reg, part, at)
            if self._mask:
                new = self._chosen(t, new, self._vector_at(value.kind, pointer, align, note))
            self._keep_vector(value.kind, new, pointer, align, note)
            return
        places = self._places(reg, part, at)
        for k, place in enumerate(places):
            one = self.op(f"extractelement {t} {new}, i64 {k}")
            if self._mask:
                held = self.fetch(value.kind, place, note)
                here = self.op(f"extractelement {vector('i1')} {self._mask}, i64 {k}")
                single = TYPES[value.kind]
                one = self.op(f"select i1 {here}, {single} {one}, {single} {held}")
            self.keep(value.kind, one, place, note)

    def _do_address(self, node: Node) -> str:
        if node in self.wide:
            # Another part of the array in every lane.
            raise Unprintable
        return super()._do_address(node)

    def _do_peek(self, node: Node) -> str:
        if node not in self.wide:
            return super()._do_peek(node)
        (pointer,) = node.args
        if pointer.op == "argument":
            return self.op(f"load {vector(TYPES[node.kind])}, ptr {self.operand(pointer)}")
        return self._vector_at(node.kind, self.operand(pointer), 8)

    def _do_poke(self, node: Node) -> None:
        value, pointer = node.args
        if pointer.op == "argument" and self._varies(pointer.aux.reg):
            t = vector(TYPES[value.kind])
            self.line(f"store {t} {self.splat(value)}, ptr {self.operand(pointer)}")
        elif pointer.op == "total":
            self._keep_vector(value.kind, self.splat(value), self.operand(pointer), 8)
        elif self._mask or self.is_wide(value):
            raise Unprintable
        else:
            super()._do_poke(node)

    def _do_total(self, node: Node) -> str:
        at = context.WIDE.index(node.aux)
        return self.op(f"getelementptr i64, ptr %ctx, i64 {context.FIELDS + at * WIDTH}")

    def _do_fetch(self, node: Node, note: str = "") -> str:
        at, reg = node.aux
        if not self._varies(reg):
            wide = Node(node.op, node.kind, node.args, (WIDTH * at, reg))
            return super()._do_fetch(wide, note)
        return self._vector_at(node.kind, self._row(node.args[0], at), 8)

    def _row(self, base: Node, at: int) -> str:
        return self.op(f"getelementptr i64, ptr {self.operand(base)}, i64 {WIDTH * at}")

    def _do_leave(self, node: Node) -> None:
        at, _ = node.aux
        value, base = node.args
        pointer = self._row(base, at)
        self._keep_vector(value.kind, self.splat(value), pointer, 8)

    # ------------------------------------------------------------ ways to go

    def _do_trouble(self, node: Node) -> None:
        (condition,) = node.args
        if self.is_wide(condition):
            self.leave(self.any(self._among(self.operand(condition))), node.aux)
        else:
            super()._do_trouble(node)

    def _do_bound(self, node: Node) -> None:
        index, length = node.args
        if not (self.is_wide(index) or self.is_wide(length)):
            super()._do_bound(node)
            return
        # In all lanes, as all of them will look there.
        t = vector("i64")
        beyond = self.op(f"icmp uge {t} {self.splat(index)}, {self.splat(length)}")
        self.leave(self.any(beyond), node.aux)

    def _do_part(self, node: Node) -> None:
        (condition,) = node.args
        if self.is_wide(condition):
            test = self.operand(condition)
            some, every = self.any(test), self.any(test, "and")
            self.leave(self.op(f"xor i1 {some}, {every}"), node.aux)
            self._agreed.add(condition)

    def _do_fork(self, node: Node) -> None:
        (condition,) = node.args
        if self.is_wide(condition):
            if condition not in self._agreed:
                raise Unprintable
            yes, no, _ = node.aux
            some = self.any(self.operand(condition))
            self.line(f"br i1 {some}, label %{yes}, label %{no}")
        else:
            super()._do_fork(node)

    def _do_if(self, node: Node) -> None:
        (condition,) = node.args
        if not self.is_wide(condition):
            super()._do_if(node)
            return
        yes, no, unlikely = node.aux
        test, outer = self.operand(condition), self._mask
        t = vector("i1")
        other = self.op(f"xor {t} {test}, splat (i1 true)") if no else ""
        for bits, items in ((test, yes), (other, no)):
            if items:
                self._mask = self._among(bits)
                self.fork(self.any(self._mask), items, (), unlikely)
                self._mask = outer

    def _do_loop(self, node: Node) -> None:
        if self.is_wide(node.args[0]):
            raise Unprintable
        super()._do_loop(node)

    def _do_call(self, node: Node) -> str:
        name, by_lane, _ = node.aux
        given = []
        for k, a in enumerate(node.args):
            if k in by_lane and a.op != "variable":
                given.append(f"{vector(TYPES[a.kind])} {self.splat(a)}, ")
            elif self.is_wide(a):
                raise Unprintable
            else:
                given.append(f"{TYPES[a.kind]} {self.operand(a)}, ")
        return self.op(f"call i32 @{name}({''.join(given)}ptr %ctx)")


class LanePrinter(Printer):
    """The printer of the function in which one lane continues alone after lanes have diverged."""

    def _place(self, node: Node, kind: str, base: Node) -> str:
        """A register's slot: of a scalar that of the lane, among the numbers of a vector."""
        at, reg = node.aux
        pointer = self.op(f"getelementptr i64, ptr {self.operand(base)}, i64 {WIDTH * at}")
        if reg is None:
            return pointer
        t = TYPES[I8 if kind == BIT else kind]
        return self.op(f"getelementptr {t}, ptr {pointer}, i64 %{LANE.name}")

    def _do_fetch(self, node: Node, note: str = "") -> str:
        return self.fetch(node.kind, self._place(node, node.kind, node.args[0]), note)

    def _do_leave(self, node: Node) -> None:
        value, base = node.args
        self.keep(value.kind, self.operand(value), self._place(node, value.kind, base))
