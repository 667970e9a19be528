"""A loop's statements over lanes: registers are given values, and changes of arrays are noted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rvm.emit.numpy.ufuncs import UFUNCS
from rvm.engines.vector.arms import fork
from rvm.engines.vector.body import Arm, Check, Do, Element, Fork, Part, Sum
from rvm.engines.vector.elements import keys_of
from rvm.engines.vector.phases import regs_in
from rvm.engines.vector.results import combine
from rvm.expr import Apply, Const, Expr, Place
from rvm.ir.typed import type_of
from rvm.isa import implementation
from rvm.numbers import system
from rvm.stmt import Alloc, Drop, Exchange, Free, Fresh, Map, Stmt, Update
from rvm.types import elem_of

if TYPE_CHECKING:
    from rvm.engines.vector.printer import LoopPrinter


def do_items(p: LoopPrinter, arm: Arm) -> None:
    """Do an arm's items."""
    for item in arm.items:
        match item:
            case Do(pc, stmt):
                _do(p, pc, stmt)
            case Check(cond, want):
                p.check(cond, want)
            case Part():
                combine(p, item)
            case Sum(found, _, value):
                where = "" if p.sel or item.is_scattered else p.indices.view(found)
                p.sums.append((item, where or keys_of(p, found), p.keep(value)))
            case Fork():
                fork(p, item)
        p.end()


def _do(p: LoopPrinter, pc: int, stmt: Stmt) -> None:
    """Do a statement on registers, of the instruction at `pc`."""
    match stmt:
        case Update(dst, op, value):
            _change(p, stmt, dst, op, value)
        case Exchange(a, b):
            p.assign((a.reg, b), (b.reg, a))
        case Map(dsts, values):
            p.assign(*((d.reg, v) for d, v in zip(dsts, values, strict=True)))
        case Alloc(reg, value) if value is not None:
            p.assign((reg.reg, value))
        case Fresh(reg):
            t = elem_of(type_of(reg))
            p.assign((reg.reg, Const(system(t).zero, t)))
        case Free(reg, value):
            assert value is not None
            if p.known.number(value) != p.known.number(reg):
                sys = p.bind(system(elem_of(type_of(reg))))
                expected = p.lanes(value)
                sizes = [p.vector(size.reg) for size in stmt.judged or ()]
                given = ", ".join([p.vector(reg.reg), expected.text, "_W", *sizes])
                p.lines.append(f"residues(_ctx, {sys}, {given})")
                p.known.spend(expected)
                _erased(p, pc)
            for place in (reg, *(stmt.held or ())):
                p.drop(place.reg)
        case Drop(reg):
            bits = elem_of(type_of(reg)).bits
            p.lines.append(f"erased(_ctx, {bits}, {p.vector(reg.reg)}, _W)")
            _erased(p, pc)
            for place in (reg, *(stmt.held or ())):
                p.drop(place.reg)


def _erased(p: LoopPrinter, pc: int) -> None:
    """Note that an instruction may have erased bits."""
    name = f"_e{len(p.erasing)}" if p.counting else "_e"
    if p.counting:
        p.lines.append(f"{name} = _ctx.taken()")
    p.erasing.append((pc, name))


def _change(p: LoopPrinter, stmt: Update, dst: Place, op: str, value: Expr) -> None:
    """Do an update, where the element lies if nothing else is done to that."""
    t, element = elem_of(type_of(dst)), p.elements.get(dst.reg)
    held = p.lanes(value)
    p.factor(op, t, held)
    if element is not None and (ufunc := _in_place(p, element, stmt)):
        p.kept.append(held)
        p.stores.append((p.indices.view(element.found), held.text, ufunc))
        p.elements.pop(dst.reg)
        return
    p.assign((dst.reg, Apply(op, (dst, value), t)))
    p.known.spend(held)


def _in_place(p: LoopPrinter, element: Element, stmt: Update) -> str:
    """The ufunc that changes an element where it lies, if that is all that is done to it."""
    t = elem_of(type_of(stmt.dst))
    ufunc = UFUNCS.get(implementation(stmt.op, (t, t)).numpy)
    found, delayed = element.found, p.body.survey.delayed.values()
    if (
        ufunc is None
        or element.uses > 1
        or p.sel
        or t.is_bool
        or found.reg in regs_in(stmt.value)
        or any(changed.key == found.key for _, changed in delayed)
    ):
        return ""
    return ufunc if p.indices.view(found) else ""
