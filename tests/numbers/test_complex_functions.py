"""Functions of complex numbers: how exact they are, by mpmath; where they end; the same bits."""

from __future__ import annotations

import cmath
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest
from sizes import part, sized, thin

from rvm.isa.implementation import array_value, value
from rvm.numbers.complex_functions import FUNCTIONS
from rvm.types import C128

MP = mpmath.mp.clone()
MP.prec = 2200
ULPS = 6.0
"""Units of 2**-53 times the modulus that a result may be off by."""
REFERENCE: dict[str, Callable[[Any], Any]] = {
    "leg": lambda z: MP.sqrt((1 - z) * (1 + z)),
    "sech": lambda z: 1 / MP.cosh(z),
}
CUT = {"log", "sqrt", "asin", "acos", "atan", "leg"}
GROWING = {"exp", "sinh", "cosh", "tanh", "sech"}
"""Those whose value may be beyond all floats by the real part; `sin` … by the imaginary one."""


def draw(rng: random.Random, sizes: tuple[float, float]) -> float:
    kind = rng.random()
    if kind < 0.1:
        return rng.choice([0.0, -0.0, 1.0, -1.0])
    if kind < 0.3:
        return float(rng.choice([-1, 1]) * 10 ** rng.uniform(*sizes))
    if kind < 0.4:
        return rng.choice([-1, 1]) * (1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-17, -1))
    return rng.uniform(-3, 3)


def draws(name: str, n: int) -> Iterator[complex]:
    """Numbers of all sizes, near the branch points, and with parts that are 0."""
    rng = random.Random(name)
    for k in range(n):
        sizes = (-307.0, 308.0) if k % 3 == 0 else (-12.0, 2.85)
        yield complex(draw(rng, sizes), draw(rng, sizes))


def same(a: complex, b: complex) -> bool:
    """Whether all bits are the same, but for those of NaNs."""
    return repr(a) == repr(b)


@thin
@pytest.mark.parametrize("name", FUNCTIONS)
@sized
def test_values_are_exact_to_a_few_units(name: str) -> None:
    f, many = value(name, (C128,)), list(draws(name, part(2000)))
    exact = REFERENCE.get(name) or getattr(MP, name)
    for z in many:
        if abs(z.real if name in GROWING else z.imag) > 1500 and name not in CUT:
            continue
        if name in CUT and not (z.real and z.imag):
            continue  # see below
        want, got = exact(MP.mpc(z.real, z.imag)), f(z)
        if abs(want) > 1.7e308:
            assert not cmath.isfinite(got)
            continue
        off = abs(MP.mpc(got.real, got.imag) - want)
        assert off <= ULPS * (2.0**-53 * abs(want) + MP.mpf(2) ** -1074), (z, got)
    arrays = array_value(name, (C128,))(np.array(many))
    assert all(same(a, f(z)) for a, z in zip(arrays.tolist(), many, strict=True))


@pytest.mark.parametrize("name", sorted(CUT - {"leg"}))
def test_the_cuts_are_those_of_c99(name: str) -> None:
    """On the axes signs of zeros say on which side of a cut a number is."""
    f, numpy = value(name, (C128,)), getattr(np, name.replace("a", "arc", 1))
    numpy = numpy if name[0] == "a" else getattr(np, name)
    for size in (0.0, 1e-300, 0.3, 1.0, 1.5, 1e12, 1e300):
        for zero in (0.0, -0.0):
            for x in (size, -size):
                for z in (complex(x, zero), complex(zero, x)):
                    with np.errstate(all="ignore"):
                        want = complex(numpy(z))
                    got = f(z)
                    for a, b in ((got.real, want.real), (got.imag, want.imag)):
                        assert a == b or abs(a - b) <= 4e-16 * abs(want), (z, got, want)
                        assert math.copysign(1, a) == math.copysign(1, b), (z, got, want)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parts_that_are_not_numbers_have_the_values_of_c99(name: str) -> None:
    f, odd = value(name, (C128,)), (math.inf, -math.inf, math.nan)
    many = [complex(a, b) for a in (*odd, 0.0, -2.0) for b in (*odd, 0.0, -2.0)]
    arrays = array_value(name, (C128,))(np.array(many))
    assert all(same(a, f(z)) for a, z in zip(arrays.tolist(), many, strict=True))
    for z in many:
        library = getattr(cmath, name, None)
        if library is None or cmath.isfinite(z):
            continue
        try:
            want = library(z)
        except (ArithmeticError, ValueError):
            continue
        assert same(f(z), want), z


@sized
def test_powers() -> None:
    f, rng = value("**", (C128, C128)), random.Random(5)
    bases, exponents = [], []
    for _ in range(part(1200)):
        z = complex(rng.uniform(-3, 3), rng.uniform(-3, 3))
        whole = rng.choice([-7, -1, 0, 1, 2, 3, 11, 100, 0.5, -2.5])
        w = complex(whole, 0) if rng.random() < 0.5 else complex(rng.uniform(-3, 3), rng.random())
        bases.append(z)
        exponents.append(w)
        want, got = MP.mpc(z) ** MP.mpc(w), f(z, w)
        assert abs(MP.mpc(got) - want) <= 100 * (1 + abs(w)) * 2.0**-53 * abs(want), (z, w)
    arrays = array_value("**", (C128, C128))(np.array(bases), np.array(exponents))
    assert all(map(same, arrays.tolist(), map(f, bases, exponents)))
    assert f(0j, 0j) == 1 and f(0j, 2 + 0j) == 0 and f(0j, 0.5 + 0j) == 0
    assert cmath.isnan(f(0j, 1j)) and cmath.isnan(f(0j, -1 + 0.5j))


def test_products_and_quotients_of_arrays_are_those_of_numbers() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 500)) + 1j * rng.normal(size=(2, 500))
    y[:4] = [0, complex(0.0, -0.0), complex(math.inf, 1), complex(math.nan, 0)]
    with np.errstate(all="ignore"):
        for fn in "*/":
            f, arrays = value(fn, (C128, C128)), array_value(fn, (C128, C128))(x, y)
            assert all(map(same, arrays.tolist(), map(f, x.tolist(), y.tolist())))
        sizes = array_value("abs", (C128,))(x).tolist()
    assert sizes == [value("abs", (C128,))(z) for z in x.tolist()]
