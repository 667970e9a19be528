"""Values that are passed to active calls: one variable under the names of caller and callee.

The machine copies scalars into a call, and those that it may change out again.  Between commands
the copies of all frames agree.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from rvm.engines.evaluate import evaluate, find
from rvm.engines.memory import store
from rvm.expr import Expr, Place, children
from rvm.faults import RvmError
from rvm.image.traps import same
from rvm.state import Frame, State
from rvm.types import Scalar
from rvm.verify.text import show


def settle(state: State) -> None:
    """Copy the scalars passed to active calls back to the callers, with their present values.

    They are copied in and out, so that a caller's own copy is the one before or after the call,
    depending on direction. No instruction uses it before the call ends.
    """
    for outer, inner in reversed([*pairwise(state.frames)]):
        for k in _changed(outer):
            arg = _args(outer)[k]
            if isinstance(arg, Place) and isinstance(arg.type, Scalar):
                store(arg, outer.regs, inner.regs[k])


def pass_on(state: State, depth: int, reg: int) -> None:
    """Let a change of a frame's register also be one in the callers that passed it, and in the
    calls that these have passed it to."""
    frames = state.frames
    while depth and reg < frames[depth].code.function.n_args:
        arg = _args(frames[depth - 1])[reg]
        if not isinstance(arg, Place):
            break
        if isinstance(arg.type, Scalar):
            store(arg, frames[depth - 1].regs, frames[depth].regs[reg])
        depth, reg = depth - 1, arg.reg
    regs = {reg}
    for outer, inner in pairwise(frames[depth:]):
        passed = {
            k: arg
            for k, arg in enumerate(_args(outer))
            if isinstance(arg, Place) and arg.reg in regs
        }
        for k, arg in passed.items():
            if isinstance(arg.type, Scalar):
                inner.regs[k] = find(arg, outer.regs).read()
        regs = set(passed)
    settle(state)


def passed_otherwise(state: State, before: State) -> tuple[str, str, str] | None:
    """An argument of an active call that is not the place, or has not the value, that was passed,
    as text, with the function and the parameter: going back over the call's end would pass another.

    `before` is the same state before values were changed.
    """
    for outer, inner, was in zip(state.frames, state.frames[1:], before.frames, strict=False):
        function = inner.code.function
        for k, arg in enumerate(_args(outer)):
            if k in _changed(outer):
                passed = not isinstance(arg, Place) or _is_place(arg, outer, was)
            else:
                passed = _is_passed(arg, outer.regs, inner.regs[k])
            if not passed:
                text = show(arg, outer.code.function)
                return text, function.name, function.registers[k].name
    return None


def _is_place(arg: Place, now: Frame, before: Frame) -> bool:
    """Whether the indices of a place are what they were."""
    try:
        return all(same(evaluate(i, now.regs), evaluate(i, before.regs)) for i in children(arg))
    except RvmError:
        return False


def _is_passed(arg: Expr, regs: list[Any], passed: Any) -> bool:
    try:
        value = evaluate(arg, regs)
    except RvmError:
        return False
    if not isinstance(value, np.ndarray):
        return same(value, passed)
    if np.shares_memory(value, passed):
        one, two = ((v.ctypes.data, v.shape, v.strides) for v in (value, passed))
        return one == two
    return value.shape == passed.shape and same(value, passed)


def _args(caller: Frame) -> tuple[Any, ...]:
    """The arguments of an active call."""
    return caller.code.instrs[caller.pc].args


def _changed(caller: Frame) -> frozenset[int]:
    """The numbers of the arguments that an active call may change."""
    return caller.code.image.inout[caller.code.instrs[caller.pc].symbol]
