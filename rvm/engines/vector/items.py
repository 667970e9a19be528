"""The items of a loop's body over lanes: computations, checks, and stores at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rvm.emit.numpy.ufuncs import UFUNCS
from rvm.engines.vector.access import Access
from rvm.engines.vector.body import Arm, Check, End, Item, Let
from rvm.engines.vector.elements import keys_of
from rvm.engines.vector.loops import Declined
from rvm.engines.vector.results import combine, make, ready
from rvm.engines.vector.slots import Slot, combiner
from rvm.expr import Expr
from rvm.ir.typed import type_of
from rvm.isa import implementation
from rvm.numbers import system
from rvm.types import Scalar, elem_of

if TYPE_CHECKING:
    from rvm.engines.vector.printer import LoopPrinter


def do(p: LoopPrinter, item: Item) -> None:
    """Print an item, unless it has been printed."""
    if item in p.done or item.arm is None:
        return
    uses = item.uses
    if isinstance(item, Let) and item.slot is not None:
        uses = (cast(Expr, item.by),) if p.dependences.is_apart(item.slot) else uses
        uses += () if item.slot.found is None else (item.slot.found.place,)
    ready(p, item.arm, *uses)
    p.enter(item.arm)
    match item:
        case Arm():
            p.select(item)
        case Let() if item.op:
            _update(p, item)
        case Let():
            make(p, item)
        case Check(_, (cond,), want) if p.known.differs(cond):
            p.check(cond, want)
        case Check(_, (cond,), want):
            p.lines.append(f"{'must' if want else 'must_not'}({p.fixed(cond)}, {p.wide})")
        case End():
            _end(p, item)
    p.done.add(item)


def _update(p: LoopPrinter, item: Let) -> None:
    """Print an update, in place if nothing else is done to the element."""
    slot, by, t = item.slot, cast(Expr, item.by), elem_of(type_of(item.value))
    if slot is not None and slot.is_running:
        combine(p, item, slot)
        return
    held = p.lanes(by)
    p.factor(item.op, t, held)
    if slot is not None and slot.found is not None and p.dependences.is_apart(slot):
        again = any(cast(Access, s.found).reg == slot.found.reg for s, *_ in p.sums)
        if again and slot.is_summed and not t.is_exact:
            raise Declined(f"{slot.label} is changed twice in an iteration")
        where = "" if p.sel or slot.is_summed else p.indices.view(slot.found)
        p.sums.append((slot, combiner({item.op}, t), where or keys_of(p, slot.found), held.text))
    elif slot is not None and (ufunc := _in_place(p, item, slot, t)):
        p.stores.append((p.indices.view(cast(Access, slot.found)), held.text, ufunc))
        p.in_place.add(slot)
    else:
        make(p, item)


def _in_place(p: LoopPrinter, item: Let, slot: Slot, t: Scalar) -> str:
    """The ufunc that changes an element in place, if nothing else is done to it."""
    ufunc = UFUNCS.get(implementation(item.op, (t, t)).numpy)
    if (
        ufunc is None
        or t.is_bool
        or item.arm is not p.trace.root
        or slot not in p.dependences.elements
        or slot.parts > 1
        or "" in slot.ops
        or item.reg in p.trace.asked
        or slot in p.dependences.delayed.values()
    ):
        return ""
    return ufunc if p.indices.view(cast(Access, slot.found)) else ""


def _end(p: LoopPrinter, item: End) -> None:
    """Check freed values, and count erased bits."""
    t = elem_of(type_of(item.held))
    if item.value is None:
        p.lines.append(f"erased(_ctx, {t.bits}, {p.vector(item.held)}, {p.wide})")
    elif p.known.number(item.value) != p.known.number(item.held):
        sizes = map(p.vector, item.sizes)
        how = ["returns=True"] * item.returns
        given = ", ".join([p.vector(item.held), p.lanes(item.value).text, p.wide, *sizes, *how])
        p.lines.append(f"residues(_ctx, {p.bind(system(t))}, {given})")
    else:
        return
    name = f"_e{len(p.erasing)}" if p.counting else "_e"
    if p.counting:
        p.lines.append(f"{name} = _ctx.taken()")
    p.erasing.append((item.pc, name))
