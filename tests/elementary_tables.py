"""Makes the constants of `rvm.numbers.elementary` from mpmath, at 400 bits.

python tests/elementary_tables.py > rvm/numbers/elementary/tables.txt
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from typing import Any

_PRECISION = 400


def _bits_of(x: float) -> int:
    """The bits of a float."""
    return int(struct.unpack("<q", struct.pack("<d", x))[0])


def _float_of(n: int) -> float:
    """The float of some bits."""
    return float(struct.unpack("<d", struct.pack("<q", n))[0])


class _TableMaker:
    """Collects definitions; numbers are mpmath's."""

    def __init__(self) -> None:
        import mpmath

        self.m = mpmath
        self.lines: list[str] = []

    def split(self, x: Any, *steps: int) -> list[float]:
        """A number as a sum of floats, the first ones multiples of 2 to the powers `steps`."""
        out = []
        for step in steps:
            unit = self.m.mpf(2) ** step
            out.append(float(self.m.nint(x / unit) * unit))
            x -= out[-1]
        return [*out, float(x)]

    def number(self, name: str, *values: float) -> None:
        """A constant, or several."""
        self.table(name, map(_bits_of, values))

    def floats(self, name: str, values: Iterable[float]) -> None:
        """A table of floats."""
        self.table(name, map(_bits_of, values))

    def table(self, name: str, words: Iterable[int]) -> None:
        """Words of 64 bits, in hexadecimal digits."""
        digits = "".join(f"{w & (1 << 64) - 1:016x}" for w in words)
        self.lines += [name, *(digits[n : n + 96] for n in range(0, len(digits), 96)), ""]

    def polynomial(
        self, name: str, g: Callable[[Any], Any], low: Any, high: Any, count: int
    ) -> None:
        """Coefficients, ascending, of the polynomial that interpolates in Chebyshev's points."""
        self.number(name, *map(float, self.interpolated(g, low, high, count)))

    def interpolated(self, g: Callable[[Any], Any], low: Any, high: Any, count: int) -> list[Any]:
        """The same coefficients as mpmath's numbers."""
        m = self.m
        middle, half = (high + low) / 2, (high - low) / 2
        points = [middle + half * m.cos(m.pi * (k + m.mpf(1) / 2) / count) for k in range(count)]
        powers = m.matrix([[x**k for k in range(count)] for x in points])
        return list(m.lu_solve(powers, m.matrix([g(x) for x in points])))


def _exponentials(k: _TableMaker) -> None:
    """2**(j/128), and the reduction of exp."""
    m = k.m
    powers = [m.mpf(2) ** (m.mpf(j) / 128) for j in range(128)]
    near = [float(p) for p in powers]
    k.floats("EXP_TAIL", [float((p - n) / n) for p, n in zip(powers, near, strict=True)])
    k.table("EXP_BITS", [_bits_of(n) - (j << 45) for j, n in enumerate(near)])
    k.number("STEPS_PER_LN2", float(128 / m.log(2)))
    # 18 bits are free for the number of steps.
    k.number("LN2_STEP", *k.split(m.log(2) / 128, -42))
    k.number("LOG2_E", *k.split(1 / m.log(2), -26))
    k.number("LOG10_E", *k.split(1 / m.log(10), -28))
    k.number("LOG10_2", *k.split(m.log10(2), -42))
    k.number("LN2", *k.split(m.log(2), -42))
    k.number("LN2_PAIR", float(m.log(2)), float(m.log(2) - float(m.log(2))))
    k.number("LN10_PAIR", float(m.log(10)), float(m.log(10) - float(m.log(10))))
    r = m.log(2) / 255
    k.polynomial("EXP_POLY", lambda x: (m.exp(x) - 1 - x) / x**2, -r, r, 4)
    k.polynomial("EXP_LONG_POLY", lambda x: (m.exp(x) - 1 - x) / x**2, -r, r * m.mpf("1.0001"), 5)


def _logarithms(k: _TableMaker) -> None:
    """Reciprocals of ten bits near the middle of 128 intervals, and their logarithms."""
    m = k.m
    inverse, high, low = [], [], []
    first = _bits_of(0.6875)
    for i in range(128):
        begin, end = _float_of(first + (i << 45)), _float_of(first + (i + 1 << 45))
        near_one = begin == 1.0 or end == 1.0
        c = 1.0 if near_one else round(512 * 2 / (begin + end)) / 512
        inverse.append(c)
        a, b = k.split(-m.log(m.mpf(c)), -42)
        high.append(a)
        low.append(b)
    k.floats("LOG_INVERSE", inverse)
    k.floats("LOG_HIGH", high)
    k.floats("LOG_LOW", low)
    r = m.mpf(1) / 125

    def rest(x: Any) -> Any:
        return (m.log1p(x) - x + x * x / 2) / x**3

    k.polynomial("LOG_POLY", rest, -r, r, 8)


def _circles(k: _TableMaker) -> None:
    """Sine and cosine within pi/4, the pieces of pi/2, the bits of 2/pi; arc tangents."""
    m = k.m
    k.number("HALF_PI", *k.split(m.pi / 2, -32, -65, -98))
    k.number("HALF_PI_PAIR", float(m.pi / 2), float(m.pi / 2 - float(m.pi / 2)))
    k.number("PI_PAIR", float(m.pi), float(m.pi - float(m.pi)))
    k.number("TWO_OVER_PI", float(2 / m.pi))
    top = (m.pi / 4 * m.mpf("1.0001")) ** 2
    tiny = m.mpf(2) ** -60

    def sine(z: Any) -> Any:
        x = m.sqrt(z)
        return (m.sin(x) - x) / (x * z)

    def cosine(z: Any) -> Any:
        return (m.cos(m.sqrt(z)) - 1 + z / 2) / z**2

    k.polynomial("SIN_POLY", sine, tiny, top, 7)
    k.polynomial("COS_POLY", cosine, tiny, top, 7)
    with m.workprec(1600):
        words = int(m.floor(2 / m.pi * m.mpf(2) ** (64 * 21)))
    all_words = [(words >> 64 * (20 - n)) & ((1 << 64) - 1) for n in range(21)]
    signed = [w - (1 << 64) if w >> 63 else w for w in all_words]
    k.table("TWO_OVER_PI_BITS", [0, *signed, *[0] * 10])
    arcs = [m.atan(m.mpf(i) / 16) for i in range(17)]
    k.floats("ATAN_HIGH", [*(float(a) for a in arcs), *[0.0] * 15])
    k.floats("ATAN_LOW", [*(float(a - float(a)) for a in arcs), *[0.0] * 15])

    def arc(z: Any) -> Any:
        x = m.sqrt(z)
        return (m.atan(x) - x) / (x * z)

    k.polynomial("ATAN_POLY", arc, tiny, (m.mpf(1) / 31) ** 2, 5)


def _errors(k: _TableMaker) -> None:
    """The error function at multiples of 1/32, near 0, and as a factor of exp(-x**2) far out."""
    m = k.m
    values = [m.erf(m.mpf(j) / 32) for j in range(192)]
    k.floats("ERF_HIGH", [*(float(v) for v in values), *[1.0] * 64])
    k.floats("ERF_LOW", [*(float(v - float(v)) for v in values), *[0.0] * 64])
    k.number("TWO_OVER_ROOT_PI", float(2 / m.sqrt(m.pi)))
    first = 2 / m.sqrt(m.pi) - 1
    k.number("ERF_SLOPE", *k.split(first, -30))

    def near(z: Any) -> Any:
        x = m.sqrt(z)
        return (m.erf(x) / x - 1 - first) / z

    k.polynomial("ERF_POLY", near, m.mpf(2) ** -60, m.mpf("0.2501"), 11)
    # Chebyshev's coefficients of (x + 3.75) exp(x**2) erfc(x) by (x - 3.75) / (x + 3.75)
    pole = m.mpf(15) / 4
    low, high = ((x - pole) / (x + pole) for x in (m.mpf(1) / 2, m.mpf(28)))
    count = 28

    def far(s: Any) -> Any:
        t = (high + low) / 2 + (high - low) / 2 * s
        x = pole * (1 + t) / (1 - t)
        return (x + pole) * m.exp(x * x) * m.erfc(x)

    angles = [m.pi * (j + m.mpf(1) / 2) / count for j in range(count)]
    held = [far(m.cos(a)) for a in angles]
    series = [
        2 * sum(h * m.cos(n * a) for h, a in zip(held, angles, strict=True)) / count
        for n in range(count)
    ]
    k.number("ERFC_SERIES", *map(float, series))
    k.number("ERFC_RANGE", float((high + low) / 2), float(2 / (high - low)))


def _moved(g: Callable[[Any], Any], c: Any, t: Any) -> Any:
    return g(c + t)


def _gammas(k: _TableMaker) -> None:
    """lgamma and digamma from 1/2 to 8 without their zeros, and the series beyond."""
    m = k.m
    root = m.findroot(m.digamma, m.mpf("1.4616321449683623"))

    def gamma(x: Any) -> Any:
        return m.loggamma(x).real / ((x - 1) * (x - 2))

    def digamma(x: Any) -> Any:
        return m.digamma(x) / (x - root)

    places = [_float_of((0x3FE << 52) + (2 * i + 1 << 49)) for i in range(16)]
    for name, g, count in (("GAMMA", gamma, 18), ("DIGAMMA", digamma, 18)):
        rows = []
        for c in map(m.mpf, places):
            half = m.mpf(2) ** (m.floor(m.log(c, 2)) - 3)
            rows.append(k.interpolated(partial(_moved, g, c), -half, half, count))
        high = [float(row[0]) for row in rows]
        k.floats(f"{name}_HIGH", high)
        low = [float(row[0] - h) for row, h in zip(rows, high, strict=True)]
        k.floats(f"{name}_LOW", low)
        k.floats(f"{name}_POLY", [float(row[n]) for n in range(1, count) for row in rows])
    k.number("DIGAMMA_ROOT", float(root), float(root - float(root)))
    k.number("LOG_PI_PAIR", *k.split(m.log(m.pi), -50))
    k.number("STIRLING_PAIR", *k.split(m.log(2 * m.pi) / 2 - m.mpf(1) / 2, -50))
    top, tiny = m.mpf(1) / 64, m.mpf(2) ** -30

    def stirling(z: Any) -> Any:
        x = 1 / m.sqrt(z)
        main = (x - m.mpf(1) / 2) * (m.log(x) - 1) + m.log(2 * m.pi) / 2 - m.mpf(1) / 2
        return (m.loggamma(x) - main) * x

    def tail(z: Any) -> Any:
        x = 1 / m.sqrt(z)
        return (m.log(x) - 1 / (2 * x) - m.digamma(x)) / z

    k.polynomial("STIRLING_TAIL", stirling, tiny, top, 9)
    k.polynomial("DIGAMMA_TAIL", tail, tiny, top, 9)
    k.floats("FACTORIALS", [float(m.factorial(n)) for n in range(16)])
    orders = [max(n, 1) for n in range(16)]
    hurwitz = [
        [float(m.bernoulli(j) * m.factorial(j + n - 1) / m.factorial(j)) for n in orders]
        for j in range(2, 26, 2)
    ]
    k.floats("HURWITZ_TAIL", chain.from_iterable(hurwitz))


def text() -> str:
    """The file."""
    k = _TableMaker()
    with k.m.workprec(_PRECISION):
        for part in (_exponentials, _logarithms, _circles, _errors, _gammas):
            part(k)
    return "\n".join(k.lines)


if __name__ == "__main__":
    sys.stdout.write(text())
