"""Values passed between iterations, and the final values of running ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rvm.emit.numpy.ufuncs import UFUNC
from rvm.engines.vector import elements
from rvm.engines.vector.access import Access
from rvm.engines.vector.body import Arm, Let, Merge, regs_in
from rvm.engines.vector.loops import Declined
from rvm.engines.vector.slots import Slot, neutral
from rvm.expr import Apply, Expr, Place
from rvm.ir.node import Var
from rvm.isa import implementation
from rvm.types import elem_of

if TYPE_CHECKING:
    from rvm.engines.vector.printer import LoopPrinter


def combine(p: LoopPrinter, item: Let, slot: Slot) -> None:
    """Record the value with which a running value is combined."""
    value, dtype = cast(Expr, item.by), p.dtype(slot.entry)
    differs = p.known.differs(value)
    if slot.is_reduced and slot.parts == 1 and p.is_new(value):
        held = p.apply(cast(Apply, value))
        p.alone.add(slot)
    else:
        held = p.lanes(value)
    p.factor(item.op, slot.type, held)
    text = held.text
    if item.op == "-" and slot.combiner == "np.add":
        text = p.named(f"{UFUNC}negative(asarray({text}, {dtype}))").text
    if p.sel:
        nothing = neutral(slot.combiner, slot.type)
        full = p.named(f"vector({nothing}, {dtype}, _k)").text
        p.lines.append(f"{full}[{p.sel}] = {text}")
        text, differs = full, True
        p.alone.add(slot)
    turned = "[::-1]" if p.mirrored and differs else ""
    p.parts.setdefault(slot, []).append(text + turned)


def give(p: LoopPrinter, slot: Slot) -> None:
    """Find the values that iterations see in a slot.

    Declined if an iteration continues from the previous one's result in the same slot.
    """
    if slot in p.under:
        names = sorted({s.label for s in p.under[p.under.index(slot) :]})
        raise Declined(
            f"an iteration goes on from {' and '.join(names)} as the one before has left it"
        )
    if slot in p.given:
        return
    p.given.add(slot)
    p.under.append(slot)
    if slot.is_running:
        _scan(p, slot)
    else:
        _hand_on(p, slot)
    p.under.pop()


def _scan(p: LoopPrinter, slot: Slot) -> None:
    """Run through the values of a cell."""
    from rvm.engines.vector.items import do

    for item in p.trace.items:
        if isinstance(item, Let) and item.slot is slot:
            do(p, item)
    p.enter(p.trace.root)
    parts = p.parts[slot]
    every = _run_through(p, slot.combiner, p.cell_name(slot), parts, slot.entry)
    behind = {
        k: reg for reg, (s, k) in p.trace.behind.items() if s is slot and reg in p.trace.asked
    }
    for k, reg in behind.items():
        _hand(p, reg, f"{every}[{k or ''}:{'' if k else -1}:{len(parts)}]")
    p.finals[slot] = p.named(f"{every}[-1].item()").text


def _hand_on(p: LoopPrinter, slot: Slot) -> None:
    """Find the value that the previous iteration left in a cell, or for an element, in its slot."""
    changed = p.dependences.delayed.get(slot, slot)
    first = (
        p.cell_name(slot) if slot.is_cell else f"{p.indices.at(cast(Access, slot.found))}.item()"
    )
    reg = cast(int, p.trace.env[changed.key])
    made = p.trace.made[reg]
    p.enter(p.trace.root)
    if changed is not slot and isinstance(made, Let) and _is_sum(p, made, changed, slot):
        begun = p.text(p.trace.place(changed.entry))
        every = _run_through(p, "np.add", first, [begun], changed.entry)
        _hand(p, slot.entry, f"{every}[:-1]")
        p.known.remember(p.known.number(made.value), p.named(f"{every}[1:]"))
        return
    left = p.trace.place(reg)
    ready(p, p.trace.root, left)
    p.enter(p.trace.root)
    _hand(p, slot.entry, f"shifted({first}, {p.text(left)}, _k, {p.dtype(slot.entry)})")


def _is_sum(p: LoopPrinter, made: Let, changed: Slot, given: Slot) -> bool:
    """Whether the value is a sum in an element to which nothing else is done."""
    one, two, t = p.trace.place(changed.entry), p.trace.place(given.entry), given.type
    if made.value != Apply("+", (one, two), t) or made.arm is not p.trace.root:
        return False
    return implementation("+", (t, t)).numpy == "({0} + {1})"


def _hand(p: LoopPrinter, reg: int, text: str) -> None:
    """Assign a register the values that iterations see."""
    p.known.remember(p.known.number(p.trace.place(reg)), p.named(text))


def _run_through(p: LoopPrinter, f: str, first: str, parts: list[str], reg: int) -> str:
    return p.named(f"running({f}, {first}, ({', '.join(parts)}, ), _k, {p.dtype(reg)})").text


def finish(p: LoopPrinter) -> None:
    """The last values of cells, and what is stored."""
    for slot in p.dependences.cells:
        if slot in p.finals:
            continue
        if not slot.is_running:
            left = _leave(p, slot)
            text = p.text(left)
            differs = p.known.differs(left)
            p.finals[slot] = p.named(f"{text}[-1].item()").text if differs else text
            continue
        p.enter(p.trace.root)
        first, parts, f = p.cell_name(slot), p.parts[slot], slot.combiner
        how = "total" if slot.type.is_exact else "final"
        text = f"{how}({f}, {first}, ({', '.join(parts)}, ), _k, {p.dtype(slot.entry)})"
        if how == "final" and len(parts) == 1 and slot in p.alone:
            text = f"final_of({f}, {first}, {parts[0]})"
        p.finals[slot] = p.named(text).text
    for slot in p.dependences.elements:
        if slot not in p.in_place:
            elements.store(p, cast(Access, slot.found), p.text(_leave(p, slot)))
    if p.erasing and not p.counting:
        p.lines.append("_e = _ctx.taken()")


def _leave(p: LoopPrinter, slot: Slot) -> Place:
    """Enter the arm that stores a slot; return the value left in it."""
    arm, reg = p.dependences.left(slot)
    left = p.trace.place(reg)
    ready(p, arm, left)
    p.enter(arm)
    return left


def ready(p: LoopPrinter, arm: Arm, *nodes: Expr) -> None:
    """Make all dependences of expressions and an arm (M.

    Weiser, "Program slicing", 1981), in order; before this, find the values that iterations see in
    slots.
    """
    todo, need, given = [*nodes, *arm.conditions], set[int](), dict[Slot, None]()
    while todo:
        for reg in regs_in(todo.pop()):
            made = p.trace.made.get(reg)
            if reg in p.handed:
                given[p.handed[reg]] = None
            elif made is not None and reg not in need and reg not in p.made:
                need.add(reg)
                todo += (*made.uses, *made.arm.conditions)
    for slot in given:
        give(p, slot)
    for reg in sorted(need):
        make(p, p.trace.made[reg])


def make(p: LoopPrinter, made: Let | Merge) -> None:
    """Compute a register's value, in its arm."""
    p.enter(made.arm)
    if made.reg in p.made:
        return
    if made.reg in p.varying:
        p.lanes(p.trace.place(made.reg))
    elif isinstance(made, Let):
        kind = elem_of(p.function.registers[made.reg].type).name
        p.builder.scalars[made.reg] = (Var(kind, p.fixed(made.value)),)
    p.made.add(made.reg)
