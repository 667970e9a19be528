"""Generated source in which vectorised pieces precede the ordinary code of loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rvm.engines.source import Line, Source
from rvm.engines.vector.loops import Declined
from rvm.engines.vector.plan import LoopPlan
from rvm.engines.vector.support import VECTOR_SUPPORT
from rvm.expr import Expr
from rvm.image import Code
from rvm.ir.context import STOPPED
from rvm.ir.counters import Counters
from rvm.ir.flow import Cycle
from rvm.ir.structure import Loop


class VectorSource(Source):
    """The generated source of one function in one direction.

    `plans` and `declined` hold the loops by their first instruction: vectorised ones, and the
    reasons for declining the others.
    """

    support: ClassVar[dict[str, object]] = VECTOR_SUPPORT

    def __init__(self, code: Code, strict: int) -> None:
        super().__init__(code, strict)
        self.plans: dict[int, LoopPlan] = {}
        self.declined: dict[int, str] = {}
        for cycle in self.flow.cycles:
            try:
                if code.traps:
                    raise Declined("it is being debugged")
                self.plans[cycle.head] = self._plan(self._whole(cycle))
            except Declined as why:
                self.declined[cycle.head] = str(why)

    def _plan(self, loop: Loop, counters: Counters | None = None) -> LoopPlan:
        """The plan of a loop; Declined if it cannot be vectorised."""
        return LoopPlan(self.code, self.structure, loop, self.printer.constants, counters)

    def _whole(self, cycle: Cycle) -> Loop:
        """A loop that is printed as one piece; Declined for others."""
        for pc in range(cycle.head + 1, cycle.back):
            instr = self.code.instrs[pc]
            if self.code.logging(pc, self.strict):
                raise Declined(f"it holds `{instr.op}`, and strict mode logs what that loses")
            if pc in self.flow.apart:
                what = f"calls `{instr.symbol}`" if "call" in instr.op else f"holds `{instr.op}`"
                raise Declined(f"it {what}")
            if pc + 1 in self.structure.cycles:
                raise Declined("it holds another loop")
        found = self.structure.loop(cycle.head + 1)
        if found is None:
            raise Declined("its body has jumps of its own")
        return found

    def _lines(self) -> Sequence[Line]:
        own: list[Line] = [(0, line, None) for plan in self.plans.values() for line in plan.lines]
        return [*own, *super()._lines()]

    def _loop(self, depth: int, loop: Loop) -> None:
        head = loop.cycle.head
        plan = self.plans.get(head)
        if plan is None:
            super()._loop(depth, loop)
            return
        regs = self.printer.regs
        given = ", ".join([*plan.given, *(regs[r] for r in plan.inputs)])
        back = "".join(f", {regs[r]}" for r in plan.results)
        self._line(depth, "_on = True")
        self._line(depth, f"if n >= {plan.least * plan.cost} and {self._worth(plan)}:")
        call = f"_on, n{back} = {plan.name}({given})"
        self._line(depth + 1, call, (head + 1, 0, STOPPED))
        self._line(depth, "if _on:")
        super()._loop(depth + 1, loop)

    def _worth(self, plan: LoopPlan) -> str:
        """A test whether enough iterations are left."""
        c = plan.counted
        least = plan.least * abs(c.stride or 1)
        variable, end = self.printer.regs[c.var], self._plain_text(c.end)
        if c.stride is None:
            return f"not {-least} < {end} - {variable} < {least}"
        if c.stride > 0:
            return f"{end} - {variable} >= {least}"
        return f"{variable} - {end} >= {least}"

    def _plain_text(self, node: Expr) -> str:
        """A bound, which is fixed, as the ordinary code writes it."""
        lines, text = self.printer.condition(node)
        return "0" if lines else text
