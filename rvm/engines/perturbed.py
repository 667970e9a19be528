"""Whether a residue that is too large is rounding after all: runs with perturbed rounding.

A residue is refused by a bound on what updates may have rounded, which does not see that their
operands had drifted.  So it is tried: from where the run began, which running back finds, the same
run is made again with each inexact result moved by a unit in the last place (`rvm.image.nudged`).
What rounding has made is another residue then; a mistake stays what it is.
"""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import replace
from typing import Any, cast

import numpy as np

from rvm.engines.evaluate import evaluate
from rvm.engines.reference import step
from rvm.faults import RvmError
from rvm.image import image_of
from rvm.image.nudged import nudged
from rvm.numbers.rounding import MOST_TICKS, MOVED, RERUNS
from rvm.state import State
from rvm.stmt import Free


def is_rounding(state: State) -> bool | None:
    """Whether what the free that a state stands at finds is rounding; None if that is not known.

    The state is left as it is, and callbacks and output are not made again.
    """
    if state.edited or abs(state.time) > MOST_TICKS:
        return None
    try:
        with np.errstate(all="ignore"):
            begun = _begun(state)
            residue = _residue(state)
            return any(_moves(residue, _again(begun, state, k + 1)) for k in range(RERUNS))
    except RvmError:
        return None


def _begun(state: State) -> State:
    """A state like this one at the beginning of its run."""
    muted = {name: lambda *values: None for name in state.options.callbacks}
    options = replace(
        state.options,
        tolerance=math.inf,
        strict=False,
        max_steps=None,
        output=lambda line: None,
        callbacks=muted,
    )
    kept, state.options = state.options, options
    try:
        back = deepcopy(state)
    finally:
        state.options = kept
    back.residue, back.armed = None, False
    back.turn()
    _run(back, abs(state.time))
    back.turn()
    return back


def _run(state: State, ticks: int) -> None:
    for _ in range(ticks):
        if state.at_end:
            return
        step(state)


def _again(begun: State, failed: State, seed: int) -> Any:
    """The residue that a run with perturbed rounding finds; None if it does not come there."""
    state = deepcopy(begun)
    frame = state.top
    image = image_of(nudged(frame.code.image.program, seed))
    frame.code = image.code(frame.code.name, frame.code.undo)
    _run(state, abs(failed.time))
    here, there = state.top, failed.top
    reached = (here.code.name, here.code.undo, here.pc)
    return _residue(state) if reached == (there.code.name, there.code.undo, there.pc) else None


def _moves(residue: Any, other: Any) -> bool:
    if other is None or np.shape(other) != np.shape(residue):
        return False
    return bool(np.max(np.abs(other - residue)) >= MOVED * np.max(np.abs(residue)))


def _residue(state: State) -> Any:
    """By how much the ancilla that is freed next is off."""
    frame = state.top
    free = cast(Free, frame.code.stmts(frame.pc)[0])
    assert free.value is not None
    return np.subtract(frame.regs[free.reg.reg], evaluate(free.value, frame.regs), dtype=None)
