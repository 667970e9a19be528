"""An adder made of gates, run with ever fewer ancillas: the same sums, in more moves.

    python examples/pebble/adding.py
    python examples/pebble/adding.py --bits 32 --seconds 20

A gate's value needs an ancilla, and has to be computed away again.  Bennett's way holds all gates
until the end; with fewer pebbles, some of them are computed again and again.  Each plan is made
into a program of `xor`s, which adds 64 pairs of numbers at a time, a bit of each word to a pair;
the sums are compared with Python's, and undone again.

Sources: C. H. Bennett, "Logical reversibility of computation" (1973); A. Parent, M. Roetteler,
K. Svore, "Reversible circuit compilation with space constraints" (2015).
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from measuring import table

import rvm
from rvm.pebble import Circuit, DagPlan, emit_circuit, parse_circuit, plan_dag
from rvm.types import U64

LANES = 64
"""Pairs of numbers that are added at a time."""


def circuit(bits: int) -> Circuit:
    """A ripple of carries: five gates for each bit."""
    lines = [f"INPUT({name}{k})" for name in "ab" for k in range(bits)]
    lines += [f"OUTPUT(s{k})" for k in range(bits)] + [f"OUTPUT(c{bits})", "INPUT(c0)"]
    for k in range(bits):
        lines += [
            f"x{k} = XOR(a{k}, b{k})",
            f"s{k} = XOR(x{k}, c{k})",
            f"g{k} = AND(a{k}, b{k})",
            f"p{k} = AND(x{k}, c{k})",
            f"c{k + 1} = OR(g{k}, p{k})",
        ]
    return parse_circuit("\n".join(lines))


def sliced(numbers: list[int], bits: int) -> np.ndarray:
    """A word for each bit; the number at place l has bit l of all of them."""
    words = [sum((n >> k & 1) << lane for lane, n in enumerate(numbers)) for k in range(bits)]
    return np.array(words, np.uint64)


def whole(words: list[int]) -> list[int]:
    """The numbers again."""
    return [sum((w >> lane & 1) << k for k, w in enumerate(words)) for lane in range(LANES)]


def added(program: rvm.Library, a: list[int], b: list[int], bits: int) -> list[int]:
    """The sums that a program computes; ValueError if it does not come back from them."""
    values: dict[str, Any] = {"a": sliced(a, bits), "b": sliced(b, bits), "c0": 0}
    add = program["circuit"]
    out = add(**values, s=np.zeros(bits, np.uint64), **{f"c{bits}": 0})
    sums = whole([*out.s.tolist(), out[f"c{bits}"]])
    back = (~add)(**out)
    if back.s.any() or back[f"c{bits}"] or not np.array_equal(back.a, sliced(a, bits)):
        raise ValueError("the run back ends elsewhere")
    return sums


def plans(adder: Circuit, seconds: float | None) -> list[DagPlan]:
    """Plans from Bennett's to one of a third of its pebbles."""
    n = len(adder.dag)
    limit = {} if seconds is None else {"time_limit": seconds}
    budgets = [n, round(0.8 * n), round(0.6 * n), round(0.5 * n), round(0.4 * n)]
    return [plan_dag(adder.dag, pebbles=s, **limit) for s in budgets]


def report(bits: int, seconds: float | None) -> None:
    """Print what adding takes under several budgets."""
    adder = circuit(bits)
    random = np.random.default_rng(1)
    a, b = random.integers(0, 1 << bits, (2, LANES), dtype=np.uint64).tolist()
    rows = []
    for plan in plans(adder, seconds):
        program = emit_circuit(plan, adder, of=U64)
        right = added(program, a, b, bits) == [x + y for x, y in zip(a, b, strict=True)]
        function = program.program.function("circuit")
        ancillas = len(function.registers) - len(function.params)
        moves, code = plan.cost.moves, len(function.code)
        sums = "right, and undone" if right else "wrong"
        rows.append([plan.strategy, plan.cost.nodes, ancillas, moves, plan.bound, code, sums])
    print(f"{LANES} sums of {bits} bits at a time, {len(adder.dag)} gates\n")
    head = ["plan by", "pebbles", "ancillas", "moves", "not below", "instructions", "sums"]
    print(table(head, rows))
    print("\npebbles count the outputs, for which there are parameters and no ancillas")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bits", type=int, default=16, help="of each number (16)")
    parser.add_argument("--seconds", type=float, help="to search for each plan")
    arguments = parser.parse_args()
    report(arguments.bits, arguments.seconds)
