"""Lost bits: how far numbers are from what they were, counted in units in the last place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from rvm_tools.drift import drifts, lost_bits

from rvm import assemble


def lost(a: Any, b: Any, dtype: Any = np.float64) -> list[int]:
    found: list[int] = lost_bits(np.array(a, dtype), np.array(b, dtype)).tolist()
    return found


def off(x: float, ulps: int) -> float:
    for _ in range(ulps):
        x = math.nextafter(x, math.inf)
    return x


@pytest.mark.parametrize("ulps", [0, 1, 2, 3, 4, 100])
@pytest.mark.parametrize("x", [1.0, -1.0, 0.1, 1e300, -1e-310])
def test_k_units_off_lose_the_digits_of_k(x: float, ulps: int) -> None:
    assert lost([x], [off(x, ulps)]) == [ulps.bit_length()]
    assert lost([off(x, ulps)], [x]) == [ulps.bit_length()]


def test_edges() -> None:
    assert lost([0.0], [-0.0]) == [1]
    assert lost([5e-324], [-5e-324]) == [2]
    assert lost([math.nan], [math.nan]) == [0]
    assert lost([math.nan], [1.0]) == [53]
    assert lost([0.0], [1.0]) == [53]
    assert lost([1.0], [1.0 + 2**-23], np.float32) == [1]
    assert lost([0.0], [1.0], np.float32) == [24]
    assert lost([1 + 1j], [1 + complex(0, off(1, 3))], np.complex128) == [2]
    assert lost([7, 8], [7, 10], np.int64) == [0, 2]


def test_parameters_that_differ_are_named() -> None:
    f = assemble("func f(x: f64[n], k: i64, q: fixed, s: stack[u8])\n").program.function("f")
    before: list[Any] = [np.array([1.0, 2.0, 3.0]), 5, 1 << 43, [1, 2]]
    after: list[Any] = [np.array([1.0, off(2.0, 4), 3.5]), 5, (1 << 43) + 3, [1]]
    x, q, s = drifts(f, before, after, 1e-8)
    assert (x.name, x.bits, x.numbers, x.of, x.off, x.within) == ("x", 51, 2, 3, 0.5, False)
    assert (q.name, q.bits, q.off) == ("q", 2, 3 * 2.0**-43)
    assert (s.name, s.within) == ("s", False)
    assert drifts(f, before, before, 0.0) == []


def test_within_the_tolerance() -> None:
    f = assemble("func f(x: f64)\n").program.function("f")
    (d,) = drifts(f, [1.0], [1.0 + 1e-9], 1e-8)
    assert d.within and d.text() == "x: 23 bits (off by 1e-09)"
    (d,) = drifts(f, [1.0], [1.1], 1e-8)
    assert not d.within and d.text().endswith("beyond the tolerance")
