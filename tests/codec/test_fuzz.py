"""Thousands of damaged and hostile files: each is refused, or is a program like any other."""

from __future__ import annotations

import random
import struct
import time
import tracemalloc
from collections import Counter
from functools import cache

import pytest
from attack.programs.blind import random_program
from attack.surgery import join, mutated, tables
from sizes import part, sized, thin

from rvm.codec import decode, encode
from rvm.codec.layout import BY_TAG, PARTS
from rvm.faults import BytecodeError
from rvm.transform import invert
from rvm.verify import findings, inout_slots, liveness

SECONDS = 5.0
"""No file of a few kilobytes may take longer on a slow processor."""
BYTES_PER_BYTE = 32
BYTES_AT_ALL = 1 << 20
"""What reading a file may allocate: this much, and so much for each of its bytes."""


@cache
def bases() -> list[bytes]:
    """Sound files, from which others are made."""
    return [encode(random_program(seed, 3 + seed % 3)) for seed in range(0, 60, 2)]


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
        data = mutated(rng, rng.choice(bases()), rng.choice(bases()))
        start = time.thread_time()
        seen[outcome(data)] += 1
        assert time.thread_time() - start < SECONDS
    return seen


@thin
@pytest.mark.parametrize("seed", range(part(6)))
@sized
def test_mutated_files_end_in_an_error_or_a_program(seed: int) -> None:
    seen = fuzz(seed, 1000)
    # The mutations reach every layer: tables, expressions, and what only the verifier finds.
    assert {"B003", "B006", "B007", "B010", "B015", "unsound", "sound"} <= set(seen)


def memory(data: bytes) -> int:
    """The most that reading and verifying a file has allocated at one time, in bytes."""
    tracemalloc.start()
    try:
        program = decode(data)
        findings(program)
    except BytecodeError:
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@sized
def test_memory_is_in_proportion_to_the_file() -> None:
    rng = random.Random(99)
    made = [mutated(rng, rng.choice(bases()), rng.choice(bases())) for _ in range(part(400))]
    for data in [*made, *bases()]:
        assert memory(data) < BYTES_AT_ALL + BYTES_PER_BYTE * len(data)


@thin
@pytest.mark.parametrize("tag", ["LINE", "PARM", "STRS", "TYPE", "CNST", "REGS", "EXPR"])
def test_memory_of_files_that_are_one_large_table(tag: str) -> None:
    """30,000 records more than the file had, of the kind that makes the most of each byte."""
    contents = tables(bases()[0])
    width = BY_TAG[tag].record.size
    last = contents[tag][-width:]
    if tag == "PARM":
        last = BY_TAG[tag].record.pack(0, 0, 0)  # a record without fields
    if tag == "STRS":
        last = BY_TAG[tag].record.pack(len(contents["TEXT"]), 0)
    contents[tag] += last * 30_000
    if tag in PARTS:
        field = 2 + 2 * PARTS.index(tag)
        blob = bytearray(contents["FNCT"])
        at = len(blob) - BY_TAG["FNCT"].record.size + 4 * field
        struct.pack_into("<I", blob, at, struct.unpack_from("<I", blob, at)[0] + 30_000)
        contents["FNCT"] = bytes(blob)
    assert memory(data := join(contents)) < BYTES_AT_ALL + BYTES_PER_BYTE * len(data)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 120))
def test_soak(seed: int) -> None:
    assert sum(fuzz(seed, 20_000).values()) == 20_000
