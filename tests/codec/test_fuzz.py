"""Thousands of damaged and hostile files: each is refused, or is a program like any other."""

from __future__ import annotations

import random
import time
import tracemalloc
from collections import Counter

import pytest
from codec.surgery import mutated
from verify.random_programs import random_program

from rvm.codec import decode, encode
from rvm.faults import BytecodeError
from rvm.transform import invert
from rvm.verify import findings, inout_slots, liveness

BASES = [encode(random_program(seed, 3 + seed % 3)) for seed in range(0, 60, 2)]
SECONDS = 5.0
"""No file of a few kilobytes may take longer, on a slow and busy computer."""
BYTES_PER_BYTE = 64
BYTES_AT_ALL = 1 << 20
"""What reading a file may allocate: this much, and so much for each of its bytes."""


def outcome(data: bytes) -> str:
    """What becomes of a file: a code, or "unsound" or "sound"."""
    try:
        program = decode(data)
    except BytecodeError as error:
        return error.code
    again = encode(program)
    assert decode(again) == program
    if findings(program):
        return "unsound"
    assert findings(invert(program)) == []
    inout_slots(program)
    for f in program.functions:
        lives = liveness(f)
        assert lives.live(len(f.code)) == frozenset(f.param_slots)
    return "sound"


def fuzz(seed: int, count: int) -> Counter[str]:
    rng = random.Random(seed)
    seen: Counter[str] = Counter()
    for _ in range(count):
        data = mutated(rng, rng.choice(BASES), rng.choice(BASES))
        start = time.perf_counter()
        seen[outcome(data)] += 1
        assert time.perf_counter() - start < SECONDS
    return seen


@pytest.mark.parametrize("seed", range(6))
def test_mutated_files_end_in_an_error_or_a_program(seed: int) -> None:
    seen = fuzz(seed, 1000)
    # The mutations reach every layer: tables, expressions, and what only the verifier finds.
    assert {"B003", "B006", "B007", "B010", "B015", "unsound", "sound"} <= set(seen)


def test_memory_is_in_proportion_to_the_file() -> None:
    rng = random.Random(99)
    files = [mutated(rng, rng.choice(BASES), rng.choice(BASES)) for _ in range(400)] + BASES
    for data in files:
        tracemalloc.start()
        try:
            program = decode(data)
            findings(program)
        except BytecodeError:
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < BYTES_AT_ALL + BYTES_PER_BYTE * len(data)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 120))
def test_soak(seed: int) -> None:
    assert sum(fuzz(seed, 20_000).values()) == 20_000
