"""One function as LLVM code that counts what it executes; see `rvm.emit.llvm.counters` for what.

What is counted in loops stands in variables, which LLVM turns into registers, and is added to the
row when the function is left; what happens at most once in a call is added there at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from rvm.emit.llvm import context
from rvm.emit.llvm.counters import Counters, counters_of, lengths, rank_at
from rvm.emit.llvm.edges import FALLS, JUMPS, Edge
from rvm.emit.llvm.flow import Flow
from rvm.emit.llvm.function import FunctionPrinter
from rvm.emit.llvm.kind import Kind
from rvm.emit.llvm.loops import Counted
from rvm.emit.llvm.registers import Callees
from rvm.emit.llvm.writer import COLD
from rvm.expr import Expr, Place, Span
from rvm.image import Code
from rvm.isa import MAKES


class CountingPrinter(FunctionPrinter):
    """Prints one function that counts."""

    def __init__(
        self,
        symbol: str,
        code: Code,
        kind: Kind,
        flow: Flow,
        loops: dict[int, Counted],
        callees: Callees,
    ) -> None:
        super().__init__(symbol, code, kind, flow, loops, callees)
        self.counters: Counters = counters_of(code, flow)
        metered = self.counters.meters
        self.choices = {
            pc: choice
            for pc, choice in flow.choices.items()
            if pc not in metered and choice.end not in metered
        }
        self._pc = -1
        """The instruction that is being printed."""
        inside = self.counters.depth
        counted, edges = self.counters.counted, self.counters.edges
        looped = [at for k, at in counted.items() if inside(edges[k].start, edges[k].target)]
        looped += [at for pc, at in self.counters.erased.items() if inside(pc)]
        self._added = {at: self.variable("i64", "count") for at in looped}
        """The variables of words of the row that are added to it in the end."""
        sized = self.counters.sized
        self._met = {
            pc: self.variable("i64", "met")
            for pc in self.counters.meters
            if inside(pc) and sized.steady(pc)
        }
        """How often instructions have found the sizes that the arrays have just now."""

    # ------------------------------------------------------------ the way in, and out

    def _variables(self) -> None:
        super()._variables()
        for variable in (*self._added.values(), *self._met.values()):
            self.store("i64", "0", variable)

    def _from_slots(self) -> None:
        super()._from_slots()
        self.line(f"%row = load ptr, ptr {self.field(context.ROW)}")

    def _from_arguments(self) -> None:
        super()._from_arguments()
        self._arguments.append("ptr %row")

    def _settle(self) -> None:
        super()._settle()
        for at, variable in self._added.items():
            self.add_to(self._word(at), self.load("i64", variable))
        for pc in self._met:
            self._pass_on(pc)

    def _word(self, at: int) -> str:
        return self.op(f"getelementptr i64, ptr %row, i64 {at}")

    def _count_up(self, at: int, amount: str) -> None:
        """Add to a word of the row, or to its variable."""
        self.add_to(self._added.get(at) or self._word(at), amount)

    # ------------------------------------------------------------ what is counted

    def perform(self, pc: int) -> None:
        self._pc = pc
        sized, instr = self.counters.sized, self.code.instrs[pc]
        if instr.op in MAKES:
            for known in sized.depending.get(cast(Place, instr.args[0]).reg, ()):
                if known in self._met:
                    self._pass_on(known)
        key = None if sized.after(pc) else self._key(pc)
        super().perform(pc)
        self._meet(pc, self._key(pc) if key is None else key)

    def lose(self, bits: str) -> None:
        super().lose(bits)
        at = self.counters.erased.get(self._pc)
        if at is not None:
            self._count_up(at, bits)

    def along(self, edge: Edge, times: str = "1") -> None:
        k = self.counters.numbers[edge]
        at = self.counters.counted.get(k)
        if at is not None:
            self._count_up(at, times)
        if edge.how == JUMPS:
            for pc in (edge.last, edge.target - 1):
                self._meet(pc, self._key(pc))
        elif edge.how == FALLS and edge.last < edge.target:
            self._meet(edge.last, self._key(edge.last))

    # ------------------------------------------------------------ calls

    def entering(self, pc: int) -> list[str]:
        """Find the callee's row; its first call along this path asks the engine for one."""
        word = self._word(self.counters.children[pc])
        missing, made, known = self.fresh("missing"), self.fresh("made"), self.fresh("known")
        self.fork(self.op(f"icmp eq ptr {self.load('ptr', word)}, null"), missing, known, COLD)
        self.label(missing)
        ask = self.load("ptr", self.field(context.CHILD))
        row = self.op(f"call ptr {ask}(ptr %ctx, ptr %row, i64 {pc})")
        self.trouble(self.op(f"icmp eq ptr {row}, null"))
        self.jump(made)
        self.label(made)
        self.store("ptr", row, word)
        self.jump(known)
        self.label(known)
        self._meet(pc, self._key(pc))
        return [f"ptr {self.load('ptr', word)}"]

    def unreturned(self, pc: int, entered: str) -> None:
        if self.kind.watched:
            self._write_down(context.OPEN, entered, "0")

    def returned(self, pc: int, entered: str, left: str) -> None:
        if not self.kind.watched:
            return
        long, done = self.fresh("long"), self.fresh("called")
        least = self.load("i64", self.field(context.LEAST))
        before = self.op(f"add i64 {entered}, 1")
        ticks = self.op(f"sub i64 {before}, {left}")
        self.fork(self.compare("sge", "i64", ticks, least), long, done)
        self.label(long)
        self._write_down(self.callees.number(self.code.callee(pc)), entered, left)
        self.jump(done)
        self.label(done)

    def _write_down(self, number: int, entered: str, left: str) -> None:
        self.helpers.add("rvm_called")
        call = f"ptr %ctx, i64 {number}, i64 {entered}, i64 {left}"
        self.line(f"call void @rvm_called({call})")

    # ------------------------------------------------------------ sizes

    def _key(self, pc: int) -> list[str]:
        """The sizes that an instruction finds now; none where they are counted otherwise."""
        if pc not in self.counters.meters or pc in self._met:
            return []
        return self._sizes(self.counters.sized.of[pc])

    def _sizes(self, nodes: Sequence[Expr]) -> list[str]:
        out: list[str] = []
        for node in nodes:
            if isinstance(node, Place) and rank_at(node) >= 0:
                out += lengths(self.code, node, self._held, self._between)
            else:
                out.append(self.whole_number(node))
        return out

    def _held(self, reg: int, axis: int) -> str:
        return self.load("i64", self.arrays[reg].dims[axis])

    def _between(self, item: Span, length: str) -> str:
        high = length if item.hi is None else self.whole_number(item.hi)
        return high if item.lo is None else self.op(f"sub i64 {high}, {self.whole_number(item.lo)}")

    def _meet(self, pc: int, key: Sequence[str]) -> None:
        """Count that an instruction has found some sizes."""
        if pc in self._met:
            self.add_to(self._met[pc], "1")
        elif key:
            self._enter_sizes(pc, key, "1")

    def _pass_on(self, pc: int) -> None:
        """Count the sizes that an instruction has found since it was last looked at."""
        some, none = self.fresh("some"), self.fresh("none")
        times = self.load("i64", self._met[pc])
        self.fork(self.compare("ne", "i64", times, "0"), some, none)
        self.label(some)
        self.store("i64", "0", self._met[pc])
        self.trusting(lambda: self._enter_sizes(pc, self._sizes(self.counters.sized.of[pc]), times))
        self.jump(none)
        self.label(none)

    def _enter_sizes(self, pc: int, key: Sequence[str], times: str) -> None:
        """Add to a meter, whose count is written down first if it stands at other sizes."""
        meter = self.counters.meters[pc]
        count = self._word(meter.at)
        words = [self._word(meter.at + 1 + k) for k in range(meter.words)]
        same = "true"
        for word, size in zip(words, key, strict=True):
            equal = self.compare("eq", "i64", self.load("i64", word), size)
            same = equal if same == "true" else self.op(f"and i1 {same}, {equal}")
        other, known = self.fresh("other"), self.fresh("met")
        self.fork(same, known, other)
        self.label(other)
        self.helpers.add("rvm_sizes")
        call = f"ptr %ctx, ptr %row, i64 {pc}, ptr {count}, i64 {meter.words}"
        self.line(f"call void @rvm_sizes({call})")
        for word, size in zip(words, key, strict=True):
            self.store("i64", size, word)
        self.jump(known)
        self.label(known)
        self.add_to(count, times)
