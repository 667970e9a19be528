"""Active traps: the definition for engines, evaluated on plain registers.

An engine that supports traps stops before every position where one is due. If it cannot tell, it
may stop where none is; then its caller executes that tick with the reference engine.
"""

from __future__ import annotations

import numpy as np

from rvm.engines.evaluate import evaluate
from rvm.engines.support import REFUSALS
from rvm.expr import Expr, places
from rvm.image.traps import Changed, Trap
from rvm.state import State


def due(state: State) -> list[Trap]:
    """The traps that are due at a state's position."""
    frame = state.frames[-1]
    traps = frame.code.traps.get(frame.pc)
    if not traps:
        return []
    return [t for t in traps if _holds(t, frame.regs)]


def trapped(state: State) -> bool:
    """Whether there is a trap at a state's position, due or not."""
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
    except REFUSALS:
        return True


def condition(guard: Expr, regs: list[object]) -> object:
    """The value of a condition; ValueError if it uses a register that is not live.

    A condition without a value counts as true, so that no stop is missed.
    """
    if any(regs[p.reg] is None for p in places(guard)):
        raise ValueError("it names a register that is not live here")
    with np.errstate(all="ignore"):
        return evaluate(guard, regs)
