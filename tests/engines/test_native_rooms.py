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
from rvm.ir.context import CLEAN

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


def words() -> list[int]:
    """The words at the beginning of what is kept."""
    found = address(POOL)
    assert found is not None
    places = (ctypes.c_void_p * PLACES).from_address(found)
    return [ctypes.c_int64.from_address(p).value for p in places if p is not None]


def kept() -> list[int]:
    """The sizes of what is kept."""
    return [word & (CLEAN - 1) for word in words()]


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


USES = {
    "exchanged": "for i = 0 to n - 1\nalloc v: f64 = x[i]\nswap v, z[i]\nfree v\nend",
    "by a function": "for i = 0 to n - 1\nalloc v: f64 = exp(x[i])\nswap v, z[i]\nfree v\nend",
    "added": "for i = 0 to n - 1\nadd z[i], x[i]\nend",
    "added twice": "for i = 0 to n - 1\nadd z[i], x[i]\nadd z[n - 1 - i], x[i]\nend",
    "added as a whole": "add z, x",
    "turned in sign": "add z, x\nneg z",
    "by its own": "add z[0], x[0]\nfor i = 1 to n - 1\nadd z[i], z[i - 1] * 0.5\nend",
}
ODD = (1.0, -0.0, 0.1, 1e308, np.inf, np.nan)


@pytest.mark.parametrize("use", USES)
def test_memory_that_is_said_to_hold_zeros_does(use: str) -> None:
    """Whatever was done in it, and whether the run came to its end."""
    n = LARGE // 8 + 512
    lines = USES[use]
    f = rvm.assemble(
        f"func used(y: f64[n], x: f64[n])\nalloc z: f64[n]\nroutine\n{lines}\nresult\n"
        "add y, z\nend\nfree z\n"
    ).used.with_options(engine="native")
    probe = rvm.assemble(
        "func probe(y: f64[n])\nalloc z: f64[n]\nadd y, z\nfree z\n"
    ).probe.with_options(engine="native")
    clean = 0
    for odd in ODD:
        x = np.random.default_rng(7).normal(size=n)
        x[[0, 5, n - 1]] = odd
        try:
            with np.errstate(all="ignore"):
                f(y=np.zeros(n), x=x)
        except rvm.RvmError:
            assert use not in ("exchanged", "by a function")
        clean += CLEAN + 8 * n in words()
        for _ in range(3):
            y = probe(y=np.full(n, -0.0)).y
            # -0 + 0 is 0, and -0 + -0 is not.
            assert not np.asarray(y).view(np.int64).any()
    assert clean or use not in ("exchanged", "by a function")
