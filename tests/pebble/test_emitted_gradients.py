"""Gradients through emitted schedules: sweeps that follow a plan, and `f.grad` of emitted code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pebble.playing import LENGTH, played
from sizes import some, thin, wide

import rvm
from rvm.engines import ENGINES, executing
from rvm.faults import RvmError
from rvm.pebble import emit, plan

WAVE = rvm.assemble(
    """
    record State
        u: f64[8]
        v: f64
    end
    func step(y: State, x: State, k: i64, c: f64, w: f64[8])
        add y.u, sin(x.u) * c + w
        add y.v, x.v * x.u[0] + 0.01 * f64(k)
    func main(y: State, x: State, c: f64, w: f64[8])
        iterate step(y, x, k, c, w) for k = 0 to 29 with pebbles = 7
    """
)
LONG = rvm.assemble("func step(y: f64[n], x: f64[n], c: f64)\n    add y, sin(x) * c\n")
U, V, C, W = np.linspace(0.1, 0.8, 8), 0.4, 0.9, np.linspace(-0.2, 0.3, 8)
SEED = {"u": np.linspace(1, 2, 8), "v": 0.5}


def by_hand(n: int) -> dict[str, Any]:
    """The adjoints of n steps, by the chain rule over all their states."""
    states = [(U, V)]
    for k in range(n):
        u, v = states[-1]
        states.append((np.sin(u) * C + W, v * u[0] + 0.01 * k))
    bu, bv = SEED["u"].copy(), SEED["v"]
    bc, bw = 0.0, np.zeros(8)
    for u, v in reversed(states[:-1]):
        bc += bu @ np.sin(u)
        bw = bw + bu
        bu = bu * C * np.cos(u)
        bu[0] += bv * v
        bv = bv * u[0]
    return {"u": bu, "v": bv, "c": bc, "w": bw}


def zeros() -> dict[str, Any]:
    return {"u": np.zeros(8), "v": 0.0}


PLANS: list[tuple[int, dict[str, Any]]] = [
    (1, {"pebbles": 1}),
    (2, {"pebbles": 1}),
    (30, {"pebbles": 5}),
    (30, {"pebbles": 12}),
    (30, {"pebbles": 30}),
    (30, {"strategy": "bennett", "radix": 3}),
    (30, {"pebbles": 4, "price": 0}),
    (30, {"pebbles": 30, "price": 0}),
    (30, {"pebbles": 6, "price": 3}),
    (30, {"pebbles": 6, "price": 3, "overwrite": False}),
    (30, {"pebbles": 6, "price": float("inf"), "strategy": "hybrid"}),
    (30, {"pebbles": 5, "strategy": "online"}),
    (12, {"pebbles": 5, "costs": [1, 3] * 6}),
    (12, {"memory": 9, "sizes": [1, 2, 3] * 4}),
]


@pytest.mark.deep
@pytest.mark.parametrize(("n", "terms"), PLANS, ids=str)
def test_sweeps(n: int, terms: dict[str, Any]) -> None:
    plain = plan(n, goal="gradient", **terms)
    made = emit(plain, WAVE, number="k", name="sweep")
    inputs = {
        "x": {"u": U, "v": V}, "k": 0, "c": C, "w": W,
        "y_bar": SEED, "x_bar": zeros(), "c_bar": 1.0, "w_bar": np.zeros(8),
    }  # fmt: skip
    seen = played(made.program, inputs, back=False)
    expected = by_hand(n)
    np.testing.assert_allclose(seen.result["x_bar"]["u"], expected["u"], rtol=1e-10)
    np.testing.assert_allclose(seen.result["x_bar"]["v"], expected["v"], rtol=1e-10)
    np.testing.assert_allclose(seen.result["c_bar"], 1 + expected["c"], rtol=1e-10)
    np.testing.assert_allclose(seen.result["w_bar"], expected["w"], rtol=1e-10)
    assert seen.calls["step_adjoint"] == plain.cost.reversals == n
    if plain.strategy in ("reversible", "bennett"):
        # All but the last adjoint undo a step that is undone anyway.
        assert seen.calls["step"] + seen.calls["step_adjoint"] == plain.cost.moves + 2
    elif plain.strategy in ("revolve", "online"):
        assert seen.calls["step"] == plain.cost.moves + n
    with pytest.raises(RvmError) as caught:
        (~made.sweep)(**seen.result)
    assert caught.value.code == "R013"


@pytest.mark.parametrize("engine", ENGINES)
@some
def test_sweeps_on_all_engines(engine: str) -> None:
    made = emit(plan(30, pebbles=5, goal="gradient"), WAVE, number="k", name="sweep")
    result = made.sweep.with_options(engine=engine)(
        x={"u": U.copy(), "v": V}, k=0, c=C, w=W.copy(), y_bar=SEED, x_bar=zeros(), c_bar=0.0,
        w_bar=np.zeros(8),
    )  # fmt: skip
    np.testing.assert_allclose(result.x_bar["u"], by_hand(30)["u"], rtol=1e-10)


@pytest.mark.parametrize(
    ("n", "terms"),
    [(40, {"pebbles": 6}), (40, {"pebbles": 39}), (60, {"strategy": "bennett", "radix": 4})],
    ids=str,
)
def test_states_at_a_time(n: int, terms: dict[str, Any]) -> None:
    """States that pebbles hold, one for the step at the turn, and two adjoints under way."""
    plain = plan(n, goal="gradient", **terms)
    made = emit(plain, LONG)
    x, zero = np.linspace(0, 1, LENGTH), np.zeros(LENGTH)
    inputs = {"x": x, "c": 0.9, "y_bar": x, "x_bar": zero, "c_bar": 0.0}
    seen = played(made.program, inputs, back=False)
    # The adjoint function of the step has a temporary of its own.
    assert plain.cost.peak + 2 <= seen.peak <= plain.cost.peak + 4


@pytest.mark.parametrize("engine", executing(loops=False))
@some
def test_grad_of_what_was_emitted(engine: str) -> None:
    """The gradient of a schedule is a program, too, that a transformation made."""
    f = WAVE.main.with_options(engine=engine)
    bars = f.vjp({"y": SEED}, y=zeros(), x={"u": U.copy(), "v": V}, c=C, w=W.copy())
    expected = by_hand(30)
    # It takes back what it added for steps that are undone, so roundings are of that size.
    np.testing.assert_allclose(bars.x["u"], expected["u"], rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(bars.c, expected["c"], rtol=1e-9)
    np.testing.assert_allclose(bars.w, expected["w"], rtol=1e-9)


def test_grad_of_bennett_at_run_time() -> None:
    program = rvm.assemble(
        "func step(y: f64, x: f64, c: f64)\n    add y, c * x * (1 - x)\n"
        "func main(y: f64, x: f64, c: f64, n: i64)\n"
        "    iterate step(y, x, c) times n with bennett = 3\n"
    )
    x, slope_x, slope_c = 0.3, 1.0, 0.0
    for _ in range(20):
        slope_x, slope_c = 3.1 * (1 - 2 * x) * slope_x, x * (1 - x) + 3.1 * (1 - 2 * x) * slope_c
        x = 3.1 * x * (1 - x)
    bars = program.main.grad(loss="y", y=0.0, x=0.3, c=3.1, n=20)
    assert bars.x == pytest.approx(slope_x, rel=1e-9)
    assert bars.c == pytest.approx(slope_c, rel=1e-9)


GROWTH = rvm.assemble("func step(y: f64, x: f64)\n    add y, x * 1.001\n")


@thin
@pytest.mark.parametrize(
    "n, terms",
    [
        (600, {"goal": "erase", "pebbles": 10}),
        (600, {"goal": "persist", "pebbles": 12}),
        (120, {"goal": "persist", "strategy": "bennett", "radix": 3}),
        (200, {"goal": "erase", "strategy": "uneven", "pebbles": 8}),
    ],
    ids=str,
)
def test_slots_that_are_used_often_keep_nothing_of_earlier_adjoints(
    n: int, terms: dict[str, Any]
) -> None:
    made = emit(plan(n, **terms), GROWTH)
    bars = made[made.program.entry].grad(y=0.0, x=2.0, loss="y")
    assert bars.x == pytest.approx(1.001**n, rel=1e-11)


@wide
def test_slots_that_are_used_often_when_the_run_knows_the_length() -> None:
    program = rvm.assemble(
        "func step(y: f64, x: f64)\n    add y, x * 1.001\n"
        "func main(y: f64, x: f64, n: i64)\n    iterate step(y, x) times n with pebbles = 12\n"
    )
    bars = program.main.grad(loss="y", y=0.0, x=2.0, n=800)
    assert bars.x == pytest.approx(1.001**800, rel=1e-11)


def test_sweeps_with_steps_in_place() -> None:
    program = rvm.assemble(
        """
        func step(y: f64, x: f64, k: i64, c: f64)
            add y, x * c
        func turn(x: f64, k: i64, c: f64)
            mul x, c
        """
    )
    steps = [k for k in range(1, 21) if k % 4 != 1]
    plain = plan(20, pebbles=3, goal="gradient", reversible_steps=steps)
    made = emit(plain, program, number="k", in_place="turn", name="sweep")
    result = made.sweep(x=2.0, k=0, c=1.1, y_bar=1.0, x_bar=0.0, c_bar=0.0)
    assert result.x_bar == pytest.approx(1.1**20, rel=1e-12)
    assert result.c_bar == pytest.approx(2 * 20 * 1.1**19, rel=1e-12)
