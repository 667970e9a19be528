"""Emitted schedules: the machine counts what the plan says, and values are those of a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pebble.playing import LENGTH, MIX, SHIFT, START, mixed, most_pebbles, played
from sizes import examples, sample, some, thin, wide

import rvm
from rvm.codec import decode, encode
from rvm.engines import ENGINES
from rvm.faults import BudgetError, InputError, RvmError, UsageError
from rvm.pebble import emit, plan
from rvm.pebble.bridge.emission.table import Table
from rvm.program import Program

ZERO = np.zeros(LENGTH, dtype=np.int64)
CHAINS: list[tuple[int, dict[str, Any]]] = [
    (1, {"pebbles": 1}),
    (2, {"pebbles": 2}),
    (9, {"pebbles": 5}),
    (9, {"pebbles": 9}),
    (50, {"pebbles": 7}),
    (50, {"pebbles": 20}),
    (200, {"pebbles": 9}),
    (300, {"pebbles": 24}),
    (64, {"strategy": "bennett", "radix": 4}),
    (100, {"strategy": "bennett", "radix": 3}),
    (100, {"strategy": "bennett", "radix": 100}),
    (12, {"costs": [1, 5] * 6, "pebbles": 5}),
    (12, {"sizes": [3, 1, 2] * 4, "memory": 11}),
    (40, {"sizes": [2, 1] * 20, "memory": 14}),
]


def in_y(made: Program, goal: str) -> bool:
    """Whether the result is made in y itself, which is not an ancilla, and not exchanged with it.
    Whether the result is made in y itself, which is not an ancilla, and not exchanged with it.
    """
    return goal == "persist" and all(i.op != "swap" for i in made.function(made.entry).code)


def check(chain: Any, goal: str, y: np.ndarray, back: bool = True) -> None:
    plain = plan(chain.n, **chain.terms, goal=goal)
    made = emit(plain, MIX, "step", number="k")
    seen = played(made.program, {"y": y, "x": START, "k": 3, "c": 7}, back)
    np.testing.assert_array_equal(seen.result["y"], y + mixed(START, chain.n, first=3))
    np.testing.assert_array_equal(seen.result["x"], START)
    uneven = plain.rules.weights.costs is not None
    moves = len([a for a in plain.actions() if a.kind < 2]) if uneven else plain.cost.moves
    assert seen.calls["step"] == moves
    if plain.rules.weights.sizes is None:
        assert seen.peak == most_pebbles(plain) - in_y(made.program, goal)
        assert most_pebbles(plain) == plain.cost.peak
    assert seen.erased == 0


class Chain:
    def __init__(self, n: int, terms: dict[str, Any]) -> None:
        self.n, self.terms = n, terms


@thin
@pytest.mark.parametrize(("n", "terms"), CHAINS, ids=str)
@some
def test_moves_peak_and_values(n: int, terms: dict[str, Any]) -> None:
    check(Chain(n, terms), "persist", ZERO)
    check(Chain(n, terms), "erase", START % 1000)


@examples(40)
@given(
    st.integers(1, 120), st.integers(1, 130), st.sampled_from(["persist", "erase"]), st.booleans()
)
@example(91, 32, "erase", False)  # thirty pieces beside each other, and not within each other
def test_any_chain(n: int, pebbles: int, goal: str, knill: bool) -> None:
    strategy = "optimal" if knill else "bennett"
    try:
        chain = Chain(n, {"pebbles": pebbles, "strategy": strategy})
        plan(n, goal=goal, **chain.terms)
    except BudgetError as error:
        chain = Chain(n, {"pebbles": int(error.values["least"]), "strategy": strategy})
    check(chain, goal, ZERO)


def test_bennett_as_it_is_published() -> None:
    """256 steps in four pieces on each of four levels: 7^4 calls, and 4 x 3 + 2 states at a time.

    NiLang, which has these numbers, counts the input and the result.
    """
    seen = played(
        emit(plan(256, strategy="bennett", radix=4), MIX, number="k").program,
        {"y": ZERO, "x": START, "k": 0, "c": 7},
    )
    assert seen.calls["step"] == 7**4 == 2401
    # The result and the input are the caller's.
    assert seen.peak + 2 == 4 * 3 + 2 == 14


@thin
@pytest.mark.parametrize("radix", [2, 3, 4, 10, 1000])
def test_bennett_where_only_the_run_knows_the_length(radix: int) -> None:
    """As many steps as planned, and no more states than for the next power of the radix."""
    program = rvm.assemble(
        f"""
        func step(y: i64[n], x: i64[n], k: i64, c: i64)
            add y, x * 6364136223846793005 + c
            xor y, (x >> 17) ^ k
        func main(y: i64[n], x: i64[n], m: i64)
            iterate step(y, x, k, 7) for k = 0 to m - 1 with bennett = {radix}
        """
    ).program
    for n in (1, 2, 3, 4, 5, 8, 11, 27, 30, 64):
        seen = played(program, {"y": ZERO, "x": START, "m": n})
        np.testing.assert_array_equal(seen.result["y"], mixed(START, n))
        planned = plan(n, strategy="bennett", radix=radix).cost
        assert seen.calls["step"] == planned.moves
        levels = next(j for j in range(n + 1) if radix**j >= n)
        # The result is the caller's.
        assert planned.peak <= seen.peak + 1 <= min(n, levels * (radix - 1) + 1)


@thin
@pytest.mark.parametrize("every", [2, 3, 7])
@pytest.mark.parametrize(("n", "pebbles"), [(21, 5), (40, 6), (40, 20), (5, 5)])
@sample
def test_steps_in_place(n: int, pebbles: int, every: int) -> None:
    steps = [k for k in range(1, n + 1) if k % every != 1]
    for goal in ("persist", "erase"):
        plain = plan(n, pebbles=pebbles, goal=goal, reversible_steps=steps)
        made = emit(plain, SHIFT, number="k", in_place="turn")
        seen = played(made.program, {"y": ZERO, "x": START, "k": 3, "c": 7})
        x = START
        for k in range(3, n + 3):
            x = (x + 7 * k) ^ k
        np.testing.assert_array_equal(seen.result["y"], x)
        assert seen.calls["step"] + seen.calls.get("turn", 0) == plain.cost.moves
        assert seen.peak == most_pebbles(plain) - in_y(made.program, goal)


@pytest.mark.parametrize(
    ("n", "terms"),
    [
        (16, {"pebbles": 5, "erasures": 3}),
        (40, {"pebbles": 6, "erasures": 7}),
        (40, {"pebbles": 6, "price": 4}),
        (40, {"pebbles": 6, "price": 4, "overwrite": False}),
        (40, {"pebbles": 1, "price": 0}),
        (100, {"pebbles": 8, "price": 30}),
    ],
    ids=str,
)
def test_erased_states_are_counted_by_the_machine(n: int, terms: dict[str, Any]) -> None:
    plain = plan(n, state_bytes=8 * LENGTH, **terms)
    made = emit(plain, MIX, number="k")
    inputs = {"y": ZERO, "x": START, "k": 0, "c": 7}
    seen = played(made.program, inputs, back=False)
    np.testing.assert_array_equal(seen.result["y"], mixed(START, n))
    assert plain.cost.erased > 0
    assert seen.erased == plain.cost.erased_bits
    assert seen.calls["step"] == plain.cost.moves
    # A step that overwrites its state needs a place for the new one while it is made.
    assert seen.peak <= most_pebbles(plain) + 1
    with pytest.raises(RvmError) as caught:
        (~made[made.program.entry])(**seen.result)
    assert caught.value.code == "R013"
    assert "cannot be run back" in caught.value.message


@pytest.mark.parametrize("engine", ENGINES)
@some
def test_all_engines(engine: str) -> None:
    for terms in ({"pebbles": 8}, {"pebbles": 30}, {"strategy": "bennett", "radix": 3}):
        made = emit(plan(60, **terms), MIX, number="k", name="far")
        far = made.far.with_options(engine=engine)
        there = far(y=ZERO.copy(), x=START.copy(), k=0, c=7)
        np.testing.assert_array_equal(there.y, mixed(START, 60))
        assert not (~far)(**dict(there.items())).y.any()


TYPES = ["i32", "i64", "u8", "u64", "f32", "f64", "c128", "fixed", "fixed(20)"]


@thin
@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("goal", ["persist", "erase"])
@sample
def test_all_types_of_states(t: str, goal: str) -> None:
    program = rvm.assemble(f"func step(y: {t}, x: {t})\n    add y, x + x\n")
    made = emit(plan(5, pebbles=4, goal=goal), program)
    assert made.step_5(y=0, x=3).y == 3 * 2**5


@pytest.mark.parametrize("goal", ["persist", "erase"])
def test_logarithms_and_bools(goal: str) -> None:
    """A log64 that was not touched holds 1, and a bool false."""
    program = rvm.assemble(
        """
        func square(y: log64, x: log64)
            mul y, x * x
        func flip(y: bool[n], x: bool[n])
            for i = 0 to n - 1
                xor y[i], not x[(i + 1) % n]
            end
        """
    )
    made = emit(plan(5, pebbles=4, goal=goal), program, "square")
    assert float(made.square_5(y=1.0, x=3.0).y) == pytest.approx(3.0**32, rel=1e-12)
    made = emit(plan(5, pebbles=4, goal=goal), program, "flip")
    x = np.array([True, False, False])
    found = made.flip_5(y=np.zeros(3, dtype=bool), x=x).y
    np.testing.assert_array_equal(found, ~np.roll(x, -5))


def test_a_program_like_any_other() -> None:
    made = emit(plan(1000, pebbles=12), MIX, number="k")
    assert made.program.entry == "step_1000" and "step" in made
    assert decode(encode(made)) == made
    assert {name.removeprefix("step_1000") for name in made} == {
        "step", "", ".persist", ".mirrored", ".fill"
    }  # fmt: skip


@wide
def test_schedules_of_equal_steps_are_a_handful_of_functions() -> None:
    for goal in ("persist", "erase"):
        for terms in ({"strategy": "bennett", "pebbles": 40}, {"pebbles": 10**6}, {"pebbles": 40}):
            made = emit(plan(10**6, goal=goal, **terms), MIX, number="k")
            own = [f for f in made.program.functions if ".fill" not in f.name]
            assert len(own) <= 5
            assert sum(len(f.code) for f in own) < 250
            assert sum(len(f.code) for f in made.program.functions) < 2500


def test_all_other_schedules_are_a_table_and_its_player() -> None:
    """A thousand steps: a grammar of hundreds of names, and the code of a few functions."""
    step = rvm.assemble("func step(y: f64, x: f64, c: f64)\n    add y, sin(x) * c\n")
    for terms in ({}, {"price": 0}, {"price": 8}, {"strategy": "bennett", "radix": 4}):
        pebbles = {} if "radix" in terms else {"pebbles": 12}
        made = emit(plan(1000, goal="gradient", **pebbles, **terms), step, name="sweep")
        parts = {name for name in made if name.startswith("sweep")}
        assert {name.rstrip("0123456789.") for name in parts} == {
            "sweep",
            "sweep.play",
            "sweep.fill",
        }
        assert sum(len(made.program.function(name).code) for name in parts) < 1000


@pytest.mark.parametrize(
    ("terms", "goals"),
    [
        ({"price": 3}, ("persist", "gradient")),
        ({"price": 3, "overwrite": False}, ("persist", "gradient")),
        ({"erasures": 3}, ("persist",)),
        ({"costs": [1, 7, 2] * 9}, ("persist", "erase", "gradient")),
        ({"price": 0, "strategy": "revolve"}, ("gradient",)),
        ({}, ("gradient",)),
    ],
    ids=str,
)
def test_pools_have_as_many_slots_as_there_are_pebbles(
    terms: dict[str, Any], goals: tuple[str, ...]
) -> None:
    """An adjoint may take one more, for the state after its step."""
    for goal in goals:
        for pebbles in (6, 7, 10, 20):
            plain = plan(27, pebbles=pebbles, goal=goal, **terms)
            slots = Table(plain.schedule, 27).slots
            assert 0 <= slots - most_pebbles(plain) <= (goal == "gradient")


def test_names_that_are_taken() -> None:
    made = emit(plan(4, pebbles=3), MIX, number="k", name="step")
    assert made.program.entry == "step_"
    again = emit(plan(4, pebbles=4), made, "step", number="k", name="step_")
    assert again.program.entry == "step__"


def refused(code: str, *args: Any, **kwargs: Any) -> RvmError:
    with pytest.raises(RvmError) as caught:
        emit(*args, **kwargs)
    assert caught.value.code == code
    assert caught.value.hint or caught.value.values
    return caught.value


def test_what_is_not_a_step() -> None:
    program = rvm.assemble(
        """
        record Nothing
        end
        func nothing(y: Nothing, x: Nothing, r: f64)
            add r, 1.0
        func one(y: i64)
            add y, 1
        func types(y: i64, x: f64)
            add y, 1
        func stacks(y: stack[i64], x: stack[i64])
            alloc t: i64
            free t
        func fine(y: f64, x: f64, k: i64, c: f64)
            add y, x * c
        func turn(x: f64, k: i64)
            add x, 1
        """
    )
    p = plan(4, pebbles=3)
    for name in ("none", "nothing", "one", "types", "stacks"):
        assert isinstance(refused("P020", p, program, name), InputError)
    refused("P020", p, program, "fine", number="c")
    refused("P020", p, program, "fine", number="y")
    refused("P020", p, program, "fine", number="k", in_place="turn")
    refused("P020", plan(4, pebbles=3, reversible_steps=[2]), program, "fine")


def test_what_is_not_a_function() -> None:
    for p in (plan(4, pebbles=3, goal="visit"), plan(9, pebbles=2, goal="gradient", disk=4)):
        assert isinstance(refused("P021", p, MIX), UsageError)
    refused("P021", plan(4, pebbles=3, goal="gradient"), MIX)
