"""Gradients of gradients in any unit: one verdict, one number."""

from __future__ import annotations

import random
from typing import Any

import pytest
from sizes import first_and_another, part, sized, some, thin, wide

import rvm
from rvm.engines import executing
from rvm.faults import InvertibilityError

ENGINES = executing(loops=False)
NAMES = ("y", "a", "b", "c")
BARS = tuple(f"{n}_bar" for n in NAMES)
SCALES = ((-150, 0), (3, 200), (150, -60))
"""The exponents of the units of values and of adjoints."""
TURNED = """
func turned(u: f64, v: f64, w: f64)
    add u, v * v / w
    mul v, 1.25

"""


def program(seed: int) -> str:
    """A random function of four numbers in one unit, which are not returned to where they began."""
    rng = random.Random(seed)
    lines = []
    for _ in range(rng.randint(1, 6)):
        x, u, v, w = rng.sample(NAMES, 4)
        ratios = f"({u} / {v}) * {v}", f"{u} * {v} / {w}", f"{u} * sin({v} / {w})"
        value = rng.choice((*ratios, u, f"0.3 * {u}", f"{u} - {v}", f"sqrt({u} * {u} + {v} * {v})"))
        factor = rng.choice(["1.5", "3.0", f"(1.5 + cos({u} / {v}))"])
        lines += rng.choice(
            [
                [f"add {x}, {value}"],
                [f"sub {x}, {value}"],
                [f"add {x}, {value}", f"add {u}, {v} * {v} / {w}", f"sub {x}, {value}"],
                [f"{rng.choice(['mul', 'div'])} {x}, {factor}"],
                [f"rot {x}, {u}, 0.7"],
                [f"swap {x}, {u}"],
                [f"alloc t: f64 = {value}", f"add {x}, t", f"free t = {value}"],
                [f"call turned({x}, {u}, {v})"],
                [f"call turned({x}, {u}, {v})", f"uncall turned({x}, {u}, {v})"],
            ]
        )
    head = "func f(y: f64, a: f64, b: f64, c: f64)\n"
    return TURNED + head + "".join(f"    {line}\n" for line in lines)


def point(rng: random.Random) -> tuple[dict[str, float], dict[str, float]]:
    """Values, and adjoints: one of them 1, random ones, or none."""
    values = {n: rng.choice((-1, 1)) * 2 ** rng.uniform(-3, 3) for n in NAMES}
    bars = dict.fromkeys(BARS, 0.0)
    match rng.randrange(3):
        case 0:
            bars[rng.choice(BARS)] = 1.0
        case 1:
            bars = {n: rng.gauss(0, 1) for n in BARS}
    return values, bars


def scaled(given: dict[str, float], k: int) -> dict[str, float]:
    return {n: v * 2.0**k for n, v in given.items()}


def found(f: Any, engine: str, loss: str, given: dict[str, float]) -> dict[str, float] | str:
    try:
        return dict(f.with_options(engine=engine).grad(loss=loss, **given))
    except InvertibilityError as error:
        return error.code


def unit(name: str, k: int, j: int) -> int:
    """The exponent of the unit of a value or of an adjoint."""
    return j if name in BARS else k


@wide
@sized
def test_a_gradient_of_a_gradient_is_the_same_in_every_unit() -> None:
    """The same verdict, and the same bits; right ones are accepted, which most of these are."""
    outcomes = []
    for seed in range(part(60)):
        f, rng = rvm.assemble(program(seed)).f, random.Random(seed)
        g = f.gradient_program["f_gradient"]
        for y in (None, 0.0):
            values, bars = point(rng)
            values["y"] = values["y"] if y is None else y
            loss = rng.choice((*BARS, "a", "y"))
            for engine in first_and_another(ENGINES, seed):
                first = found(g, engine, loss, values | bars)
                outcomes.append(first)
                for k, j in SCALES:
                    other = found(g, engine, loss, scaled(values, k) | scaled(bars, j))
                    if isinstance(other, dict):
                        by = unit(loss, k, j)
                        other = {n: v * 2.0 ** (unit(n, k, j) - by) for n, v in other.items()}
                    assert other == first, (seed, engine, loss, k, j, values, bars)
    assert outcomes.count("R017") <= len(outcomes) // 5


ABSORBING = """
func f(y: f64, a: f64, b: f64, c: f64)
    add y, (c / b) * b
    mul a, 1.5
    add a, b
    div c, 3.0
    add y, 2.0 / 1.5
"""


@pytest.mark.parametrize("engine", ENGINES)
@some
def test_what_only_gathers_may_begin_as_little_as_it_likes(engine: str) -> None:
    """The derivative of b's adjoint by that of y is zero, and is what rounding makes of it.

    y forgets where it began, and nothing reads it.
    """
    g = rvm.assemble(ABSORBING).f.gradient_program["f_gradient"]
    rng = random.Random(1)
    for _ in range(part(60)):
        values, bars = point(rng)
        for k in (-300, -100, -1, 0, 1, 100, 300):
            for y in (values["y"] * 2.0**k, 0.0):
                at = scaled(values, k) | bars | {"y": y}
                assert isinstance(found(g, engine, "b_bar", at), dict), (values, bars, k)


CONTRACTING = """
func f(y: f64, a: f64, b: f64, c: f64)
    for i = 1 to 60
        mul a, 0.5
        add a, b
        add y, a * a / c
    end
"""


@pytest.mark.parametrize("engine", ENGINES)
@some
@thin
def test_what_is_lost_is_refused_in_every_unit(engine: str) -> None:
    g = rvm.assemble(CONTRACTING).f.gradient_program["f_gradient"]
    values, bars = dict(zip(NAMES, (0.3, 1.1, 0.7, 1.3), strict=True)), dict.fromkeys(BARS, 1.0)
    for y, (k, j) in zip((0.0, 0.3, 1.1), SCALES, strict=True):
        at = scaled(values | {"y": y}, k) | scaled(bars, j)
        assert found(g, engine, "b_bar", at) == "R017", (k, j, y)
