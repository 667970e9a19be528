"""Strict calls that go straight to machine code: what they leave, and what takes them back."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sizes import thin

import rvm
from rvm.faults import InvertibilityError, LimitError
from rvm.run.machine import Machine

pytest.importorskip("llvmlite")
PROGRAM = rvm.assemble("""
func mixed(x: f64, s: f32, z: c128, n: i64, b: bool, k: fixed)
    for i = 1 to n
        mul x, 0.7
        add x, 1e9 * f64(s)
        div s, 1.7
        rot z.re, z.im, x
        add k, 0.5
    end
    not b

func arrays(y: f64, x: f64[n], u: f32[n])
    add y, sum(x) * 1e16
    mul x, 0.1
    add u, 0.3
    mul x[0], 1e200
    mul x[0], 1e200

func contracts(x: f64, n: i64)
    for i = 1 to n
        mul x, 0.1
        add x, 0.3
    end

func fails(x: f64, m: f64[n], k: i64)
    mul x, 0.1
    mul m, 0.3
    add m[k], x
""")
GIVEN: dict[str, dict[str, Any]] = {
    "mixed": {"x": 1.3, "s": 0.25, "z": 1 - 2j, "n": 40, "b": True, "k": 0.25},
    "arrays": {"y": 0.1, "x": np.array([1e250, -0.0, np.nan, 5e-324]), "u": np.ones(4, np.float32)},
    "contracts": {"x": 1.1, "n": 300},
}


def given(name: str) -> dict[str, Any]:
    return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in GIVEN[name].items()}


def held(values: Any) -> list[Any]:
    return [v.tobytes() if isinstance(v, np.ndarray) else str(v) for v in dict(values).values()]


@thin
@pytest.mark.parametrize("name", GIVEN)
def test_a_call_leaves_what_a_machine_leaves_and_is_taken_back(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = PROGRAM[name].with_options(strict=True, engine="reference")(**given(name))
    fast = PROGRAM[name].with_options(strict=True, engine="native")
    start = held(given(name))
    first = fast(**given(name))
    with monkeypatch.context() as patch:
        # From here on no machine is made.
        patch.setattr(Machine, "_enter", None)
        for out in (first, fast(**given(name))):
            assert held(out) == held(slow)
            assert held((~fast)(out)) == start
    assert first.info.log.log == slow.info.log.log
    assert first.info.erased_bits == slow.info.erased_bits == 0
    for one, other in ((first, slow), (slow, first)):
        assert (one.info.log.seal, repr(one.info.log)) == (
            other.info.log.seal,
            repr(other.info.log),
        )
    again = pickle.loads(pickle.dumps(fast(**given(name))))
    assert held((~fast)(again)) == start


def test_logs_are_the_calls_own() -> None:
    f = PROGRAM.contracts.with_options(strict=True, engine="native")
    starts = [0.1 * k for k in range(20)]
    outs = [f(x=x, n=30 + k) for k, x in enumerate(starts)]
    for x, out in reversed(list(zip(starts, outs, strict=True))):
        assert (~f)(out).x == x


def test_what_is_not_that_of_the_call_is_refused() -> None:
    f = PROGRAM.arrays.with_options(strict=True, engine="native")
    out = f(**given("arrays"))
    out.x[1] = 0.5
    before = held(out)
    with pytest.raises(InvertibilityError, match=r"R019[\s\S]*changed since"):
        (~f)(out)
    assert held(out) == before
    other = PROGRAM.contracts.with_options(strict=True, engine="native")(x=1.1, n=3)
    with pytest.raises(InvertibilityError, match="R019"):
        PROGRAM.contracts(other, engine="native")


def test_a_log_that_another_run_left_is_refused_with_all_as_before() -> None:
    """Its values may be the same, and what is left in it at the end is not."""
    f = PROGRAM.arrays.with_options(strict=True, engine="native")
    out = f(**given("arrays"))
    kept = out.info.log
    (codes, data), *more = kept.log
    object.__setattr__(kept, "log", ((codes + 32, b"\0" * 8 + data), *more))
    before = held(out)
    with pytest.raises(InvertibilityError, match="R019"):
        (~f)(out)
    assert held(out) == before


def test_limits_and_errors_are_a_machines() -> None:
    f = PROGRAM.contracts.with_options(strict=True, engine="native")
    with pytest.raises(LimitError, match="R011"):
        f(x=1.1, n=10_000, max_memory=400)
    with pytest.raises(LimitError, match="R010"):
        f(x=1.1, n=10_000, max_steps=100)
    m = np.ones(3)
    fails = PROGRAM.fails.with_options(strict=True, engine="native")
    with pytest.raises(rvm.MachineError, match="R003"):
        fails(x=1.0, m=m, k=3)
    assert m.tolist() == [1.0] * 3
    assert (~fails)(fails(x=1.0, m=m, k=1)).m.tolist() == [1.0] * 3


def test_a_log_that_outgrows_its_room() -> None:
    f = PROGRAM.contracts.with_options(strict=True, engine="native")
    out = f(x=1.1, n=1_200_000)
    assert out.info.log.log[0][0] == 2_400_000
    assert (~f)(out).x == 1.1


def test_lanes_of_a_strict_map_make_no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    f = PROGRAM.contracts.with_options(strict=True, engine="native")
    xs = np.linspace(-1.0, 1.0, 9)
    singles = [PROGRAM.contracts(x=x, n=40, strict=True, engine="reference").x for x in xs]
    f.map(x=xs, n=40)
    monkeypatch.setattr(Machine, "_enter", None)
    found = f.map(x=xs, n=40)
    assert found.x.tolist() == singles
    assert found.alone == tuple(range(9))
    assert found.ticks.tolist() == [found.ticks[0]] * 9
