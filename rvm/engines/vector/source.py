"""Generated source in whose loops vectorised pieces stand before the ordinary code."""

from __future__ import annotations

from typing import ClassVar

from rvm.engines.blocks import Loop
from rvm.engines.source import Source
from rvm.engines.vector.loops import Declined
from rvm.engines.vector.plan import LoopPlan
from rvm.engines.vector.support import VECTOR_SUPPORT
from rvm.expr import Expr
from rvm.image import Code


class VectorSource(Source):
    """The generated source of one function in one direction.

    `plans` and `declined` hold the loops by their first instruction: what is vectorised, and why
    the others are not.
    """

    logs = False
    support: ClassVar[dict[str, object]] = VECTOR_SUPPORT

    def __init__(self, code: Code, strict: int) -> None:
        super().__init__(code, strict)
        self.plans: dict[int, LoopPlan] = {}
        self.declined: dict[int, str] = {}
        for pc, piece in self.shape.structure.items():
            if not isinstance(piece, Loop):
                continue
            try:
                if code.traps:
                    raise Declined("it is being debugged")
                self._refuse(piece)
                self.plans[pc] = self._plan(piece)
            except Declined as why:
                self.declined[pc] = str(why)

    def _plan(self, loop: Loop) -> LoopPlan:
        """What is made of a loop; Declined if it cannot be vectorised."""
        return LoopPlan(self.code, self.shape, loop, self.printer.constants)

    def _refuse(self, loop: Loop) -> None:
        """Declined for a loop that is not printed as one piece."""
        for pc in range(loop.head + 1, loop.back):
            instr = self.code.instrs[pc]
            if pc in self.apart:
                what = f"calls `{instr.symbol}`" if "call" in instr.op else f"holds `{instr.op}`"
                raise Declined(f"it {what}")
            if isinstance(self.shape.structure.get(pc), Loop):
                raise Declined("it holds another loop")
        if loop.head not in self.shape.whole:
            raise Declined("its body has jumps of its own")

    def _print(self) -> None:
        for plan in self.plans.values():
            for line in plan.lines:
                self._line(0, line)
        super()._print()

    def _loop(self, depth: int, loop: Loop) -> None:
        plan = self.plans.get(loop.head)
        if plan is None:
            super()._loop(depth, loop)
            return
        regs = self.printer.regs
        given = ", ".join([*plan.given, *(regs[r] for r in plan.inputs)])
        back = "".join(f", {regs[r]}" for r in plan.results)
        self._uncounted = 0
        self._line(depth, "_on = True")
        self._line(depth, f"if n >= {plan.least * plan.cost} and {self._worth(plan)}:")
        call = f"_on, n{back} = {plan.name}({given})"
        self._line(depth + 1, call, loop.head + 1)
        self._line(depth, "if _on:")
        super()._loop(depth + 1, loop)

    def _worth(self, plan: LoopPlan) -> str:
        """Whether there are iterations enough left."""
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
