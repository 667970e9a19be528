"""Lengths that are constants: a text is refused where the run of it with other names would stop."""

from __future__ import annotations

import random

import numpy as np
import pytest
from sizes import part, sized, wide

import rvm
from rvm.faults import AssemblyError, MachineError

SHAPES = {"v": (6,), "w": (5,), "u": (6,), "A": (2, 3), "B": (3, 2), "C": (2, 2), "y": ()}
HELPERS = """
func same(a: f64[n], b: f64[n])
    add a, b
func square(a: f64[n, n])
    add a, 1
func three(a: f64[3])
    add a, 1
func each(a: f64, b: f64)
    add a, b
"""


def vector(rng: random.Random, name: str) -> str:
    """A view of a vector, which may or may not lie inside."""
    n = SHAPES[name][0]
    ends = [rng.choice(("", str(rng.randint(0, n + 1)))) for _ in range(2)]
    step = rng.choice(("", "", ":2", ":-1", ":3"))
    return rng.choice((name, name, f"{name}[{ends[0]}:{ends[1]}{step}]"))


def matrix(rng: random.Random) -> str:
    m, n = rng.randint(1, 3), rng.randint(1, 3)
    made = (rng.choice("ABC"), f"{rng.choice('ABC')}.T", f"{vector(rng, 'v')}.reshape({m}, {n})")
    return rng.choice(made)


def statement(rng: random.Random) -> str:
    """An instruction or a call on u or C, with operands of any lengths."""
    i, j = rng.randint(0, 6), rng.randint(0, 3)
    a, b = vector(rng, "v"), vector(rng, "w")
    value = rng.choice((a, b, f"{a} + {b}", f"2 * {b}", f"B @ {a}", f"scan_left({b})"))
    made = (
        f"add {vector(rng, 'u')}, {value}",
        f"swap {vector(rng, 'u')}, {a}",
        f"add y, {a} @ {b}",
        f"add y, sum({value})",
        f"add u[{i}], w[{j}]",
        f"add u[{i}], A[{j}, {rng.randint(0, 3)}]",
        f"add C, {matrix(rng)} @ {matrix(rng)}",
        f"add C[{j}, :], {b}",
        f"add C, {a}",
        f"add y, sum({matrix(rng)} + {matrix(rng)})",
        f"call same({vector(rng, 'u')}, {a})",
        f"call square({matrix(rng)})",
        f"call three({vector(rng, 'u')})",
        f"map each({vector(rng, 'u')}, {rng.choice((a, 'y'))})",
        f"add y, choose(y > 1, u[{i}], 1)",
        f"with t: f64[{rng.randint(1, 6)}] = {b}\n add t, {a}\n sub t, {a}\n end",
    )
    return rng.choice(made)


def params(known: bool) -> str:
    sizes = {k: ", ".join(str(n) if known else ":" for n in s) for k, s in SHAPES.items()}
    return ", ".join(f"{k}: f64" + (f"[{s}]" if s else "") for k, s in sizes.items())


@wide
@sized
def test_what_is_refused_is_what_a_run_stops_at() -> None:
    """The same text, with and without the lengths in its head."""
    refused = taken = 0
    rng = random.Random(7)
    for _ in range(part(4000)):
        line = statement(rng)
        text = f"({{}})\n {line}\n{HELPERS}"
        values = {k: np.ones(s) if s else 1.0 for k, s in SHAPES.items()}
        try:
            library = rvm.assemble("func f" + text.format(params(known=False)))
        except AssemblyError as error:
            # By its dimensions, or its places, alone.
            assert error.code in ("A042", "A013", "A014", "A016", "A043"), (line, str(error))
            continue
        stops = ""
        try:
            library.f(**values)
        except MachineError as error:
            stops = error.code
        try:
            rvm.assemble("func f" + text.format(params(known=True)))
            assert stops not in ("R003", "R008"), (line, stops)
            taken += 1
        except AssemblyError as error:
            assert error.code == "A042" and stops in ("R003", "R008"), (line, str(error), stops)
            assert error.where.line == 2 or "with" in line
            refused += 1
    assert refused > 20 and taken > 20


@pytest.mark.parametrize(
    "line",
    [
        "add y, sum(v[::0])",
        "add s.top, x",
        "alloc t: f64[-1]\n free t",
        "if y > 1, y > 1\n call three(v)\n end",
    ],
)
def test_others(line: str) -> None:
    head = "func f(y: f64, v: f64[6], s: stack[f64[3]], x: f64[4])\n"
    with pytest.raises(AssemblyError) as caught:
        rvm.assemble(f"{head} {line}\n{HELPERS}")
    assert caught.value.code == "A042"
