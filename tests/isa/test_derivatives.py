"""First, second and third derivatives of every function of the table, against mpmath.

Forwards (tangents) and in reverse (gains), at random arguments and at edges: tiny and huge ones,
near poles and branch points, and where a factor of the derivative is 0.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations, combinations_with_replacement
from typing import Any

import mpmath
import numpy as np
import pytest
from oracles import DOMAIN, REAL_FUNCTIONS, true
from sizes import part, sized, thin

from rvm.engines.evaluate import evaluate
from rvm.expr import Const, Expr, Place
from rvm.isa import apply, typed
from rvm.isa.rows import FUNCTIONS, FunctionRow
from rvm.isa.simplify import simplify
from rvm.isa.tangents import tangent
from rvm.transform.adjoint import contributions
from rvm.types import C128, F64, Scalar

DIGITS, STEP = 700, 20
"""What mpmath computes with, and how many digits smaller than distances its steps are."""
LEAST, MOST = 1e-290, 1e300
"""Derivatives below count as zero, and those beyond are not asked for."""
STEPS = ("//", "sign", "floor")
COMPLEX = (
    "identity",
    "neg",
    "+",
    "-",
    "*",
    "/",
    "**",
    "sqrt",
    "square",
    "exp",
    "log",
    "sin",
    "cos",
)
COMPLEX += ("tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "sech", "leg")
COMPLEX += ("log2", "expm1", "log1p")
BRANCHES: dict[str, tuple[complex, ...]] = {
    "atan": (1j, -1j),
    **dict.fromkeys(("asin", "acos", "leg"), (1, -1)),
}
SMOOTH = [FUNCTIONS[name] for name in REAL_FUNCTIONS if name not in STEPS]
ROUTES = ("tangents", "gains")
NEAR = {1: 1e-14, 2: 4e-14, 3: 4e-13}
"""Relative errors allowed by order."""

EDGES: dict[str, list[tuple[float, ...]]] = {
    "**": [
        *((x, k) for x in (0.5, 2.0, 1e-3, 7.0) for k in (0.0, 1.0, 2.0, 3.0, -1.0, 0.5, -2.5)),
        *((1e100, 0.0), (1e-100, 1.0), (3.0, 1e-300)),
    ],
    "tanh": [(x,) for x in (0.0, 1e-300, 1e-9, 1e-3, -8.0, 20.0, 120.0, 232.0, -710.0, 712.0, 1e5)],
    "sech": [(x,) for x in (0.0, 1e-300, 1e-9, 1e-3, -8.0, 20.0, 120.0, 232.0, 712.0)],
    "asin": [(x,) for x in (0.0, 1e-300, 1e-12, -1e-5, 1 - 2.0**-50, -1 + 2.0**-40)],
    "leg": [(x,) for x in (1e-300, 1e-12, -1e-5, 1 - 2.0**-50, -1 + 2.0**-40)],
    "acos": [(x,) for x in (0.0, 1e-300, 1e-12, -1e-5, 1 - 2.0**-50, -1 + 2.0**-40)],
    "atan": [(x,) for x in (0.0, 1e-300, 1e-12, 1e-5, 1e5, -1e40)],
    "hypot": [(3 * s, 4 * s) for s in (1e-310, 1e-300, 1e-160, 1e-90, 1e90, 1e160, 4e306)]
    + [(5e-324, 5e-324), (1.0, 1e-200), (0.0, 2.0), (-1e300, 1e-5)],
    "versor": [(3 * s, 4 * s) for s in (1e-310, 1e-300, 1e-160, 1e-90, 1e90, 1e160, 4e306)]
    + [(5e-324, 5e-324), (1.0, 1e-200), (0.0, 2.0), (2.0, 0.0), (-1e300, 1e-5)],
    "atan2": [(3 * s, 4 * s) for s in (1e-310, 1e-300, 1e-160, 1e-90, 1e90, 1e100, 4e306)]
    + [(5e-324, 5e-324), (1.0, 1e-90), (0.0, 2.0), (2.0, 0.0), (1e-90, 1.0)],
    "sqrt": [(x,) for x in (5e-324, 1e-300, 1e-100, 1e100, 1e300)],
    "log": [(x,) for x in (1e-300, 1e-100, 1 + 2.0**-52, 1e100, 1e300)],
    "log2": [(x,) for x in (1e-300, 1e-100, 1 + 2.0**-52, 1e100, 1e300)],
    "log1p": [(x,) for x in (0.0, 1e-300, 1e-17, -1 + 2.0**-50, 1e90)],
    "expm1": [(x,) for x in (0.0, 1e-300, -40.0, -700.0, 700.0)],
    "exp": [(x,) for x in (0.0, -700.0, 700.0)],
    "sinh": [(x,) for x in (0.0, 1e-300, -1e-5, 700.0)],
    "cosh": [(x,) for x in (0.0, 1e-300, -1e-5, 700.0)],
    "sin": [(x,) for x in (0.0, 1e-300, 1e5)],
    "cos": [(x,) for x in (0.0, 1e-300, 1e5)],
    "tan": [(x,) for x in (0.0, 1e-300, 1e-9, 1.5707, -1.570796)],
    "/": [(1.0, 1e-100), (1e100, 1e100), (-1e-100, 3.0), (0.0, 2.0)],
    "*": [(1e100, 1e-100), (0.0, 5e-324)],
    "abs": [(1e-100,), (-1e100,)],
    "abs2": [(1e-100,), (0.0,)],
    "square": [(1e-100,), (0.0,)],
    "sigmoid": [(x,) for x in (0.0, 1e-300, -40.0, 36.0, -700.0)],
    "softplus": [(x,) for x in (0.0, 1e-300, -40.0, 36.0, -700.0)],
    "erf": [(x,) for x in (0.0, 1e-300, 1e-5, -3.0, 5.9, 20.0, 1e308)],
    "erfc": [(x,) for x in (0.0, 1e-300, 1e-5, -3.0, 5.9, 20.0)],
    "asinh": [(x,) for x in (0.0, 1e-300, 1e-5, 1e5, -1e90)],
    "acosh": [(x,) for x in (1 + 2.0**-40, 1 + 2.0**-20, 1e5, 1e90)],
    "atanh": [(x,) for x in (0.0, 1e-300, 1e-12, 1 - 2.0**-50, -1 + 2.0**-40)],
    "cbrt": [(x,) for x in (1e-90, -1e-3, 1e90)],
    "exp2": [(x,) for x in (0.0, -1000.0, 990.0)],
    "log10": [(x,) for x in (1e-100, 1 + 2.0**-52, 1e100)],
    "lgamma": [(x,) for x in (1e-90, 1 - 2.0**-53, 1 + 2.0**-52, 2.0, 50.0, -0.5, -2.25)],
    "digamma": [(x,) for x in (1e-70, 1.4616321449683622, 50.0, 1e5, -0.5, -2.25)],
}


TINY, HUGE = (1e-300, -1e-60, 1e-16, -1e-9), (1e5, -1e60, 1e100, -1e300)
BOUNDED = ("asin", "acos", "leg", "atanh", "log1p", "erfc")
"""Functions that are not real at huge arguments; that mpmath has no digits of, too."""
ENTIRE = ("exp", "exp2", "expm1", "tanh", "sech", "sigmoid", "softplus", "erf", "erfc")
ENTIRE += ("sin", "cos", "tan", "sinh", "cosh")
"""Functions whose arguments are measured against 1, however large they are."""


def points(row: FunctionRow) -> Iterator[tuple[float, ...]]:
    rng = random.Random(row.name)
    for _ in range(6):
        yield tuple(rng.uniform(lo, hi) for lo, hi in DOMAIN[row.name])
    yield from EDGES.get(row.name, [])
    if row.arity == 1 and row.cost == "NLOPS":
        low = DOMAIN[row.name][0][0]
        ends = (*TINY * (low < 1), *HUGE * (row.name not in BOUNDED))
        yield from ((x if low < 0 else abs(x),) for x in ends)


# ---------------------------------------------------------------- by the table


@cache
def derivative(name: str, t: Scalar, by: tuple[int, ...], route: str) -> Expr:
    """The derivative of a function by arguments, one after the other."""
    args = tuple(Place(k, (), t) for k in range(FUNCTIONS[name].arity))
    node: Expr = typed(apply(name, *args), t)
    for k in by:
        node = simplify(step(node, k, t, route))
    return node


def step(node: Expr, k: int, t: Scalar, route: str) -> Expr:
    one, zero = (typed(Const(v), t) for v in (1, 0))
    if route == "tangents":
        found = tangent(node, lambda x: one if isinstance(x, Place) and x.reg == k else None)
        return zero if found is None else typed(found, t)
    total: Expr | None = None
    for place, gain in contributions(node, one):
        if place.reg == k:
            total = gain if total is None else apply("+", total, gain)
    # An adjoint is conjugated, and so is what is gone back through again.
    return zero if total is None else apply("conj", total) if t.is_complex else total


def computed(
    row: FunctionRow, t: Scalar, by: tuple[int, ...], route: str, at: Sequence[Any]
) -> Any:
    with np.errstate(all="ignore"):
        return evaluate(derivative(row.name, t, by, route), list(at))


# ---------------------------------------------------------------- by mpmath


def wanted(row: FunctionRow, by: tuple[int, ...], at: Sequence[Any], kind: Any) -> Any:
    """The derivative by mpmath's functions, at steps that are small beside all distances.

    Steps lead along cuts, which none crosses.
    """
    f = kind if row.name == "identity" else true(row.name)
    exact = [kind(x) for x in at]
    way = 1j if row.name == "atan" and kind is mpmath.mpc else 1
    steps = [way * distance(row.name, k, exact) / mpmath.mpf(10) ** STEP for k in range(len(at))]
    return difference(f, exact, tuple(by.count(k) for k in range(len(at))), steps)


def distance(name: str, k: int, at: Sequence[Any]) -> Any:
    """How far an argument is from where the function is not analytic, or else its own size."""
    if name in ("hypot", "versor", "atan2"):
        return mpmath.hypot(*at)
    x = at[k]
    if name in ENTIRE:
        return mpmath.mpf(1)
    poles = () if (name, k) in (("**", 1), ("/", 0)) else POLES.get(name, ())
    found = [abs(x - pole) for pole in poles if x != pole]
    return min(found) if found else max(1, abs(x))


POLES: dict[str, tuple[complex, ...]] = {
    **dict.fromkeys(("asin", "acos", "leg"), (1, -1)),
    **dict.fromkeys(("log", "log2", "sqrt", "/", "**", "abs", "relu", "%"), (0,)),
    "atan": (1j, -1j),
    "log1p": (-1,),
    "log10": (0,),
    "cbrt": (0,),
    "acosh": (1,),
    "atanh": (1, -1),
    **dict.fromkeys(("lgamma", "digamma"), (0, -1, -2, -3)),
}


def difference(
    f: Callable[..., Any], at: list[Any], orders: Sequence[int], steps: Sequence[Any]
) -> Any:
    """Central differences of the orders, by each argument in turn."""
    for k, n in enumerate(orders):
        if n:
            rest = [0 if j == k else m for j, m in enumerate(orders)]
            total = mpmath.mpf(0)
            for i in range(n + 1):
                moved = [*at[:k], at[k] + (n - 2 * i) * steps[k] / 2, *at[k + 1 :]]
                term = difference(f, moved, rest, steps)
                total += (-1) ** i * math.comb(n, i) * term
            return total / steps[k] ** n
    return f(*at)


# ---------------------------------------------------------------- the tests


def beyond(row: FunctionRow, order: int, at: Sequence[float]) -> bool:
    """Whether derivatives of the order, some of them, are too large for a float."""
    if row.name not in ("hypot", "versor", "atan2"):
        return False
    size = max(math.hypot(*at), 5e-324)
    return -math.log10(size) * (order - (row.name == "hypot")) > math.log10(MOST)


def error(got: Any, want: Any) -> float:
    """The relative error; infinite where a NaN is found, or a number for what is as good as 0."""
    with mpmath.workdps(50):
        if abs(want) < LEAST:
            return 0.0 if abs(got) <= LEAST else math.inf
        off = float(abs(mpmath.mpmathify(got) - want) / abs(want))
    return math.inf if off != off else off


@thin
@pytest.mark.parametrize("row", SMOOTH, ids=lambda r: r.name)
def test_to_the_third_order(row: FunctionRow) -> None:
    for order in NEAR:
        for by in combinations_with_replacement(range(row.arity), order):
            for at in points(row):
                if beyond(row, order, at):
                    continue
                with mpmath.workdps(DIGITS):
                    want = mpmath.re(wanted(row, by, at, mpmath.mpf))
                if abs(want) > MOST:
                    continue
                for route in ROUTES:
                    got = computed(row, F64, by, route, at)
                    assert error(got, want) <= NEAR[order], (by, at, route, got, float(want))


ANYWHERE = [r for r in SMOOTH if r.arity == 2 and r.name not in ("min", "max", "%")]
NEAR_ANYWHERE = 1e-14
"""The error of a derivative at arguments of any size, relative to the terms that cancel in it."""


def of_any_size(row: FunctionRow, rng: random.Random) -> tuple[float, float]:
    """Arguments that are log-uniform, half of the time one near the other's size."""
    x, y = (rng.choice((1, -1)) * 2.0 ** rng.uniform(-1010, 1010) for _ in "xy")
    if row.name == "**":
        few = (0.5, 1.5, 2.5, -0.5, -1.5, 1 / 3, 3.0, -1.0)
        return abs(x), rng.choice((rng.choice(few), math.copysign(2 ** rng.uniform(-30, 8), y)))
    if rng.random() < 0.5:
        y = min(max(x * 2.0 ** rng.uniform(-60, 60), -1e300), 1e300)
    return (x, abs(y)) if row.name == "atan2" else (x, y)


def all_normal(row: FunctionRow, at: tuple[float, ...]) -> dict[tuple[int, ...], Any]:
    """The derivatives to the third order; none where one is no normal number and not always 0.

    Of a power, x ** (y - 3) is one of the numbers, too.
    """
    found: dict[tuple[int, ...], Any] = {}
    low, high = mpmath.mpf(2) ** -1010, mpmath.mpf(2) ** 1012
    with mpmath.workdps(DIGITS):
        if row.name == "**" and not low < mpmath.mpf(at[0]) ** (at[1] - 3) < high:
            return {}
        for order in range(4):
            for by in combinations_with_replacement(range(2), order):
                want = mpmath.re(wanted(row, by, at, mpmath.mpf))
                if not low < abs(want) < high and not is_zero(row, by):
                    return {}
                found[by] = want
    return found


def is_zero(row: FunctionRow, by: tuple[int, ...]) -> bool:
    """Whether a derivative is 0 everywhere."""
    most = {"+": (1, 1), "-": (1, 1), "*": (1, 1), "/": (1, 3)}.get(row.name, (3, 3))
    return (row.name in "+-" and len(by) > 1) or any(by.count(k) > most[k] for k in (0, 1))


def terms_of_power(at: tuple[float, ...], by: tuple[int, ...]) -> Any:
    """The sum of the sizes of the terms of a derivative of x ** y, which may cancel.

    By x first: y (y - 1) ... x ** (y - i); then by y, with Leibniz's rule.  Times log(x), since
    the exponent y - i is rounded.
    """
    (x, y), i, j = map(mpmath.mpf, at), by.count(0), by.count(1)
    factors = [abs(y - k) for k in range(i)]
    total = mpmath.mpf(0)
    for m in range(min(i, j) + 1):
        chosen = combinations(factors, i - m)
        total += math.perm(j, m) * sum(map(mpmath.fprod, chosen)) * abs(mpmath.log(x)) ** (j - m)
    return x ** (y - i) * total * max(1, abs(mpmath.log(x)))


@thin
@pytest.mark.parametrize("row", ANYWHERE, ids=lambda r: r.name)
@sized
def test_at_arguments_of_any_size(row: FunctionRow) -> None:
    """Wherever the value and all derivatives to the third order are normal numbers."""
    rng, tried = random.Random(row.name), 0
    while tried < part(100):
        at = of_any_size(row, rng)
        found = all_normal(row, at)
        tried += bool(found)
        for by, want in found.items():
            if not by or not LEAST < abs(want) < MOST:
                continue
            size = abs(want)
            if row.name == "**":
                size = terms_of_power(at, by)
            elif 0.125 < abs(at[0] / at[1]) < 8:
                # Near a zero, what cancels is as large as other derivatives of the order.
                size = max(abs(w) for other, w in found.items() if len(other) == len(by))
            for route in ROUTES:
                got = computed(row, F64, by, route, at)
                with mpmath.workdps(50):
                    assert abs(mpmath.mpf(float(got)) - want) <= NEAR_ANYWHERE * size, (
                        by,
                        at,
                        route,
                        got,
                        mpmath.nstr(want, 17),
                    )


def test_every_nonlinear_function_has_edges() -> None:
    assert {r.name for r in SMOOTH if r.cost == "NLOPS"} <= set(EDGES)


FIELD = [r for r in SMOOTH if r.name in COMPLEX]
NEAR_COMPLEX = {1: 4e-15, 2: 2e-14, 3: 2e-13}
PARTS = (0.0, -0.0, 0.75, 2.0, -2.0, 1e-300, -1e-17, 360.0, -800.0, 1e5, -1e100, 1.4e154, 1e300)
"""Parts of arguments: pairs of these are on both sides of every cut."""


def usual(row: FunctionRow) -> list[list[complex]]:
    """Complex arguments of moderate size, some of them near branch points."""
    rng = random.Random(row.name)
    at = [[complex(rng.uniform(0.1, 1.5), rng.uniform(-1.5, 1.5)) for _ in range(row.arity)]]
    for _ in range(12):
        at.append(
            [complex(rng.uniform(-1.5, 1.5), rng.uniform(0.1, 1.5)) for _ in range(row.arity)]
        )
    for pole in BRANCHES.get(row.name, ()):
        at += [[pole * (1 - d) + e] for d in (1e-3, 1e-8, 1e-12) for e in (1e-6, 1e-9)]
    return at + [[x * y for y in (1 + 1j, 2 - 1j)][: row.arity] for x in (1e-8, 1e-3)]


def at_cuts_and_far(row: FunctionRow) -> list[list[complex]]:
    """Arguments of a function of one complex number: on both sides of cuts, tiny and huge."""
    poles = POLES.get(row.name, ())
    return [[z] for z in (complex(x, y) for x in PARTS for y in PARTS) if z not in poles]


def exactly(row: FunctionRow, by: tuple[int, ...], z: Sequence[complex]) -> Any:
    """The derivative by mpmath; on a cut at the side that is named by the sign of a zero.

    mpmath's zeros have no sign, so it is asked close beside the cut.
    """
    with mpmath.workdps(DIGITS):
        at = [mpmath.mpc(x) for x in z]
        if row.arity == 1 and is_cut(row.name, z[0]):
            sides = [math.copysign(not x, x) for x in (z[0].real, z[0].imag)]
            at[0] += mpmath.mpc(*sides) * distance(row.name, 0, at) / mpmath.mpf(10) ** STEP
        return mpmath.mpc(wanted(row, by, at, mpmath.mpc))


def is_cut(name: str, z: complex) -> bool:
    """Whether an argument is on a branch cut."""
    if name in ("asin", "acos", "leg"):
        return z.imag == 0 and abs(z.real) > 1
    if name == "atan":
        return z.real == 0 and abs(z.imag) > 1
    if name in ("log", "log2", "log1p", "sqrt"):
        return z.imag == 0 and z.real < -(name == "log1p")
    return False


@thin
@pytest.mark.parametrize("row", FIELD, ids=lambda r: r.name)
def test_of_complex_numbers(row: FunctionRow) -> None:
    for z in usual(row):
        compare_to_the_third_order(row, z)


@thin
@pytest.mark.parametrize("row", [r for r in FIELD if r.arity == 1], ids=lambda r: r.name)
@sized
def test_of_complex_numbers_at_cuts_and_far_away(row: FunctionRow) -> None:
    points = at_cuts_and_far(row)
    for z in random.Random(row.name).sample(points, part(len(points))):
        compare_to_the_third_order(row, z)


@pytest.mark.parametrize("row", [r for r in FIELD if r.arity == 1], ids=lambda r: r.name)
def test_of_complex_numbers_at_infinities(row: FunctionRow) -> None:
    """Where a derivative has a limit there, it is that."""
    along, across = (1e200 + 0j, 1e200 + 1e-200j, -1e200 + 1j), (1e200j, 1 - 1e200j)
    skipped = along if row.name in ("sin", "cos", "tan") else ()
    if (row.name in ENTIRE and not skipped) or row.name == "sqrt":
        skipped = across  # 1 / sqrt(inf j) is 1 / (inf + inf j), which is no number
    for near in set(along + across) - set(skipped):
        z = complex(*(x if abs(x) < 2 else math.copysign(math.inf, x) for x in parts_of(near)))
        want = exactly(row, (0,), [near])
        if abs(want) < 1e50:
            for route in ROUTES:
                got = computed(row, C128, (0,), route, [z])
                assert abs(mpmath.mpc(got) - want) < 1e-50, (z, route, got)


def parts_of(z: complex) -> tuple[float, float]:
    return complex(z).real, complex(z).imag


def compare_to_the_third_order(row: FunctionRow, z: Sequence[complex]) -> None:
    for order in NEAR_COMPLEX:
        for by in combinations_with_replacement(range(row.arity), order):
            want = exactly(row, by, z)
            if abs(want) > MOST:
                return
            allowed = max(NEAR_COMPLEX[order] * abs(want), LEAST)
            for route in ROUTES:
                got = computed(row, C128, by, route, z)
                off = abs(mpmath.mpc(got) - want)
                assert off <= allowed, (by, z, route, got, complex(want))
