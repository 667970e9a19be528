"""Calls over lanes in generated form: filling a callee's registers, and taking them back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from rvm.emit.numpy.places import view_of
from rvm.emit.numpy.printer import LanePrinter
from rvm.emit.numpy.reuse import reused
from rvm.emit.python.calls import entered
from rvm.engines.lanes.arrays import form_of, wide
from rvm.engines.lanes.plan import LanePlan, Op
from rvm.engines.lanes.segment import opening
from rvm.engines.lanes.support import LANE_NAMES, Context, by_lane, defined, must
from rvm.engines.lanes.uniform import place_varies, varies
from rvm.engines.support import Trouble, defined_in
from rvm.expr import Expr, Place, places
from rvm.numbers import NumberSystem, system
from rvm.numbers.base import differing
from rvm.numbers.rounding import passed_drift
from rvm.numbers.support import NAMES
from rvm.stmt import Call
from rvm.types import Array, Scalar, Stack, elem_of


def every_lane(x: Any, rank: int, dtype: np.dtype[Any], w: int) -> Any:
    """A new array that holds x in every lane."""
    return np.array(wide(x, rank, w), dtype)


def returned(
    ctx: Context,
    sys: NumberSystem,
    held: Any,
    expected: Any,
    is_lanes: bool,
    restored: bool,
    w: int,
) -> None:
    """Failing where a value passed to a call does not come back; residues are counted."""
    off = differing(held, expected, bits=ctx.tolerance == 0)
    if not np.any(off):
        return
    if not is_lanes:
        drift = passed_drift(sys.type, held, expected, ctx.tolerance, restored)
        if not drift <= 1:
            raise Trouble
        ctx.erase(np.full(w, sys.type.bits))
        ctx.note(np.full(w, drift))
        return
    held, expected = np.broadcast_arrays(held, expected)
    rows = held.reshape(-1, w).T, expected.reshape(-1, w).T
    drifts = np.array(
        [passed_drift(sys.type, *pair, ctx.tolerance, restored) for pair in zip(*rows, strict=True)]
    )
    must(drifts <= 1, w)
    ctx.note(drifts)
    ctx.erase(sys.type.bits * ~by_lane(~off, w))


CALL_NAMES = defined_in(globals())


class CallSite:
    """A call: `enter(regs, W)` gives the callee's registers, `leave(regs, inner, W, context)`
    takes them back; both raise before they change anything."""

    def __init__(self, plan: LanePlan, op: Op) -> None:
        call = op.stmt
        assert isinstance(call, Call)
        self.plan = plan
        self.op = op
        self.call = call
        self.callee = plan.callee(op)
        self.inout = plan.code.image.inout[call.callee]
        touched = set()
        for arg in call.args:
            touched |= {p.reg for p in places(arg)}
        for a, b, _ in op.clashes:
            touched |= {p.reg for p in (*places(a), *places(b))}
        self.varying = tuple(sorted(touched & plan.varying))
        self.uniform = tuple(sorted(touched - plan.varying))
        self.changed = frozenset(
            a.reg for k, a in enumerate(call.args) if k in self.inout and isinstance(a, Place)
        )
        self.own = frozenset(
            k
            for k, a in enumerate(call.args)
            if k in self.callee.varying and (not isinstance(a, Place) or isinstance(a.type, Scalar))
        )
        """Parameters whose values are the callee's own, not views of the caller's."""
        self.enter: Callable[[list[Any], int], list[Any]] = self._compiled("enter", self._entering)
        self.leave: Callable[..., None] = self._compiled("leave", self._leaving)

    # ------------------------------------------------------------ text

    def _compiled(self, name: str, body: Callable[[LanePrinter], list[str]]) -> Any:
        names = {**NAMES, **LANE_NAMES, **CALL_NAMES, "inner": 0}
        printer = LanePrinter(self.plan.code.function, names, self.plan.varying, form_of)
        printer.begin()
        lines = reused(body(printer), printer.results)
        more = "_W" if name == "enter" else "inner, _W, _ctx"
        used = (*self.varying, *self.uniform)
        out = opening(printer, f"def {name}(regs, {more}):", used)
        text = "\n".join([*out, *("    " + line for line in lines), ""])
        space = {**CALL_NAMES, **printer.scalars.constants}
        return defined(f"{name} {self.call.callee}", text, space)[name]

    def _entering(self, printer: LanePrinter) -> list[str]:
        printer.apart(self.op.clashes)
        values = [self._argument(printer, k, a) for k, a in enumerate(self.call.args)]
        return [*printer.taken(), *entered(self.callee.code.function, values)]

    def _argument(self, printer: LanePrinter, k: int, arg: Expr) -> str:
        """The argument for parameter k."""
        t = self.callee.code.function.registers[k].type
        name = printer.regs
        if isinstance(t, Stack):
            assert isinstance(arg, Place)
            return name[arg.reg]
        if k not in self.callee.varying:
            return printer.value(arg)
        dtype = printer.bind(system(elem_of(t)).dtype)
        varying = self.plan.varying
        by_view = isinstance(t, Array) and isinstance(arg, Place) and arg.reg in varying
        if by_view and (k in self.inout or not place_varies(cast(Place, arg), varying)):
            return printer.named(view_of(printer, cast(Place, arg))).text
        held = printer.lanes(arg).text
        if isinstance(t, Array):
            if isinstance(arg, Place) and varies(arg, varying):
                return held
            return printer.named(f"every_lane({held}, {t.rank}, {dtype}, _W)").text
        if k in self.inout or not varies(arg, varying) or not isinstance(arg, Place):
            return printer.named(f"vector({held}, {dtype}, _W)").text
        return held

    def _leaving(self, printer: LanePrinter) -> list[str]:
        stores: list[tuple[int, Place]] = []
        for k in sorted(self.inout):
            arg = self.call.args[k]
            if isinstance(arg, Place):
                if isinstance(arg.type, Scalar):
                    stores.append((k, arg))
                continue
            self._compare(printer, k, arg)
        late = []
        for k, arg in stores:
            if k not in self.callee.varying:
                late.append(printer.stored(arg, f"inner[{k}]"))
                late.append(f"regs[{arg.reg}] = {printer.regs[arg.reg]}")
            elif arg.path:
                late.append(printer.stored(arg, f"inner[{k}]"))
            else:
                late.append(f"regs[{arg.reg}] = inner[{k}]")
        return [*printer.taken(), *late, "return None"]

    def _compare(self, printer: LanePrinter, k: int, arg: Expr) -> None:
        assert arg.type is not None
        sys = printer.bind(system(elem_of(arg.type)))
        restored = k in self.plan.code.image.restored(self.call.callee)
        if k in self.callee.varying:
            held = printer.lanes(arg).text
            printer.line(f"returned(_ctx, {sys}, inner[{k}], {held}, True, {restored}, _W)")
        else:
            text = printer.value(arg)
            printer.line(f"returned(_ctx, {sys}, inner[{k}], {text}, False, {restored}, _W)")
