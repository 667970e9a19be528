"""Which traps are due: what engines are held to, asked of registers as they are.

An engine that traps stops before every position where one is due.  It may stop where none is,
if it cannot tell; then whoever drives it executes that tick with the reference engine.
"""

from __future__ import annotations

import numpy as np

from rvm.engines.evaluate import evaluate
from rvm.expr import Expr, places
from rvm.image.traps import Changed, Trap
from rvm.state import State


def due(state: State) -> list[Trap]:
    """The traps that are due where the state stands."""
    frame = state.frames[-1]
    traps = frame.code.traps.get(frame.pc)
    if not traps:
        return []
    return [t for t in traps if _holds(t, frame.regs)]


def trapped(state: State) -> bool:
    """Whether there is a trap where the state stands, due or not."""
    frame = state.frames[-1]
    return frame.pc in frame.code.traps


def _holds(trap: Trap, regs: list[object]) -> bool:
    guard = trap.guard
    if guard is None:
        return True
    if isinstance(guard, Changed):
        return guard.holds(regs)
    try:
        return bool(condition(guard, regs))
    except Exception:
        return True


def condition(guard: Expr, regs: list[object]) -> object:
    """The value of a condition; ValueError if it asks for a register that is not live.

    A condition without a value counts as one that holds, so that nobody misses a stop.
    """
    if any(regs[p.reg] is None for p in places(guard)):
        raise ValueError("it names what is not live here")
    with np.errstate(all="ignore"):
        return evaluate(guard, regs)
