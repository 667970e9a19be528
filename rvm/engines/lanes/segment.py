"""A stretch of straight code compiled to one Python function over the registers of W lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rvm.emit.numpy.printer import LanePrinter
from rvm.emit.numpy.reuse import reused
from rvm.engines.lanes.arrays import form_of
from rvm.engines.lanes.plan import LanePlan, Op
from rvm.engines.lanes.support import LANE_NAMES, defined
from rvm.expr import Expr
from rvm.ir.typed import Unprintable
from rvm.numbers.support import NAMES
from rvm.stmt import Branch, When

Runner = Callable[..., tuple[int, int, Any]]
"""(registers, W, ticks left, context, state) to (position, ticks, what): `what` is None, the mask
of the lanes that take the branch at the position, or the exception that was raised there."""


class Segment:
    """Operations from a position on, as far as they are straight (or `stop`).

    A branch back to the beginning is a loop of its own, as long as all lanes take it.  The
    operation at `end` is for the engine if it is not a branch.  With `landing` it is nothing but
    the check of the come-from that the branch at `start` lands on.
    """

    def __init__(
        self, plan: LanePlan, start: int, stop: int | None = None, landing: bool = False
    ) -> None:
        self.plan = plan
        self.start = start
        self.landing = landing
        self.end, self.last = self._extent(stop)
        lines, numbers, printer = self._printed()
        touched = frozenset().union(*plan.touched[start : self.last])
        self.varying = tuple(sorted(touched & plan.varying))
        self.uniform = tuple(sorted(touched - plan.varying))
        self.changed = touched & printer.known.stored_in
        self.text = self._text(reused(lines, printer.results), numbers, printer)
        self.run: Runner = self._compiled(printer)

    def _extent(self, stop: int | None) -> tuple[int, int]:
        """The operation that ends the segment, and the position after the operations it covers."""
        ops, q = self.plan.ops, self.start
        while q < len(ops) and q != stop:
            if q > self.start and q in self.plan.leaders:
                # Other lanes may wait here.
                return q, q
            if ops[q].kind in ("branch", "skip"):
                return q, q + 1
            if ops[q].kind == "call":
                return q, q
            q += 1
        return q, q

    # ------------------------------------------------------------ text

    def _printed(self) -> tuple[list[str], dict[int, tuple[int, int]], LanePrinter]:
        """Lines, and for each the operation it belongs to and the ticks done before that."""
        plan = self.plan
        names = {**NAMES, **LANE_NAMES}
        printer = LanePrinter(plan.code.function, names, plan.varying, form_of)
        lines: list[str] = []
        numbers: dict[int, tuple[int, int]] = {}
        ticks = 0

        def add(new: list[str], q: int, depth: int = 0) -> None:
            for line in new:
                numbers[len(lines)] = (q, ticks)
                lines.append("    " * depth + line)

        if self.landing:
            printer.begin()
            printer.check(plan.landing(plan.ops[self.start]), True)
            add([*printer.taken(), f"_at = ({self.start}, None)", "break"], self.start)
            return lines, numbers, printer
        for q in range(self.start, self.last):
            op = plan.ops[q]
            if op.kind in ("branch", "skip"):
                self._jump(op, q, ticks, printer, add)
                return lines, numbers, printer
            if op.kind == "same":
                try:
                    add(printer.uniform(op.stmts, op.clashes), q)
                except Unprintable:
                    add(["trouble()"], q)
                    printer.forget(op.stmts)
            elif op.kind == "lane":
                add(printer.statement(op.stmt, op.clashes), q)
            ticks += op.ticks
        add([f"_n += {ticks}", f"_at = ({self.end}, None)", "break"], self.end)
        return lines, numbers, printer

    def _jump(
        self, op: Op, q: int, ticks: int, printer: LanePrinter, add: Callable[..., None]
    ) -> None:
        """The branch at the end: taken by all, by none, or a mask for the engine."""
        branch = op.stmt
        assert isinstance(branch, (Branch, When))
        cond: Expr = branch.cond
        taken = self.plan.behind(op) if isinstance(branch, Branch) else q + 1
        other = q + 1 if isinstance(branch, Branch) else op.target
        add(printer.begin(), q)
        printer.apart(op.clashes)
        loop = taken == self.start
        done = ticks + op.ticks
        if printer.known.differs(cond):
            mask = printer.mask(cond)
            add(printer.taken(), q)
            add(["_s = _m.tobytes()", "if 0 not in _s:"], q)
        else:
            text = printer.value(cond)
            mask = ""
            add(printer.taken(), q)
            add([f"if {text}:"], q)
        checks = ["pass"]
        if isinstance(branch, Branch):
            expected = self.plan.expected(op)
            if expected is not None:
                printer.check(expected, True)
                checks += printer.taken()
        add(checks, q, 1)
        again = ["if _n < _room: continue"] if loop else []
        add([f"_n += {done}", *again, f"_at = ({taken}, None)", "break"], q, 1)
        if mask:
            add([f"if 1 in _s: _n += {ticks}; _at = ({q}, _m); break"], q)
        add([f"_n += {done}", f"_at = ({other}, None)", "break"], q)

    def _text(
        self, lines: list[str], numbers: dict[int, tuple[int, int]], printer: LanePrinter
    ) -> str:
        names, used = printer.regs, sorted({*self.varying, *self.uniform})
        out = opening(printer, "def run(regs, _W, _room, _ctx, state):", used)
        out += ["    _n = 0", "    try:", "        while True:"]
        self.lines_of = {}
        for k, line in enumerate(lines):
            out.append("            " + line)
            self.lines_of[len(out)] = numbers[k]
        out += [
            "    except REFUSALS as _error:",
            "        if _error.__traceback__.tb_lineno not in LINES: raise",
            "        _q, _done = LINES[_error.__traceback__.tb_lineno]",
            "        _n += _done",
            "        _at = (_q, _error)",
        ]
        out += [f"    regs[{k}] = {names[k]}" for k in used if k in self.changed]
        out.append("    return _at[0], _n, _at[1]")
        return "\n".join(out) + "\n"

    def _compiled(self, printer: LanePrinter) -> Runner:
        code = self.plan.code
        kind = f"{'~' * code.undo}{code.name} from {self.start}"
        run: Runner = defined(
            kind, self.text, {**printer.scalars.constants, "LINES": self.lines_of}
        )["run"]
        return run


def opening(printer: LanePrinter, head: str, used: Sequence[int]) -> list[str]:
    """The first lines of a function over lanes, which make variables of the registers `used`."""
    names = printer.regs
    out = [head, *(f"    {names[k]} = regs[{k}]" for k in used)]
    if printer.builder.asks_exactly:
        out.append("    exactly = _ctx.tolerance == 0")
    for name in (names[k] for k in sorted(printer.scalars.elements) if k in used):
        out.append(f"    {name}_m = None if {name} is None else memoryview({name})")
    return out
