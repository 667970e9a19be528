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

import rvm
from rvm.engines import executing
from rvm.expr import Place
from rvm.isa import apply
from rvm.isa.implementation import array_value, value
from rvm.isa.rows import FUNCTIONS as TABLE
from rvm.isa.rows import FunctionRow
from rvm.isa.rules import TypeFault
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


def is_complex(row: FunctionRow) -> bool:
    """Whether it is a function from complex numbers to complex numbers."""
    try:
        return row.arity == 1 and apply(row.name, Place(0, (), C128)).type == C128
    except TypeFault:
        return False


NAMES = [row.name for row in TABLE.values() if row.cost == "NLOPS" and is_complex(row)]
ENDS = (0.0, -0.0, 0.5, -2.0, 5e-324, -1e300, math.inf, -math.inf, math.nan)
ODD, EVEN = ("sin", "tan", "asin", "atan", "sinh", "tanh"), ("cos", "cosh", "sech", "leg")


def by_cmath(name: str, z: complex) -> complex:
    """What C99 says of a function at an infinity or at no number.

    An angle that is infinite is none: the sign of what it leaves is not specified.
    """
    x, y = z.real, z.imag
    if name == "log2":
        z = by_cmath("log", z)
        return complex(z.real / math.log(2), z.imag / math.log(2))
    if name == "log1p":
        return by_cmath("log", complex(1 + x, y))
    if name == "expm1":
        z = by_cmath("exp", z)
        return complex(z.real - 1, y if y == 0 else z.imag)
    if name in ("sech", "leg"):
        return by_limit(name, z)
    try:
        return getattr(cmath, name)(z)  # type: ignore[no-any-return]
    except ValueError:
        return by_cmath(name, complex(math.nan, y) if name in TURNED else complex(x, math.nan))


TURNED = ("sin", "cos", "tan")


def by_limit(name: str, z: complex) -> complex:
    """The limit of a function that C99 does not have; signs by the finite numbers on the way."""
    x, y = z.real, z.imag
    if name == "leg":  # as large as z, and turned by a right angle to the right
        away = cmath.isinf(z)
        return (complex(y, -x) if math.copysign(1, y) > 0 else complex(-y, x)) if away else NONE
    if not math.isinf(x):
        return complex(math.nan, y if math.isnan(x) and y == 0 else math.nan)
    turned = y if math.isfinite(y) else 0.0
    return complex(
        math.copysign(0, math.cos(turned)),
        math.copysign(0, -math.copysign(1, x) * math.sin(turned)),
    )


NONE = complex(math.nan, math.nan)


def is_unsigned(name: str, z: complex) -> bool:
    """Whether signs depend on a part that has none, or on an angle that is infinite."""
    angle = z.real if name in TURNED else z.imag
    return cmath.isnan(z) or (name in TURNING and math.isinf(angle))


TURNING = ("exp", "expm1", "sinh", "cosh", "tanh", "sech", *TURNED)


def alike(a: complex, b: complex, unsigned: bool) -> bool:
    """Whether two results are one, up to the last digits, and where `unsigned` up to signs."""
    pairs = ((a.real, b.real), (a.imag, b.imag))
    if unsigned:
        pairs = tuple((abs(x), abs(y)) for x, y in pairs)
    return all(
        (x != x and y != y)
        or (math.copysign(1, x) == math.copysign(1, y) and (x == y or math.isclose(x, y)))
        for x, y in pairs
    )


@pytest.mark.parametrize("name", NAMES)
def test_parts_that_are_not_numbers_have_the_values_of_c99(name: str) -> None:
    f = value(name, (C128,))
    many = [complex(a, b) for a in ENDS for b in ENDS]
    with np.errstate(all="ignore"):
        arrays = array_value(name, (C128,))(np.array(many))
    assert all(same(a, f(z)) for a, z in zip(arrays.tolist(), many, strict=True))
    for z in many:
        if not cmath.isfinite(z):
            want = by_cmath(name, z)
            assert alike(f(z), want, is_unsigned(name, z)), (z, f(z), want)


@pytest.mark.parametrize("name", NAMES)
def test_signs_of_zeros_are_those_of_the_symmetries(name: str) -> None:
    """Of conjugates everywhere, and of negatives of odd and even functions."""
    f = value(name, (C128,))
    for z in (complex(a, b) for a in (*ENDS, 1.0, 39.0, 41.0, 720.0, 850.0) for b in ENDS):
        free = is_unsigned(name, z)
        assert alike(f(z.conjugate()), f(z).conjugate(), free), z
        if name in (*ODD, *EVEN):
            assert alike(f(-z), -f(z) if name in ODD else f(z), free), z


@thin(2)
@pytest.mark.parametrize("engine", executing())
def test_every_engine_gives_these_values(engine: str) -> None:
    many = [complex(a, b) for a in ENDS for b in ENDS]
    head = f"({', '.join(f'y{k}: c128[n]' for k in range(len(NAMES)))}, z: c128[n])\n"
    lines = [f"        add y{k}[i], {name}(z[i])\n" for k, name in enumerate(NAMES)]
    text = f"func f{head}    for i = 0 to n - 1\n{''.join(lines)}    end\n"
    text += f"func g{head}{''.join(lines).replace('[i]', '')}"
    for name in ("f", "g"):
        zeros = {f"y{k}": np.full(len(many), complex(-0.0, -0.0)) for k in range(len(NAMES))}
        found = rvm.assemble(text)[name](engine=engine, z=np.array(many), **zeros)
        for k, fn in enumerate(NAMES):
            for got, z in zip(found[f"y{k}"].tolist(), many, strict=True):
                assert same(got, value(fn, (C128,))(z)), (name, fn, z)


@pytest.mark.parametrize("name", ["exp", "expm1", "sinh", "cosh", "sin", "cos"])
def test_one_part_overflows_alone(name: str) -> None:
    """As that of e**800 times the cosine of the least angle, whose sine is as small."""
    f, rng = value(name, (C128,)), random.Random(name)
    exact = getattr(MP, name)
    for _ in range(60):
        far, small = rng.choice((1, -1)) * rng.uniform(690, 1470), 10 ** rng.uniform(-323.5, 0)
        z = complex(small, far) if name in TURNED else complex(far, small)
        want, got = exact(MP.mpc(z.real, z.imag)), f(z)
        for a, b in ((want.real, got.real), (want.imag, got.imag)):
            if abs(a) > 1.79e308:
                assert math.isinf(b) and (b > 0) == (a > 0), (z, got)
            else:
                assert abs(a - b) <= 4 * 2.0**-52 * abs(a) + MP.mpf(2) ** -1074, (z, got)


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
