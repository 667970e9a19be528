"""Derivatives without the duals of some parameters: what they do to values is known, too."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, sin

import numpy as np
import pytest
from sizes import thin

import rvm
from rvm.engines import executing
from rvm.transform.programs import in_values

FUNCTIONS = """
func sq(y: f64, x: f64)
    add y, x * x + sin(x)
func grown(y: f64, x: f64, c: f64)
    call sq(y, x)
    add y, c * x * x
"""
CALLS: dict[str, tuple[str, Callable[[float], float]]] = {
    "of a gradient": ("sq''(0.0, x, 1.0, 0.0; 0.0, y, _, 1.0)", lambda x: 2 - sin(x)),
    "of what calls": ("grown'(0.0, x, 1.5; 1.0, y, _)", lambda x: 5 * x + cos(x)),
    "of its gradient": (
        "grown''(0.0, x, 1.5, 1.0, 0.0, 0.0; 0.0, y, _, _, 1.0, 0.0)",
        lambda x: 5 - sin(x),
    ),
}
POINTS = np.linspace(0.1, 3.0, 60)


@thin
@pytest.mark.parametrize("what", CALLS)
def test_what_they_bring_back_is_back_at_any_point(what: str) -> None:
    call, true = CALLS[what]
    f = rvm.assemble(f"func f(y: f64, x: f64)\n    call {call}\n{FUNCTIONS}").f
    for engine in executing(loops=False):
        made = f.with_options(engine=engine)
        for x in POINTS:
            found = made(y=0.25, x=x)
            assert found["y"] == pytest.approx(0.25 + true(x), rel=1e-12), engine
            assert (~made)(**found)["y"] == pytest.approx(0.25, abs=1e-14), engine


@pytest.mark.parametrize("what", CALLS)
def test_their_adjoints_are_known(what: str) -> None:
    call, _ = CALLS[what]
    program = rvm.assemble(f"func f(y: f64, x: f64)\n    call {call}\n{FUNCTIONS}").program
    adjoints = {f.name for f in program.functions if "~'" in f.name}
    assert any("(" in name for name in adjoints)
    assert adjoints == in_values(program).keys()
