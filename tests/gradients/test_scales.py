"""Derivatives to the third order at arguments of any size, by every route, against exact ones.

Where the value or a derivative of lower order, or the reciprocal of an argument, is outside the
normal range, nothing is asked of a derivative.  Of a formula with intermediate results nothing is
asked where a derivative up to the same order is outside: of an intermediate result by the inputs,
or of the whole by intermediate results and inputs, however they are ordered; or where a quotient
times the derivative of its divisor is.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
from gradients.orders import HESSIANS, Routes, tried
from sizes import first_and_another, part, sized, thin

import rvm
from rvm.registry import executing

pytestmark = sized

ENGINES = executing(loops=False)
NORMAL = (-1010.0, 1012.0)
"""The logarithms to base 2 between which a number counts as in range: constants have room."""
NEAR = 1e-13
HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


class Monomial(NamedTuple):
    """A number times powers of arguments."""

    number: int
    powers: tuple[Fraction | int, ...]

    def factor(self, orders: Sequence[int]) -> Fraction:
        """The number of a derivative."""
        out = Fraction(self.number)
        for p, n in zip(self.powers, orders, strict=True):
            out *= math.prod((Fraction(p) - i for i in range(n)), start=Fraction(1))
        return out

    def size(self, logs: Sequence[float], orders: Sequence[int]) -> float:
        """The logarithm of a derivative to base 2; 0 where it is zero."""
        factor = self.factor(orders)
        if not factor:
            return 0.0
        powers = zip(self.powers, orders, logs, strict=True)
        return math.log2(abs(factor)) + sum(float(p - n) * x for p, n, x in powers)

    def derivative(self, at: Sequence[float], orders: Sequence[int]) -> Any:
        """The derivative, by mpmath."""
        found = self.factor(orders)
        powers = zip(self.powers, orders, at, strict=True)
        exact = [mpmath.mpf(x) ** mpmath.mpf(Fraction(p - n)) for p, n, x in powers]
        return mpmath.mpf(found.numerator) / found.denominator * mpmath.fprod(exact)


def adjoints(inner: Monomial, outer: Monomial, most: int) -> list[Monomial]:
    """The derivatives of a formula by an intermediate result, once and more, by the inputs."""
    by = [Fraction(outer.powers[0]) - k for k in range(most + 1)]
    return [
        of(*(p * x + y for x, y in zip(inner.powers, outer.powers[1:], strict=True)))
        for p in by[1 : 1 + next((k for k, p in enumerate(by) if not p), most)]
    ]


class Case(NamedTuple):
    """A formula, what it is, and its intermediate results with the formula by them, then inputs."""

    text: str
    whole: Monomial
    parts: tuple[tuple[Monomial, Monomial], ...] = ()
    also: tuple[Monomial, ...] = ()
    """Quotients times derivatives of their divisors."""
    rounds: bool = False
    """Whether the run back restores a value that has been rounded."""

    def routes(self, engine: str) -> Routes:
        arity, tolerance = len(self.whole.powers), math.inf if self.rounds else None
        if "\n" not in self.text:
            return Routes(self.text, arity, engine)
        return Routes("", arity, engine, self.text, tolerance=tolerance)


def _with(made: str, *body: str) -> str:
    """Code that makes an ancilla, uses it and frees it."""
    lines = [f"alloc t: f64 = {made}", *body, f"free t = {made}"]
    return "".join(f"    {line}\n" for line in lines)


def of(*powers: Fraction | int, number: int = 1) -> Monomial:
    return Monomial(number, powers)


OVER, TIMES = of(1, -1), of(1, 1)
CASES: dict[str, Case] = {
    "quotient": Case("a / b", OVER),
    "tripled": Case("3.0 * (a / b)", of(1, -1, number=3)),
    "held": Case(_with("a / b", "add y, t"), OVER),
    "div": Case(
        _with("a", "div t, b", "add y, t", "mul t, b"), OVER, ((OVER, of(1, 0, 1)),), rounds=True
    ),
    "mul": Case(
        _with("a", "mul t, b", "add y, t", "div t, b"), TIMES, ((TIMES, of(1, 0, -1)),), rounds=True
    ),
    "reciprocal": Case("1.0 / b * a", OVER, ((of(0, -1), of(1, 1, 0)),)),
    "reciprocal held": Case(_with("1.0 / b", "add y, t * a"), OVER, ((of(0, -1), of(1, 1, 0)),)),
    "twice divided": Case("a / b / c", of(1, -1, -1), ((of(1, -1, 0), of(1, 0, 0, -1)),)),
    "times": Case("c * (a / b)", of(1, -1, 1), ((of(1, -1, 0), of(1, 0, 0, 1)),)),
    "times held": Case(
        _with("a / b", "add y, c * t"), of(1, -1, 1), ((of(1, -1, 0), of(1, 0, 0, 1)),)
    ),
    "over a product": Case(
        "a / (b * c)",
        of(1, -1, -1),
        ((of(0, 1, 1), of(-1, 1, 0, 0)),),
        (of(1, -1, 0), of(1, 0, -1)),
    ),
    "product over": Case("c * a / b", of(1, -1, 1), ((of(1, 0, 1), of(1, 0, -1, 0)),)),
    "square": Case(_with("a / b", "add y, t * t"), of(2, -2), ((OVER, of(2, 0, 0)),)),
    "over a root": Case("a / sqrt(b)", of(1, -HALF), ((of(0, HALF), of(-1, 1, 0)),), (OVER,)),
    "root": Case("sqrt(a)", of(HALF)),
    "cube root": Case("cbrt(a)", of(THIRD)),
    "root held": Case(_with("sqrt(a)", "add y, t * b"), of(HALF, 1), ((of(HALF, 0), of(1, 0, 1)),)),
    **{
        f"power {k}": Case(f"b * a ** {float(k)}", of(k, 1), ((of(k, 0), of(1, 0, 1)),))
        for k in (3, 2, HALF, Fraction(5, 2), -1, -2, -HALF, Fraction(-3, 2))
    },
}


def is_normal(size: float) -> bool:
    return NORMAL[0] < size < NORMAL[1]


def asked(case: Case, logs: Sequence[float], order: int) -> bool:
    """Whether derivatives of an order are asked for where arguments have these logarithms."""
    ranges = [range(order + 1)] * len(logs)
    lower = [by for by in product(*ranges) if sum(by) < order]
    if not all(is_normal(case.whole.size(logs, by)) for by in lower):
        return False
    if not all(is_normal(-x) and is_normal(x) for x in logs):
        return False
    made = [by for by in product(*ranges) if sum(by) <= order]
    if not all(is_normal(m.size(logs, by)) for m in case.also for by in lower):
        return False
    for inner, outer in case.parts:
        if not all(is_normal(inner.size(logs, by)) for by in made):
            return False
        for k, bar in enumerate(adjoints(inner, outer, order), 1):
            if not all(is_normal(bar.size(logs, by)) for by in made if sum(by) <= order - k):
                return False
        all_logs = [inner.size(logs, [0] * len(logs)), *logs]
        every = product(range(order + 1), repeat=len(all_logs))
        if not all(is_normal(outer.size(all_logs, by)) for by in every if sum(by) <= order):
            return False
    return True


def reach(case: Case, logs: Sequence[float], order: int) -> float:
    """How near the ends of the range derivatives of an order are; beyond is best for some."""
    if not asked(case, logs, order):
        return 0.0
    every = (by for by in product(range(order + 1), repeat=len(logs)) if sum(by) == order)
    sizes = [case.whole.size(logs, by) for by in every]
    found = [abs(s) for s in sizes if is_normal(s)]
    return max(found, default=-2000.0) + 1000.0 * (len(found) < len(sizes))


@cache
def points(name: str, count: int) -> tuple[tuple[float, ...], ...]:
    """Arguments at which derivatives, of the second order and the third in turn, reach far."""
    rng, case, out = random.Random(name), CASES[name], []
    for k in range(count):
        some = [[rng.uniform(-1000, 1000) for _ in case.whole.powers] for _ in range(100)]
        best = max(some, key=lambda logs: reach(case, logs, 2 + k % 2))
        out.append(tuple(math.ldexp(2 ** (x % 1), math.floor(x)) for x in best))
    return tuple(out)


def logs_of(at: Sequence[float]) -> list[float]:
    return [math.log2(x) for x in at]


def is_right(case: Case, at: Sequence[float], by: Sequence[int], got: float, want: Any) -> bool:
    near = NEAR * abs(want)
    if case.rounds:
        # What is restored is off by parts of it, and so may a difference be that should be 0.
        scale = mpmath.fprod(mpmath.mpf(x) ** by.count(k) for k, x in enumerate(at))
        near += NEAR * abs(case.whole.derivative(at, [0] * len(at)) / scale)
    return math.isfinite(got) and abs(mpmath.mpf(got) - want) <= near


@thin
@pytest.mark.parametrize("name", CASES)
def test_at_any_scale(name: str) -> None:
    case = CASES[name]
    for engine in first_and_another(ENGINES, name)[1:]:
        routes = case.routes(engine)
        for at in points(name, part(40)):
            logs = logs_of(at)

            def want(by: Sequence[int], at: Any = at, case: Case = case) -> Any:
                return case.whole.derivative(at, [by.count(k) for k in range(len(at))])

            orders = [n for n in (1, 2, 3) if asked(case, logs, n)]
            for _, route, by, got, value in tried(routes, at, orders, want, 2.0**1023):
                size = float(mpmath.log(abs(value), 2)) if value else 0.0
                if is_normal(size):
                    told = (name, engine, at, route, by, got, mpmath.nstr(value, 17))
                    assert is_right(case, at, by, got, value), told


LOOP = """
func f(y: f64, a: f64[n], b: f64[n])
    for i = 0 to n - 1
        with t: f64 = a[i] / b[i]
            add y, t
        end
    end
"""


def far_out(order: int) -> Any:
    """Rows of a and of b where the derivative of a / b by b is in range, and asked for."""
    case = CASES["held"]
    sizes = {at: case.whole.size(logs_of(at), (0, order)) for at in points("held", part(400))}
    return np.array(
        [at for at, s in sizes.items() if is_normal(s) and asked(case, logs_of(at), order)]
    ).T


@thin
@pytest.mark.parametrize("engine", executing())
def test_in_loops(engine: str) -> None:
    """Where each iteration has its own arguments."""
    f = rvm.assemble(LOOP).f.with_options(engine=engine)
    a, b = far_out(2)
    found = f.hvp({"b": np.ones_like(b)}, loss="y", y=0.0, a=a, b=b)
    assert np.allclose(found.b, 2 * (a / b / b / b), rtol=NEAR, atol=0.0)
    a, b = far_out(3)
    gg = f.gradient_program["f_gradient"].gradient_program["f_gradient_gradient"]
    names = ("a_bar", "b_bar", "a_bar_", "b_bar_", "a_bar_bar")
    zeros = dict(zip(names, np.zeros((len(names), len(a))), strict=True))
    at = {"y": 0.0, "a": a, "b": b, "y_bar": 1.0, "y_bar_": 0.0, "y_bar_bar": 0.0, **zeros}
    third = gg.with_options(engine=engine).jvp({"b": np.ones_like(b)}, b_bar_bar=1 + 0 * a, **at)[1]
    assert np.allclose(third["b_bar_"], -6 * (a / b / b / b / b), rtol=NEAR, atol=0.0)


def test_in_lanes() -> None:
    gradient = CASES["held"].routes("native").gradients[1]
    a, b = far_out(2)
    zeros = dict.fromkeys(gradient.parameters, 0.0)
    found = gradient.map(**{**zeros, "a": a, "b": b, "y_bar": 1.0, "b_bar_bar": 1.0})
    assert np.allclose(found["b_bar_"], 2 * (a / b / b / b), rtol=NEAR, atol=0.0)


@thin
@pytest.mark.parametrize("name", ["over a product", "times held", "product over", "twice divided"])
def test_what_is_lost_has_an_error(name: str) -> None:
    """Where more is asked than holds, second derivatives that are wrong, and finite, are told."""
    case, rng = CASES[name], random.Random(name)
    routes, count = case.routes("python"), len(case.whole.powers)
    found = 0
    while found < part(80):
        logs = [rng.uniform(-700, 700) for _ in range(count)]
        orders = [by for by in product(range(2), repeat=count) if sum(by) < 2]
        if asked(case, logs, 2) or not all(is_normal(case.whole.size(logs, by)) for by in orders):
            continue
        found += 1
        at = [2.0**x for x in logs]
        inputs = routes.inputs("", at)
        for method in HESSIANS:
            try:
                h = routes.f.hessian(loss="y", method=method, wrt=[*inputs], y=0.0, **inputs)
            except rvm.InvertibilityError:
                continue
            for (i, one), (j, other) in product(enumerate(inputs), repeat=2):
                want = case.whole.derivative(at, [(i, j).count(k) for k in range(count)])
                got = h[one][other]
                off = abs(mpmath.mpf(got) - want) if math.isfinite(got) else 0
                if off > max(NEAR * abs(want), 2.0**-1060):
                    assert 2 * h.info.error[one][other] >= off, (at, method, one, other, got)
