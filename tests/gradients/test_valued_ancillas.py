"""Gradients through ancillas that begin with a value, and are far from it for a while."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from sizes import sample, some, thin, wide

import rvm
from rvm.engines import LAW, executing, having
from rvm.faults import InvertibilityError
from rvm.numbers.rounding import away
from rvm.pebble import iterate
from rvm.types import F32, F64

LOSS = {"f64": {"loss": "y"}, "f32": {"loss": "y"}, "c128": {"loss": "y.re"}}
HEAD = "func f(y: T, y2: T, x: T, w: T, c: T)\n"
GROWN = """func grown(t: T, w: T)
    add t, w

func read(y: T, t: T, c: T)
    add y, c * t

"""
FORMS = {
    "place": """    alloc t: T = x
    add y, c * t
    add t, w
    add y2, t
    free t = x + w
""",
    "expression": """    alloc t: T = x * 0.5
    add y, 2 * c * t
    add t, w
    add y2, t
    sub t, w
    add t, w
    free t = x * 0.5 + w
""",
    "scaled": """    alloc t: T = x
    add y, c * t
    mul t, 2
    add t, w
    add y2, t
    free t = 2 * x + w
""",
    "array": """    alloc u: T[3]
    add u[0], w
    add u[1], x
    alloc v: T[3] = u
    add y, c * v[1]
    add v[1], w
    add y2, v[1]
    sub v[1], w
    free v = u
    sub u[1], x
    sub u[0], w
    free u
""",
    "elements": """    alloc t: T[3] = x
    add y, c * t[1]
    add t[1], w
    add y2, t[1]
    sub t[1], w
    free t = x
""",
    "loop": """    for i = 1 to 5
        alloc t: T = x
        add y, c * t * (1 / 5)
        add t, w
        add y2, t
        free t = x + w
    end
""",
    "long loop": """    for i = 1 to 64
        alloc t: T = x
        add y, c * t * (1 / 64)
        add t, w
        add y2, t
        free t = x + w
    end
""",
    "calls": """    alloc t: T = x
    call read(y, t, c)
    call grown(t, w)
    add y2, t
    free t = x + w
""",
    "pop": """    alloc s: stack[T]
    alloc t: T = x
    alloc u: T
    push t, s
    pop u, s
    add y, c * u
    add u, w
    add y2, u
    push u, s
    pop t, s
    free u
    free t = x + w
    free s
""",
    "swap": """    alloc t: T = x
    alloc u: T
    swap t, u
    add y, c * u
    add u, w
    add y2, u
    swap t, u
    free u
    free t = x + w
""",
}


STEP = """
func step(y: f64, x: f64, w: f64, c: f64)
    alloc t: f64 = x
    add y, c * t
    add t, w
    sub y, 0 * t
    free t = x + w
"""
FAR = (2.0, 1e5, 1e14, 1e17)
"""How far the ancillas go; the first loses nothing."""
TYPES = {"f64": 0, "c128": 0, "f32": -26}
"""The powers of two by which what is far is scaled down for types with fewer digits."""


@cache
def library(form: str, t: str) -> rvm.Library:
    return rvm.assemble(re.sub(r"\bT\b", t, GROWN + HEAD + FORMS[form]))


def inputs(far: float, scale: float = 1.0, c: float = 0.0) -> dict[str, float]:
    return {"y": 0.0, "y2": 0.0, "x": 0.3 * scale, "w": far * scale, "c": c}


def outcome(gradient: Callable[[], Any]) -> tuple[Any, Any, float] | str:
    """The adjoints of c and x, and the drift; or the code of the error."""
    try:
        found = gradient()
    except InvertibilityError as error:
        return error.code
    return found.c, found.x, found.info.drift


def is_right(found: Any, c: float, t: str = "f64", scale: float = 1.0) -> bool:
    """Whether an outcome is the derivatives of y = c x, within what gradients may be off by."""
    near = 1e-3 if t == "f32" else 1e-6
    return abs(found[0] - 0.3 * scale) <= near * 0.3 * scale and abs(found[1] - c) <= near * c


def far_and_seeds(t: str) -> Iterator[dict[str, float]]:
    """Inputs that are lost or not, with gradients by x that are zero or not."""
    for far in FAR:
        for c in (0.0, 2.0):
            yield inputs(far * 2.0 ** (TYPES[t] if far > 2 else 0), c=c)


@thin(4)
@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("form", FORMS)
@some
def test_gradients_are_right_or_refused_in_all_units(form: str, t: str) -> None:
    """The value is read, and then lost beside a larger one, so that it comes back as another."""
    f, verdicts = library(form, t).f.with_options(engine=LAW), set()
    for at in far_and_seeds(t):
        found = outcome(lambda at=at: f.grad(**LOSS[t], **at))
        assert found == "R017" or is_right(found, at["c"], t), (at, found)
        if at["w"] == FAR[0]:
            assert found[2] < 1, found
        verdicts.add(found == "R017")
        for k in (-90, -7, 40, 60) if t == "f32" else (-900, -300, 7, 900):
            scaled = {**at, "x": at["x"] * 2.0**k, "w": at["w"] * 2.0**k}
            other = outcome(lambda at=scaled: f.grad(**LOSS[t], **at))
            assert other == (found if found == "R017" else (found[0] * 2.0**k, *found[1:])), (at, k)
    # Copies that the assembler adds keep elements of arrays from being lost.
    assert verdicts == ({False} if form in ("array", "elements") else {False, True})


@wide
@sample
@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("form", FORMS)
def test_engines_agree_on_adjoints_drifts_and_verdicts(form: str, t: str) -> None:
    f = library(form, t).f
    for at in far_and_seeds(t):
        found = {
            e: outcome(lambda e=e, at=at: f.grad(**LOSS[t], engine=e, **at)) for e in executing()
        }
        assert len(set(found.values())) == 1, (at, found)


@wide
@sample
@pytest.mark.parametrize("form", FORMS)
def test_other_ways_to_derivatives_are_right_or_refused(form: str) -> None:
    """Jacobians by tangents, where adjoints are not right; in lanes each as by itself; Hessians."""
    f = library(form, "f64").f.with_options(engine=LAW)
    for c in (0.0, 2.0):
        alone = [outcome(lambda w=w, c=c: f.grad(loss="y", **inputs(w, c=c))) for w in FAR]
        for w in FAR:
            row = f.jacobian(of=["y"], **inputs(w, c=c)).y
            assert is_right((row.c, row.x), c), (w, row)
            for method in ("taylor", "forward-over-reverse"):
                try:
                    h = f.hessian(loss="y", method=method, **inputs(w, c=c))
                except InvertibilityError:
                    assert w != FAR[0]
                else:
                    assert h.c.x == pytest.approx(1, rel=1e-6), (w, method)
        rows = {k: np.array([inputs(w, c=c)[k] for w in FAR]) for k in inputs(1.0)}
        for engine in having("lanes"):
            many = f.map.grad(loss="y", engine=engine, on_error="return", **rows)
            for lane, one in enumerate(alone):
                found = many.errors.get(lane)
                found = found.code if found else (many.c[lane], many.x[lane])
                assert found == (one if isinstance(one, str) else one[:2]), (engine, lane)


@pytest.mark.parametrize("engine", executing())
@some
def test_steps_that_are_played_are_judged_by_their_ancillas(engine: str) -> None:
    step = rvm.assemble(STEP).step.with_options(engine=engine)
    for w in FAR:
        try:
            found = iterate(step, 3, pebbles=2).gradient(
                0.3, seed=1.0, constants={"w": w, "c": 2.0}
            )
        except InvertibilityError as error:
            assert error.code in ("R001", "R017") and w != FAR[0]
        else:
            assert found.constants["c"] == pytest.approx(3 * 0.3 * 4, rel=1e-6), w


def test_a_value_is_measured_by_itself_and_a_zero_by_the_largest_of_its_array() -> None:
    """The drift in parts of 2 ** -40; f32 has as many gaps, and zeros alone have no measure."""
    gaps, sizes = np.array([1e-9, 0.0, 3e-9]), np.array([1e-3, 5.0, 0.0])
    assert away(F64, gaps, sizes) == pytest.approx(1e-6 * 2**40)
    assert away(F64, gaps, np.array([1.0, 1e-2, 0.0])) == pytest.approx(3e-9 * 2**40)
    assert away(F32, gaps, sizes) == pytest.approx(1e-6 * 2**11)
    assert away(F64, gaps, np.zeros(3)) == 0
    assert away(F64, np.array([0.0, 1.0]), np.array([np.nan, 2.0])) == 0.5 * 2**40
