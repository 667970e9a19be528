"""The front: budgets in pebbles, bytes, moves and joules; errors; what is printed and stored."""

from __future__ import annotations

import json
from math import inf, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import thin

import rvm.pebble
from rvm.faults import BudgetError, ScheduleError, UsageError
from rvm.pebble import GOALS, STRATEGIES, Plan, frontier, plan
from rvm.pebble.actions import Kind
from rvm.pebble.chains.revolve import forwards
from rvm.pebble.grammar import Item, Schedule
from rvm.pebble.terms import Terms, chosen

TERMS = {
    "limited": {"erasures": 2},
    "priced": {"price": 3},
    "hybrid": {"price": 3},
    "disk": {"disk": 2},
    "multistage": {"disk": 2},
}


@given(
    st.integers(1, 60),
    st.integers(1, 14),
    st.sampled_from([(s, goal) for s, (goals, _) in STRATEGIES.items() for goal in goals]),
)
@settings(deadline=None)
def test_every_strategy_plans_what_it_plays(n: int, pebbles: int, which: tuple[str, str]) -> None:
    strategy, goal = which
    terms = TERMS.get(strategy, {})
    try:
        made = plan(n, goal=goal, strategy=strategy, pebbles=pebbles, **terms)
    except BudgetError as error:
        least = error.values["least"]
        assert error.code == "P002" and least > pebbles
        assert f"pebbles={least:.0f}" in error.hint
        made = plan(n, goal=goal, strategy=strategy, pebbles=least, **terms)
        with pytest.raises(BudgetError):
            plan(n, goal=goal, strategy=strategy, pebbles=least - 1, **terms)
    assert made.check() == made.schedule.tally()
    assert made.cost.total == pytest.approx(
        chosen(n, goal, strategy, Terms(**terms)).total(made.rules.pebbles)
    )
    assert made.cost.peak <= made.rules.pebbles
    assert (made.n, made.goal, made.strategy) == (n, goal, strategy)


@pytest.mark.parametrize("goal", GOALS)
def test_the_fewest_pebbles_for_so_many_moves(goal: str) -> None:
    for n in (5, 50, 700):
        for factor in (2, 2.5, 4, 7, 30):
            bound = factor * n
            made = plan(n, goal=goal, max_moves=bound)
            assert made.cost.moves <= bound
            if made.cost.peak > 1:
                with pytest.raises((BudgetError, AssertionError)):
                    fewer = plan(n, goal=goal, pebbles=int(made.rules.pebbles) - 1)
                    assert fewer.cost.moves <= bound


def test_the_inverse_question_for_long_chains() -> None:
    made = plan(10**6, max_moves=4 * 10**6)
    # 4 N - 2 S - 1 <= 4 N holds as soon as N <= S + C(S-1, 2): with S = 1414, 1413 is too few.
    assert made.rules.pebbles == 1414 and made.cost.moves == 4 * 10**6 - 2 * 1414 + 2015
    assert plan(10**6, max_moves=2 * 10**6 - 1).rules.pebbles == 10**6


def test_budgets_in_bytes() -> None:
    made = plan(1000, memory=12_999, state_bytes=1000, goal="gradient")
    assert made.rules.pebbles == 12 and made.cost.moves == 14_288
    assert made.cost.peak_bytes == 12_000 and made.cost.erased_bits == 0
    with pytest.raises(BudgetError) as caught:
        plan(1000, memory=3_000, state_bytes=1000)
    assert caught.value.values == {"budget": 3000, "least": 11_000, "unit": "bytes"}


def test_energy_is_landauers() -> None:
    boltzmann, joules = 1.380649e-23, 1e-17
    price = 8 * 1000 * boltzmann * 300 * log(2) / joules
    made = plan(200, goal="gradient", pebbles=8, state_bytes=1000, step_energy=joules)
    assert made.strategy == "hybrid" and made.units.price == pytest.approx(price)
    assert 8 * boltzmann * 300 * log(2) == pytest.approx(8 * 2.871e-21, rel=1e-3)
    energy = joules * (made.cost.moves + price * made.cost.erased)
    assert made.cost.energy == pytest.approx(energy) and made.cost.erased > 0
    bound = 1.2 * energy
    least = plan(200, goal="gradient", max_energy=bound, state_bytes=1000, step_energy=joules)
    assert least.cost.energy is not None and least.cost.energy <= bound
    assert least.rules.pebbles <= 8


@thin
@pytest.mark.parametrize(
    ("goal", "terms", "floor"),
    [
        ("persist", {}, 2 * 100 - 1),
        ("visit", {}, 100),
        ("erase", {}, 200),
        ("gradient", {}, 2 * 99),
        ("gradient", {"price": 0}, 99),
        ("gradient", {"price": 0.5}, 1.5 * 99),
        ("gradient", {"price": 7}, 2 * 99),
        ("persist", {"price": 0.25}, 100 + 0.25 * 99),
        ("persist", {"erasures": 3}, 199 - 3),
        ("persist", {"strategy": "bennett"}, 199),
    ],
)
def test_too_few_moves(goal: str, terms: dict[str, float], floor: float) -> None:
    with pytest.raises(BudgetError) as caught:
        plan(100, goal=goal, max_moves=floor - 0.5, **terms)  # type: ignore[arg-type]
    assert caught.value.values["least"] == floor
    assert plan(100, goal=goal, max_moves=floor, **terms).cost.total == floor  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"n": 0, "pebbles": 3}, "from 1 to 2^40 steps"),
        ({"n": 9}, "needs a budget"),
        ({"n": 9, "pebbles": 3, "max_moves": 5}, "only one budget may be given"),
        ({"n": 9, "pebbles": 3, "goal": "win"}, "no goal `win`"),
        ({"n": 9, "pebbles": 3, "strategy": "luck"}, "no strategy `luck`"),
        ({"n": 9, "pebbles": 3, "strategy": "revolve"}, "`revolve` has no goal `persist`"),
        ({"n": 9, "pebbles": 3, "strategy": "bennett", "price": 1}, "takes no `price`"),
        ({"n": 9, "pebbles": 3, "goal": "erase", "price": 1}, "`priced` has no goal `erase`"),
        ({"n": 9, "pebbles": 3, "goal": "gradient", "strategy": "hybrid"}, "needs the price"),
        ({"n": 9, "pebbles": 3, "price": -1}, "0 or more"),
        ({"n": 9, "pebbles": -1}, "0 or more"),
        ({"n": 9, "memory": 3}, "needs the size of a state"),
        ({"n": 9, "max_energy": 3}, "needs the energy of a step"),
        ({"n": 9, "pebbles": 3, "costs": [1]}, "a number for each of the 9 steps"),
        ({"n": 2, "pebbles": 3, "costs": [1, 0]}, "positive"),
        ({"n": 2, "pebbles": 3, "sizes": [1, 2]}, "the budget is in bytes"),
        ({"n": 2, "memory": 3, "sizes": [1, 2.5]}, "whole numbers of bytes"),
        ({"n": 2, "pebbles": 3, "reversible_steps": [3]}, "steps have the numbers 1 to 2"),
        ({"n": 2, "memory": 3, "sizes": [1, 1], "reversible_steps": [2]}, "not planned"),
        ({"n": 2, "pebbles": 3, "step_energy": 0.0}, "positive"),
        (
            {"n": 9, "strategy": "online", "goal": "gradient", "max_moves": 99},
            "does not fall steadily",
        ),
    ],
)
def test_wrong_arguments(arguments: dict[str, object], text: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan(**arguments)  # type: ignore[arg-type]
    assert caught.value.code == "P001" and text in caught.value.message


@pytest.mark.parametrize(
    "arguments",
    [
        {"n": 10**5, "pebbles": 30, "erasures": 100},
        {"n": 10**6, "pebbles": 30, "goal": "gradient", "strategy": "disk", "disk": 3},
        {"n": 3000, "pebbles": 30, "costs": [1, 2] * 1500},
    ],
)
def test_tables_that_would_be_too_large(arguments: dict[str, object]) -> None:
    with pytest.raises(UsageError) as caught:
        plan(**arguments)  # type: ignore[arg-type]
    assert caught.value.code == "P006" and caught.value.hint


def test_a_disk_without_tables_is_multistage() -> None:
    made = plan(10**6, goal="gradient", pebbles=5, disk=5)
    assert made.strategy == "multistage" and made.cost.moves == forwards(10**6, 10)


def test_the_hybrid_of_a_long_chain_is_no_dearer_than_its_ends() -> None:
    n, pebbles = 20_000, 18
    sweep = plan(n, goal="gradient", pebbles=pebbles).cost.moves
    for price in (0.5, 3, 1000):
        made = plan(n, goal="gradient", pebbles=pebbles, price=price, blocks=200)
        assert made.cost.total <= min(sweep, forwards(n, pebbles) * (1 + price))
        assert any(note.startswith("blocks:") for note in made.notes)
        assert "best known" in made.proof


DESCRIBED = """\
gradient of 1,000 steps by `hybrid`
  moves     6,872, 6.87 times the chain's own
  adjoints  1,000; with their steps 7,872 in all
  peak      12 pebbles, 12,000 bytes (budget 12)
  erased    196 states, 1,568,000 bits
  total     8,440 moves, with what else has a price
  proof     optimal by the recursions H, V, J, K, known from exhaustive search of small chains
  note      an erased state costs 8 moves; steps go in place, or into fresh memory
  counted   the input is not counted; the result is, and so is the state that moves on
  counted   a move is a step done or undone; the n steps done with their adjoints are not moves"""


def test_what_a_plan_says() -> None:
    made = plan(1000, goal="gradient", pebbles=12, price=8, state_bytes=1000)
    assert made.describe() == DESCRIBED


def test_a_frontier() -> None:
    found = frontier(
        1000,
        goal="gradient",
        pebbles=[12, 20],
        price=8,
        strategies=["reversible", "hybrid", "revolve"],
    )
    assert found.table().splitlines()[1:] == [
        "     12      14,288  6,872 / 196  3,440 / 3,440",
        "     20       7,112   5,486 / 48  2,747 / 2,747",
    ]
    assert [p.total for p in found.of("hybrid")] == [8_440, 5_870]
    ladder = frontier(500).of("knill")
    assert [p.moves for p in ladder] == sorted((p.moves for p in ladder), reverse=True)
    assert (ladder[0].pebbles, ladder[-1].moves) == (10, 999)


# ---------------------------------------------------------------- files


@thin
@pytest.mark.parametrize(
    "arguments",
    [
        {"n": 40_000, "pebbles": 24},
        {"n": 300, "pebbles": 10, "goal": "gradient", "price": 5},
        {"n": 300, "pebbles": 4, "goal": "gradient", "disk": inf, "read": 3},
        {"n": 12, "memory": 90, "goal": "erase", "sizes": [10, 20, 30] * 4},
        {"n": 30, "pebbles": 5, "goal": "gradient", "reversible_steps": [2, 3, 5, 9]},
    ],
)
def test_a_plan_comes_back_from_its_file(arguments: dict[str, object], tmp_path: Path) -> None:
    made = plan(**arguments)  # type: ignore[arg-type]
    made.save(tmp_path / "plan.npz")
    back = rvm.pebble.load(tmp_path / "plan.npz")
    assert (back.rules, back.cost, back.describe()) == (made.rules, made.cost, made.describe())
    for ours, theirs in zip(made.blocks(), back.blocks(), strict=True):
        assert (ours == theirs).all()
    assert back.check() == made.schedule.tally()


def test_a_file_is_small(tmp_path: Path) -> None:
    made = plan(10**6, pebbles=40)
    made.save(tmp_path / "plan.npz")
    assert made.cost.actions == 35_216_829
    assert (tmp_path / "plan.npz").stat().st_size < 50_000


def damaged(made: Plan, path: Path, **changes: np.ndarray) -> None:
    made.save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files} | changes
    np.savez(path, **arrays)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.npz"
    made = plan(20, pebbles=6)
    made.save(path)
    with np.load(path) as file:
        items, rules = file["items"], file["rules"]
    own, kind, negative = items.copy(), items.copy(), items.copy()
    own[0, 0] = 0
    kind[1, 0] = 40
    negative[2, 0] = -3
    header = np.array("{}")
    for changes in (
        {"items": own},
        {"items": kind},
        {"items": negative},
        {"items": items[:, :-1]},
        {"rules": rules[::-1].copy()},
        {"rules": rules.astype(float)},
        {"header": header},
    ):
        damaged(made, path, **changes)
        with pytest.raises(ScheduleError) as caught:
            rvm.pebble.load(path)
        assert caught.value.code == "P005"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(ScheduleError):
        rvm.pebble.load(path)


@pytest.mark.parametrize("array", ["rules", "items"])
def test_no_number_at_the_limits_changes_a_schedule(array: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.npz"
    made = plan(12, pebbles=5)
    made.save(path)
    with np.load(path) as file:
        values = file[array]
    for k in range(0, values.size, 1 + values.size // 30):
        for limit in (-(2**63), -(2**62), 2**62, 2**63 - 1):
            changed = values.copy()
            changed.flat[k] = limit
            damaged(made, path, **{array: changed})
            try:
                found = rvm.pebble.load(path)
            except ScheduleError as error:
                assert error.code == "P005"
            else:
                # What means nothing in an item may be any number.
                assert array == "items" and found.check() == made.check()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("n", v) for v in (0, -1, True, 1.5, "20", None, float("inf"))),
        *((k, v) for k in ("pebbles", "erasures", "disk") for v in (-1, float("nan"), [], "6")),
        *(("state_bytes", v) for v in (-1, 1.5, [1], float("inf"))),
        *((k, v) for k in ("step_energy", "temperature", "price") for v in (-1.0, "x", 1e301)),
    ],
)
def test_files_with_numbers_out_of_range_are_refused(name: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "plan.npz"
    made = plan(20, pebbles=6, state_bytes=8, step_energy=1e-18)
    made.save(path)
    with np.load(path) as file:
        header = json.loads(str(file["header"]))
    (header if name in header else header["units"])[name] = value
    damaged(made, path, header=np.array(json.dumps(header)))
    with pytest.raises(ScheduleError) as caught:
        rvm.pebble.load(path)
    assert caught.value.code == "P005"


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf"), 1j])
@pytest.mark.parametrize("field", ["costs", "sizes"])
def test_files_with_weights_out_of_range_are_refused(field: str, bad: Any, tmp_path: Path) -> None:
    path = tmp_path / "plan.npz"
    made = plan(4, memory=20, sizes=[4] * 4, costs=[1.0] * 4)
    made.save(path)
    with np.load(path) as file:
        weights = file[field]
    weights = weights.astype(complex if isinstance(bad, complex) else float)
    weights[2] = bad
    damaged(made, path, **{field: weights})
    with pytest.raises(ScheduleError):
        rvm.pebble.load(path)


def test_a_file_with_another_schedule_does_not_evade_the_rules(tmp_path: Path) -> None:
    path = tmp_path / "plan.npz"
    made = plan(20, pebbles=6)
    made.save(path)
    with np.load(path) as file:
        items = file["items"]
    first = int(np.flatnonzero(items[0] == -1)[0])
    items[3, first] += 1
    damaged(made, path, items=items)
    with pytest.raises(ScheduleError):
        rvm.pebble.load(path).check()


def test_what_loses_states_cannot_be_undone() -> None:
    from rvm.pebble.actions import at, overwrite

    lossy = {"all": [Item("run", 0, True)], "run": [Item(overwrite(1, 2))]}
    with pytest.raises(ScheduleError) as caught:
        Schedule("all", lambda name: lossy[str(name)]).tally()
    assert caught.value.code == "P005"
    with pytest.raises(ScheduleError):
        Schedule("all", lambda name: [Item(at(Kind.FREE, 1), 0, True)]).tally()
