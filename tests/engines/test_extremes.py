"""Extreme elements and where they are, on every engine, of which the standard's order says which.

Of equals it is the first, zeros of either sign among them, and a NaN is before all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from sizes import thin, wide

import rvm
from rvm.engines import ENGINES, LAW

TYPES = {"f64": np.float64, "f32": np.float32, "i64": np.int64, "u8": np.uint8}
PROGRAM = {
    t: rvm.assemble(
        f"""
        func one(least: {t}, most: {t}, x: {t}[n])
            sub least, amin(x)
            sub most, amax(x)
        func two(least: {t}, most: {t}, x: {t}[n, m])
            sub least, amin(x)
            sub most, amax(x)
        func where_one(last: {t}[n], first: {t}[n], x: {t}[n])
            add last, last_min(x)
            add first, first_max(x)
        func where_two(last: {t}[n, m], first: {t}[n, m], x: {t}[n, m])
            add last, last_min(x)
            add first, first_max(x)
        """
    )
    for t in TYPES
}
"""0 less -0 is 0, and -0 less 0 is -0: so -0 tells the signs of zeros that are taken from it."""


def before(a: Any, b: Any, most: bool) -> bool:
    """Whether an element takes the place of another, which came earlier."""
    if b != b or a == b:
        return False
    return bool(a != a or (a > b if most else a < b))


def extreme(x: Sequence[Any], most: bool) -> int:
    """The position of the first extreme element."""
    at = 0
    for k in range(1, len(x)):
        if before(x[k], x[at], most):
            at = k
    return at


def arrays(t: str) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(7)
    values: list[Any] = [3, 7, 7, 0, 9, 9]
    if t[0] == "f":
        values = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, 2.5e-310 if t == "f64" else 1e-42]
    found = []
    for n in (1, 2, 3, 7, 8, 9, 31, 64, 65, 130):
        for few in (1, 2, len(values)):
            found.append(rng.choice(np.array(values[:few], TYPES[t]), n))
            if t[0] == "f":
                found.append(found[-1].copy())
                found[-1][rng.integers(n)] = math.nan
                found.append(rng.choice(np.array([math.nan, -math.nan, 1.0], TYPES[t]), n))
    return found


def same(a: Any, b: Any) -> bool:
    """Whether numbers are the same, with their signs, or both no numbers."""
    a, b = np.asarray(a), np.asarray(b)
    nan = np.isnan(a) & np.isnan(b) if a.dtype.kind == "f" else np.zeros(a.shape, bool)
    return bool(np.all(nan | ((a == b) & (np.signbit(a) == np.signbit(b)))))


@thin
@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("engine", ENGINES)
def test_extremes_are_the_first_of_equals(engine: str, t: str) -> None:
    program, kind = PROGRAM[t], TYPES[t]
    f = {n: program[n].with_options(engine=engine) for n in program}
    zero = -0.0 if t[0] == "f" else 0
    for x in arrays(t):
        at = [extreme(x, most) for most in (False, True)]
        last = len(x) - 1 - extreme(x[::-1], False)
        with np.errstate(over="ignore"):
            want = [kind(zero) - x[k] for k in at]
        marks = [np.eye(1, len(x), k, dtype=kind).ravel() for k in (last, at[1])]
        shapes = [((len(x),), "one")] + [
            ((r, len(x) // r), "two") for r in (1, 3) if not len(x) % r
        ]
        for shape, name in shapes:
            given = x.reshape(shape)
            found = f[name](least=zero, most=zero, x=given)
            assert same([found.least, found.most], want), (x, shape)
            places = f[f"where_{name}"](np.zeros(shape, kind), np.zeros(shape, kind), given)
            assert same(places.last.ravel(), marks[0]) and same(places.first.ravel(), marks[1])


@pytest.mark.parametrize("t", ["f64", "f32"])
def test_lanes_have_the_same(t: str) -> None:
    f = PROGRAM[t].one
    for n in (2, 9):
        rows = np.array([x for x in arrays(t) if len(x) == n])
        found = f.map(least=-0.0, most=-0.0, x=rows)
        for k, row in enumerate(rows):
            want = [TYPES[t](-0.0) - row[extreme(row, most)] for most in (False, True)]
            assert same([found.least[k], found.most[k]], want), row


@pytest.mark.parametrize("t", ["f64", "f32"])
def test_places_are_found_in_long_arrays(t: str) -> None:
    """Which are searched in parts: for equals in several parts, zeros of either sign and NaNs."""
    rng, f = np.random.default_rng(5), PROGRAM[t].where_one.with_options(engine="native")
    few = rng.integers(-9, 10, 2500).astype(TYPES[t])
    nans = few.copy()
    nans[[700, 1900]] = math.nan
    zeros = np.where(few == few.max(), 0.0, -1.0).astype(TYPES[t])
    zeros[[3, 2400]] = -0.0
    for x in (few, -few, nans, zeros, -zeros, few[:1024], np.sort(few), np.sort(few)[::-1].copy()):
        last, first = len(x) - 1 - extreme(x[::-1], False), extreme(x, True)
        places = f(np.zeros(len(x), TYPES[t]), np.zeros(len(x), TYPES[t]), x)
        assert np.flatnonzero(places.last).tolist() == [last]
        assert np.flatnonzero(places.first).tolist() == [first]


@wide
def test_gradients_of_extremes_have_the_bits_of_the_reference() -> None:
    """An adjoint that gains one number only has no other changed, not even a zero's sign."""
    text = "func f(y: f64, x: f64[n])\nadd y, sum(exp(x - amax(x))) / (1.0 + amax(x) * amax(x))\n"
    f = rvm.assemble(text)["f"]
    rng = np.random.default_rng(3)
    for n in (1, 5, 1030):
        x = rng.normal(size=n)
        for seed in (1.5, -1.5, 0.0, -0.0, math.inf, math.nan):
            found = []
            for engine in (LAW, "native"):
                g = f.with_options(engine=engine, tolerance=math.inf)
                found.append(g.vjp({"y": seed}, {"y": 0.0, "x": x}, wrt=("x",)).x)
            assert same(*found), (n, seed)
