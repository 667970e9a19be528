"""Functions that generated code calls: each is a module of its own, and divides as Python does."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import llvmlite.binding as llvm
import pytest

from rvm.emit.llvm.functions import Definitions
from rvm.emit.llvm.helpers import HELPERS
from rvm.emit.llvm.module import ATTRIBUTES
from rvm.emit.llvm.rooms import POOL
from rvm.emit.llvm.runtime import DECLARATIONS
from rvm.engines.native.compiler import compiler

WORD = 1 << 64


def module(*names: str, more: str = "") -> str:
    """The text of a module of some helpers and what they need."""
    made = Definitions((), names)
    root = "declare i32 @run(ptr, ptr)\n"
    pool = f"@{POOL} = external global ptr\n"
    return "\n".join([root, pool, DECLARATIONS, made.text(), more, ATTRIBUTES])


@pytest.mark.parametrize("name", HELPERS)
def test_each_is_a_valid_module(name: str) -> None:
    compiler()
    found = llvm.parse_assembly(module(name), llvm.create_context())
    found.verify()
    assert not found.get_function(name).is_declaration


@pytest.fixture(scope="module")
def divide() -> Any:
    """The 64 bits of the quotient of a number of 128 bits by one of 64."""
    text = """
define i32 @divided(ptr %job, ptr %none) {
  %p1 = getelementptr i64, ptr %job, i64 1
  %p2 = getelementptr i64, ptr %job, i64 2
  %high = load i64, ptr %job
  %low = load i64, ptr %p1
  %d = load i64, ptr %p2
  %q = call i64 @rvm_divide_wide(i64 %high, i64 %low, i64 %d)
  store i64 %q, ptr %job
  ret i32 0
}
"""
    llvm_at_work = compiler()
    data = llvm_at_work.compiled(module("rvm_divide_wide", more=text))
    run = llvm_at_work.function(data, "divided", (), {})

    def quotient(high: int, low: int, divisor: int) -> int:
        job = (ctypes.c_uint64 * 3)(high, low, divisor)
        run(ctypes.addressof(job), None)
        return job[0]

    return quotient


def test_wide_numbers_are_divided_exactly(divide: Any) -> None:
    rng = random.Random(7)
    edges = [1, 2, 3, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, (1 << 63) - 1, 1 << 63, WORD - 1]
    divisors = [*edges, *(rng.getrandbits(rng.randint(2, 64)) | 1 for _ in range(300))]
    for divisor in divisors:
        highs = {0, divisor - 1, divisor // 2, rng.randrange(divisor)}
        for high in highs:
            for low in (0, WORD - 1, rng.getrandbits(64), rng.getrandbits(32) << 32):
                wanted = (high * WORD + low) // divisor
                assert divide(high, low, divisor) == wanted, (high, low, divisor)
