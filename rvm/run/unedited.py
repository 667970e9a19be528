"""Residues without what was changed from outside.

If values are changed during a run, what is proved of the ancillas that are live then does not hold
any more: the change may have put them off, or something that they are cleared by.  But they may be
off by the rounding of before, which nothing after the change moves.  So the state of before is run
on to where the same ancilla is freed: what it is off by there, the change did not do.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Protocol

import numpy as np

from rvm.engines.perturbed import residue_at
from rvm.engines.trapping import due
from rvm.faults import RvmError
from rvm.image import Code
from rvm.image.traps import Trap, Traps
from rvm.numbers.rounding import MOST_TICKS
from rvm.probes.armed import Armory, Bindings, arm, plain_code
from rvm.state import State
from rvm.stmt import Free, Stmt


class _Machine(Protocol):
    state: State

    def go(self, ticks: int) -> int: ...
    def tick(self) -> int: ...


def before(state: State, machine_on: Callable[[State], _Machine]) -> Any:
    """By how much the ancilla at the free where a state stopped would be off without the last
    change from outside; None if that is not known, or it would be refused.

    `machine_on` makes a machine on a copy of a state.
    """
    free, depth = state.top.code.stmts(state.top.pc)[0], len(state.frames) - 1
    if state.changed is None or not isinstance(free, Free):
        return None
    other = machine_on(state.changed.before)
    frames = other.state.frames
    if len(frames) <= depth or frames[depth].regs[free.reg.reg] is None:
        return None
    try:
        if other.state.direction != state.direction:
            other.state.turn()
        code = plain_code(frames[depth].code)
        frees = frozenset(pc for pc in range(len(code)) if _frees(code.stmts(pc), free.reg.reg))
        arm(other.state, Armory(code.image, _traps), {}, {depth: frees})
        with np.errstate(all="ignore"):
            other.go(abs(state.time - other.state.time) + MOST_TICKS)
            if not due(other.state):
                return None
            found = residue_at(other.state)
            other.tick()
    except RvmError:
        return None
    return found if np.shape(found) == np.shape(residue_at(state)) else None


def _frees(stmts: tuple[Stmt, ...], reg: int) -> bool:
    return isinstance(stmts[0], Free) and stmts[0].reg.reg == reg


def _traps(code: Code, bindings: Bindings, extra: Hashable) -> Mapping[int, Traps]:
    return {pc: (Trap("free"),) for pc in extra} if isinstance(extra, frozenset) else {}
