"""The library's generators against published numbers and NumPy's, there and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sizes import some

import rvm
from rvm.engines import executing
from rvm.faults import RvmError

TEXT = """
include "std/random.rasm"
func pcg32s(y: u32[n], s: Pcg32)
    call draws(y, s, pcg32)
func pcg64s(y: u64[n], s: Pcg64)
    call draws(y, s, pcg64)
func xoshiros(y: u64[n], s: u64[4])
    call draws(y, s, xoshiro)
func uniforms(y: f64[n], s: u64[4])
    for k = 0 to n - 1
        call uniform(y[k], s, xoshiro, xoshiro_step)
    end
func registers[T: u8 | u16 | u32 | u64](x: T, taps: T, n: i64)
    for k = 1 to n
        call lfsr(x, taps)
    end
"""
ENGINES = executing()
XOSHIRO = [
    11520, 0, 1509978240, 1215971899390074240, 1216172134540287360, 607988272756665600,
    16172922978634559625, 8476171486693032832, 10595114339597558777, 2904607092377533576,
]  # fmt: skip
"""From the state 1, 2, 3, 4, by the reference implementation of Blackman and Vigna."""
PCG32 = [0xA15C02B7, 0x7B47F409, 0xBA1D3330, 0x83D2F293, 0xBFA4784B, 0xCBED606E]
"""From the seed 42 and the sequence 54, by the demonstration of O'Neill's C library."""


@pytest.fixture(scope="module")
def lib() -> rvm.Library:
    return rvm.assemble(TEXT)


def seeded(seed: int, sequence: int) -> dict[str, int]:
    """The state of PCG32 that its C library makes of a seed."""
    increment = 2 * sequence + 1
    state = ((increment + seed) * 6364136223846793005 + increment) % 2**64
    return {"state": state, "increment": increment}


@pytest.mark.parametrize("engine", ENGINES)
@some
def test_published_numbers(lib: rvm.Library, engine: str) -> None:
    f = lib.pcg32s.with_options(engine=engine)
    out = f(y=np.zeros(6, np.uint32), s=seeded(42, 54))
    assert out.y.tolist() == PCG32
    back = (~f)(**out)
    assert dict(back.s) == seeded(42, 54) and not back.y.any()
    f = lib.xoshiros.with_options(engine=engine)
    out = f(y=np.zeros(10, np.uint64), s=np.array([1, 2, 3, 4], np.uint64))
    assert out.y.tolist() == XOSHIRO
    back = (~f)(**out)
    assert back.s.tolist() == [1, 2, 3, 4] and not back.y.any()


@pytest.mark.parametrize("engine", ENGINES)
@some
def test_pcg64_gives_the_numbers_of_numpy(lib: rvm.Library, engine: str) -> None:
    numpy = np.random.PCG64(5)
    inside: Any = numpy.state["state"]
    state = {
        "high": inside["state"] >> 64,
        "low": inside["state"] & 2**64 - 1,
        "increment_high": inside["inc"] >> 64,
        "increment_low": inside["inc"] & 2**64 - 1,
    }
    f = lib.pcg64s.with_options(engine=engine)
    out = f(y=np.zeros(200, np.uint64), s=state)
    np.testing.assert_array_equal(out.y, numpy.random_raw(200))
    inside = numpy.state["state"]
    assert (int(out.s["high"]) << 64) + int(out.s["low"]) == inside["state"]
    assert dict((~f)(**out).s) == state


def test_uniform_numbers(lib: rvm.Library) -> None:
    state = np.array([1, 2, 3, 4], np.uint64)
    out = lib.uniforms(y=np.zeros(10), s=state.copy())
    assert out.y.tolist() == [(u >> 11) * 2.0**-53 for u in XOSHIRO]
    np.testing.assert_array_equal((~lib.uniforms)(**out).s, state)
    many = lib.uniforms(y=np.zeros(20000), s=np.array([7, 1, 1, 9], np.uint64)).y[100:]
    assert many.min() >= 0 and many.max() < 1
    assert abs(many.mean() - 0.5) < 0.01 and abs(many.var() - 1 / 12) < 0.003


@pytest.mark.parametrize("engine", ENGINES)
@some
def test_shift_registers_of_full_length(lib: rvm.Library, engine: str) -> None:
    # Of the primitive polynomials x^8 + x^6 + x^5 + x^4 + 1 and x^16 + x^14 + x^13 + x^11 + 1.
    for name, bits, taps in (("u8", 8, 0xB8), ("u16", 16, 0xB400)):
        f = lib[f"registers[{name}]"].with_options(engine=engine)
        x, expected = 1, []
        for _ in range(2**bits - 1):
            x = x >> 1 ^ taps * (x & 1)
            expected.append(x)
        assert len(set(expected)) == 2**bits - 1 and x == 1
        for n in (1, 2, 9, 2**bits - 1 if engine == "native" else 60):
            assert f(x=1, taps=taps, n=n).x == expected[n - 1]
    out = lib["registers[u16]"](x=0xACE1, taps=0xB400, n=1)
    assert out.x == 0xE270
    assert (~lib["registers[u16]"])(**out).x == 0xACE1


@pytest.mark.parametrize("undo", [False, True])
def test_a_state_that_stays_zero_is_refused(lib: rvm.Library, undo: bool) -> None:
    for f, given in (
        (lib.xoshiros, {"y": np.zeros(1, np.uint64), "s": np.zeros(4, np.uint64)}),
        (lib["registers[u8]"], {"x": 0, "taps": 0xB8, "n": 1}),
    ):
        with pytest.raises(RvmError, match="stays there") as caught:
            (~f if undo else f)(**given)
        assert caught.value.code == "R013"
