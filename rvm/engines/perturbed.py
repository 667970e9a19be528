"""Whether a residue that is too large is rounding after all: runs with perturbed rounding.

A residue is refused by a bound on what updates may have rounded, which does not see that their
operands had drifted.  So it is tried: from where the run began, which running back finds, the same
run is made again with each inexact result moved by a unit in the last place, or not, at random.
What rounding has made is another residue then; a mistake stays what it is.
"""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import replace
from typing import Any, cast

import numpy as np

from rvm.engines.evaluate import evaluate
from rvm.engines.memory import find, store
from rvm.engines.reference import step
from rvm.faults import RvmError
from rvm.numbers import system
from rvm.numbers.rounding import MOST_TICKS, MOVED, RERUNS
from rvm.state import State
from rvm.stmt import Alloc, Free, Map, Stmt, Update, When
from rvm.types import Scalar, elem_of


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
            rng = np.random.default_rng(0)
            return any(_moves(residue, _again(begun, state, rng)) for _ in range(RERUNS))
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


def _again(begun: State, failed: State, rng: np.random.Generator) -> Any:
    """The residue that a run with perturbed rounding finds; None if it does not come there."""
    state = deepcopy(begun)
    for _ in range(abs(failed.time)):
        if state.at_end:
            return None
        frame = state.top
        stmts = frame.code.stmts(frame.pc) if frame.pc < len(frame.code) else ()
        step(state)
        for stmt in stmts:
            _perturb(stmt, frame.regs, rng)
    here, there = state.top, failed.top
    return _residue(state) if (here.code, here.pc) == (there.code, there.pc) else None


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


def _perturb(stmt: Stmt, regs: Any, rng: np.random.Generator) -> None:
    """Move what a statement has computed by a unit in the last place, or not."""
    match stmt:
        case Update(place) | Alloc(place):
            places = (place,)
        case Map(places):
            pass
        case When(cond, body):
            if evaluate(cond, regs):
                for inner in body:
                    _perturb(inner, regs, rng)
            return
        case _:
            return
    for place in places:
        t = elem_of(cast(Scalar, place.type))
        if not t.is_exact:
            moved = _moved(np.asarray(find(place, regs).read(), system(t).dtype), rng)
            store(place, regs, moved if moved.ndim else moved.item())


def _moved(x: Any, rng: np.random.Generator) -> Any:
    if np.iscomplexobj(x):
        out = np.empty_like(x)
        out.real, out.imag = _moved(x.real, rng), _moved(x.imag, rng)
        return out
    to = rng.choice(np.array([-np.inf, np.nan, np.inf], x.dtype), x.shape)
    moved = np.nextafter(x, to)
    return np.where(np.isfinite(moved) & (x != 0), moved, x)
