"""Calls that go straight to machine code with arrays: what binding refuses, they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rvm
from rvm.engines import executing
from rvm.engines.native import flight
from rvm.run import direct
from rvm.run.backup import LARGE, before

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


# ---------------------------------------------------------------- large arrays

N = LARGE // 8 + 3
FAILING = """
func f(y: f64[n], z: c128[n], k: i64[n], b: bool[m], at: i64)
    add y, 0.5
    add z, 1.0 + 2.0j
    add k, 7
    xor b, true
    for i = 0 to n - 1
        add y[i], 1.0
        alloc t: bool = true
        free t = i != at
    end
"""


def held(given: dict[str, Any]) -> dict[str, bytes]:
    return {name: v.tobytes() for name, v in given.items() if isinstance(v, np.ndarray)}


def zeros() -> dict[str, Any]:
    return {
        "y": np.zeros(N),
        "z": np.zeros(N, np.complex128),
        "k": np.zeros(N, np.int64),
        "b": np.zeros(8 * N, np.bool_),
    }


@pytest.mark.parametrize("engine", executing(loops=False)[1:])
@pytest.mark.parametrize("odd", [None, 0, N // 2, N - 1])
def test_large_arrays_are_put_back_to_the_bit(engine: str, odd: int | None) -> None:
    f = rvm.assemble(FAILING).f.with_options(engine=engine)
    for value in (0.0, -0.0, 5e-324, np.nan):
        given = zeros()
        if odd is not None:
            given["y"][odd], given["z"].imag[odd], given["k"][odd] = value, value, -1
            given["b"][odd] = True
        old = held(given)
        # It fails soon, in the run's first part or after it.
        for at in (3, N - 1) if engine == "native" else (3,):
            with pytest.raises(rvm.RvmError, match="R001"):
                f(**given, at=at)
            assert held(given) == old


def test_what_puts_arrays_back() -> None:
    for kept in (np.ones(N), np.zeros(3), np.zeros((N, 2))[:, 0], np.full(N, -0.0)):
        assert np.array_equal(before(kept), kept)
    for dtype in (np.float64, np.complex128, np.int8, np.bool_, np.uint32):
        blank = np.zeros(16 * N, dtype)
        assert before(blank) is False
        for k in range(blank.itemsize):
            bits = blank.copy()
            bits.view(np.uint8)[-1 - k] = 1 << k % 8
            assert isinstance(before(bits), np.ndarray)


def test_large_arrays_go_straight_to_machine_code(f: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("a machine was started")

    monkeypatch.setattr(direct.Machine, "start", never)
    given = inputs(1 << 18, 1 << 17)
    f(**given)
    assert np.array_equal(given["y"], 2 * given["x"])


def test_runs_are_as_long_as_the_arrays_of_their_instructions_allow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def go(self: flight.Flight, *given: Any, **more: Any) -> None:
        asked.append(self.ticks)
        before_it(self, *given, **more)

    before_it = flight.Flight.go
    monkeypatch.setattr(flight.Flight, "go", go)
    text = "func f(y: f64[n], x: f64[m], k: i64)\n    for i = 1 to k\n{}    end\n"
    for line, whole in (("        add y, 0.5\n", True), ("        add y[0], x[0]\n", False)):
        f = rvm.assemble(text.format(line)).f.with_options(engine="native")
        f(y=np.zeros(1), x=np.ones(1), k=1)
        f(y=np.zeros(1000), x=np.ones(1), k=1)
        f(y=np.zeros(1000), x=np.ones(10_000), k=1)
        assert [asked[0] // n for n in asked] == ([1, 1000, 1000] if whole else [1, 1, 1])
        asked.clear()
