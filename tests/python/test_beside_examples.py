"""Examples in assembly text, written as Python functions: the same values, there and back."""

from __future__ import annotations

import cmath
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rvm
from rvm import Array, c128, f64, i64

EXAMPLES = Path(__file__).parents[2] / "examples"


@rvm.reversible
def clog(y: c128, x: c128):
    with rvm.compute() as r:
        nsq: f64 = x.real**2 + x.imag**2
        n: f64 = math.sqrt(nsq)
    y.real += math.log(n)
    y.imag += math.atan2(x.imag, x.real)
    r.undo()


@rvm.reversible
def norm(y: f64, x: Array[f64, "n"]):
    for i in range(len(x)):
        y += x[i] ** 2


@rvm.reversible
def length(r: f64, y: f64, x: Array[f64, "n"]):
    norm(y, x)
    r += math.sqrt(y)


@rvm.reversible
def by_loops(y: Array[f64, "m"], W: Array[f64, "m", "n"], b: Array[f64, "m"], x: Array[f64, "n"]):
    for i in range(len(y)):
        for j in range(len(x)):
            y[i] += W[i, j] * x[j]
        y[i] += b[i]


@rvm.reversible
def sparse_dot(
    s: f64, p: Array[i64, "m"], x: Array[f64, "m"], q: Array[i64, "n"], y: Array[f64, "n"]
):
    m, n = len(x), len(y)
    with rvm.ancilla(0) as i, rvm.ancilla(0) as j:
        while rvm.loop(i < m or j < n, i + j > 0):
            if rvm.when(i < m and j < n and p[i] == q[j], i > 0 and j > 0 and p[i - 1] == q[j - 1]):
                s += x[i] * y[j]
                i += 1
                j += 1
            elif rvm.when(
                j == n or (i < m and p[i] < q[j]), j == 0 or (i > 0 and p[i - 1] > q[j - 1])
            ):
                i += 1
            else:
                j += 1
        i -= m
        j -= n


@rvm.reversible
def fib(out: i64, n: i64):
    if n < 2:
        out += n
    else:
        fib(out, n - 1)
        fib(out, n - 2)


@rvm.reversible
def fib_at_least(n: i64, x: i64):
    with rvm.ancilla(0) as f:
        while rvm.loop(f < x, n != 0):
            (~fib)(f, n)
            n += 1
            fib(f, n)
        (~fib)(f, n)


CASES: list[tuple[Any, str, dict[str, Any]]] = [
    (clog, "clog", {"y": 0.5 + 0j, "x": 3 - 4j}),
    (length, "norm", {"r": 0.0, "y": 0.0, "x": np.array([1.0, 2.0, 3.0])}),
    (
        by_loops,
        "affine",
        {"y": np.zeros(2), "W": np.arange(6.0).reshape(2, 3), "b": np.ones(2), "x": np.ones(3)},
    ),
    (
        sparse_dot,
        "sparse_dot",
        {
            "s": 0.0, "p": np.array([0, 2, 5]), "x": np.array([1.0, 2.0, 3.0]),
            "q": np.array([2, 3, 5, 7]), "y": np.array([4.0, 5.0, 6.0, 7.0]),
        },
    ),
    (fib_at_least, "fibonacci", {"n": 0, "x": 50}),
]  # fmt: skip


def copied(values: dict[str, Any]) -> dict[str, Any]:
    return {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in values.items()}


@pytest.mark.parametrize(("f", "file", "given"), CASES, ids=lambda v: getattr(v, "name", None))
def test_the_same_as_in_assembly(f: Any, file: str, given: dict[str, Any]) -> None:
    other = rvm.load(EXAMPLES / f"{file}.rasm")[f.name]
    out, want = f(**copied(given)), other(**copied(given))
    for name in given:
        np.testing.assert_array_equal(out[name], want[name])
    back = (~f)(**out)
    for name in given:
        np.testing.assert_allclose(back[name], given[name], atol=1e-15)


def test_the_logarithm() -> None:
    assert abs(clog(0j, 3 - 4j).y - cmath.log(3 - 4j)) < 1e-15


@pytest.mark.parametrize("name", ["weighted", "power12", "norm", "exchanged"])
def test_the_same_program_as_in_assembly(name: str) -> None:
    """What is written alike becomes the same instructions on the same registers."""
    both = (rvm.load(EXAMPLES / "nilang" / f"first.{s}") for s in ("rasm", "py"))
    f, g = (lib.program.function(name) for lib in both)
    assert f.code == g.code
    assert [(r.name, r.type, r.dims) for r in f.registers] == [
        (r.name, r.type, r.dims) for r in g.registers
    ]
