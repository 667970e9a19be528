"""Marks of arrays from which a gradient was computed: any change of bits or order shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sizes import part, wide

import rvm
from rvm.derive.evidence import SMALL, marks
from rvm.run.results import Result

Array = NDArray[Any]


def exchange(x: Array, rng: np.random.Generator) -> None:
    """Two elements, near to each other or anywhere."""
    i = rng.integers(x.size)
    j = rng.choice([rng.integers(x.size), (i + 2 ** int(rng.integers(14))) % x.size])
    x[i], x[j] = x[j], x[i]


def flip(x: Array, rng: np.random.Generator) -> None:
    """One bit."""
    raw = x.view(np.uint8)
    raw[rng.integers(raw.size)] ^= np.uint8(1 << int(rng.integers(8)))


def rotate(x: Array, rng: np.random.Generator) -> None:
    """Some or all elements, by one place or more."""
    lo, hi = np.sort(rng.choice(x.size + 1, 2, replace=False))
    x[lo:hi] = np.roll(x[lo:hi], rng.integers(1, max(hi - lo, 2)))


def rows(x: Array, rng: np.random.Generator) -> None:
    """Two rows of a matrix, whose width may be any."""
    width = int(rng.choice([8, 100, 128, 191, 512, 764, 1000]))
    width = min(width, x.size // 2)
    a = x[: x.size // width * width].reshape(-1, width)
    i, j = rng.choice(len(a), 2, replace=False)
    a[[i, j]] = a[[j, i]]


def balance(x: Array, rng: np.random.Generator) -> None:
    """As much added to one word as is taken from another."""
    words = x.view(f"u{min(x.itemsize, 8)}")
    i, j = rng.choice(words.size, 2, replace=False)
    words[i : i + 1] += 1
    words[j : j + 1] -= 1


def reverse(x: Array, rng: np.random.Generator) -> None:
    x[:] = x[::-1].copy()


def sort(x: Array, rng: np.random.Generator) -> None:
    x.sort()


CHANGES: list[Callable[[Array, np.random.Generator], None]] = [
    exchange,
    flip,
    rotate,
    rows,
    balance,
    reverse,
    sort,
]
TYPES = ["f8", "f4", "c16", "i8", "i2", "u1"]


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_of_a_large_array_shows(change: Callable[..., None]) -> None:
    rng = np.random.default_rng(5)
    for k in range(part(1200)):
        dtype = np.dtype(TYPES[k % len(TYPES)])
        many = int(SMALL // dtype.itemsize * rng.uniform(1.1, 3))
        if dtype.kind in "iu":
            x = rng.integers(0, 100, many).astype(dtype)
        else:
            x = (rng.integers(-9, 9, many) * 0.25).astype(dtype)
        before, old = marks([x])[0], x.tobytes()
        change(x, rng)
        assert (marks([x])[0] == before) == (x.tobytes() == old), (k, dtype, many)


def test_zeros_of_another_sign_and_other_nans_are_changes() -> None:
    for at in (0, 1600, 9999):
        x = np.zeros(10_000)
        found = []
        for bits in (0, 1 << 63, 0x7FF8 << 48, 0x7FF8 << 48 | 1, 0xFFF8 << 48):
            x.view("u8")[at] = bits
            found += marks([x])
        assert len(set(found)) == 5


def test_permutation_matrices_are_told_apart() -> None:
    """In rows and columns of their own all of them have the same sums."""
    rng = np.random.default_rng(1)
    for n in (96, 128, 191, 256):
        found = {marks([np.eye(n)[rng.permutation(n)]])[0] for _ in range(10)}
        assert len(found) == 10


def test_a_view_has_the_mark_of_its_copy() -> None:
    x = np.arange(90_000.0).reshape(300, 300)
    for view in (x.T, x[::2], x[:, 3:250], x[::-1]):
        assert marks([view]) == marks([view.copy()])


def same_errors(one: Result, two: Result) -> bool:
    a, b = one.info.error, two.info.error
    return a is not None and b is not None and np.array_equal(a.x, b.x)


@wide
def test_elements_that_have_changed_places_end_an_estimate() -> None:
    """Though the gradient is the same for all x: its error is not."""
    f = rvm.assemble("""
func f(y: f64, x: f64[n], w: f64)
    for i = 0 to n - 1
        add y, (1e17 + x[i] - 1e17) * w
    end
""").f
    x, seen = np.linspace(0.5, 1.0, 10_000), []
    for _ in range(3):
        at_once = f.grad(loss="y", y=0.0, x=x, w=0.5, error=True)
        g = f.grad(loss="y", y=0.0, x=x, w=0.5, engine="native")
        x[[7, 9_000]] = x[[9_000, 7]]
        try:
            # The first call copied its inputs.
            assert same_errors(g, at_once)
        except rvm.UsageError as changed:
            seen.append(changed.code)
    assert "U018" in seen
