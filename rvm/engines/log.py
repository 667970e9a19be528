"""The strict log of a run: gaps go on it and come from it, with its bytes in the account."""

from __future__ import annotations

from typing import Any

import numpy as np

from rvm.faults import LimitError
from rvm.numbers import gaps, system
from rvm.numbers.base import NumberSystem
from rvm.numbers.residue import CODES, ESCAPE, WORD
from rvm.state import State
from rvm.types import F64

F64_SYSTEM = system(F64)


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


def keep_floats(state: State, *numbers: float) -> None:
    """`keep` of pairs of f64, fast where they fit into the word that has been begun.

    Then no memory is asked for, and the gaps are 0, 1 or -1, as nearly all are.
    """
    log = state.residue
    assert log is not None
    codes = log.codes
    over = 2 * (codes.count & 31)
    if over and over + len(numbers) <= WORD:
        new = 0
        for k in range(0, len(numbers), 2):
            guess, meant = numbers[k], numbers[k + 1]
            code = 0 if guess == meant and guess else CODES.get(gaps.gap_of_floats(guess, meant))
            if code is None:
                break
            new |= code << k
        else:
            words, at = codes.words, codes.count >> 5
            words[at] = words[at] & ((1 << over) - 1) | new << over
            codes.count += len(numbers) // 2
            return
    pairs = zip(numbers[::2], numbers[1::2], strict=True)
    keep(state, *((F64_SYSTEM, guess, meant) for guess, meant in pairs))


def taken_float(state: State, guess: float) -> float:
    """`taken` of an f64, fast where its gap is in the middle of a word, and is 0, 1 or -1."""
    log = state.residue
    assert log is not None
    codes = log.codes
    n = codes.count - 1
    over = 2 * (n & 31)
    if over and n >= 0:
        code = codes.words[n >> 5] >> over & 3
        if code != ESCAPE:
            codes.count = n
            return guess if not code else gaps.float_moved(guess, 1 if code == 1 else -1)
    found: float = taken(state, F64_SYSTEM, guess)
    return found


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
