"""The pass that adds counting to code; see `rvm.ir.counters` for the counters.

Counters in loops are variables, which LLVM turns into registers, and are added to the row when the
function is left; counters of code that runs at most once per call are added directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from rvm.expr import Expr, Place, Span
from rvm.ir import context
from rvm.ir.blocks import FunctionBuilder
from rvm.ir.builder import Builder, rewrite
from rvm.ir.counters import Counters, counters_of, lengths, rank_at
from rvm.ir.flow import FALLS, JUMPS, Edge
from rvm.ir.node import I64, PTR, Block, Node, constant
from rvm.ir.values import span, whole_number
from rvm.isa import ENDS

NULL = constant(None, PTR)


def count(b: Builder, blocks: list[Block]) -> None:
    """Count the marked operations in a function's blocks."""
    counting = _Counting(b)
    rules = {
        "perform": counting.perform,
        "done": counting.done,
        "erased": counting.erased,
        "rounded": counting.rounded,
        "edge": counting.edge,
        "entering": counting.entering,
        "call": counting.call,
        "unreturned": counting.unreturned,
        "returned": counting.returned,
        "settle": counting.settle,
    }
    entry = b.inside(counting.begin)
    rewrite(b, blocks, rules)
    blocks[0].items[:0] = entry


class _Counting:
    def __init__(self, b: Builder) -> None:
        self.b = b
        self.counters: Counters = counters_of(b.code, b.flow)
        self.row = NULL
        """The row of counters of this function and call path."""
        self.pc = -1
        """The instruction that is being done."""
        self.key: list[Node] | None = None
        """The sizes that it found before it was done."""
        inside, sized = self.counters.depth, self.counters.sized
        counted, edges = self.counters.counted, self.counters.edges
        looped = [at for k, at in counted.items() if inside(edges[k].start, edges[k].target)]
        for lost in (self.counters.erased, self.counters.rounded):
            looped += [at for pc, at in lost.items() if inside(pc)]
        self.added = {at: b.variable(I64, "count") for at in looped}
        """The variables of words of the row that are added to it in the end."""
        self.met = {
            pc: b.variable(I64, "met")
            for pc in self.counters.meters
            if inside(pc) and sized.steady(pc) and b.code.instrs[pc].op not in ENDS
        }
        """The number of times instructions have met the present sizes of their arrays."""

    # ------------------------------------------------------------ the way in, and out

    def begin(self) -> None:
        self.row = self.b.row()
        for variable in (*self.added.values(), *self.met.values()):
            self.b.set(variable, self.b.i64(0))

    def settle(self, _: Node) -> None:
        for at, variable in self.added.items():
            self._add(at, self.b.get(variable))
        for pc in self.met:
            self._pass_on(pc)

    def _word(self, at: int) -> Node:
        return self.b.op("slot", self.row, kind=PTR, aux=at)

    def _add(self, at: int, amount: Node) -> None:
        """Add to a word of the row."""
        word = self._word(at)
        self.b.poke(self.b.op("wadd", self.b.peek(I64, word), amount), word)

    def _count_up(self, at: int, amount: Node) -> None:
        """Add to a word of the row, or to its variable."""
        if at in self.added:
            self.b.add_to(self.added[at], amount)
        else:
            self._add(at, amount)

    # ------------------------------------------------------------ what is counted

    def perform(self, node: Node) -> None:
        self.pc = node.aux
        b, sized = self.b, self.counters.sized
        instr = b.code.instrs[self.pc]
        if instr.op in ENDS:
            # Whatever is made in its place has sizes of its own.
            for known in sized.depending.get(cast(Place, instr.args[0]).reg, ()):
                if known in self.met:
                    self._pass_on(known)
        self.key = None if sized.after(self.pc) else self._key(self.pc)

    def done(self, node: Node) -> None:
        self.b.items.append(node)
        self._meet(self.pc, self._key(self.pc) if self.key is None else self.key)
        self.pc = -1

    def erased(self, node: Node) -> None:
        at = self.counters.erased.get(self.pc)
        if at is not None:
            self._count_up(at, node.args[0])

    def rounded(self, node: Node) -> None:
        self._count_up(self.counters.rounded[node.aux], node.args[0])

    def edge(self, node: Node) -> None:
        edge: Edge = node.aux
        at = self.counters.counted.get(self.counters.numbers[edge])
        if at is not None:
            self._count_up(at, node.args[0])
        if edge.how == JUMPS:
            for pc in (edge.last, edge.target - 1):
                self._meet(pc, self._key(pc))
        elif edge.how == FALLS and edge.last < edge.target:
            self._meet(edge.last, self._key(edge.last))

    # ------------------------------------------------------------ calls

    def entering(self, node: Node) -> None:
        """Find the callee's row; the first call along a path requests one from the engine."""
        b = self.b
        pc, way = node.aux
        word = self._word(self.counters.children[pc])

        def missing() -> None:
            ask = b.read_field(context.CHILD, PTR)
            row = b.op("through", ask, b.field(0), self.row, b.i64(pc), kind=PTR)
            b.trouble(b.op("eq", row, NULL))
            b.poke(row, word)

        b.leaving(way)
        b.when(b.op("eq", b.peek(PTR, word), NULL), missing, unlikely=True)
        self._meet(pc, self._key(pc))

    def call(self, node: Node) -> None:
        b = self.b
        row = b.peek(PTR, self._word(self.counters.children[node.aux[-1]]))
        node.args = (*node.args, row)
        b.items.append(node)

    def unreturned(self, node: Node) -> None:
        if self.b.kind.watched:
            self._write_down(context.OPEN, node.args[0], self.b.i64(0))

    def returned(self, node: Node) -> None:
        b = self.b
        if not b.kind.watched:
            return
        entered, left = node.args
        ticks = b.op("wsub", b.op("wadd", entered, b.i64(1)), left)
        code = cast(FunctionBuilder, b).callees.number(b.code.callee(node.aux))
        b.when(
            b.op("ge", ticks, b.read_field(context.LEAST)),
            lambda: self._write_down(code, entered, left),
        )

    def _write_down(self, code: int, entered: Node, left: Node) -> None:
        b = self.b
        b.op("helper", b.op("field", kind=PTR, aux=0), b.i64(code), entered, left, kind="void",
             aux="rvm_called")  # fmt: skip

    # ------------------------------------------------------------ sizes

    def _key(self, pc: int) -> list[Node]:
        """The present sizes for an instruction; none where they are counted otherwise."""
        if pc not in self.counters.meters or pc in self.met:
            return []
        return self._sizes(self.counters.sized.of[pc])

    def _sizes(self, nodes: Sequence[Expr]) -> list[Node]:
        b, out = self.b, []
        for node in nodes:
            if isinstance(node, Place) and rank_at(node) >= 0:
                dims = lengths(b.code, node, self._held, self._between)
                out += [b.i64(d) if isinstance(d, int) else d for d in dims]
            else:
                out.append(whole_number(b, node))
        return out

    def _held(self, reg: int, axis: int) -> Node:
        return self.b.dim(reg, axis)

    def _between(self, item: Span, length: Node | int) -> Node:
        b = self.b
        held = b.i64(length) if isinstance(length, int) else length
        return span(b, item, held, checked=False)[1]

    def _meet(self, pc: int, key: Sequence[Node]) -> None:
        """Count that an instruction has found some sizes."""
        if pc in self.met:
            self.b.add_to(self.met[pc], self.b.i64(1))
        elif key:
            self._enter_sizes(pc, key, self.b.i64(1))

    def _pass_on(self, pc: int) -> None:
        """Count the sizes that an instruction has found since it was last looked at."""
        b, times = self.b, self.b.get(self.met[pc])

        def some() -> None:
            b.set(self.met[pc], b.i64(0))
            b.trusting(
                lambda: self._enter_sizes(pc, self._sizes(self.counters.sized.of[pc]), times)
            )

        b.when(b.op("ne", times, b.i64(0)), some)

    def _enter_sizes(self, pc: int, key: Sequence[Node], times: Node) -> None:
        """Add to a meter, whose count is first written down if it is for other sizes."""
        b, meter = self.b, self.counters.meters[pc]
        words = [self._word(meter.at + 1 + k) for k in range(meter.words)]
        pairs = zip(words, key, strict=True)
        same = b.all([b.op("eq", b.peek(I64, word), size) for word, size in pairs])

        def other() -> None:
            b.pass_on(self.row, pc, meter)
            for word, size in zip(words, key, strict=True):
                b.poke(size, word)

        b.when(b.invert(same), other)
        self._add(meter.at, times)
