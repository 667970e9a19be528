"""Plans played on functions of programs: on several engines, there and back, with adjoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sizes import examples, sample, some, thin, wide

import rvm
import rvm.pebble
from rvm.engines import executing
from rvm.faults import InputError, InvertibilityError, UsageError
from rvm.pebble import iterate

EXAMPLES = Path(__file__).parents[2] / "examples"
ENGINES = ("auto", *executing(loops=False))
MIX = """
func step(y: u64[n], x: u64[n], i: i64, salt: u64)
    for k = 0 to n - 1
        xor y[k], (x[k] * x[(k + 1) % n] + salt) >> 1
        xor y[k], u64(i)
    end
"""


def mixed(x: np.ndarray, i: int, salt: int) -> np.ndarray:
    """The step of MIX in NumPy."""
    return ((x * np.roll(x, -1) + np.uint64(salt)) >> np.uint64(1)) ^ np.uint64(i)


@given(
    st.integers(1, 25),
    st.integers(6, 9),
    st.sampled_from(
        [
            {},
            {"price": 0},
            {"price": 4},
            {"strategy": "reversible"},
            {"price": 0, "disk": 3},
            {"price": 0, "disk": 3, "read": 9, "keep_input": False},
        ]
    ),
    st.sampled_from(ENGINES),
)
@examples(60)
def test_whole_numbers_are_those_of_a_plain_loop(
    n: int, pebbles: int, terms: dict[str, Any], engine: str
) -> None:
    step = MIXED.step.with_options(engine=engine)
    x0 = np.array([3, 5, 2**63 + 1, 10**18], np.uint64)
    states = [x0.copy()]
    for i in range(n):
        states.append(mixed(states[-1], i, 77))
    run = iterate(step, n, pebbles=pebbles, number="i", progress=False, **terms)
    constants = {"salt": 77}
    there = run.reach(x0, constants=constants)
    assert (there.state == states[n]).all() and (x0 == states[0]).all()
    assert there.played == there.plan.schedule.tally()
    walk = run.back(x0, constants=constants)
    for (k, state), (i, want) in zip(walk, reversed(list(enumerate(states))), strict=True):
        assert k == i and (state == want).all()
    assert walk.played == walk.plan.schedule.tally()


MIXED = rvm.assemble(MIX)


def test_by_itself_nothing_is_erased_and_states_are_uncomputed() -> None:
    run = iterate(MIXED.step, 40, pebbles=7, number="i", progress=False)
    x0 = np.arange(3, dtype=np.uint64)
    there = run.reach(x0, constants={"salt": 1})
    assert there.plan.strategy == "knill" and there.played.erased == 0
    assert there.played.moves == there.plan.cost.moves > 2 * 40


@pytest.mark.parametrize("price", (None, 5))
def test_bytecode_emitted_for_the_same_plan_gives_the_same(price: int | None) -> None:
    x0 = np.array([3, 5, 2**63 + 1, 10**18], np.uint64)
    made = rvm.pebble.plan(25, pebbles=7, price=price)
    played = iterate(MIXED.step, budget=made, number="i", progress=False)
    program = rvm.pebble.emit(made, MIXED, "step", number="i")
    emitted = program[program.program.entry](np.zeros(4, np.uint64), x0.copy(), 0, 77)
    assert (emitted.y == played(x0, constants={"salt": 77})).all() and (emitted.x == x0).all()


# ------------------------------------------------------------------ the ring


def ring_matrix(n: int, c: float) -> np.ndarray:
    eye = np.eye(n)
    return eye + c * (np.roll(eye, 1, 0) + np.roll(eye, -1, 0) - 2 * eye)


@wide
@pytest.mark.parametrize(
    "terms", ({"strategy": "bennett", "radix": 4}, {"pebbles": 8}, {"budget": "24 kB", "price": 0})
)
def test_diffusion_on_a_ring_and_its_gradient(terms: dict[str, Any]) -> None:
    step = rvm.load(EXAMPLES / "ring_diffusion_step.rasm").step
    n, c = 100, 0.04 * 0.01 / (np.pi / 100) ** 2
    x0 = np.zeros(n)
    x0[50] = 1
    run = iterate(step, 100, progress=False, **terms)
    found = run.reach(x0, constants={"c": c})
    assert found.state[50] == pytest.approx(0.04421357216, abs=5e-12)
    assert found.state.sum() == pytest.approx(1, abs=1e-14)
    g = run.gradient(x0, lambda s: (s[50], np.eye(n)[50]), constants={"c": c})
    a = ring_matrix(n, c)
    assert g.value == found.state[50]
    assert g.state == pytest.approx(np.linalg.matrix_power(a.T, 100)[:, 50], rel=1e-12)
    by_c = 100 * np.linalg.matrix_power(a, 99) @ (a - np.eye(n)) @ x0 / c
    assert g.constants["c"] == pytest.approx(by_c[50], rel=1e-11)
    assert g.played == g.plan.schedule.tally()


# ------------------------------------------------------------------ records, numbers, constants

SPRING = """
record body
    pos: f64[n]
    vel: f64
end

func step(y: body, x: body, t: i64, k: f64, w: f64[m])
    add y.pos, x.pos + 0.1 * x.vel
    add y.vel, x.vel - k * sum(sin(x.pos) * w) + 0.01 * f64(t)

func loss(l: f64, s: body)
    add l, sum(s.pos * s.pos) + s.vel
"""


def spring(pos: np.ndarray, vel: Any, t: int, k: Any, w: np.ndarray) -> tuple[np.ndarray, Any]:
    return pos + 0.1 * vel, vel - k * np.sum(np.sin(pos) * w) + 0.01 * t


def spring_loss(p: np.ndarray, n: int) -> Any:
    """The loss by (pos 3, vel, k, w 3) in NumPy, for complex steps."""
    pos, vel = p[:3], p[3]
    for t in range(n):
        pos, vel = spring(pos, vel, t, p[4], p[5:])
    return np.sum(pos * pos) + vel


@thin
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("terms", ({"pebbles": 5}, {"pebbles": 3, "price": 0}))
@sample
def test_records_numbers_of_steps_and_constants(engine: str, terms: dict[str, Any]) -> None:
    program = rvm.assemble(SPRING)
    p = np.array([0.3, -1.2, 0.7, 0.5, 0.9, 0.2, 0.4, -0.6])
    n = 12
    run = iterate(program.step.with_options(engine=engine), n, number="t", progress=False, **terms)
    x0 = {"pos": p[:3].copy(), "vel": p[3]}
    constants = {"k": p[4], "w": p[5:].copy()}
    found = run.gradient(x0, program.loss, constants=constants)
    h = 1e-30
    by = [spring_loss(p + 1j * h * np.eye(8)[k], n).imag / h for k in range(8)]
    got = [*found.state.pos, found.state.vel, found.constants["k"], *found.constants["w"]]
    assert got == pytest.approx(by, rel=1e-13)
    assert found.value == pytest.approx(spring_loss(p, n), rel=1e-14)
    steps = [s for _, s in run.back(x0, constants=constants)]
    pos, vel = p[:3], p[3]
    for t, s in enumerate(reversed(steps)):
        assert s["pos"] == pytest.approx(pos, rel=1e-13) and s["vel"] == pytest.approx(vel)
        pos, vel = spring(pos, vel, t, p[4], p[5:])
    assert (x0["pos"] == p[:3]).all() and (constants["w"] == p[5:]).all()


@pytest.mark.parametrize("engine", ENGINES)
@some
def test_scalars_of_any_kind(engine: str) -> None:
    program = rvm.assemble("""
func whole(y: i64, x: i64)
    add y, x * x % 1009 + 3

func real(y: f64, x: f64)
    add y, x * x - 0.5

func plane(y: c128, x: c128)
    add y, x * x - 0.5
""")
    z: Any
    for name, x0 in (("whole", 5), ("real", 0.3), ("plane", 0.1 + 0.2j)):
        states: list[Any] = [x0]
        for _ in range(9):
            z = states[-1]
            states.append(z * z % 1009 + 3 if name == "whole" else z * z - 0.5)
        step = program[name].with_options(engine=engine)
        for terms in (
            {"pebbles": 5},
            {"pebbles": 2, "price": 0},
            {"pebbles": 1, "price": 0, "disk": 9},
        ):
            found = [s for _, s in iterate(step, 9, progress=False, **terms).back(x0)]
            assert found == pytest.approx(states[::-1], rel=1e-14)
            assert type(found[0]) is type(x0)
    g = iterate(program.real.with_options(engine=engine), 9, pebbles=5, progress=False)
    assert g.gradient(0.3, seed=1.0).state == pytest.approx(np.prod(2 * np.array(REAL)), rel=1e-13)


REAL = [0.3]
for _ in range(8):
    REAL.append(REAL[-1] ** 2 - 0.5)


@pytest.mark.parametrize("engine", ENGINES)
@some
def test_steps_in_place(engine: str) -> None:
    program = rvm.assemble("""
func step(y: i64[n], x: i64[n], i: i64)
    for k = 0 to n - 1
        add y[k], (x[k] ^ 5) + i
    end

func turn(x: i64[n], i: i64)
    for k = 0 to n - 1
        xor x[k], 5
        add x[k], i
    end
""")
    run = iterate(
        program.step.with_options(engine=engine),
        30,
        pebbles=4,
        number="i",
        in_place="turn",
        reversible_steps=[k for k in range(1, 31) if k % 5 != 1],
        progress=False,
    )
    x0 = np.array([1, -9, 40])
    states = [x0]
    for i in range(30):
        states.append((states[-1] ^ 5) + i)
    walk = run.back(x0)
    assert [s.tolist() for _, s in walk] == [s.tolist() for s in states[::-1]]
    assert walk.played == walk.plan.schedule.tally() and walk.plan.rules.in_place


def test_a_run_of_unknown_length_erases() -> None:
    run = iterate(
        MIXED.step, until=lambda x, i: i == 33, pebbles=3, price=0, number="i", progress=False
    )
    x0, constants = np.arange(3, dtype=np.uint64), {"salt": 9}
    known = iterate(MIXED.step, 33, pebbles=3, price=0, number="i", progress=False)
    a, b = (list(r.back(x0, constants=constants)) for r in (run, known))
    assert all(i == j and (s == t).all() for (i, s), (j, t) in zip(a, b, strict=True))
    with pytest.raises(UsageError, match="say price=0"):
        iterate(MIXED.step, until=lambda x, i: True, pebbles=3)


# ------------------------------------------------------------------ what goes wrong


def test_functions_that_are_not_steps() -> None:
    program = rvm.assemble("""
func one(x: f64)
    add x, 1

func two(y: f64, x: i64)
    add y, 1

func three(y: i64, x: i64)
    add y, x
""")
    for name in ("one", "two"):
        with pytest.raises(InputError) as caught:
            iterate(program[name], 4, pebbles=4)(1.0)
        assert caught.value.code == "P020"
    with pytest.raises(InputError) as caught:
        iterate(program.three, 4, pebbles=4, number="k")(1)
    assert caught.value.code == "P020"
    with pytest.raises(InputError, match="has no parameter `c`") as caught:
        iterate(program.three, 4, pebbles=4)(1, constants={"c": 1})
    assert caught.value.code == "I002"
    with pytest.raises(UsageError, match="no adjoints"):
        iterate(program.three, 4, pebbles=4).gradient(1, seed=1.0)
    with pytest.raises(UsageError, match="strict"):
        iterate(program.three.with_options(strict=True), 4, pebbles=4)(1)
    for extra in ({"adjoint": abs}, {"inverse": abs}, {"number": True}, {"writes": "out"}):
        with pytest.raises(UsageError, match="for Python functions"):
            iterate(program.three, 4, pebbles=4, **extra)
    with pytest.raises(UsageError, match="in_place="):
        iterate(program.three, 4, pebbles=4, reversible_steps=[2])


@pytest.mark.parametrize("engine", ENGINES)
@some
def test_a_step_that_does_not_add_leaves_something_or_changes_what_it_should_not(
    engine: str,
) -> None:
    program = rvm.assemble("""
func doubling(y: i64, x: i64)
    add y, x
    xor y, 1

func greedy(y: i64, x: i64)
    add y, x
    add x, 1
""")
    # Its inverse does undo it; but what it makes of zero twice is another matter.
    run = iterate(program.doubling.with_options(engine=engine), 5, pebbles=4, progress=False)
    assert run(4) == ((((4 ^ 1) ^ 1) ^ 1) ^ 1) ^ 1
    run = iterate(program.greedy.with_options(engine=engine), 5, pebbles=4, progress=False)
    with pytest.raises(InvertibilityError, match="`x` is not what it was") as caught:
        run(4)
    assert caught.value.code == "R012"


def test_what_a_step_changes_in_passing_comes_back() -> None:
    program = rvm.assemble("""
func step(y: f64[n], x: f64[n], c: f64[n])
    add c, x
    add y, 0.5 * c
    sub c, x
""")
    x0, c = np.array([1.0, 2.0]), np.array([0.25, 3.0])
    for terms in ({"pebbles": 4}, {"pebbles": 2, "price": 0}):
        run = iterate(program.step, 6, progress=False, **terms)
        want = x0.copy()
        for _ in range(6):
            want = 0.5 * (want + c)
        assert run(x0, constants={"c": c}) == pytest.approx(want, rel=1e-14)
        g = run.gradient(x0, seed=np.ones(2), constants={"c": c})
        assert g.state == pytest.approx(np.full(2, 0.5**6), rel=1e-13)
        assert g.constants["c"] == pytest.approx(np.full(2, 1 - 0.5**6), rel=1e-13)
    assert c.tolist() == [0.25, 3.0] and x0.tolist() == [1.0, 2.0]


def test_a_state_that_does_not_vanish_is_reported() -> None:
    program = rvm.assemble("""
func step(y: f64, x: f64)
    add y, 0.1
    add y, x
""")
    assert (0.1 + 2 / 7) - 2 / 7 != 0.1
    run = iterate(program.step, 3, pebbles=3, progress=False)
    assert run(2 / 7) == pytest.approx(2 / 7 + 0.3, rel=1e-15)
    exacting = program.step.with_options(tolerance=0)
    with pytest.raises(InvertibilityError, match="undone, leaves") as caught:
        iterate(exacting, 3, pebbles=3, progress=False)(2 / 7)
    assert caught.value.code == "R001"


def test_errors_in_a_step_are_those_of_the_machine_with_the_number_of_the_step() -> None:
    program = rvm.assemble("""
func step(y: i64, x: i64)
    add y, x + 1 + 0 * (12 // (x - 4))
""")
    with pytest.raises(rvm.MachineError) as caught:
        iterate(program.step, 9, pebbles=9, progress=False)(1)
    assert caught.value.code == "R005"
    assert caught.value.__notes__ == ["in step 4 of the chain"]
