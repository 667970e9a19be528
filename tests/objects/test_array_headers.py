"""A callback may change an array's shape, type and flags; the run goes on in its memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sizes import thin

import rvm
from rvm.engines import ENGINES

TEXT = """
func f(x: i64[n], k: i64)
    for r = 0 to k
        for i = 0 to n - 1
            add x[i], i + r
        end
        extern both
            print "{}", r
        end
    end
"""


def reshape(x: Any) -> None:
    x.shape = (2, 5)


def retype(x: Any) -> None:
    x.dtype = np.int32


def restride(x: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        x.strides = (0,)


def close(x: Any) -> None:
    x.setflags(write=False)


def resize(x: Any) -> None:
    with pytest.raises(ValueError, match="resize"):
        x.resize(4)


@thin
@pytest.mark.parametrize("engine", list(ENGINES))
@pytest.mark.parametrize("change", [reshape, retype, restride, close, resize])
@pytest.mark.parametrize("fails", [False, True])
def test_headers_are_not_the_runs_matter(
    change: Callable[[Any], None], fails: bool, engine: str
) -> None:
    memory = np.zeros(10, np.int64)
    x = memory.view() if change is not resize else memory
    seen = []

    def output(line: str) -> None:
        seen.append(line)
        if len(seen) == 2:
            change(x)
            if fails:
                raise OSError("mine")

    f = rvm.assemble(TEXT).f
    if fails:
        with pytest.raises(OSError, match="mine"):
            f(x=x, k=5, engine=engine, output=output)
        assert not memory.any()
    else:
        f(x=x, k=5, engine=engine, output=output)
        assert memory.tolist() == [6 * i + 15 for i in range(10)]
