"""The strict log: any number is found again from any guess, and a stack is a stack."""

from __future__ import annotations

import pickle
import random
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from rvm.faults import InvertibilityError
from rvm.numbers import gaps, system
from rvm.numbers.residue import Residue
from rvm.types import F32, F64, SCALARS

WORDS = {"f64": np.uint64, "f32": np.uint32, "log64": np.uint64, "c128": np.uint64}
FLOATS = {"f64": np.float64, "f32": np.float32, "log64": np.float64, "c128": np.float64}
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e-40, 1.7e38, 1e-45)


def drawn(t: str, rng: np.random.Generator, n: int) -> Any:
    """Numbers of random bits, neighbours of those, and special ones."""
    n *= 2 if t == "c128" else 1
    word = WORDS[t]
    bits = rng.integers(0, np.iinfo(word).max, n, word, endpoint=True)
    with np.errstate(all="ignore"):
        bits[: n // 4] = np.array(rng.choice(SPECIAL, n // 4), FLOATS[t]).view(word)
    bits[n // 8 : n // 3] += rng.integers(0, 9, n // 3 - n // 8, word)
    rng.shuffle(bits)
    return bits.view(np.complex128 if t == "c128" else FLOATS[t])


def bits(t: str, x: Any) -> list[int]:
    """The bits of numbers, of all NaNs the same."""
    flat = np.ascontiguousarray(np.atleast_1d(x)).view(FLOATS[t])
    return np.where(flat != flat, 0xABC, flat.view(WORDS[t])).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("t", WORDS)
def test_any_number_is_found_from_any_guess(t: str) -> None:
    rng, kind = np.random.default_rng(4), SCALARS[t]
    for _ in range(20):
        guess, meant = drawn(t, rng, 500), drawn(t, rng, 500)
        guess[::3] = meant[::3]
        far = gaps.gaps(kind, guess, meant)
        assert bits(t, gaps.all_moved(kind, guess, far)) == bits(t, meant)
        singly = [gaps.gap(kind, a, b) for a, b in zip(guess.tolist(), meant.tolist(), strict=True)]
        assert [d for pair in singly for d in pair] == far.tolist()
        back = [gaps.moved(kind, a, d) for a, d in zip(guess.tolist(), singly, strict=True)]
        assert bits(t, np.array(back, guess.dtype)) == bits(t, meant)


@pytest.mark.parametrize("t", WORDS)
def test_a_number_that_is_guessed_keeps_its_bits(t: str) -> None:
    x = drawn(t, np.random.default_rng(5), 2000)
    x.view(WORDS[t])[::7] |= WORDS[t](0x7FF8 << 48 if WORDS[t] is np.uint64 else 0x7FC0 << 16)
    zero = np.zeros(len(x) * SCALARS[t].parts, np.int64)
    moved = gaps.all_moved(SCALARS[t], x, zero)
    assert moved.tobytes() == x.tobytes()
    assert not gaps.gaps(SCALARS[t], x, x).any()


def test_neighbours_are_one_apart() -> None:
    for t, dtype in ((F64, np.float64), (F32, np.float32)):
        x = np.array([0.0, 1.0, -1.0, 3e-39, 1e30, -7.5], dtype)
        up = np.nextafter(x, dtype(np.inf))
        # From 0.0 the next one is the least; -0.0 lies on the other side.
        assert gaps.gaps(t, x, up).tolist() == [1] * len(x)
        assert gaps.gap(t, 0.0, -0.0) == (-1,)
        ends = (float("inf"), float("-inf"))
        numbers = 2 * int(np.array(np.inf, dtype).view(f"i{t.bits // 8}")) + 1
        assert gaps.gap(t, *ends)[0] % (1 << 64) == -numbers % (1 << 64)


@pytest.mark.parametrize("t", ["bool", "u8", "u32", "i64", "u64", "fixed"])
def test_whole_numbers_are_found_again(t: str) -> None:
    kind = SCALARS[t]
    dtype = system(kind).dtype
    rng = random.Random(6)
    low, high = (0, 1) if t == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    meant = [low, high, *(rng.randint(low, high) for _ in range(50))]
    meant = [bool(v) for v in meant] if t == "bool" else meant
    zero = system(kind).zero
    assert [gaps.moved(kind, zero, gaps.gap(kind, zero, v)) for v in meant] == meant
    held = np.array(meant, dtype)
    empty = np.zeros(len(held), dtype)
    assert gaps.all_moved(kind, empty, gaps.gaps(kind, empty, held)).tolist() == meant


def a_gap(rng: random.Random) -> int:
    size = rng.choice((1, 9, 2**62))
    return rng.choice(
        (rng.randint(-size, size), 2**63 - 1, -(2**63)) if size > 9 else (size, -size, 0)
    )


def test_a_log_is_a_stack_whatever_is_pushed_at_once() -> None:
    rng, log, held = random.Random(7), Residue(), list[int]()
    for _ in range(6000):
        match rng.randrange(6):
            case 0 | 1:
                held.append(a_gap(rng))
                log.push(held[-1])
            case 2:
                more = [a_gap(rng) for _ in range(rng.randrange(150))]
                log.push_all(np.array(more, np.int64))
                held += more
            case 3 if held:
                assert log.pop() == held.pop()
            case 4:
                n = rng.randrange(min(len(held), 200) + 1)
                assert log.pop_all(n).tolist() == held[len(held) - n :]
                del held[len(held) - n :]
            case 5:
                # Back to an earlier height, from above and from below.
                height, gone = log.height, rng.randrange(min(len(held), 80) + 1)
                log.pop_all(gone)
                log.fall(height)
                for gap in (a_gap(rng) for _ in range(rng.randrange(40))):
                    log.push(gap)
                log.fall(height)
                log = pickle.loads(pickle.dumps(deepcopy(log)))
        assert len(log) == len(held)
    assert log.pop_all(len(held)).tolist() == held
    assert log.height == (0, 0, 0) and log.bytes == 0
    with pytest.raises(InvertibilityError, match="R019"):
        log.pop()


def test_what_a_log_takes() -> None:
    log = Residue()
    for gap in (0, 1, -1) * 32:
        log.push(gap)
    assert (log.bits, log.bytes) == (192, 24)
    for gap in (2, -8) * 8:
        log.push(gap)
    assert (log.bits, log.bytes) == (192 + 16 * 6, 24 + 8 + 8)
    log.push(9)
    assert (log.bits, log.bytes) == (192 + 16 * 6 + 70, 24 + 8 + 8 + 8 + 8)


def test_a_copy_holds_nothing_but_its_entries() -> None:
    one, other = Residue(), Residue()
    for gap in (5, 77, -1, 3):
        one.push(gap)
        one.pop()
    assert pickle.dumps(one) == pickle.dumps(other)
