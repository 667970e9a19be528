"""Limbs, digits and halves of products against Python's integers, on all engines and in lanes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from sizes import sample, some, thin

import rvm
from rvm.engines import executing
from rvm.faults import RvmError
from rvm.types import SCALARS

TEXT = """
include "std/carries.rasm"
include "std/digits.rasm"
func high[T: int](y: T[n], z: T[n], a: T[n], b: T[n])
    add y, high_product(a, b)
    for i = 0 to n - 1
        add z[i], high_product(a[i], b[i])
    end
"""
ENGINES = executing()
INTEGERS = [t for t in SCALARS.values() if t.is_integer]
UNSIGNED = [t for t in INTEGERS if not t.is_signed]


@pytest.fixture(scope="module")
def lib() -> rvm.Library:
    return rvm.assemble(TEXT)


def limbs(value: int, n: int, bits: int) -> np.ndarray[Any, Any]:
    """A number as limbs of so many bits."""
    mask = (1 << bits) - 1
    return np.array([value >> bits * k & mask for k in range(n)], f"u{bits // 8}")


def whole(x: Any, bits: int) -> int:
    """The number that limbs stand for."""
    return sum(int(v) << bits * k for k, v in enumerate(x))


def edges(rng: random.Random, bits: int) -> int:
    """A number of so many bits, often with many equal ones."""
    top = (1 << bits) - 1
    some = rng.getrandbits(bits) if bits else 0
    return rng.choice([0, top, some, some & top << bits // 2, top ^ some >> bits // 2, bits and 1])


@thin
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("t", UNSIGNED, ids=str)
@sample
def test_limbs(lib: rvm.Library, engine: str, t: Any) -> None:
    rng, bits = random.Random(3), t.bits
    for _ in range(4 if engine == "reference" else 20):
        n = rng.randrange(1, 5)
        m = rng.randrange(n + 1)
        y, x, w, over = (edges(rng, bits * k) for k in (n, m, 1, 1))
        z, length = edges(rng, bits * 2), n + 2
        cases: list[tuple[str, int, int, dict[str, Any]]] = [
            ("add_limbs", y, y + x, {}),
            ("add_multiple", y, y + x * w, {"w": w}),
            ("add_product", y, y + x * z, {"z": limbs(z, 2, bits)}),
        ]
        for name, before, after, more in cases:
            f = lib[f"{name}[{t}]"].with_options(engine=engine)
            # One limb more than a product by two has room for all that is carried inside.
            size = length if name == "add_product" else n
            mod = 1 << bits * size
            given = {"x": limbs(x, m, bits), **more}
            out = f(y=limbs(before, size, bits), out=over, **given)
            assert whole(out.y, bits) == after % mod
            assert out.out == (over + (after >> bits * size)) % (1 << bits)
            back = (~f)(y=out.y.copy(), out=out.out, **given)
            assert (whole(back.y, bits), back.out) == (before, over)
            less = 2 * before - after
            taken = (~f)(y=limbs(before, size, bits), out=over, **given)
            assert whole(taken.y, bits) == less % mod
            assert taken.out == (over + (less >> bits * size)) % (1 << bits)


@thin
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("t", INTEGERS, ids=str)
@sample
def test_quotients_and_remainders_are_one_bijection(lib: rvm.Library, engine: str, t: Any) -> None:
    low = -(1 << t.bits - 1) if t.is_signed else 0
    high = low + (1 << t.bits) - 1
    f = lib[f"split[{t}]"].with_options(engine=engine)
    factors = [1, 2, 7, 10, high] + ([-1, -3, low] if t.is_signed else [])
    for k in factors:
        for x in {low, high, 0, 1, 99, high // 2, low + 1, *([-1, -7] if t.is_signed else [])}:
            q, r = divmod(x, k)
            out = f(x=x, r=0, k=k)
            assert (out.x, out.r) == ((q - low) % (1 << t.bits) + low, r)
            back = (~f)(x=out.x, r=out.r, k=k)
            assert (back.x, back.r) == (x, 0)
    with pytest.raises(RvmError, match="R005"):
        f(x=5, r=0, k=0)
    with pytest.raises(RvmError, match="R001"):
        f(x=5, r=1, k=7)
    # What is no remainder, and a product that does not fit, are no quotient and remainder.
    for x, r, k in ((1, 7, 7), (1, high, 7), (high, 0, 2)):
        with pytest.raises(RvmError, match="R001"):
            (~f)(x=x, r=r, k=k)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("t", INTEGERS, ids=str)
@sample
def test_upper_halves_of_products(lib: rvm.Library, engine: str, t: Any) -> None:
    rng = random.Random(7)
    low = -(1 << t.bits - 1) if t.is_signed else 0
    some = [low, low + 1, 0, 1, 2, low + (1 << t.bits) - 1]
    some += [low + rng.getrandbits(t.bits) for _ in range(4)]
    a, b = ([x for x in some for _ in some], some * len(some))
    dtype = t.row.dtype
    f = lib[f"high[{t}]"].with_options(engine=engine)
    given = {"a": np.array(a, dtype), "b": np.array(b, dtype)}
    out = f(y=np.zeros(len(a), dtype), z=np.zeros(len(a), dtype), **given)
    expected = np.array([x * z >> t.bits for x, z in zip(a, b, strict=True)], dtype)
    np.testing.assert_array_equal(out.y, expected)
    np.testing.assert_array_equal(out.z, expected)


@pytest.mark.parametrize("engine", ENGINES)
@some
def test_digits(lib: rvm.Library, engine: str) -> None:
    f = lib["digits[u64]"].with_options(engine=engine)
    for x in (0, 7, 1234567890, (1 << 64) - 1):
        out = f(d=np.zeros(20, np.uint64), x=x, base=10)
        assert out.x == 0 and int("".join(map(str, out.d[::-1]))) == x
        assert (~f)(d=out.d, x=0, base=10).x == x
    with pytest.raises(RvmError, match="R001"):
        (~f)(d=np.array([10], np.uint64), x=0, base=10)
    assert f(d=np.zeros(2, np.uint64), x=1234, base=10).x == 12


def test_lanes(lib: rvm.Library) -> None:
    """Many numbers at once, of which each has carries of its own."""
    rng = np.random.default_rng(2)
    y, x = (rng.choice([0, 1, 2**32 - 1], (50, 4)).astype(np.uint32) for _ in range(2))
    f = lib["add_limbs[u32]"]
    out = f.map(y=y.copy(), x=x, out=np.zeros(50, np.uint32))
    for k in range(50):
        total = whole(y[k], 32) + whole(x[k], 32)
        assert whole(out.y[k], 32) == total % (1 << 128) and out.out[k] == total >> 128
    split = lib["split[i32]"].map(
        x=np.arange(-20, 20, dtype=np.int32), r=np.zeros(40, np.int32), k=7
    )
    assert [divmod(v, 7) for v in range(-20, 20)] == list(zip(split.x, split.r, strict=True))


def test_a_value_of_a_function_is_an_operand_of_the_same() -> None:
    lib = rvm.assemble(
        "pure up(x) = x >> 1\npure two(x) = up(x) + up(x + up(x))\n"
        "func f(y: i64, x: i64)\n    add y, up(two(up(x)) + two(x))\n"
    )

    def up(x: int) -> int:
        return x >> 1

    def two(x: int) -> int:
        return up(x) + up(x + up(x))

    assert lib.f(y=0, x=1234567).y == up(two(up(1234567)) + two(1234567))
