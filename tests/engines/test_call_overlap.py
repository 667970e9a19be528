"""Calls with two places of one array, which only the run can tell apart."""

from __future__ import annotations

import numpy as np
import pytest

import rvm
from rvm.engines import ENGINES
from rvm.faults import RvmError

PROGRAM = rvm.assemble(
    """
    func one(y: i64, x: i64)
        add y, 3 * x
    func row(y: i64[n], x: i64[n])
        add y, x + 1
    func both(a: i64[n], b: i64[n, m], i: i64, j: i64)
        for k = 1 to 5
            call one(a[i], a[j])
            call row(b[i], b[j])
            call row(b[i, 1:3], b[j, 0:2])
        end
    func within(b: i64[n, m], i: i64, j: i64)
        call row(b[i, 0:2], b[j, 2:4])
    """
)
A, B = np.arange(1, 5), np.arange(16).reshape(4, 4)


@pytest.mark.parametrize("engine", ENGINES)
def test_places_that_are_apart(engine: str) -> None:
    for i in range(4):
        for j in {0, 1, 2, 3} - {i}:
            a, b = A.copy(), B.copy()
            for _ in range(5):
                a[i] += 3 * a[j]
                b[i] += b[j] + 1
                b[i, 1:3] += b[j, 0:2] + 1
            both = PROGRAM.both.with_options(engine=engine)
            there = both(a=A.copy(), b=B.copy(), i=i, j=j)
            np.testing.assert_array_equal(there.a, a)
            np.testing.assert_array_equal(there.b, b)
            back = (~both)(**there)
            np.testing.assert_array_equal(back.b, B)


@pytest.mark.parametrize("engine", ENGINES)
def test_places_that_are_the_same(engine: str) -> None:
    both = PROGRAM.both.with_options(engine=engine)
    with pytest.raises(RvmError) as caught:
        both(a=A.copy(), b=B.copy(), i=2, j=2)
    assert caught.value.code == "R004"


@pytest.mark.parametrize("engine", ENGINES)
def test_parts_of_one_row_may_be_apart(engine: str) -> None:
    b = B.copy()
    b[1, 0:2] += b[1, 2:4] + 1
    found = PROGRAM.within.with_options(engine=engine)(b=B.copy(), i=1, j=1).b
    np.testing.assert_array_equal(found, b)
