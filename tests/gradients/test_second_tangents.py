"""Second derivatives of programs with ancillas: tangents of tangents, and of gradients, run as
ordinary programs, against mpmath's of the same formula, whatever units the inputs are in.

What an ancilla must hold when it is freed is often zero here, computed from terms that cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
from sizes import part, sized, thin

import rvm
from rvm.engines import executing
from rvm.program import Program
from rvm.transform.programs import gradient_program, tangent_program

ENGINES = [
    pytest.param(e, marks=() if e == "python" else pytest.mark.deep) for e in executing(loops=False)
]
Formula = Callable[[Any, Any], Any]


def loop(begin: str, count: int, body: str) -> str:
    """A function that makes a number in a loop, adds it to y, and undoes the loop."""
    lines = [f"        {line}\n" for line in begin.split("; ")]
    lines += [f"        for k = 1 to {count}\n"]
    lines += [f"            {line}\n" for line in body.split("; ")]
    return (
        "func f(y: f64, x: f64, c: f64)\n    routine made\n"
        f"{''.join(lines)}        end\n    end\n    add y, b\n    undo made\n"
    )


SERIES = """
func f(y: f64, x: f64, c: f64)
    routine series
        alloc total: f64
        alloc term: f64 = x
        alloc k: i64
        while abs(term) > abs(x) * 1e-16 , k != 0
            inc k
            alloc next: f64 = term * c / f64(k)
            add total, next
            swap term, next
            free next = term * f64(k) / c
        end
    end
    add y, total
    undo series
"""
ONCE = """
func f(y: f64, x: f64, c: f64)
    routine made
        alloc a: f64
        add a, x * c
        alloc t: f64 = a * c
        add t, x
        alloc b: f64 = sqrt(a * a + t * t)
        sub t, x * (c * c + 1.0)
        free t
    end
    add y, b * c
    undo made
"""


def repeated(x: Any, c: Any, next_one: Callable[[Any, Any, Any], Any], first: Any) -> Any:
    a, b = x, first
    for _ in range(9):
        a, b = b, next_one(a, b, c)
    return b


BEGIN = "alloc a: f64 = x; alloc b: f64 = x * c"
SWAPS = "swap a, b; swap b, next"
PROGRAMS: dict[str, tuple[str, Formula]] = {
    "series": (SERIES, lambda x, c: x * mpmath.expm1(c)),
    "once": (ONCE, lambda x, c: c * mpmath.sqrt((x * c) ** 2 + (x * c * c + x) ** 2)),
    "sums": (
        loop(BEGIN, 9, f"alloc next: f64 = a * c + b; {SWAPS}; free next = (b - a) / c"),
        lambda x, c: repeated(x, c, lambda a, b, c: a * c + b, x * c),
    ),
    "Chebyshev": (
        loop(BEGIN, 9, f"alloc next: f64 = 2.0 * c * b - a; {SWAPS}; free next = 2.0 * c * a - b"),
        lambda x, c: repeated(x, c, lambda a, b, c: 2 * c * b - a, x * c),
    ),
    "quotients": (
        loop(BEGIN, 9, f"alloc next: f64 = b / c + a; {SWAPS}; free next = b - a / c"),
        lambda x, c: repeated(x, c, lambda a, b, c: b / c + a, x * c),
    ),
}
"""Functions of x and c that are homogeneous in x: x alone carries a unit."""


class Second(NamedTuple):
    """Programs with second derivatives of a function."""

    tangents: Program
    of_gradient: Program


@cache
def programs(name: str) -> Second:
    f = rvm.assemble(PROGRAMS[name][0]).program
    one, gradient = tangent_program(f, "f"), gradient_program(f, "f")
    return Second(tangent_program(one, one.entry), tangent_program(gradient, gradient.entry))


def run(program: Program, engine: str, **given: float) -> Any:
    """The results where what is not given is 0."""
    f = program.function(program.entry)
    zeros = {p.name: 0.0 for p in f.params}
    assert set(given) <= set(zeros)
    return rvm.Library(program)[f.name](engine=engine, **{**zeros, **given})


def points(name: str, count: int) -> list[tuple[float, float, tuple[float, float]]]:
    """Values of x and c, and a direction."""
    rng = np.random.default_rng(len(name))
    return [
        (rng.normal(), rng.uniform(0.4, 1.6), (rng.normal(), rng.normal())) for _ in range(count)
    ]


@thin
@sized
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives_along_a_direction(name: str, engine: str) -> None:
    made, formula = programs(name), PROGRAMS[name][1]
    for x, c, (dx, dc) in points(name, part(6)):
        with mpmath.workdps(60):
            held = [mpmath.mpf(v) for v in (x, c, dx, dc)]

            def along(t: Any, held: Any = held) -> Any:
                return formula(held[0] + t * held[2], held[1] + t * held[3])

            want = float(mpmath.diff(along, 0, 2, h=mpmath.mpf(10) ** -20))
        for k in (-200, 1):
            unit = 2.0**k
            at = {"x": x * unit, "c": c, "x_dot": dx * unit, "c_dot": dc}
            twice = run(made.tangents, engine, **at, x_dot_=dx * unit, c_dot_=dc)
            assert twice["y_dot_dot"] / unit == pytest.approx(want, rel=1e-9)
            forward = run(made.of_gradient, engine, **at, y_bar=1.0)
            along_it = dx * forward["x_bar_dot"] + dc * forward["c_bar_dot"] / unit
            assert along_it == pytest.approx(want, rel=1e-9)


LOST = """
func f(y: f64, a: f64, x: f64, n: i64)
    for i = 1 to n
        mul x, 0.5
        add x, 0.3
        add y, a * a * x
    end
"""
DOORS: dict[str, Callable[[Any, dict[str, Any]], float]] = {
    "jvp": lambda g, at: g.jvp({"a": 1.0}, at)[1].a_bar,
    "grad": lambda g, at: g.grad(at, loss="a_bar").a,
    "jacobian": lambda g, at: g.jacobian(at, of=["a_bar"], wrt=["a"]).a_bar.a,
    "lanes": lambda g, at: g.map.grad(loss="a_bar", **at | {"y": np.zeros(2)}).a / 2,
}


@pytest.mark.parametrize("door", DOORS)
def test_derivatives_of_a_gradient_need_its_values(door: str) -> None:
    """The adjoint of a is 0, and so right whatever x comes back as; its derivative is not."""
    g = rvm.assemble(LOST).f.gradient_program["f_gradient"]
    at = {"y": 0.0, "a": 0.0, "x": 1.1, "y_bar": 1.0, "a_bar": 0.0, "x_bar": 0.0}
    exact, x = 0.0, 1.1
    for _ in range(3):
        x = 0.5 * x + 0.3
        exact += 2 * x
    assert DOORS[door](g, at | {"n": 3}) == pytest.approx(exact, rel=1e-14)
    with pytest.raises((rvm.InvertibilityError, rvm.LaneErrors), match="its derivatives may not"):
        DOORS[door](g, at | {"n": 60})
    accepting = g.with_options(tolerance=math.inf)
    DOORS[door](accepting, at | {"n": 60})
