"""Estimated errors of long reductions, and of loops as long, against fractions.

Equal terms round the same way time and again, which roundings of either sign would not show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import inf, prod
from statistics import median
from typing import Any

import numpy as np
import pytest
from sizes import some, thin

import rvm

TYPES = {"f64": np.float64, "f32": np.float32, "c128": np.complex128}


@dataclass(frozen=True)
class Exactly:
    """Numbers as whole ones times a unit, of which sums are made faster than of fractions."""

    whole: list[int]
    unit: Fraction

    @classmethod
    def of(cls, x: Any) -> Exactly:
        parts, exponents = np.frexp(x.astype(np.float64))
        low = int(exponents.min()) - 53
        pairs = zip((parts * 2.0**53).astype(np.int64), exponents - 53 - low, strict=True)
        return cls([int(m) << int(k) for m, k in pairs], Fraction(2) ** low)


Exact = Callable[[Exactly], Fraction]


def squares(x: Exactly) -> Fraction:
    return sum(a * a for a in x.whole) * x.unit**2


def total(x: Exactly) -> Fraction:
    return sum(x.whole) * x.unit


def first_times_length(x: Exactly) -> Fraction:
    return len(x.whole) * x.whole[0] * x.unit


def mean(x: Exactly) -> Fraction:
    return total(x) / len(x.whole)


def product(x: Exactly) -> Fraction:
    return prod(x.whole) * x.unit ** len(x.whole)


CALLS: dict[str, tuple[str, Exact]] = {
    "sum": ("add y, sum(x)", total),
    "dot": ("add y, dot(x, x)", squares),
    "@": ("add y, x @ x", squares),
    "matvec": ("add y, sum(matvec(outer(o, x), x))", squares),
    "terms": ("for i = 0 to len(x) - 1\n        add y, x[i]\n    end", total),
    "the same": ("for i = 1 to len(x)\n        add y, x[0]\n    end", first_times_length),
    "mean": ("add y, sum(x) / sum(0.0 * x + 1.0)", mean),
}
PRODUCTS: dict[str, tuple[str, Exact]] = {
    "prod": ("add y, prod(x)", product),
    "factors": ("add y, 1.0\n    for i = 0 to len(x) - 1\n        mul y, x[i]\n    end", product),
}
PATTERNS = ("equal", "alternating", "geometric", "random")
LENGTHS = (10, 1_000, 30_000, 100_000)


def terms(pattern: str, n: int) -> Any:
    k = np.arange(n)
    match pattern:
        case "equal":
            return np.full(n, 0.1)
        case "alternating":
            return np.where(k % 2 == 0, 0.1, -0.3)
        case "geometric":
            return 0.7 ** (k % 80)
        case _:
            return np.random.default_rng(n).normal(size=n)


def ratio(call: str, exact: Exact, t: str, x: Any) -> float:
    """The estimated error of a function's result in parts of the true one."""
    head = f"y: {t}, x: {t}[n], o: {t}[1]"
    f = rvm.assemble(f"func f({head})\n    {call}\n").f.with_options(error=True)
    dtype = TYPES[t]
    x = x.astype(dtype)
    out = f(y=dtype(0).item(), x=x, o=np.ones(1, dtype))
    truth = exact(Exactly.of(x.real))
    off = float(abs(Fraction(complex(out.y).real) - truth))
    return out.info.error.y / off if off else inf


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("t", TYPES)
@some
@thin
def test_sums_report_their_errors(t: str, name: str) -> None:
    call, exact = CALLS[name]
    found = {(p, n): ratio(call, exact, t, terms(p, n)) for p in PATTERNS for n in LENGTHS}
    assert min(found.values()) >= 0.1, found
    assert median(found.values()) <= 50, found


@thin
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("t", ["f64", "c128"])
def test_products_report_their_errors(t: str, name: str) -> None:
    """Of numbers near one, whose product is neither very large nor very small."""
    call, exact = PRODUCTS[name]
    found = {}
    for p in PATTERNS:
        for n in (10, 300, 3_000):
            x = 1.0 + terms(p, n) / n
            found[p, n] = ratio(call, exact, t, x)
    assert min(found.values()) >= 0.1, found
    assert median(found.values()) <= 50, found


def test_what_is_exact_has_no_error() -> None:
    """Whole numbers, and other multiples of one number, in any order."""
    for call in ("sum", "dot", "terms", "the same"):
        for unit in (1.0, 2.0**-40):
            x = unit * np.random.default_rng(1).integers(-99, 99, 1_000)
            f = rvm.assemble(f"func f(y: f64, x: f64[n])\n    {CALLS[call][0]}\n").f
            assert f(y=0.0, x=x, error=True).info.error.y in (
                0.0,
                4 * 2.0**-52 * abs(f(y=0.0, x=x).y),
            )


FIXED = {
    # The sizes of the factors, and how many there are.
    "small": ("fixed(43)", (-1.5, 1.5), (2, 20, 60)),
    "amplified": ("fixed(43)", (0.4, 0.6, 1.8, 2.1), (12, 60)),
    "one after the other": ("fixed(20)", (0.4, 0.6, 1.8, 2.1), (30,)),
    "coarse": ("fixed(8)", (-3.0, 3.0), (2, 5)),
}


@pytest.mark.parametrize("case", FIXED)
def test_products_of_fixed_point_numbers(case: str) -> None:
    """Each product is rounded, and the error grows by the factors that follow."""
    t, sizes, counts = FIXED[case]
    f = rvm.assemble(f"func f(y: {t}, x: {t}[n])\n    add y, prod(x)\n").f
    one, rng = 1 << int(t[6:-1]), np.random.default_rng(len(case))
    for n in counts * 4:
        if len(sizes) == 2:
            x = rng.uniform(*sizes, n)
        else:
            x = np.r_[rng.uniform(*sizes[:2], n // 2), rng.uniform(*sizes[2:], n - n // 2)]
            if case == "amplified":
                rng.shuffle(x)
        raw = np.round(x * one).astype(np.int64)
        found = f(y=0, x=raw, error=True)
        want = prod((Fraction(int(v), one) for v in raw), start=Fraction(1))
        off = abs(Fraction(found.y.raw, one) - want)
        assert off <= Fraction(found.info.error.y), (n, float(off * one))
        assert found.info.error.y * one < 100 + 30 * off * one, (n, float(off * one))


@pytest.mark.parametrize("bits", [0, 8, 20, 43, 62])
def test_matrix_products_of_fixed_point_numbers(bits: int) -> None:
    """The terms are rounded one by one, equal ones alike; those of whole numbers are exact."""
    t, one, rng = f"fixed({bits})", 1 << bits, np.random.default_rng(bits)
    text = f"func f(y: {t}[m, l], v: {t}[m], a: {t}[m, n], b: {t}[n, l], x: {t}[n])\n"
    f = rvm.assemble(text + "    add y, a @ b\n    add v, a @ x\n").f
    for n, alike in ((3, False), (40, False), (1000, False), (1000, True)):
        size = 2.0 ** min(20 - bits / 2, bits, (60 - bits) / 2 - 5)
        a, b = (
            np.round(rng.uniform(-size, size, k) * one).astype(np.int64) for k in ((2, n), (n, 2))
        )
        if alike:
            a[:], b[:] = a[0, 0], b[0, 0]
        given = {"y": np.zeros((2, 2), np.int64), "v": np.zeros(2, np.int64)}
        found = f(**given, a=a, b=b, x=b[:, 0].copy(), error=True)
        want = a.astype(object) @ b.astype(object)
        for i, j in np.ndindex(2, 2):
            off = abs(Fraction(int(found.y[i, j])) - Fraction(int(want[i, j]), one))
            assert off <= Fraction(float(found.info.error.y[i, j])) * one, (n, alike, float(off))
            assert found.info.error.y[i, j] * one <= 8 * n + 8
        assert (np.abs(found.v - found.y[:, 0]) == 0).all()
        assert (found.info.error.v * one <= 8 * n + 8).all()
        whole = f(**given, a=a // one * one, b=b, x=b[:, 0].copy(), error=True)
        assert not whole.info.error.y.any() and not whole.info.error.v.any()
