"""Strict mode: data statements whose undoing restores every bit, by a log of gaps.

A statement that pushes is executed, and then undone on the side, from its new values: the gaps
between the results and the old values are pushed to the log.  A statement that pops is executed,
and its values are corrected by the gaps on top.  The places of a statement are pushed from the last
to the first, for arrays element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from rvm.engines.data import combined, copied, run_data
from rvm.engines.evaluate import evaluate, find
from rvm.engines.log import keep, taken
from rvm.engines.memory import store
from rvm.faults import RvmError
from rvm.image import Code
from rvm.numbers import system
from rvm.numbers.base import NumberSystem
from rvm.numbers.gaps import lost
from rvm.state import State
from rvm.stmt import Map, Stmt, Update, When, writes
from rvm.types import Array, Scalar, elem_of

Pair = tuple[NumberSystem, Any, Any]
Keep = Callable[..., None]
"""A function that takes pairs of undone and old values, with their number system."""


def strictly(state: State, code: Code, pc: int, regs: Any, pushes: bool) -> None:
    """Execute the data statements at `pc`, with the log; on an error all is as before."""
    stmts = code.stmts(pc)
    log = state.residue
    assert log is not None
    height, live = log.height, state.account.live_bytes
    simple = len(stmts) == 1 and isinstance(stmts[0], Update)
    written = () if simple else tuple(dict.fromkeys(p for s in stmts for p in writes(s)))
    old = [copied(find(p, regs).read()) for p in written]
    try:
        if pushes:
            _push(partial(keep, state), regs, stmts, code.undone(pc))
        else:
            for stmt in code.logged(pc, -1):
                _pop(state, regs, stmt)
    except BaseException:
        log.fall(height)
        state.account.live_bytes = live
        for p, v in zip(written, old, strict=True):
            store(p, regs, v)
        raise


def lost_at(code: Code, pc: int, regs: Any) -> int:
    """The bits that the data statements at `pc` would lose to rounding; all stays as it is.

    0 where they are going to fail.
    """
    stmts, bits = code.stmts(pc), 0

    def add(*pairs: Pair) -> None:
        nonlocal bits
        bits += sum(lost(sys.type, guess, meant) for sys, guess, meant in pairs)

    written = tuple(dict.fromkeys(p for s in stmts for p in writes(s)))
    old: list[tuple[Any, Any]] = []
    try:
        for p in written:
            old.append((p, copied(find(p, regs).read())))
        _push(add, regs, stmts, code.undone(pc))
    except (RvmError, MemoryError):
        return 0
    finally:
        for p, v in old:
            store(p, regs, v)
    return bits


def _push(keep: Keep, regs: Any, stmts: Sequence[Stmt], undone: Sequence[Stmt]) -> None:
    for stmt, undo in zip(stmts, reversed(undone), strict=True):
        if not _rounds(stmt):
            run_data(stmt, regs)
            continue
        match stmt, undo:
            case Update(dst, _, value), Update():
                old, by = find(dst, regs).read(), evaluate(value, regs)
                new = combined(stmt, old, by)
                keep((_system(dst), combined(undo, new, by), old))
                store(dst, regs, new)
            case Map(dsts), Map(_, values):
                before = [copied(find(d, regs).read()) for d in dsts]
                run_data(stmt, regs)
                guesses = [copied(evaluate(v, regs)) for v in values]
                pairs = zip(map(_system, dsts), guesses, before, strict=True)
                keep(*(pair for pair in reversed(list(pairs)) if not pair[0].exact))
            case When(cond, body), When(_, inverse):
                if evaluate(cond, regs):
                    _push(keep, regs, body, inverse)


def _pop(state: State, regs: Any, stmt: Stmt) -> None:
    if not _rounds(stmt):
        run_data(stmt, regs)
        return
    match stmt:
        case Update(dst, _, value):
            guess = combined(stmt, find(dst, regs).read(), evaluate(value, regs))
            store(dst, regs, *taken(state, (_system(dst), guess)))
        case Map(dsts, values):
            guesses = [copied(evaluate(v, regs)) for v in values]
            rounding = [k for k, d in enumerate(dsts) if not _type(d).is_exact]
            for k in rounding:
                if isinstance(dsts[k].type, Array):
                    shape = np.shape(find(dsts[k], regs).read())
                    guesses[k] = np.broadcast_to(guesses[k], shape)
            meant = taken(state, *((_system(dsts[k]), guesses[k]) for k in rounding))
            for k, value in zip(rounding, meant, strict=True):
                guesses[k] = value
            for d, value in zip(dsts, guesses, strict=True):
                store(d, regs, value)
        case When(cond, body):
            if evaluate(cond, regs):
                for inner in body:
                    _pop(state, regs, inner)


def _rounds(stmt: Stmt) -> bool:
    """Whether a statement may change an inexact number other than by moving it."""
    match stmt:
        case Update(dst):
            return not _type(dst).is_exact
        case Map(dsts):
            return not all(_type(d).is_exact for d in dsts)
        case When(_, body):
            return any(map(_rounds, body))
    return False


def _type(place: Any) -> Scalar:
    return elem_of(place.type)


def _system(place: Any) -> NumberSystem:
    return system(_type(place))
