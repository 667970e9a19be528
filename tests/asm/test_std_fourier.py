"""The library's Fourier transform against NumPy's, and to the bit there and back."""

from __future__ import annotations

import numpy as np
import pytest
from sizes import sample, some, thin

import rvm
from rvm.engines import executing
from rvm.faults import RvmError

TEXT = """
include "std/fourier.rasm"
func main(re: f64[n], im: f64[n])
    call fft(re, im)
func convolved(y: f64[n], a: f64[n], b: f64[n])
    call convolve(y, a, b)
"""
ENGINES = executing()
FRAC = 30


@pytest.fixture(scope="module")
def lib() -> rvm.Library:
    return rvm.assemble(TEXT)


def signal(n: int) -> np.ndarray:
    r = np.random.default_rng(n)
    return np.asarray(r.normal(size=n) + 1j * r.normal(size=n))


@thin
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n", [1, 2, 4, 32])
@sample
def test_floats(lib: rvm.Library, engine: str, n: int) -> None:
    f, z = lib.main.with_options(engine=engine), signal(n)
    out = f(re=z.real.copy(), im=z.imag.copy())
    np.testing.assert_allclose(out.re + 1j * out.im, np.fft.fft(z, norm="ortho"), atol=1e-14)
    back = (~f)(**out)
    np.testing.assert_allclose(back.re + 1j * back.im, z, atol=1e-14)


@thin
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n", [1, 2, 4, 32])
@sample
def test_fixed_point_numbers_come_back_to_the_bit(lib: rvm.Library, engine: str, n: int) -> None:
    z = signal(n)
    re, im = (np.rint(part * 2**FRAC).astype(np.int64) for part in (z.real, z.imag))
    f = lib[f"fft[fixed({FRAC})]"].with_options(engine=engine)
    out = f(re=re.copy(), im=im.copy())
    want = np.fft.fft((re + 1j * im) / 2**FRAC, norm="ortho")
    # Each stage rounds nine times by half a unit, and the angle as far as the numbers are large.
    bound = 8 * max(1, np.log2(n)) * 2.0**-FRAC
    assert abs((out.re + 1j * out.im) / 2**FRAC - want).max() < bound
    back = (~f)(**out)
    np.testing.assert_array_equal(back.re, re)
    np.testing.assert_array_equal(back.im, im)


def test_any_bits_come_back(lib: rvm.Library) -> None:
    """What is undone by the transform of another signal, as long as it fits."""
    r = np.random.default_rng(0)
    re, im = r.integers(-(2**50), 2**50, (2, 64))
    back = (~lib["fft[fixed(30)]"])(re=re.copy(), im=im.copy())
    out = lib["fft[fixed(30)]"](**back)
    np.testing.assert_array_equal(out.re, re)
    np.testing.assert_array_equal(out.im, im)


@pytest.mark.parametrize("engine", ENGINES)
@some
def test_convolutions(lib: rvm.Library, engine: str) -> None:
    r = np.random.default_rng(1)
    a, b = r.normal(size=8), r.normal(size=8)
    want = [sum(a[j] * b[(k - j) % 8] for j in range(8)) for k in range(8)]
    f = lib.convolved.with_options(engine=engine)
    np.testing.assert_allclose(f(y=np.ones(8), a=a.copy(), b=b.copy()).y - 1, want, atol=1e-13)


def test_gradients_of_transforms_and_convolutions(lib: rvm.Library) -> None:
    r = np.random.default_rng(2)
    a, b, seed = r.normal(size=(3, 8))
    g = lib.convolved.vjp({"y": seed}, y=np.zeros(8), a=a.copy(), b=b.copy())
    want = [sum(seed[k] * b[(k - j) % 8] for k in range(8)) for j in range(8)]
    np.testing.assert_allclose(g.a, want, atol=1e-13)
    # A unitary map's adjoint is its inverse.
    g = lib.main.vjp({"re": seed, "im": np.zeros(8)}, re=a.copy(), im=b.copy())
    inverse = np.fft.ifft(seed, norm="ortho")
    np.testing.assert_allclose(g.re + 1j * g.im, inverse, atol=1e-13)


@pytest.mark.parametrize("undo", [False, True])
def test_lengths_that_are_not_powers_of_two_are_refused(lib: rvm.Library, undo: bool) -> None:
    f = ~lib.main if undo else lib.main
    for n in (0, 3, 12):
        with pytest.raises(RvmError, match="power of two") as caught:
            f(re=np.ones(n), im=np.ones(n))
        assert caught.value.code == "R013"
