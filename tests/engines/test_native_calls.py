"""Calls that go straight to machine code with arrays: what binding refuses, they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rvm

pytest.importorskip("llvmlite")

PROGRAM = """
func main(y: f64[n], x: f64[n], a: i64[m, 3], k: i64[m])
    for i = 0 to n - 1
        add y[i], 2*x[i]
    end
    for i = 0 to m - 1
        add k[i], a[i, 2]
    end
"""


def inputs(n: int = 4, m: int = 2) -> dict[str, Any]:
    return {
        "y": np.zeros(n),
        "x": np.arange(n) + 1.0,
        "a": np.arange(3 * m).reshape(m, 3),
        "k": np.zeros(m, dtype=np.int64),
    }


@pytest.fixture
def f() -> Any:
    made = rvm.assemble(PROGRAM)["main"].with_options(engine="native")
    made(**inputs())
    return made


@pytest.mark.parametrize(("n", "m"), [(4, 2), (1, 1), (0, 2), (3, 0), (0, 0)])
def test_arrays_of_all_lengths(f: Any, n: int, m: int) -> None:
    given = inputs(n, m)
    result = f(**given)
    assert result["y"] is given["y"]
    assert np.array_equal(given["y"], 2 * np.arange(n) + 2.0)
    assert np.array_equal(given["k"], 3 * np.arange(m) + 2)


@pytest.mark.parametrize(
    ("name", "value"),
    [("x", np.ones(5)), ("a", np.ones((2, 4), dtype=np.int64)), ("k", np.zeros(1, dtype=np.int64))],
)
def test_lengths_that_do_not_agree(f: Any, name: str, value: Any) -> None:
    given = inputs() | {name: value}
    with pytest.raises(rvm.RvmError, match="I004"):
        f(**given)
    assert not given["y"].any()


def test_memory_that_is_shared(f: Any) -> None:
    memory = np.arange(12.0)
    with pytest.raises(rvm.RvmError, match="I007"):
        f(**inputs() | {"y": memory[0:4], "x": memory[3:7]})
    assert np.array_equal(memory, np.arange(12.0))
    f(**inputs() | {"y": memory[4:8], "x": memory[0:4]})
    assert np.array_equal(memory[4:8], [4, 7, 10, 13])


def test_arrays_that_may_not_be_written(f: Any) -> None:
    given = inputs()
    given["x"].flags.writeable = False
    f(**given)
    assert np.array_equal(given["y"], [2, 4, 6, 8])
    given["y"].flags.writeable = False
    with pytest.raises(rvm.RvmError):
        f(**given)
