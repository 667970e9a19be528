"""The workloads: a program, its inputs, and the same work in plain Python."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rvm.program import Program
from rvm_tools.bench import plain

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Workload:
    """A program `name.rasm` beside this file and the Python function that does what it does.

    `inputs(scale)` are numbers, lists and nested lists; how much there is to do grows with `scale`.
    """

    name: str
    doc: str
    inputs: Callable[[float], dict[str, Any]]
    python: Callable[..., Mapping[str, Any]]

    def program(self) -> Program:
        """The assembled program."""
        return _assembled(self.name)

    def arrays(self, scale: float) -> dict[str, Any]:
        """The inputs with arrays for lists, in the types of the program's parameters."""
        from rvm.numbers import system
        from rvm.types import elem_of

        function = self.program().function("main")
        dtypes = {r.name: system(elem_of(r.type)).dtype for r in function.registers}
        return {
            k: np.array(v, dtypes[k]) if isinstance(v, list) else v
            for k, v in self.inputs(scale).items()
        }


@cache
def _assembled(name: str) -> Program:
    from rvm import load

    return load(FOLDER / f"{name}.rasm")


def _matrices(scale: float) -> dict[str, Any]:
    n = max(2, round(36 * scale ** (1 / 3)))
    rng = random.Random(1)

    def matrix() -> list[list[float]]:
        return [[rng.uniform(-1, 1) for _ in range(n)] for _ in range(n)]

    return {"C": [[0.0] * n for _ in range(n)], "A": matrix(), "B": matrix()}


def _message(scale: float) -> dict[str, Any]:
    rng = random.Random(2)
    blocks = max(1, round(800 * scale))
    return {
        "v": [rng.getrandbits(32) for _ in range(2 * blocks)],
        "k": [rng.getrandbits(32) for _ in range(4)],
    }


WORKLOADS = {
    w.name: w
    for w in (
        Workload(
            "sum",
            "0 + 1 + … + (n-1) in a loop",
            lambda scale: {"s": 0, "n": round(60_000 * scale)},
            plain.total,
        ),
        Workload(
            "fib",
            "Fibonacci numbers modulo 2**64 by while",
            lambda scale: {"a": 0, "b": 1, "n": round(40_000 * scale)},
            plain.fibonacci,
        ),
        Workload(
            "leapfrog",
            "a planet's orbit in f64",
            lambda scale: {
                "x": 1.0,
                "y": 0.0,
                "u": 0.0,
                "v": 1.1,
                "n": round(15_000 * scale),
                "h": 0.01,
            },
            plain.leapfrog,
        ),
        Workload("xtea", "a block cipher on u32", _message, plain.xtea),
        Workload("matmul", "a matrix product by three loops", _matrices, plain.matmul),
    )
}
"""The workloads by name."""
