"""Emitted programs, run and counted: calls of the step, states at a time, bits erased."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import rvm
from rvm.pebble import Kind, Plan
from rvm.program import Program

LENGTH = 2000
"""Numbers in a state: many, so that frames and counters do not weigh beside it."""
MIX = rvm.assemble(
    """
    func step(y: i64[n], x: i64[n], k: i64, c: i64)
        add y, x * 6364136223846793005 + c
        xor y, (x >> 17) ^ k
    """
)
SHIFT = rvm.assemble(
    """
    func step(y: i64[n], x: i64[n], k: i64, c: i64)
        add y, x + c * k
        xor y, k
    func turn(x: i64[n], k: i64, c: i64)
        add x, c * k
        xor x, k
    """
)
START = np.arange(LENGTH) * 1_000_003 + 5


def mixed(x: np.ndarray, n: int, c: int = 7, first: int = 0) -> np.ndarray:
    """`n` steps of MIX, one in the place of the other."""
    with np.errstate(over="ignore"):
        for k in range(first, first + n):
            x = (x * 6364136223846793005 + c) ^ ((x >> 17) ^ k)
    return x


@dataclass(frozen=True)
class Played:
    """What a run was seen to do."""

    result: Mapping[str, Any]
    calls: Mapping[str, int]
    """How often each function was called, either way."""
    peak: int
    """The most states that ancillas held at a time."""
    erased: int


def played(program: Program, inputs: Mapping[str, Any], back: bool = True) -> Played:
    """The entry run, counted; run back, too, which must give the inputs again."""
    machine = rvm.Machine(program, **{k: _copy(v) for k, v in inputs.items()})
    base = machine.state.account.live_bytes
    counts = machine.count()
    machine.run()
    calls: dict[str, int] = {}
    for node in counts.nodes():
        for pc, instr in enumerate(node.code.instrs):
            if instr.op in ("call", "uncall"):
                calls[instr.symbol] = calls.get(instr.symbol, 0) + node.done[pc]
    peak = (machine.state.account.peak_bytes - base) // (8 * LENGTH)
    result = {k: _copy(v) for k, v in machine.result.items()}
    erased = machine.erased_bits
    if back:
        machine.run_back()
        for name, value in inputs.items():
            np.testing.assert_array_equal(machine.result[name], value)
    return Played(result, calls, peak, erased)


def _copy(value: Any) -> Any:
    return value.copy() if hasattr(value, "copy") else value


def most_pebbles(plan: Plan) -> int:
    """The most pebbles at a time, by playing the actions."""
    held: set[int] = set()
    most = 0
    for kind, start, stop in plan.actions():
        if kind in (Kind.SHIFT, Kind.OVERWRITE, Kind.FREE):
            held.discard(start)
        if kind in (Kind.ADVANCE, Kind.SHIFT, Kind.OVERWRITE):
            held.add(stop)
        if kind in (Kind.UNADVANCE, Kind.UNSHIFT):
            held.discard(stop)
        if kind == Kind.UNSHIFT:
            held.add(start)
        most = max(most, len(held))
    return most
