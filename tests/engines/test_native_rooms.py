"""Memory of large local arrays is kept for the next of their size, up to a bound."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import rvm
from rvm.emit.llvm.rooms import LARGE, LARGEST, PLACES, POOL
from rvm.engines import LAW
from rvm.engines.native.memory import address

TEXT = """
func turned(y: f64[n], x: f64[n])
    alloc t: f64[n] = x
    alloc z: f64[n]
    add z, t
    add y, t[::-1] + z
    sub z, t
    free z
    free t = x
"""


@pytest.fixture
def turned() -> Any:
    return rvm.assemble(TEXT).turned.with_options(engine="native")


def kept() -> list[int]:
    """The sizes of what is kept."""
    found = address(POOL)
    assert found is not None
    places = (ctypes.c_void_p * PLACES).from_address(found)
    return [ctypes.c_int64.from_address(p).value for p in places if p is not None]


def check(f: Any, n: int) -> None:
    x = np.random.default_rng(n).normal(size=n)
    y = f(y=np.ones(n), x=x).y
    assert np.array_equal(y, 1.0 + (x[::-1] + x))


@pytest.mark.parametrize("size", [LARGE, LARGE + 8, LARGEST - 8, LARGEST])
def test_large_memory_is_kept_and_taken_again(turned: Any, size: int) -> None:
    check(turned, size // 8)
    first = kept()
    assert first.count(size) >= 2
    for _ in range(3):
        check(turned, size // 8)
        assert sorted(kept()) == sorted(first)


@pytest.mark.parametrize("size", [LARGE - 8, LARGEST + 8])
def test_what_is_smaller_or_larger_is_not(turned: Any, size: int) -> None:
    before = kept()
    check(turned, size // 8)
    assert kept() == before


def test_there_is_a_limit_and_the_oldest_are_dropped(turned: Any) -> None:
    for k in range(3 * PLACES):
        size = LARGE + 4096 * k
        check(turned, size // 8)
        assert size in kept()
        assert len(kept()) <= PLACES
    assert sum(kept()) <= PLACES * LARGEST == 128 << 20


def test_threads_share_it(turned: Any) -> None:
    sizes = [LARGE // 8 + 512 * (k % 3) for k in range(60)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda n: check(turned, n), sizes))


def test_it_does_not_count_as_memory_of_a_run(turned: Any) -> None:
    n = LARGE // 8
    check(turned.with_options(max_memory=4 * LARGE + 4096), n)
    with pytest.raises(rvm.RvmError):
        check(turned.with_options(max_memory=3 * LARGE), n)


STOPPED = """
func sums(y: f64, x: f64[n], depth: i64)
    alloc t: f64[n] = x
    alloc z: f64[n]
    add z, t * t
    extern forward
        print y
    end
    if depth > 0
        sub depth, 1
        call sums(y, z, depth)
        add depth, 1
    end
    add y, sum(z) + t[n - 1]
    sub z, t * t
    free z
    free t = x
"""


@pytest.mark.parametrize("n", [1, 5, 63, 64, 65, 200])
@pytest.mark.parametrize("depth", [0, 3])
def test_small_arrays_of_any_length_are_moved_where_a_run_stops(n: int, depth: int) -> None:
    """They live in the frame, which is gone when Python prints, and a callee must find them."""
    x = np.random.default_rng(n).normal(size=n) * 0.5
    found = []
    for engine in (LAW, "native"):
        shown: list[str] = []
        f = rvm.assemble(STOPPED).sums.with_options(engine=engine, output=shown.append)
        found.append((f(y=0.0, x=x.copy(), depth=depth).y, shown))
        m = f.machine(y=0.0, x=x.copy(), depth=depth)
        m.run()
        found[-1] += (m.time, m.run_back()["y"], m.time)
    assert found[0] == found[1]
    assert len(found[0][1]) == 2 * (depth + 1)
