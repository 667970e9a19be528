"""The strict log of a run: pushing and popping gaps, with its bytes counted in the account."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.faults import LimitError
from rvm.numbers import gaps, system
from rvm.numbers.base import NumberSystem
from rvm.numbers.residue import CODES, ESCAPE, WORD
from rvm.state import State
from rvm.types import F64

F64_SYSTEM = system(F64)


def keep(state: State, *pairs: tuple[NumberSystem, Any, Any]) -> None:
    """Push the gaps from what undoing would give to what there was: of numbers, or of arrays.

    `pairs` are these two, with their number system.  The gaps of several arrays of one shape go on
    the log element by element.  LimitError R011 if the log would be larger than the
    memory that is left; nothing is pushed then.
    """
    log = state.residue
    assert log is not None
    height, size = log.height, log.bytes
    if _alike([meant for _, _, meant in pairs]):
        rows = [_gaps(*pair).reshape(-1, pair[0].type.parts) for pair in pairs]
        log.push_all(np.concatenate(rows, axis=1).reshape(-1))
    else:
        for sys, guess, meant in pairs:
            if isinstance(meant, np.ndarray):
                log.push_all(_gaps(sys, guess, meant))
                continue
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
    """`keep` for pairs of f64, fast if they fit into the current word.

    Then no memory is allocated, and the gaps are 0, 1 or -1, as nearly all are.
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
    found: float = taken(state, (F64_SYSTEM, guess))[0]
    return found


def taken(state: State, *guesses: tuple[NumberSystem, Any]) -> list[Any]:
    """The old values, from the results of undoing and the gaps on top of the log.

    `guesses` are these results, with their number system: those pushed last come first.
    """
    log = state.residue
    assert log is not None
    size = log.bytes
    widths = [sys.type.parts for sys, _ in guesses]
    found = list[Any]()
    if _alike([guess for _, guess in guesses]):
        end = sum(widths)
        rows = log.pop_all(guesses[0][1].size * end).reshape(-1, end)
        for (sys, guess), width in zip(guesses, widths, strict=True):
            found.append(gaps.all_moved(sys.type, guess, rows[:, end - width : end].reshape(-1)))
            end -= width
    else:
        for (sys, guess), width in zip(guesses, widths, strict=True):
            if isinstance(guess, np.ndarray):
                found.append(gaps.all_moved(sys.type, guess, log.pop_all(guess.size * width)))
                continue
            popped = [log.pop() for _ in range(width)]
            found.append(gaps.moved(sys.type, guess, tuple(reversed(popped))))
    state.account.live_bytes += log.bytes - size
    return found


def _alike(values: Sequence[Any]) -> bool:
    """Whether values are arrays of one shape: their gaps go on the log element by element."""
    arrays = all(isinstance(v, np.ndarray) for v in values)
    return arrays and len({np.shape(v) for v in values}) == 1


def _gaps(sys: NumberSystem, guess: Any, meant: NDArray[Any]) -> gaps.Gaps:
    like = np.asarray(guess)
    if (like.shape, like.dtype) != (meant.shape, meant.dtype):
        like = np.broadcast_to(like, meant.shape).astype(meant.dtype)
    return gaps.gaps(sys.type, like, meant)
