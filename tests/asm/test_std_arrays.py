"""Searching, counting, sorting, permuting and sums of the library against NumPy, itertools."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from sizes import sample, some, thin

import rvm
from rvm.engines import executing
from rvm.faults import RvmError

TEXT = """
include "std/permutations.rasm"
include "std/search.rasm"
include "std/sorting.rasm"
include "std/sums.rasm"
record Card
    suit: u8
    value: f32
end
func sorted_cards(c: Card[n], p: i64[n])
    call permute(c, p)
func summed(x: f64[n], total: f64)
    call exclusive_sums(total, x)
"""
ENGINES = executing()


@pytest.fixture(scope="module")
def lib() -> rvm.Library:
    return rvm.assemble(TEXT)


def both_ways(f: Any, engine: str, **given: Any) -> Any:
    """The result of a call, which the inverse must take back to what was given."""
    f = f.with_options(engine=engine)
    out = f(**{n: v.copy() if isinstance(v, np.ndarray) else v for n, v in given.items()})
    back = (~f)(**{n: v.copy() if isinstance(v, np.ndarray) else v for n, v in out.items()})
    for name, value in given.items():
        np.testing.assert_array_equal(back[name], value, strict=isinstance(value, np.ndarray))
    return out


@thin
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64])
@sample
def test_where_a_value_stands(lib: rvm.Library, engine: str, dtype: Any) -> None:
    r = np.random.default_rng(1)
    for n in range(9):
        x = r.integers(0, 5, n).astype(dtype)
        for v in (0, 2, 4, 9):
            first = int(np.argmax(x == v)) if (x == v).any() else n
            assert both_ways(lib.find, engine, y=3, x=x, v=dtype(v)).y == 3 + first
            x_sorted = np.sort(x)
            out = both_ways(lib.find_sorted, engine, y=0, x=x_sorted, v=dtype(v))
            assert out.y == np.searchsorted(x_sorted, v)


@pytest.mark.parametrize("engine", ENGINES)
@some
def test_histograms(lib: rvm.Library, engine: str) -> None:
    r = np.random.default_rng(2)
    x = r.integers(0, 6, 40).astype(np.uint8)
    out = both_ways(lib.histogram, engine, h=np.ones(6, np.int64), x=x)
    assert list(out.h) == list(1 + np.bincount(x, minlength=6))
    y = np.append(r.uniform(-1, 3, 50), [-1, 3, 1])
    given = {"x": y, "low": -1.0, "high": 3.0}
    out = both_ways(lib.histogram_between, engine, h=np.zeros(8, np.int64), **given)
    assert list(out.h) == list(np.histogram(y, 8, (-1, 3))[0])
    for bad in (-1.01, 3.01):
        h = np.zeros(8, np.int64)
        with pytest.raises(RvmError) as caught:
            lib.histogram_between(h=h, x=np.array([0, bad]), low=-1.0, high=3.0)
        assert caught.value.code == "R003" and not h.any()


@thin
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 17])
@sample
def test_permutations(lib: rvm.Library, engine: str, n: int) -> None:
    r = np.random.default_rng(n)
    p, q, x = r.permutation(n), r.permutation(n), r.normal(size=n)
    np.testing.assert_array_equal(both_ways(lib.permute, engine, x=x, p=p).x, x[p])
    np.testing.assert_array_equal(both_ways(lib.compose, engine, p=p, q=q).p, p[q])
    np.testing.assert_array_equal(both_ways(lib.invert, engine, p=p).p, np.argsort(p))
    code = [int((p[k + 1 :] < p[k]).sum()) for k in range(n)]
    assert list(both_ways(lib.lehmer_code, engine, p=p).p) == code
    suits = r.integers(0, 4, n).astype(np.uint8)
    cards = {"suit": suits.copy(), "value": x.astype(np.float32)}
    out = lib.sorted_cards.with_options(engine=engine)(c=cards, p=p)
    np.testing.assert_array_equal(out.c["suit"], suits[p])


@pytest.mark.parametrize("engine", ENGINES)
@some
def test_ranks_are_the_places_in_lexicographic_order(lib: rvm.Library, engine: str) -> None:
    for n in range(5):
        for k, p in enumerate(itertools.permutations(range(n))):
            out = both_ways(lib.rank, engine, r=0, p=np.array(p, np.int64))
            assert out.r == k and not out.p.any()
    last = np.arange(20)[::-1].astype(np.int64)
    assert both_ways(lib.rank, engine, r=0, p=last).r == 2432902008176640000 - 1  # 20! - 1


@pytest.mark.parametrize("engine", ENGINES)
@some
def test_reversed_bits(lib: rvm.Library, engine: str) -> None:
    for bits in range(7):
        x = np.arange(2**bits)
        want = [int(f"{k:0{bits}b}"[::-1], 2) if bits else 0 for k in range(2**bits)]
        assert list(both_ways(lib.bit_reverse, engine, x=x).x) == want


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
@sample
def test_prefix_sums(lib: rvm.Library, engine: str, dtype: Any) -> None:
    x = np.random.default_rng(3).integers(0, 100, 9).astype(dtype)
    sums = np.cumsum(x, dtype=dtype)
    np.testing.assert_array_equal(both_ways(lib.prefix_sums, engine, x=x).x, sums)
    out = both_ways(lib.exclusive_sums, engine, total=dtype(0), x=x)
    np.testing.assert_array_equal(out.x, sums - x)
    assert out.total == sums[-1]
    rows = np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(both_ways(lib.prefix_sums, engine, x=rows).x, rows.cumsum(0))


@thin
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float64])
@sample
def test_sorting_keeps_the_permutation(lib: rvm.Library, engine: str, dtype: Any) -> None:
    r = np.random.default_rng(4)
    for n in (0, 1, 2, 3, 7, 8, 33):
        x = r.integers(0, 20, n).astype(dtype)
        if dtype is np.float64:
            x[::5] = np.nan
        out = both_ways(lib.sort, engine, x=x, p=np.zeros(n, np.int64))
        np.testing.assert_array_equal(out.x, np.sort(x))
        np.testing.assert_array_equal(out.p, np.argsort(x, kind="stable"))


def test_the_gradient_of_sorting_goes_the_way_back(lib: rvm.Library) -> None:
    x, weights = np.array([3.0, 1, 2, 0.5]), np.array([1.0, 10, 100, 1000])
    g = lib["sort[f64]"].vjp({"x": weights}, x=x.copy(), p=np.zeros(4, np.int64))
    np.testing.assert_array_equal(g.x, weights[np.argsort(np.argsort(x))])


def test_gradients_of_sums_are_sums_from_the_other_end(lib: rvm.Library) -> None:
    x, weights = np.arange(5.0), np.array([1.0, -2, 0.5, 3, 4])
    tail = np.cumsum(weights[::-1])[::-1]
    np.testing.assert_allclose(lib["prefix_sums[f64]"].vjp({"x": weights}, x=x.copy()).x, tail)
    g = lib.summed.vjp({"x": weights, "total": 0.0}, x=x.copy(), total=0.0)
    np.testing.assert_allclose(g.x, tail - weights)


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("permute", {"x": np.ones(2), "p": np.array([0, 0])}, "stands in it twice"),
        ("permute", {"x": np.ones(2), "p": np.array([0, -1])}, "outside of it"),
        ("compose", {"p": np.array([1, 1]), "q": np.array([0, 1])}, "stands in it twice"),
        ("invert", {"p": np.array([1, 2])}, "outside of it"),
        ("lehmer_code", {"p": np.array([3, 3, 0])}, "no "),
        ("rank", {"r": 0, "p": np.arange(21)}, "more than 20 elements"),
        ("bit_reverse", {"x": np.zeros(6)}, "power of two"),
        ("bit_reverse", {"x": np.zeros(0)}, "power of two"),
    ],
)
@pytest.mark.parametrize("undo", [False, True])
def test_impossible_requests_are_reported(
    lib: rvm.Library, name: str, given: dict[str, Any], told: str, undo: bool
) -> None:
    f = ~lib[name] if undo else lib[name]
    before = {n: np.copy(v) for n, v in given.items()}
    with pytest.raises(RvmError) as caught:
        f(**given)
    assert caught.value.code == "R013" and told in str(caught.value)
    for n, v in given.items():
        np.testing.assert_array_equal(v, before[n])


def test_ranks_are_digits_of_a_number(lib: rvm.Library) -> None:
    out = lib.rank(r=7, p=np.array([1, 2, 0]))
    assert out.r == 7 * 6 + 3
    with pytest.raises(RvmError):
        (~lib.lehmer_code)(p=np.array([0, 2, 0]))
