"""Parameters that must hold a known value, such as zero: derivatives by them are zero.

What comes into an ancilla that is freed, or into a place that is popped into, cannot be changed
along a direction: the run would end there.  All ways to differentiate then have to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
from gradients import properties
from sizes import sample, some, thin

import rvm
from rvm.derive.hessians import METHODS


class Known(NamedTuple):
    """A function f(y, x, c) of which y must be `y`, and what it then makes of y."""

    text: str
    want: Callable[[Any, Any], Any]
    y: float = 0.0


def _fourth(x: Any, c: Any) -> Any:
    for _ in range(4):
        x = x + c * mpmath.sin(x)
    return x


X, C = 0.4, 0.3
PROGRAMS = {
    "iterate": Known(
        """
        entry f
        func st(y: f64, x: f64, c: f64)
            add y, x + c * sin(x)
        func f(y: f64, x: f64, c: f64)
            iterate st(y, x, c) times 4 with pebbles = 3
        """,
        _fourth,
    ),
    "pop": Known(
        """
        func f(y: f64, x: f64, c: f64)
            alloc s: stack[f64]
            alloc t: f64
            add t, x * sin(c)
            push t, s
            pop y, s
            free t
            free s
        """,
        lambda x, c: x * mpmath.sin(c),
    ),
    "undone push": Known(
        """
        func f(y: f64, x: f64, c: f64)
            alloc s: stack[f64]
            alloc t: f64
            add t, x * sin(c)
            uncall moved(t, s)
            call moved(y, s)
            free t
            free s
        func moved(a: f64, s: stack[f64])
            pop a, s
        """,
        lambda x, c: x * mpmath.sin(c),
    ),
    "swap": Known(
        """
        func f(y: f64, x: f64, c: f64)
            alloc t: f64
            add t, x * sin(c)
            swap y, t
            free t
        """,
        lambda x, c: x * mpmath.sin(c),
    ),
    "another value": Known(
        """
        func f(y: f64, x: f64, c: f64)
            alloc t: f64 = x * c
            add t, x * sin(c)
            swap y, t
            free t = x * c
        """,
        lambda x, c: x * c + x * mpmath.sin(c),
        X * C,
    ),
    "in an array": Known(
        """
        func f(y: f64, x: f64, c: f64)
            alloc t: f64[3]
            add t[1], x * sin(c)
            swap y, t[1]
            free t
        """,
        lambda x, c: x * mpmath.sin(c),
    ),
    "in a branch": Known(
        """
        func f(y: f64, x: f64, c: f64)
            if c > 0.0, c > 0.0
                alloc t: f64
                add t, x * sin(c)
                swap y, t
                free t
            end
        """,
        lambda x, c: x * mpmath.sin(c),
    ),
    "in what is called with a value": Known(
        """
        entry f
        func f(y: f64, x: f64, c: f64)
            call g(x * x - 0.16000000000000003, y, x * sin(c))
        func g(p: f64, q: f64, v: f64)
            add q, v
            alloc t: f64
            swap p, t
            free t
        """,
        lambda x, c: x * mpmath.sin(c),
    ),
}
each = pytest.mark.parametrize("name", PROGRAMS)


def inputs(known: Known) -> dict[str, Any]:
    return {"y": known.y, "x": X, "c": C}


def by_numbers(known: Known, order: tuple[int, int]) -> float:
    """A derivative by x and c."""
    with mpmath.workdps(40):
        found = mpmath.diff(known.want, (mpmath.mpf(X), mpmath.mpf(C)), order)
        return float(mpmath.chop(found, 1e-30))


@thin(4)
@sample
@each
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_hessians(name: str, method: str, strict: bool) -> None:
    known = PROGRAMS[name]
    f = rvm.assemble(known.text).f
    h = f.hessian(loss="y", method=method, strict=strict, **inputs(known))
    error: Any = h.info.error
    orders = {"y": None, "x": np.array([1, 0]), "c": np.array([0, 1])}
    for a, one in orders.items():
        for b, two in orders.items():
            exact = 0.0
            if one is not None and two is not None:
                exact = by_numbers(known, tuple(one + two))
            off = abs(h[a][b] - exact)
            assert off <= error[a][b] <= 1e-12 * max(1.0, abs(exact)), (a, b)


@thin(2)
@each
def test_gradients_and_their_errors(name: str) -> None:
    known = PROGRAMS[name]
    f = rvm.assemble(known.text).f
    at = inputs(known)
    g = f.grad(loss="y", tolerance=1e-9, **at)
    error: Any = g.info.error
    exact: Mapping[str, float] = {"x": by_numbers(known, (1, 0)), "c": by_numbers(known, (0, 1))}
    for k, d in exact.items():
        assert abs(g[k] - d) <= error[k] <= 1e-12 * max(1.0, abs(d)), k
    assert g.y == f.jvp({"y": 1.0}, **at)[1].y


@some
@each
def test_both_directions(name: str) -> None:
    known = PROGRAMS[name]
    f, at = rvm.assemble(known.text).f, inputs(known)
    rng = np.random.default_rng(0)
    properties.adjoints_transpose_tangents(f, at, rng, 1e-14)
    properties.adjoints_transpose_tangents(~f, properties.copied(f(**at)), rng, 1e-14)
    error: Any = (~f).grad(loss="x", **properties.copied(f(**at))).info.error
    assert all(np.isfinite(error[k]) for k in at)
