"""Derivatives of quotients to the third order, by every route, where factors of them are too large.

All are monomials, whose derivatives are exact fractions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import pytest
from gradients.orders import HESSIANS, Routes, tried
from sizes import first_and_another, part, sample, sized, thin

import rvm
from rvm.registry import executing

pytestmark = sized

MOST = Fraction(math.ldexp(1 - 2.0**-53, 1024))
"""The largest number of f64, and for f32:"""
MOST_SHORT = Fraction(math.ldexp(1 - 2.0**-24, 128))
ARGUMENTS = (0.0, 5e-324, 1e-310, -1e-300, 1e-160, -1e-160, 1e-80, 0.5, -3.0, 1e80, 1e160, 1e300)
SHORT = tuple(math.ldexp(k, n) for k, n in ((0, 0), (1, -127), (-1, -66), (3, -34), (1, 63)))
Powers = tuple[int, int]
QUOTIENTS: dict[str, tuple[int, Powers]] = {
    "a / b": (1, (1, -1)),
    "-(a / b)": (-1, (1, -1)),
    "2 / b": (2, (0, -1)),
    "a / b / b": (1, (1, -2)),
}
"""Each with its number and its powers."""
ENGINES = executing(loops=False)


def derivative(of: tuple[int, Powers], at: Sequence[float], by: Sequence[int]) -> Fraction:
    found = Fraction(of[0])
    for k, (power, x) in enumerate(zip(of[1], at, strict=True)):
        n = list(by).count(k)
        found *= math.prod(power - i for i in range(n))
        if found:
            found *= Fraction(x) ** (power - n)
    return found


def is_right(
    got: float,
    want: Fraction,
    most: Fraction = MOST,
    near: float = 1e-15,
    least: float = 5e-324,
) -> bool:
    """Infinite where it is too large, and next to the range's ends either; small ones lose bits."""
    if math.isnan(got) or (abs(want) > most and not math.isinf(got)):
        return False
    if math.isinf(got):
        return abs(want) > most * (1 - Fraction(near)) and (got > 0) == (want > 0)
    return abs(Fraction(got) - want) <= max(Fraction(near) * abs(want), 8 * Fraction(least))


def cases(
    of: tuple[int, Powers], arguments: Sequence[float], most: Fraction
) -> list[tuple[float, float]]:
    """Where value and first derivatives are not too large."""
    orders = ((), (0,), (1,))
    return [
        at
        for at in product(arguments, arguments)
        if at[1] and all(abs(derivative(of, at, by)) <= most for by in orders)
    ]


@thin(2)
@pytest.mark.parametrize("text", QUOTIENTS)
def test_quotients(text: str) -> None:
    """By every route; of one division to the third order, where the second is not too large."""
    of = QUOTIENTS[text]
    places = cases(of, ARGUMENTS, MOST)
    for engine in first_and_another(ENGINES, text):
        routes = Routes(text, 2, engine)
        for at in Random(text + engine).sample(places, min(part(300), len(places))):
            second = [derivative(of, at, by) for by in ((0, 0), (0, 1), (1, 1))]
            third = text.count("/") < 2 and max(map(abs, second)) <= MOST
            orders = (1, 2, 3) if third else (1, 2)

            def want(by: Sequence[int], at: Any = at) -> Fraction:
                return derivative(of, at, by)

            for _, route, by, got, value in tried(routes, at, orders, want, float(MOST)):
                assert is_right(got, value), (text, engine, at, route, by, got, float(value))


@sample
@pytest.mark.parametrize("t", ["f32", "c128"])
@pytest.mark.parametrize("text", QUOTIENTS)
def test_quotients_of_other_numbers(text: str, t: str) -> None:
    of, arguments = QUOTIENTS[text], SHORT if t == "f32" else ARGUMENTS
    range_ = (MOST_SHORT, 1e-6, 2.0**-149) if t == "f32" else (MOST,)
    f = rvm.assemble(f"func f(y: {t}, a: {t}, b: {t})\n    add y, {text}\n").f
    loss = "y" if t == "f32" else "y.re"
    for at in cases(of, arguments, range_[0]):
        for method in HESSIANS:
            h = f.hessian(loss=loss, method=method, y=0.0, a=at[0], b=at[1])
            for i, j in product(range(2), repeat=2):
                found = h["ab"[i]]["ab"[j]]
                got = float(found if t == "f32" else found[0, 0])
                value = derivative(of, at, (i, j))
                assert is_right(got, value, *range_), (text, at, method, i, j, got)


def test_what_the_page_says() -> None:
    """Of parts that have derivatives of their own."""
    at = {"y": 0.0, "a": 0.0, "b": 1e-160}
    whole, parts = (
        rvm.assemble(f"func f(y: f64, a: f64, b: f64)\n    add y, {text}\n").f
        for text in ("a / b", "1 / b * a")
    )
    for method in HESSIANS:
        assert whole.hessian(loss="y", method=method, **at).b.b == 0.0
    assert parts.grad(loss="y", **at).b == 0.0
    assert math.isnan(parts.jvp({"b": 1.0}, **at)[1].y)
    beside = rvm.assemble("""
func f(y: f64, z: f64, a: f64, b: f64)
    add z, 1 / b * a
    add y, a * a
""").f
    over, taylor = (
        beside.hessian(loss="y", method=method, y=0.0, z=0.0, a=1.0, b=1e-200)
        for method in ("forward-over-reverse", "taylor")
    )
    assert math.isnan(over.a.b) and taylor.a.b == 0.0
