"""Opcodes and functions of users over lanes: several statements, Python callables that raise."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from lanes.singles import agree, in_lanes

import rvm
from rvm import Mut, Use
from rvm.isa import FUNCTIONS, OPCODES
from rvm.isa.lower import linked_body

TEXT = """
func f(a: f64, b: f64, x: f64[n], i: i64)
    shear a, b, 0.5 / f64(i)
    shear x[i], x[0], b
    add a, risky(b)
    if b > 2.0
        unshear x[1], b, a
    else
        uncall g(x[i], a)
    end

func g(u: f64, v: f64)
    shear u, v, 0.25
    add u, risky(v)
"""


@pytest.fixture(autouse=True)
def clean_tables() -> Iterator[None]:
    opcodes, functions = dict(OPCODES), dict(FUNCTIONS)
    yield
    for table, before in ((OPCODES, opcodes), (FUNCTIONS, functions)):
        for name in set(table) - set(before):
            del table[name]  # type: ignore[attr-defined]
    linked_body.cache_clear()


def test_statements_of_an_opcode_are_done_or_not_in_every_lane() -> None:
    @rvm.opcode(inverse="unshear")
    def shear(a: Mut, b: Mut, t: Use) -> None:
        """Two statements, the second of which the first reads."""
        a += b * t
        b += t

    @rvm.opcode(inverse="shear")
    def unshear(a: Mut, b: Mut, t: Use) -> None:
        """Its inverse."""
        b -= t
        a -= b * t

    @rvm.function()
    def risky(x: float) -> float:
        if float(x) > 3:
            raise ValueError("too big")
        return math.gamma(x)

    program = rvm.assemble(TEXT)
    lanes = [
        {"a": 1.0, "b": b, "x": np.array([1.0, 2.0, 3.0]), "i": i}
        for b in (0.5, 2.0, 3.5, 1.0)
        for i in (0, 1, 2)
    ]
    run = in_lanes(program.program, "f", lanes)
    agree(program.program, "f", lanes, run)
    assert {e.code for e in run.errors.values()} == {"R002", "R004", "R014"}
    assert set(run.alone) == set(run.errors) and len(run.errors) < len(lanes)
