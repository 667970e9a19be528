"""Gradient programs of gradient programs are undone by their inverses."""

from __future__ import annotations

import random
from typing import Any

import pytest
from sizes import sample, thin, wide

import rvm

KINDS = {
    "ancilla": "alloc t: f64 = a / add y, t ** 3.0 * b / free t = a",
    "two": "alloc t: f64 = a * b / alloc u: f64 = sin(t) / add y, u * t / free u = sin(t) "
    "/ free t = a * b",
    "changed": "alloc t: f64 / add t, a * b / mul t, 2.0 + b ** 2 / add y, exp(t) "
    "/ div t, 2.0 + b ** 2 / sub t, a * b / free t",
    "array": "alloc t: f64[3] / add t, a / add t[1], b / add y, sum(t ** 3.0) / sub t[1], b "
    "/ sub t, a / free t",
    "loop": "alloc t: f64 = a / for i = 1 to 3 / add t, b * sin(b * f64(i)) / end "
    "/ add y, t ** 3.0 / for i = 3 to 1 step -1 / sub t, b * sin(b * f64(i)) / end / free t = a",
    "if": "alloc t: f64 = a / if b > 0.0 / add t, b ** 2 / else / sub t, b / end / add y, t ** 3.0 "
    "/ if b > 0.0 / sub t, b ** 2 / else / add t, b / end / free t = a",
    "rot": "alloc t: f64 = a / rot t, y, b / add y, t ** 2 / sub y, t ** 2 / irot t, y, b "
    "/ add y, t * b / free t = a",
    "called": "alloc t: f64 = a / call g(t, b) / add y, t ** 3.0 / uncall g(t, b) / free t = a",
    "expression": "call g(y, a * b) / call g(y, a + b)",
    "pushed": "alloc s: stack[f64] / push a, s / add a, b ** 2 / add y, a ** 3.0 / sub a, b ** 2 "
    "/ pop a, s / free s",
    "swap": "alloc t: f64 = a / swap t, y / add y, t * b ** 2 / sub y, t * b ** 2 / swap t, y "
    "/ add y, t ** 2 * b / free t = a",
}
CALLED = """
func g(y: f64, x: f64)
    alloc u: f64 = sin(x)
    add y, u ** 3.0 * x
    free u = sin(x)
"""


def made(kind: str, times: int) -> Any:
    body = "\n    ".join(KINDS[kind].split(" / "))
    f = rvm.assemble(f"func f(y: f64, a: f64, b: f64)\n    {body}\n{CALLED}entry f\n").f
    for _ in range(times):
        program = f.gradient_program
        f = program[program.program.entry]
    return f


@thin
@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
@sample
def test_what_a_gradient_program_leaves_tells_what_it_began_with(kind: str, times: int) -> None:
    f = made(kind, times)
    draw = random.Random(times)
    begun = {name: draw.uniform(0.5, 1.5) for name in f.parameters}
    back = (~f)(**f(**begun))
    assert back == pytest.approx(begun, rel=1e-9, abs=1e-9)


@wide
@pytest.mark.parametrize("body", ["add y, x ** 5", "add y, sin(x) * exp(x)", "mul y, exp(x)"])
def test_gradients_of_gradients_bring_back_what_they_began_with(body: str) -> None:
    """However large rounding has made what lies between: not one of many is refused."""
    names = [f"a{k}" for k in range(16)]
    bars = ", ".join(names[8:])
    f = rvm.assemble(f"""
entry w
func g(y: f64, x: f64)
    {body}
func w({", ".join(n + ": f64" for n in names)})
    call g'''({", ".join(names[:8])}; {bars})
""").w
    rng = random.Random(1)
    for _ in range(60):
        given = {n: rng.uniform(-3, 3) for n in names}
        out = f(**given, engine="python")
        assert [out[n] for n in names[:8]] == pytest.approx([given[n] for n in names[:8]], rel=1e-9)
