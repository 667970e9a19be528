"""The blocks of a whole function as Python does it: instructions are lines that are printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rvm.accounts.counts import sized_of
from rvm.emit.python.builder import PythonBuilder
from rvm.image import Code
from rvm.ir.builder import Way
from rvm.ir.context import SPENT, STOPPED
from rvm.ir.flow import Flow
from rvm.ir.function import Maker
from rvm.ir.kind import ANYWHERE, Kind
from rvm.ir.node import I64, Node, Var


class PythonMaker(Maker):
    """Makes the blocks of a function, which is entered at any gate, of instructions' lines.

    `apart` are the instructions that are not for this target, calls among them.
    """

    b: PythonBuilder

    def __init__(
        self, b: PythonBuilder, code: Code, lines: Mapping[int, Sequence[str]], counts: bool
    ) -> None:
        self.lines = lines
        jumps = (pc for pc, i in enumerate(code.instrs) if i.op == "br")
        b.code, b.flow = code, Flow(code, {*range(len(code))}.difference(lines, jumps), ())
        b.kind = Kind(ANYWHERE, frozenset(), counts=counts)
        super().__init__(b, last=0)

    def enter(self) -> None:
        for gate in sorted(self.b.flow.gates):
            self.reach(0, gate)

    def gate(self, start: int) -> None:
        test = f"if n < {self.needs[start]}: trouble()"
        self.b.do("way", aux=(start, 0, SPENT))
        self.b.do("text", aux=([test], True))

    def condition(self, pc: int, done: int) -> tuple[Node, int]:
        b = self.b
        b.count(done + 1)
        # If the condition raises, it was evaluated too early.
        way = b.way_out(pc, -1)
        b.do("way", aux=way())
        b.leaving(way)
        return b.value(b.code.instrs[pc].args[0]), 0

    def instruction(self, pc: int) -> None:
        b, erased = self.b, Var(I64, "_erased")
        erases = b.kind.counts and sized_of(b.code).may_erase(pc)
        if erases:
            b.line("_erased = state.account.erased_bits")
        rounds = b.kind.counts and b.code.rounds(pc)
        if rounds:
            b.line("_rounded = 0")
        b.do("text", aux=(self.lines[pc], True))
        if rounds:
            b.do("rounded", b.get(Var(I64, "_rounded")), aux=pc)
        if erases:
            b.line("_erased = state.account.erased_bits - _erased")
            b.do("erased", b.get(erased))

    def call(self, pc: int, done: int, way: Way) -> None:
        raise AssertionError("calls are apart")

    def finish(self) -> None:
        self.b.jump((len(self.b.code), 0, STOPPED))

    def stop(self) -> None:
        self.b.do("settle")
