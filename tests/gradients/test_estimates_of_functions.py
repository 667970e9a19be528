"""The estimated error of each function of the table, and of each conversion, against mpmath.

Each is applied where it rounds, cancels or underflows: what is lost has an error too.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from oracles import DOMAIN, true
from sizes import thin

import rvm
from rvm.image.nudged import nudged
from rvm.isa.functions.conversions import conversion_target
from rvm.isa.rows import FUNCTIONS, FunctionRow
from rvm.isa.rules import Arg, TypeFault
from rvm.numbers import system
from rvm.run.raw import Run
from rvm.state import Options
from rvm.types import C128, F32, F64, I64, LOG64, SCALARS, Scalar, elem_of, fixed

Oracle = Callable[..., Any]
MOVED = (F64, F32, C128, fixed(43), fixed(20), LOG64)
"""Types whose numbers are perturbed."""
OTHERS: dict[str, Oracle | None] = {
    "detach": lambda x: x,
    "polygamma": lambda n, x: mpmath.psi(int(n), x) if 0 <= n <= 12 and n % 1 == 0 else mpmath.nan,
    "lgamma": lambda x: mpmath.re(mpmath.loggamma(x)),
    "scaled": lambda x, y, z: x * y,
    "exp_log64": mpmath.exp,
    "%": lambda x, y: remainder(x, y),
    "checked_add": None,
    "checked_sub": None,
    "turned": None,
    "shear": None,
    "lift_tan": None,
    "lift_sin": None,
}
"""What mpmath says where `MP` does not, or says it slowly; None: the parts of rotations."""
RECIPROCAL = "neg"
"""What a function of logarithms is called so that gives 1 / x."""
EDGES = {
    "float": (0.0, 1.0, 2.0, -3.0, 0.1, 1e-9, 1e-170, -1e-170, 1e-320, 1e200, 40.0, -745.0, 800.0),
    "log": (0.0, 1.0, -0.6931471805599453, 1e-9, 40.0, -745.0, 800.0, -1e5, -math.inf),
    "fixed": (0.0, 1.0, 2.0, -3.0, 0.1, 3e-6, -1e-5, 0.5, 300.0, 7.25),
    "integer": (0, 1, 2, 3, 7, -1, -2),
}
PARTS = (0.0, 1.0, -1.0, 0.6, 0.8, 1e-9, 1e-170, 1e200, -300.0, 3.0)


@cache
def cases() -> list[tuple[str, tuple[Scalar, ...]]]:
    """Functions of the table with types of arguments on which they give moved numbers."""
    out = []
    for name, row in FUNCTIONS.items():
        idle = row.moves or row.steps or OTHERS.get(name, True) is None
        if not row.is_elementwise or idle or conversion_target(name) is not None:
            continue
        for types in itertools.product((*MOVED, I64), repeat=row.arity):
            try:
                found = row.rule([Arg(t) for t in types], None)
            except TypeFault:
                continue
            if found.elems == types and found.result in MOVED:
                out.append((name, types))
    return out


def drawn(t: Scalar, domain: tuple[float, float], rng: random.Random) -> Any:
    """A number of a type: of a function's domain, or one that may be lost."""
    if t == C128:
        parts = [rng.choice((*PARTS, rng.uniform(-3, 3))) for _ in "ab"]
        return complex(*parts)
    edges = EDGES[t.row.kind]
    x = rng.choice(edges) if rng.random() < 0.6 else rng.uniform(*domain)
    if t == F32:
        return float(np.float32(min(x, 1e38)))
    if t.row.kind == "fixed":
        return round(x * 2**t.frac) / 2**t.frac
    if t == LOG64:
        return rvm.LogNumber(x)
    return int(x) if t == I64 else x


def exact(x: Any) -> Any:
    """A number in mpmath."""
    if isinstance(x, rvm.LogNumber):
        return mpmath.exp(mpmath.mpf(x.log))
    return mpmath.mpc(x) if isinstance(x, complex) else mpmath.mpf(x)


def remainder(x: Any, y: Any) -> Any:
    """x modulo y, by as many digits as their quotient has."""
    with mpmath.workdps(700):
        return x - mpmath.floor(x / y) * y


def oracle(row: FunctionRow, t: Scalar) -> Oracle:
    if row.name == RECIPROCAL and t == LOG64:
        return lambda x: 1 / x
    if row.name == "identity":
        return lambda x: x
    f = OTHERS.get(row.name) or true(row.name)
    return lambda *xs: mpmath.mpmathify(f(*xs))


def written(row: FunctionRow) -> str:
    names = [f"x{k}" for k in range(row.arity)]
    if not row.symbol:
        return f"{row.name}({', '.join(names)})"
    return f" {row.symbol} ".join(names) if row.arity > 1 else f"{row.symbol}{names[0]}"


def adding(text: str, types: tuple[Scalar, ...], t: Scalar) -> Any:
    """A function that adds what a text gives to its results."""
    given = ", ".join(f"x{k}: {s}" for k, s in enumerate(types))
    if t == C128:
        head, body = "y: f64, z: f64", f"add y, real({text})\n    add z, imag({text})"
    else:
        head, body = f"y: {t}", f"{'mul' if t == LOG64 else 'add'} y, {text}"
    return rvm.assemble(f"func f({head}, {given})\n    {body}\n").f


def ratios(f: Any, t: Scalar, at: dict[str, Any], want: Any) -> Iterator[tuple[Any, Any]]:
    """The true errors of results, and the estimated ones."""
    start = {"y": 1.0} if t == LOG64 else {"y": 0.0, "z": 0.0} if t == C128 else {"y": 0.0}
    out = f(**start, **at, error=True)
    for k in start:
        got = out[k]
        true = want if t != C128 else want.real if k == "y" else want.imag
        if t == LOG64:
            got, true = got.log, mpmath.log(true) if true else -mpmath.inf
        if not math.isfinite(got):
            continue
        held = mpmath.mpf(got.numerator) / got.denominator if isinstance(got, Fraction) else got
        # On a branch cut mpmath may be on the other side.
        off = min(abs(held - true), abs(held + true) if t == C128 else mpmath.inf)
        yield off, out.info.error[k]


@thin
@pytest.mark.parametrize("case", cases(), ids=lambda c: f"{c[0]} {' '.join(map(str, c[1]))}")
def test_what_a_function_rounds_or_loses_has_an_error(case: Any) -> None:
    name, types = case
    row, rng = FUNCTIONS[name], random.Random(str(case))
    t = row.rule([Arg(s) for s in types], None).result
    f, true = adding(written(row), types, t), oracle(row, t)
    for _ in range(12):
        at = [
            drawn(s, d, rng)
            for s, d in zip(types, DOMAIN.get(row.name) or ((0, 4),) * len(types), strict=True)
        ]
        # Logarithms of numbers next to 1 are left of them.
        with mpmath.workdps(400 if LOG64 in (*types, t) else 60):
            try:
                want = true(*map(exact, at))
                if not mpmath.isfinite(want):
                    continue
                for off, error in ratios(f, t, {f"x{k}": v for k, v in enumerate(at)}, want):
                    assert off <= 2 * error, (name, at, mpmath.nstr(off, 3), error)
            except (ArithmeticError, ValueError, OverflowError, rvm.RvmError):
                continue


WHOLE = (0, 1, -3, 16777217, 2**31 - 1, 2**53 + 1, -(2**53) - 3, 2**62 - 1, 2**63 - 1, 2**64 - 1)
REAL = (0.0, 0.5, -0.1, 1e-60, 1e-170, 1e-9, 16777217.0, 2.0**53 - 1, 1e17)


def conversions() -> list[tuple[Scalar, Scalar]]:
    """Pairs of types of which numbers of the first convert to the second, which is moved."""
    sources = (*SCALARS.values(), fixed(20), fixed(62))
    found = []
    for was, t in itertools.product(sources, (*MOVED, fixed(62))):
        try:
            FUNCTIONS[str(t)].rule([Arg(was)], None)
        except TypeFault:
            continue
        if was != t and was != C128:
            found.append((was, t))
    return found


@thin
@pytest.mark.parametrize("pair", conversions(), ids=lambda p: f"{p[0]} {p[1]}")
def test_what_a_conversion_rounds_or_loses_has_an_error(pair: Any) -> None:
    """And what it does not round has none, unless it goes through a logarithm."""
    was, t = pair
    f = adding(f"`{t}`(x0)" if "(" in str(t) else f"{t}(x0)", (was,), t)
    rng = random.Random(str(pair))
    numbers = [*WHOLE, *REAL, *(drawn(was, (-4, 4), rng) for _ in range(4) if not was.is_bool)]
    for x in numbers:
        try:
            held = system(was).to_python(system(was).literal(bool(x) if was.is_bool else x))
        except (ValueError, TypeError):
            continue
        with mpmath.workdps(400):
            want = exact(held) if not isinstance(held, Fraction) else held
            if isinstance(want, Fraction):
                want = mpmath.mpf(want.numerator) / want.denominator
            try:
                for off, error in ratios(f, t, {"x0": held}, want):
                    assert off <= 2 * error, (x, mpmath.nstr(off, 3), error)
                    least = 4 * system(t).unit * abs(want) if t in (F64, F32, C128) else 0
                    assert off or LOG64 in pair or error <= least, (x, error)
            except rvm.RvmError:
                continue


LOST = {
    "abs2(x) * 1e308": (1e-170, 1e-32),
    "x ** n * 1e308": (1e-170, 1e-32),
    "real(c128(x) * c128(x)) * 1e308": (1e-170, 1e-32),
    "real(complex(x, 1.0) * complex(x, 0.0)) * 1e308": (1e-170, 1e-32),
    "real(exp(c128(-1.0 / x))) * 1e308": (1 / 750.0, 1.9e-18),
    "real(c128(x) / complex(1e200, 1.0) / c128(1e200)) * 1e308": (1.0, 1e-92),
    "f64(log64(x) ** 2.0) * 1e308": (1e-170, 1e-32),
    "f64(f32(x)) * 1e38": (1e-60, 1e-22),
    "angle(complex(1e200, x)) * 1e308": (1e-170, 1e-62),
}
"""What is lost although it counts, with a number and the true value there."""


@pytest.mark.parametrize("text", LOST)
def test_gradients_tell_what_is_lost(text: str) -> None:
    x, true = LOST[text]
    f = rvm.assemble(f"func f(y: f64, w: f64, x: f64, n: i64)\n    add y, w * ({text})\n").f
    found = f.grad(loss="y", wrt="w", y=0.0, w=1.0, x=x, n=2)
    assert found.w == 0 and true <= found.info.error.w < 1e-6


def test_gradients_tell_what_conversions_and_fixed_point_numbers_round() -> None:
    for t, n in (("f32", 2**24), ("f64", 2**53)):
        text = f"func f(y: {t}, x: {t}, n: i64)\n    add y, x * ({t}(n) - {t}({n}))\n"
        f = rvm.assemble(text).f
        found = f.grad(loss="y", y=0.0, x=1.0, n=n + 1)
        assert found.x == 0 and 1 <= found.info.error.x < 100
        assert f.grad(loss="y", y=0.0, x=1.0, n=n - 1).info.error.x < 1e-5
    f = rvm.assemble("func f(y: fixed, x: fixed, z: fixed)\n    add y, x * x * z\n").f
    found = f.grad(loss="y", y=0, x=3e-7, z=3)
    held = Fraction(round(3e-7 * 2**43), 2**43)
    assert abs(Fraction(found.z) - held**2) <= 2 * found.info.error.z < 1e-11
    # Of what is exact in the integers nothing is moved, and freed by other formulas it is 0.
    f = rvm.assemble("""
func f(y: fixed, x: fixed, z: fixed)
    alloc t: fixed = x * z
    alloc u: fixed = x * 2 / 2
    add y, t * 8 + u
    free u = x
    free t = z * x
""").f
    out = f(y=0, x=3, z=0.5, error=True)
    assert out.y == 15 and out.info.error.y == 0
    out = f(y=0, x=0.1, z=0.7, error=True)
    assert 0 < out.info.error.y < 1e-10
    f = rvm.assemble("func f(y: f64, x: f64)\n    add y, f64(sin(fixed(x) * 1000.0))\n").f
    found = f.grad(loss="y", y=0.0, x=0.3000000123)
    assert abs(found.x - 1000 * math.cos(300.0000123)) <= 2 * found.info.error.x < 1e-6


def test_each_function_that_rounds_is_compared() -> None:
    tried = {name for name, _ in cases()}
    for name, row in FUNCTIONS.items():
        rounds = row.is_elementwise and (row.partials or row.vjp) and not (row.steps or row.moves)
        if rounds and conversion_target(name) is None and OTHERS.get(name, True) is not None:
            assert name in tried, name


LIFTED = {
    "rot": "(x: {t}, y: {t}, w: {a})\n    rot x, y, w",
    "irot": "(x: {t}, y: {t}, w: {a})\n    irot x, y, w",
    "hadamard": "(x: {t}, y: {t}, w: {a})\n    hadamard x, y",
    "product": "(x: {t}, y: {t}, w: {a})\n    add x, y * y / 3.0\n    sub y, sqrt(abs(x)) * -x",
}


@thin(2)
@pytest.mark.parametrize("name", LIFTED)
@pytest.mark.parametrize("t", ["fixed", "fixed(20)"])
@pytest.mark.parametrize("steps", [1, 4])
def test_perturbed_fixed_point_programs_come_back_to_the_bit(name: str, t: str, steps: int) -> None:
    """What is moved on the way there is moved as far on the way back, in lifted rotations too."""
    program = rvm.assemble(f"func f{LIFTED[name].format(t=t, a=t)}\n").program
    bits = elem_of(program.function("f").registers[0].type).frac
    rng, moved = random.Random(name), 0
    for seed in range(20):
        other = nudged(program, seed, steps)
        start = [int(rng.gauss(0, 1) * 2**bits) for _ in range(3)]
        there, plain = (
            Run(p, "f", list(start), Options(engine="reference")).regs for p in (other, program)
        )
        assert Run(other, "f", list(there), Options(engine="reference"), undo=True).regs == start
        moved += there != plain
    assert moved > 10


@pytest.mark.parametrize("form", ["v @ v", "sum(v)", "sum(M @ v)", "sum(M @ N)", "prod(v)"])
@pytest.mark.parametrize("t", ["f64", "f32", "c128", "fixed"])
def test_sums_of_nothing_have_no_error(form: str, t: str) -> None:
    heads = f"y: {t}, v: {t}[n], M: {t}[m, n], N: {t}[n, p]"
    f = rvm.assemble(f"func f({heads})\n    add y, {form}\n").f
    dtype = system(elem_of(f.function.registers[1].type)).dtype
    for m, n, p in ((0, 0, 0), (2, 0, 3), (0, 3, 0), (2, 3, 0)):
        arrays = {
            "v": np.zeros(n, dtype),
            "M": np.zeros((m, n), dtype),
            "N": np.zeros((n, p), dtype),
        }
        assert f(y=1, **arrays, error=True).info.error.y < 1e-3
