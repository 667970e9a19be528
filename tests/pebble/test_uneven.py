"""Chains that are not uniform: costs, sizes, and steps in place."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pebble.search import least

from rvm.pebble import plan
from rvm.pebble.chains import uneven as exact
from rvm.pebble.chains.reversible import GOALS, moves
from rvm.pebble.chains.uneven import Intervals, Uneven
from rvm.pebble.game import Rules, check
from rvm.pebble.tally import Weights

numbers = st.lists(st.integers(1, 6), min_size=2, max_size=8)


def searched(
    goal: str, costs: Sequence[float], sizes: Sequence[int] | None, budget: float
) -> float:
    """The least cost by exhaustive search; the gradient has its own search, not twice a visit."""
    n = len(costs)
    if goal == "erase":
        return 2 * least(n, budget, "visit", costs=costs, sizes=sizes)
    return least(n, budget, goal, costs=costs, sizes=sizes)


@given(numbers, st.integers(1, 6), st.sampled_from(GOALS))
@settings(deadline=None)
def test_unequal_costs_are_optimal(costs: list[int], pebbles: int, goal: str) -> None:
    family = Uneven(len(costs), goal, costs)
    assert family.total(pebbles) == searched(goal, costs, None, pebbles)
    assert (family.total(pebbles) < inf) == (pebbles >= family.fewest())


@given(numbers, st.data(), st.sampled_from(GOALS))
@settings(deadline=None)
def test_unequal_sizes_are_optimal_on_short_chains(
    costs: list[int], data: st.DataObject, goal: str
) -> None:
    n = len(costs)
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=n, max_size=n))
    budget = data.draw(st.integers(1, sum(sizes)))
    family = Uneven(n, goal, costs, sizes)
    total = family.total(budget)
    assert total == searched(goal, costs, sizes, budget)
    assert (total < inf) == (budget >= family.fewest())
    if total < inf:
        found = plan(n, goal=goal, costs=costs, sizes=sizes, memory=budget)
        tally = found.check()
        assert tally == found.schedule.tally()
        assert tally.moves == total and tally.peak <= budget


@given(numbers, st.data(), st.sampled_from(["persist", "visit"]))
@settings(deadline=None)
def test_the_interval_recursion_is_legal_and_no_better_than_search(
    costs: list[int], data: st.DataObject, goal: str
) -> None:
    n = len(costs)
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=n, max_size=n))
    budget = data.draw(st.integers(1, sum(sizes)))
    tables = Intervals(range(n + 1), [0, *costs], [0, *sizes], budget)
    value = tables.value(budget, goal)
    path = exact.shortest([0, *costs], [0, *sizes], budget, goal == "persist")
    best = inf if path is None else sum(costs[piece - 1] for piece in path)
    assert value >= best
    if value < inf:
        weights = Weights((0, *costs), (0, *sizes))
        schedule = tables.schedule(budget, goal, weights)
        tally = check(Rules(n, goal, budget, weights=weights), schedule.actions())
        assert tally == schedule.tally() and tally.moves == value


def test_equal_costs_are_the_uniform_chain() -> None:
    for n in (1, 2, 9, 40):
        for pebbles in range(7, 12):
            for goal in GOALS:
                family = Uneven(n, goal, [3] * n)
                assert family.total(pebbles) == 3 * moves(n, pebbles, goal)


def test_sizes_in_bytes_of_equal_states() -> None:
    n, size = 30, 1000
    found = plan(n, sizes=[size] * n, memory=6_500)
    assert found.cost.moves == moves(n, 6, "persist") and found.cost.peak == 6_000
    assert "interval recursion" in found.proof


def test_long_chains_of_unequal_states_say_that_they_may_miss() -> None:
    n = 40
    sizes = [1000 + 37 * (k % 7) for k in range(n)]
    found = plan(n, goal="gradient", sizes=sizes, memory=9_000)
    assert "best known" in found.proof
    assert any("rounded up" in note for note in found.notes)
    assert found.check() == found.schedule.tally()
    assert found.cost.peak <= 9_000


in_place = st.integers(1, 9).flatmap(
    lambda n: st.tuples(st.just(n), st.frozensets(st.integers(1, n)))
)


@given(in_place, st.integers(0, 5), st.sampled_from(["persist", "visit", "gradient"]))
@settings(deadline=None)
def test_steps_in_place_need_no_pebble(
    chain: tuple[int, frozenset[int]], pebbles: int, goal: str
) -> None:
    n, steps = chain
    family = Uneven(n, goal, in_place=steps)
    assert family.total(pebbles) == least(n, pebbles, goal, in_place=steps)
    if family.total(pebbles) < inf:
        found = plan(n, goal=goal, pebbles=pebbles, reversible_steps=steps)
        tally = found.check()
        assert tally == found.schedule.tally()
        assert tally.moves == family.total(pebbles)


def test_a_chain_of_steps_in_place_takes_one_pebble() -> None:
    n = 1000
    found = plan(n, goal="gradient", pebbles=1, reversible_steps=range(1, n + 1))
    assert found.cost.moves == 2 * (n - 1) and found.cost.peak == 1


def test_pieces_of_equal_length_have_the_fast_plan() -> None:
    n = 30_000
    steps = [k for k in range(1, n + 1) if k % 3 != 1]
    found = plan(n, pebbles=20, reversible_steps=steps)
    assert found.strategy == "knill"
    assert found.cost.moves == 3 * moves(n // 3, 20, "persist")


def test_exact_search_counts_its_positions() -> None:
    assert exact.positions([0, 1, 1, 1, 1], 2) == 1 + 4 + 6
    assert exact.narrowest([0, 1, 1, 1, 1], 4, persist=True) == 3
    assert exact.narrowest([0, 1, 1, 1, 1], 2, persist=True) is None


@pytest.mark.parametrize("goal", GOALS)
def test_a_single_step(goal: str) -> None:
    found = plan(1, goal=goal, costs=[5], pebbles=1)
    assert found.check().moves == {"persist": 5, "visit": 5, "erase": 10, "gradient": 0}[goal]
