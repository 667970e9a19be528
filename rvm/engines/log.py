"""The strict log of a run: gaps go on it and come from it, with its bytes in the account."""

from __future__ import annotations

from typing import Any

import numpy as np

from rvm.faults import LimitError
from rvm.numbers import gaps
from rvm.numbers.base import NumberSystem
from rvm.state import State


def keep(state: State, *pairs: tuple[NumberSystem, Any, Any]) -> None:
    """Push the gaps from what undoing would give to what there was: of numbers, or of arrays.

    `pairs` are these two, with their number system.  LimitError R011 if the log would be larger
    than the memory that is left; nothing is pushed then.
    """
    log = state.residue
    assert log is not None
    height, size = log.height, log.bytes
    for sys, guess, meant in pairs:
        if isinstance(meant, np.ndarray):
            like = np.broadcast_to(guess, meant.shape).astype(meant.dtype)
            log.push_all(gaps.gaps(sys.type, like, meant))
        else:
            for found in gaps.gap(sys.type, guess, meant):
                log.push(found)
    more = log.bytes - size
    limit, account = state.options.max_memory, state.account
    if limit is not None and more and account.live_bytes + more > limit:
        log.fall(height)
        raise LimitError(
            "R011",
            "the memory limit is reached by the strict log",
            values={"live bytes": account.live_bytes, "the log's": size, "limit": limit},
            hint="raise it with max_memory= or --max-memory",
        )
    account.grow(more)


def taken(state: State, sys: NumberSystem, guess: Any) -> Any:
    """What there was, from what undoing gives and the gap on top of the log."""
    log, t = state.residue, sys.type
    assert log is not None
    size = log.bytes
    if isinstance(guess, np.ndarray):
        found = gaps.all_moved(t, guess, log.pop_all(guess.size * gaps.parts(t)))
    elif t.is_complex:
        second = log.pop()
        found = gaps.moved(t, guess, (log.pop(), second))
    else:
        found = gaps.moved(t, guess, (log.pop(),))
    state.account.live_bytes += log.bytes - size
    return found
