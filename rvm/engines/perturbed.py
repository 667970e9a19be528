"""Whether a residue that is too large is due to rounding: runs with perturbed rounding.

A residue is refused by a bound on the rounding of updates, which does not include errors in their
operands.  So it is tested: the run is repeated from its beginning, which is found by running back,
with each inexact result moved by a unit in the last place (`rvm.image.nudged`).  If the residue is
due to rounding, it changes; if it is due to a mistake, it does not.

A value that is not larger than its residue is tested in the same way: if other roundings move the
value itself as far, as when it cancels to zero, nothing could have been lost.

After values were changed from outside, runs begin there.  What is proved of ancillas holds only for
those that were made since then: going back shows which.
"""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from rvm.engines.evaluate import evaluate, find
from rvm.engines.python import Python
from rvm.engines.reference import step
from rvm.faults import RvmError
from rvm.image import image_of
from rvm.image.nudged import nudged
from rvm.numbers import system
from rvm.numbers.rounding import MOST_TICKS, MOVED, RERUNS
from rvm.state import State
from rvm.stmt import Free, Pop
from rvm.types import ValueType, elem_of


def is_rounding(
    state: State, which: Literal["residue", "expected"], base: Any = None
) -> bool | None:
    """Whether the residue, or the expected value, at the free where a state stopped is rounding.

    `base`: only by how much the residue differs from this one, which is.

    None if that is not known.  The state is not changed, and callbacks and output are not repeated.
    """
    edited = state.edited_at
    found = _found(state)
    apart = found.residue if base is None else found.residue - base
    if not np.any(apart):
        return True
    if abs(state.time - (edited or 0)) > MOST_TICKS:
        return None
    if _strays(state) and not state.changed and (state.direction < 0 or edited is not None):
        # A way back takes other ticks than the way there, which alone could be run again.
        return None
    if edited is not None and (state.time - edited) * state.direction <= 0:
        return None
    try:
        with np.errstate(all="ignore"):
            begun, ticks = _begun(state)
            if edited is None and not begun.at_end and (ticks == MOST_TICKS or _strays(state)):
                return None
            begun.turn()
            others = (_again(begun, ticks, state, k + 1) for k in range(RERUNS))
            return any(o is not None and _moves(found, o, which, apart) for o in others)
    except RvmError:
        return None


def is_new(state: State) -> bool:
    """Whether the ancilla at the free where a state stopped was made after an edit.

    What is proved of its value then holds.  A copy of the state goes to where it was made.
    """
    free, depth, edited = state.top.code.stmts(state.top.pc)[0], len(state.frames), state.edited_at
    if not isinstance(free, Free) or edited is None:
        return False
    if state.direction < 0 and max(state.time, 1) > edited:
        # It was still to be made when the values were changed.
        return True
    try:
        with np.errstate(all="ignore"):
            back = _turned(state)
            for _ in range(MOST_TICKS):
                if len(back.frames) < depth or back.frames[depth - 1].regs[free.reg.reg] is None:
                    return True
                if back.time == edited or back.at_end:
                    return False
                step(back)
    except RvmError:
        pass
    return False


def _turned(state: State) -> State:
    """A copy of the state that faces back, and goes there whatever rounding has left."""
    back = _freely(state)
    back.turn()
    return back


def _freely(state: State) -> State:
    """A copy of a state that goes on whatever rounding has left."""
    unseen = state.options.unseen()
    options = replace(unseen, tolerance=math.inf, strict=False, max_steps=None)
    kept, state.options = state.options, options
    try:
        made = deepcopy(state)
    finally:
        state.options = kept
    made.residue, made.armed = None, False
    return made


def _begun(state: State) -> tuple[State, int]:
    """A copy of the state at the beginning of its run, facing back, and the ticks from there.

    If going back reaches the point where its machine began, the run began at the end of the
    program, or turned on the way, from where it may continue to that point.  If values were changed
    from outside, the run begins there.
    """
    if state.changed is not None:
        back = _freely(state.changed.after)
        if back.direction == state.direction:
            back.turn()
        return back, abs(state.time - back.time)
    back = _turned(state)
    if state.edited_at is not None:
        return back, _run(back, abs(state.time - state.edited_at))
    if back.retreat() is not None:
        return back, abs(state.time)
    if _strays(state):
        _run(back, MOST_TICKS)
        return back, abs(state.time)
    returns = state.time * state.direction < 0
    return back, _run(back, MOST_TICKS if returns else abs(state.time))


def _strays(state: State) -> bool:
    code = state.frames[0].code
    return code.image.strays(code.name)


def _run(state: State, ticks: int) -> int:
    """Execute ticks, as many as are left, in generated Python; return their number."""
    engine, done = Python(), 0
    while done < ticks and not state.at_end:
        did = engine.advance(state, ticks - done)
        if not did:
            # What generated Python leaves to the reference engine, or stops before.
            step(state)
        done += did or 1
    return done


class Found(NamedTuple):
    """The values at a free, or a pop: the difference of the ancilla, and its expected value."""

    residue: Any
    expected: Any


def _again(begun: State, ticks: int, failed: State, seed: int) -> Found | None:
    """The values at the free in a run with perturbed rounding; None if it is not reached."""
    state = deepcopy(begun)
    frame = state.top
    image = image_of(nudged(frame.code.image.program, seed))
    for active in state.frames:
        active.code = image.code(active.code.name, active.code.undo)
    if frame.code.undo and not state.edited:
        rng = np.random.default_rng(seed)
        for reg in range(frame.code.function.n_args):
            t = cast(ValueType, frame.code.function.registers[reg].type)
            frame.regs[reg] = _nearby(frame.regs[reg], t, rng)
    _run(state, ticks)
    here, there = state.top, failed.top
    reached = (here.code.name, here.code.undo, here.pc)
    return _found(state) if reached == (there.code.name, there.code.undo, there.pc) else None


def _nearby(value: Any, t: ValueType, rng: np.random.Generator) -> Any:
    """A register's value with each inexact number moved by a unit in the last place."""
    elem = elem_of(t)
    if elem.is_exact:
        return value
    held = np.array(value, system(elem).dtype)
    reals = held.reshape(-1).view(held.real.dtype)
    near = np.nextafter(reals, rng.choice((-np.inf, np.inf), reals.shape).astype(reals.dtype))
    moved = np.where((reals != 0) & np.isfinite(near), near, reals)
    made = moved.view(held.dtype).reshape(held.shape)
    return made if isinstance(value, np.ndarray) else made.tolist()


def _moves(found: Found, other: Found, which: Literal["residue", "expected"], apart: Any) -> bool:
    """Whether it differs, by an amount that is not small compared with what is to be explained."""
    one, two = getattr(found, which), getattr(other, which)
    if np.shape(one) != np.shape(two):
        return False
    return bool(np.max(np.abs(two - one)) >= MOVED * np.max(np.abs(apart)))


def residue_at(state: State) -> Any:
    """By how much the ancilla at the free where a state stopped is off."""
    return _found(state).residue


def _found(state: State) -> Found:
    frame = state.top
    match frame.code.stmts(frame.pc)[0]:
        case Free(reg, value) if value is not None:
            held, expected = frame.regs[reg.reg], evaluate(value, frame.regs)
        case Pop(dst):
            held = find(dst, frame.regs).read()
            expected = np.zeros_like(held)
        case stmt:
            raise AssertionError(stmt)
    return Found(np.subtract(held, expected, dtype=None), np.asarray(expected))
