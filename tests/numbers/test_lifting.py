"""Rotations of integers and fixed-point numbers: their factors by mpmath, there and back."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from sizes import first_and_another, sample, sized, thin, wide

import rvm
from rvm.engines import executing
from rvm.leaf.python import on_numbers
from rvm.numbers.code import DOUBT
from rvm.numbers.elementary import lifts
from rvm.numbers.lifting import EIGHTH, FRAC, HALF_ROOT, ONE, factors

DIGITS = 700


def exact(m: int, e: int) -> tuple[int, int, bool]:
    """The factors of an angle by mpmath."""
    with mpmath.workdps(DIGITS):
        t = mpmath.ldexp(mpmath.mpf(m), e)
        k = int(mpmath.nint(t / mpmath.pi))
        u = t - k * mpmath.pi
        one, other = (int(mpmath.nint(v * ONE)) for v in (mpmath.tan(u / 2), mpmath.sin(u)))
        return one, other, bool(k % 2)


def angles() -> Iterator[tuple[int, int]]:
    """Angles m * 2**e as floats hold them, and fixed-point numbers."""
    rng = random.Random(5)
    floats = [rng.uniform(-7, 7) for _ in range(60)]
    floats += [k * math.pi / 2 for k in range(-20, 20)]
    floats += [10.0 ** rng.uniform(-300, 300) for _ in range(60)]
    floats += [10.0 ** rng.uniform(-25, 3) for _ in range(60)]
    floats += [6381956970095103 * 2.0**797, 1.7976931348623157e308, 5e-324]
    for x in floats:
        m, e = math.frexp(x)
        shift = max(-1074 - (e - 53), 0)
        yield int(m * 2**53) >> shift, e - 53 + shift
    for m in (0, 1, 2, 3, 5, 2**52, 2**52 + 1, 2**53 - 1):
        for e in (*range(-130, -40, 7), -62, -63, -64, -115):
            yield m, e
            yield -m, e
    for m in (1, 2**27 + 1, 2**35 - 1, 2**36 + 1, 2**37 + 1, 2**40 - 1):
        yield m, -62
        yield -m, -63
    for frac in range(63):
        for _ in range(4):
            yield rng.getrandbits(rng.randrange(1, 64)), -frac
            yield -rng.getrandbits(rng.randrange(1, 64)), -frac
        yield -(1 << 63), -frac


def test_factors_are_correctly_rounded() -> None:
    for m, e in angles():
        assert factors(m, e) == exact(m, e), (m, e)
    with mpmath.workdps(40):
        assert mpmath.nint(mpmath.tan(mpmath.pi / 8) * ONE) == EIGHTH
        assert mpmath.nint(mpmath.sin(mpmath.pi / 4) * ONE) == HALF_ROOT


def test_texts_for_machine_code_give_the_factors() -> None:
    """Or that they are in doubt, which is rare."""
    texts = [on_numbers(f) for f in (lifts.tangent, lifts.sine_of, lifts.odd)]
    doubts = 0
    for m, e in angles():
        for text, want in zip(texts, factors(m, e), strict=True):
            got = text(m, e)
            if got == DOUBT:
                doubts += 1
            else:
                assert got == want, (m, e, text)
    assert doubts <= 2


# ---------------------------------------------------------------- rotations


def sheared(x: int, factor: int) -> int:
    return round(Fraction(x * factor, ONE))


def rotated(a: int, b: int, m: int, e: int) -> tuple[int, int]:
    tangent, sine, odd = exact(m, e)
    if odd:
        a, b = -a, -b
    a -= sheared(b, tangent)
    b += sheared(a, sine)
    return a - sheared(b, tangent), b


TYPES = ("i32", "i64", "fixed", "fixed(20)", "fixed(62)")


def program(t: str) -> Any:
    angle = "f64" if t.startswith("i") else t
    return rvm.assemble(f"""
        func one(a: {t}, b: {t}, t: {angle})
            rot a, b, t

        func back(a: {t}, b: {t}, t: {angle})
            irot a, b, t

        func mirror(a: {t}, b: {t})
            hadamard a, b

        func loop(a: {t}[n], b: {t}[n], t: {angle}[n])
            for i = 0 to n - 1
                rot a[i], b[i], t[i]
                hadamard a[i], b[i]
            end

        func whole(a: {t}[n], b: {t}[n], t: {angle}[n])
            rot a, b, t
            hadamard a, b
    """)


def cases(t: str, n: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[tuple[int, int]]]:
    """Points within a circle that fits, and angles: raw, and as m * 2**e."""
    rng = random.Random(t)
    most = 2**30 if t == "i32" else 2**62
    kind = np.int32 if t == "i32" else np.int64
    size = [1 << rng.randrange(1, most.bit_length()) for _ in range(n)]
    a, b = (np.array([rng.randrange(-s, s) // 2 for s in size], kind) for _ in range(2))
    if t.startswith("i"):
        x = [rng.choice((rng.uniform(-7, 7), 0.0, math.pi, 1e22, -1e-9)) for _ in range(n)]
        ratios = [v.as_integer_ratio() for v in x]
        return a, b, np.array(x), [(p, 1 - q.bit_length()) for p, q in ratios]
    frac = rvm.assemble(f"func f(a: {t})\n    inc a\n").program.functions[0].registers[0].type.frac
    raw = [rng.choice((1, -1)) * rng.getrandbits(rng.randrange(1, 63)) for _ in range(n)]
    return a, b, np.array(raw), [(m, -frac) for m in raw]


@thin
@pytest.mark.parametrize("t", TYPES)
@sized
def test_every_engine_rotates_alike_there_and_back(t: str) -> None:
    lib = program(t)
    a, b, angle, parts = cases(t)
    turned = [rotated(x, y, *p) for x, y, p in zip(a.tolist(), b.tolist(), parts, strict=True)]
    want = []
    for x, y in turned:
        x += sheared(y, EIGHTH)
        y = sheared(x, HALF_ROOT) - y
        want.append((x - sheared(y, EIGHTH), y))
    for engine in first_and_another(executing(), ("rotations", t)):
        for name in ("loop", "whole"):
            f = lib[name].with_options(engine=engine)
            found = f(a=a.copy(), b=b.copy(), t=angle)
            assert list(zip(found.a.tolist(), found.b.tolist(), strict=True)) == want, engine
            back = (~f)(**found)
            assert back.a.tolist() == a.tolist() and back.b.tolist() == b.tolist()
        one = lib.one.with_options(engine=engine)
        lanes = one.map(a=a, b=b, t=angle)
        assert list(zip(lanes.a.tolist(), lanes.b.tolist(), strict=True)) == turned
        returned = (~one).map(a=lanes.a, b=lanes.b, t=angle)
        assert returned.a.tolist() == a.tolist() and returned.b.tolist() == b.tolist()


@thin
@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("engine", executing())
@sample
def test_what_does_not_fit_is_refused_and_changes_nothing(t: str, engine: str) -> None:
    lib = program(t)
    most = (2**31 if t == "i32" else 2**63) - 1
    kind = np.int32 if t == "i32" else np.int64
    integer = t.startswith("i")
    frac = 0 if integer else cases(t, 1)[3][0][1]
    angle = np.array([0.75 if integer else int(Fraction(3, 4) / Fraction(2) ** frac)])
    for a, b in ((most, -most), (-most - 1, most), (most, most)):
        x, y = np.array([a], kind), np.array([b], kind)
        for name in ("loop", "whole"):
            with pytest.raises(rvm.RvmError) as caught:
                lib[name](a=x, b=y, t=angle, engine=engine)
            assert caught.value.code == "R009"
            assert (x[0], y[0]) == (a, b)
    least = np.array([-most - 1], kind)
    turn = np.array([3.0 if integer else int(Fraction(3, 2) / Fraction(2) ** frac)])
    if integer:
        with pytest.raises(rvm.RvmError) as caught:
            lib.whole(a=least, b=np.array([0], kind), t=turn, engine=engine)
        assert caught.value.code == "R009", "the least number has no negative"
        for bad in (math.nan, math.inf):
            with pytest.raises(rvm.RvmError) as caught:
                lib.one(a=1, b=2, t=bad, engine=engine)
            assert caught.value.code == "R009"


@wide
def test_many_turns_come_back_to_the_bit() -> None:
    lib = rvm.assemble("""
        func spin(a: i64, b: i64, t: f64, n: i64)
            for i = 1 to n
                rot a, b, t
            end
    """)
    start = {"a": 123456789, "b": -987654321, "t": 0.1, "n": 100_000}
    end = lib.spin(**start)
    assert math.hypot(end.a, end.b) == pytest.approx(math.hypot(123456789, -987654321), rel=1e-5)
    assert (~lib.spin)(**end) == start


@pytest.mark.parametrize("t", ["u8", "u32", "u64", "bool", "log64"])
def test_types_without_negative_numbers_are_refused(t: str) -> None:
    with pytest.raises(rvm.AssemblyError) as caught:
        rvm.assemble(f"func f(a: {t}, b: {t})\n    hadamard a, b\n")
    assert "A043" in str(caught.value)


def test_rotations_are_near_true_ones() -> None:
    rng = random.Random(9)
    for _ in range(200):
        a, b = rng.randrange(-(2**61), 2**61), rng.randrange(-(2**61), 2**61)
        m, e = rng.randrange(-(2**53), 2**53), -50
        x, y = rotated(a, b, m, e)
        with mpmath.workdps(60):
            t = mpmath.ldexp(mpmath.mpf(m), e)
            assert abs(a * mpmath.cos(t) - b * mpmath.sin(t) - x) < 3
            assert abs(a * mpmath.sin(t) + b * mpmath.cos(t) - y) < 3
    assert FRAC == 62
