"""What a loop's phases give to each other, and what is left of running values in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rvm.emit.numpy.ufuncs import UFUNC
from rvm.engines.vector import elements
from rvm.engines.vector.body import Part
from rvm.engines.vector.cells import neutral
from rvm.engines.vector.phases import Phase
from rvm.expr import Apply

if TYPE_CHECKING:
    from rvm.engines.vector.printer import LoopPrinter


def combine(p: LoopPrinter, part: Part) -> None:
    """Note what a running value is combined with."""
    cell, value, dtype = part.cell, part.value, p.dtype(part.cell.reg)
    differs = p.known.differs(value)
    if cell.is_reduced and cell.parts == 1 and p.is_new(value):
        held = p.apply(cast(Apply, value), f"_p{len(p.parts)}")
        p.alone.add(cell)
    else:
        held = p.lanes(value)
    if cell.ops <= {"*", "/"}:
        p.factor("*", cell.type, held)
    p.kept.append(held)
    text = held.text
    if part.negated:
        text = p.named(f"{UFUNC}negative(asarray({text}, {dtype}))").text
    if p.sel:
        nothing = neutral(cell.combiner, cell.type)
        full = p.named(f"vector({nothing}, {dtype}, _k)").text
        p.lines.append(f"{full}[{p.sel}] = {text}")
        text, differs = full, True
        p.alone.add(cell)
    turned = "[::-1]" if p.mirrored and differs else ""
    p.parts.setdefault(cell, []).append(text + turned)


def give(p: LoopPrinter, phase: Phase) -> None:
    """Give registers what a phase has made."""
    cell = phase.cell
    if cell is not None:
        first, parts = p.cell_name(cell), p.parts[cell]
        every = _run_through(p, cell.combiner, first, parts, cell.reg)
        for k, reg in cell.reads.items():
            _hand(p, reg, f"{every}[{k or ''}:{'' if k else -1}:{len(parts)}]")
        p.finals[cell] = p.named(f"{every}[-1].item()").text
        return
    handed = next((c for c in p.body.cells.values() if c.reg == phase.given), None)
    if handed is not None:
        first = p.cell_name(handed)
    else:
        keys = {reg: key for key, reg in p.body.delayed.items()}
        found, _ = p.body.survey.delayed[keys[phase.given]]
        first = f"{p.indices.at(found)}.item()"
    after = p.text(phase.after)
    if phase.running:
        every = _run_through(p, "np.add", first, [after], phase.after)
        _hand(p, phase.given, f"{every}[:-1]")
        p.begin_phase()
        one, two = p.whole(phase.after), p.whole(phase.given)
        number = p.known.number(Apply("+", (one, two), one.type))
        p.known.remember(number, p.named(f"{every}[1:]"))
        return
    _hand(p, phase.given, f"shifted({first}, {after}, _k, {p.dtype(phase.given)})")
    if handed is not None:
        p.finals[handed] = _last(p, phase.after)


def _hand(p: LoopPrinter, reg: int, text: str) -> None:
    """Give a register what iterations find."""
    p.given[reg] = p.known.intern(("given", reg))
    p.known.remember(p.given[reg], p.named(text))


def _run_through(p: LoopPrinter, f: str, first: str, parts: list[str], reg: int) -> str:
    return p.named(f"running({f}, {first}, ({', '.join(parts)}, ), _k, {p.dtype(reg)})").text


def _last(p: LoopPrinter, reg: int) -> str:
    """What a register holds in the last iteration."""
    text = p.text(reg)
    return p.named(f"{text}[-1].item()").text if reg in p.varying else text


def finish(p: LoopPrinter) -> None:
    """The last values of cells, and what is stored."""
    for cell in p.body.cells.values():
        if cell in p.finals:
            continue
        if not cell.is_running:
            p.finals[cell] = _last(p, cell.reg)
            continue
        first, parts, f = p.cell_name(cell), p.parts[cell], cell.combiner
        how = "total" if cell.type.is_exact else "final"
        text = f"{how}({f}, {first}, ({', '.join(parts)}, ), _k, {p.dtype(cell.reg)})"
        if how == "final" and len(parts) == 1 and cell in p.alone:
            text = f"final_of({f}, {first}, {parts[0]})"
        p.finals[cell] = p.named(text).text
    for element in p.elements.values():
        if element.home is p.body.root:
            elements.store(p, element.found, p.text(element.reg))
    if p.erasing and not p.counting:
        p.lines.append("_e = _ctx.taken()")
