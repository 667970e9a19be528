"""Choices in a loop's body: each arm is done by the lanes that take it, and then merged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rvm.emit.numpy.ufuncs import UFUNC
from rvm.engines.vector import elements
from rvm.engines.vector.body import Arm, Fork
from rvm.engines.vector.phases import written
from rvm.expr import Apply

if TYPE_CHECKING:
    from rvm.engines.vector.printer import LoopPrinter

FRAME = ("flat", "guard", "inner", "sel", "arm", "width", "frames")
"""What an arm has of its own, besides what is known in it."""
Frame = tuple[dict[str, Any], dict[str, Any]]
"""What an arm has of its own: of the printer's, and of what is known."""


def fork(p: LoopPrinter, item: Fork) -> None:
    """Do both arms of a choice."""
    cond, yes, no = item.cond, item.yes, item.no
    while isinstance(cond, Apply) and cond.fn == "not":
        cond, yes, no = cond.args[0], no, yes
    held = p.lanes(cond)
    mask = p.named(f"spread({held.text}, _W)").text
    sides = []
    for arm, text in ((yes, mask), (no, f"{UFUNC}logical_not({mask})")):
        if arm.items:
            sides.append((arm, p.named(f"np.flatnonzero({text})").text))
        elif arm.ticks or arm.passed:
            p.widths[arm.origin or arm] = p.named(f"np.count_nonzero({text})").text
    p.known.spend(held)
    ended = {reg for arm, chosen in sides for reg in _done(p, arm, chosen)}
    for reg in ended:
        p.drop(reg)


def _done(p: LoopPrinter, arm: Arm, chosen: str) -> list[int]:
    """Do an arm in the lanes `chosen`, and merge what it leaves; the registers that end."""
    known, frame = p.known, _frame(p)
    width = f"_w{len(p.lines)}"
    p.lines.append(f"{width} = _W = len({chosen})")
    p.frames = [*p.frames, frame]
    known.have, known.at_home, known.register = {}, {}, dict(known.register)
    p.inner = chosen
    p.sel = p.named(f"{p.sel}[{chosen}]").text if p.sel else chosen
    p.arm, p.width = arm.origin or arm, width
    p.widths[p.arm] = width
    p.items(arm)
    left, ended = {}, []
    for reg in sorted(written(*arm.items)):
        element = p.elements.get(reg)
        if element is not None and p.arm in element.home.outer:
            if element.home is p.arm:
                elements.store(p, element.found, p.text(reg))
        elif reg in known.register:
            left[reg] = p.text(reg)
        else:
            ended.append(reg)
    _restore(p, frame)
    p.lines.append(f"_W = {p.width}")
    for reg, text in left.items():
        is_known = reg in known.register or reg in p.elements
        old = p.text(reg) if is_known else "0"
        merged = p.named(f"vector({old}, {p.dtype(reg)}, _W)")
        p.lines.append(f"{merged.text}[{chosen}] = {text}")
        number = known.intern(("merged", merged.text))
        known.remember(number, merged)
        p.let(reg, number)
    return ended


@contextmanager
def outside(p: LoopPrinter) -> Iterator[None]:
    """Within it, lines are for the lanes of the arm around."""
    inner = _frame(p)
    _restore(p, p.frames[-1])
    p.lines.append(f"_W = {p.width}")
    begun = len(p.lines)
    yield
    _restore(p, inner)
    if len(p.lines) == begun:
        p.lines.pop()
    else:
        p.lines.append(f"_W = {p.width}")


def _frame(p: LoopPrinter) -> Frame:
    return {name: vars(p)[name] for name in FRAME}, p.known.frame()


def _restore(p: LoopPrinter, frame: Frame) -> None:
    own, known = frame
    vars(p).update(own)
    p.known.restore(known)
