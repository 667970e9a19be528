"""What gradients cost: the counting of operations, and the bound on steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rvm_asm import assemble
from rvm_bench.gradients import GradientCost, RunWork, costs, counted, table

import rvm
from rvm.run.machine import Machine
from rvm.state import Options

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("line", "operations"),
    [
        ("inc k", 0),
        ("swap y, a", 0),
        ("add y, a * b", 2),
        ("add y, sin(a * b) + f64(k)", 5),
        ("rot y, a, b", 10),  # two of: cos, sin, two products, a sum
        ("if a > 0 and 1 / b > 0\n        neg y\n    end", 3 + 1 + 3),
        ("if a > 9 and 1 / b > 0\n        neg y\n    end", 1 + 1),
        ("add y, dot(x, x)", 1 + 4),
        ("add x, a * z + 1", 4 + 4 + 4),
        ("add z, A @ x", 4 + 16),
        ("add A, outer(x, z)", 16 + 16),
    ],
)
def test_operations_of_a_line(line: str, operations: int) -> None:
    program = assemble(
        f"func f(y: f64, a: f64, b: f64, k: i64, x: f64[n], z: f64[n], A: f64[n, n])\n    {line}\n"
    )
    given = {"y": 1.0, "a": 2.0, "b": 3.0, "k": 4, "x": np.ones(4), "z": np.ones(4)}
    machine = Machine.start(program, "f", given | {"A": np.ones((4, 4))}, Options())
    assert counted(machine).operations == operations


def test_steps_are_those_of_a_gradient() -> None:
    (norm, length) = costs([EXAMPLES / "norm.rasm"])
    pull = norm_pullback()
    assert (norm.function.steps, norm.gradient.steps) == pull
    # The loop adds three squares; its gradient subtracts them and adds y_bar * (2 * x[i]) to x_bar.
    assert norm.function.operations == 3 * 2
    assert norm.gradient.operations == 2 * 6 + 3 * 3
    assert length.name == "norm length"


def norm_pullback() -> tuple[int, int]:
    """Steps of `norm` on its own example, without and with the gradient."""
    pull = rvm.load(EXAMPLES / "norm.rasm").norm.pullback(y=0.0, x=np.array([1.0, 2.0, 3.0]))
    forward = pull.ticks
    pull.seed("y")
    pull()
    return forward, pull.ticks


def test_the_table_is_aligned() -> None:
    one, two = RunWork(1, 0), RunWork(1_000, 50)
    lines = table(
        [GradientCost("a", one, one, one, one), GradientCost("longer", two, two, two, two)]
    ).splitlines()
    assert lines[1].split() == ["a", "1", "×1.00", "0", "-", "0", "-"]
    assert len({len(line) for line in lines}) == 1
