"""The reversible game: published tables, exhaustive search, and schedules played by the rules."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pebble.search import erase_all, least

from rvm.pebble.actions import Kind
from rvm.pebble.chains import bennett, knill
from rvm.pebble.chains.reversible import GOALS, moves, reversible
from rvm.pebble.game import Rules, check

TIGHT = [1, 3, 9, 25, 71, 193, 531, 1431, 3835, 10279, 27231, 72303, 190947, 501869, 1320763]
TIGHT += [3457621, 9040761]
"""Persist: 2^n steps with n + 1 pebbles."""
TIGHT_VISIT = [1, 4, 13, 38, 109, 302, 833, 2264, 6099, 16378]
"""Visit: 2^(n+1) - 1 steps with n + 1 pebbles."""


def cost(n: int, pebbles: int, goal: str) -> float:
    found = moves(n, pebbles, goal)
    return inf if found >= knill.INFEASIBLE else found


def test_the_tight_series() -> None:
    assert [moves(2**n, n + 1, "persist") for n in range(17)] == TIGHT
    assert [moves(2 ** (n + 1) - 1, n + 1, "visit") for n in range(10)] == TIGHT_VISIT


@pytest.mark.parametrize(
    ("n", "radix", "pebbles", "by_bennett", "optimum"),
    [
        (1_024, 2, 11, 59_049, 27_231),
        (65_536, 2, 17, 43_046_721, 9_040_761),
        (1_024, 4, 16, 16_807, 10_465),
        (1_000, 10, 28, 6_859, 6_377),
        (10_000, 10, 37, 130_321, 89_807),
        (100_000, 10, 46, 2_476_099, 1_466_081),
    ],
)
def test_bennett_beside_the_optimum(
    n: int, radix: int, pebbles: int, by_bennett: int, optimum: int
) -> None:
    assert bennett.price(n, radix, "persist") == (by_bennett, pebbles)
    assert moves(n, pebbles, "persist") == optimum
    tally = bennett.bennett(n, radix, "persist").tally()
    assert (tally.moves, tally.peak) == (by_bennett, pebbles)


def test_published_costs_of_long_chains() -> None:
    assert moves(10**5, 24, "persist") == 4_110_233
    assert reversible(10**6, 40, "persist").tally()[:2] == (35_216_829, 35_216_829)


@pytest.mark.parametrize("n", range(1, 12))
def test_the_optimum_is_that_of_exhaustive_search(n: int) -> None:
    for pebbles in range(1, n + 1):
        for goal in ("persist", "visit"):
            assert cost(n, pebbles, goal) == least(n, pebbles, goal), (pebbles, goal)


@pytest.mark.parametrize("n", range(1, 9))
def test_erasing_all_is_a_visit_and_its_undoing(n: int) -> None:
    for pebbles in range(1, n + 1):
        assert cost(n, pebbles, "erase") == erase_all(n, pebbles), pebbles


@pytest.mark.parametrize("n", range(1, 9))
def test_the_gradient_costs_two_visits_of_the_last_state_it_needs(n: int) -> None:
    for pebbles in range(0 if n == 1 else 1, n + 1):
        assert cost(n, pebbles, "gradient") == least(n, pebbles, "gradient"), pebbles


def test_the_recursion_itself() -> None:
    """Knill's recursion as it is written, without runs, convexity or closed forms."""
    n_max, s_max = 130, 40
    f = np.full((s_max + 1, n_max + 1), inf)
    g = f.copy()
    f[1:, 1] = g[1:, 1] = 1
    for s in range(1, s_max + 1):
        for n in range(2, n_max + 1):
            left, right = f[s, 1:n], slice(n - 1, 0, -1)
            f[s, n] = (left + f[s - 1, right] + f[s - 1, 1:n]).min()
            g[s, n] = (left + g[s - 1, right]).min()
    table = knill.Line(n_max)
    for s in range(1, s_max + 1):
        for n in range(1, n_max + 1):
            for exact, found in ((f, table.persist(n, s)), (g, table.visit(n, s))):
                assert exact[s, n] == (inf if found >= knill.INFEASIBLE else found), (n, s)


def test_increments_for_seven_pebbles() -> None:
    found = [moves(n, 7, "persist") - moves(n - 1, 7, "persist") for n in range(2, 65)]
    runs = [(2, 6), (4, 15), (6, 4), (8, 16), (10, 6), (12, 5), (14, 5), (18, 3), (20, 2), (22, 1)]
    assert found == [slope for slope, count in runs for _ in range(count)]


@given(st.integers(1, 10**9))
def test_the_fewest_pebbles(n: int) -> None:
    for goal, fewest in (
        ("persist", knill.fewest_to_persist(n)),
        ("visit", knill.fewest_to_visit(n)),
    ):
        reach = 2 ** (fewest - 1) if goal == "persist" else 2**fewest - 1
        below = 2 ** (fewest - 2) if goal == "persist" else 2 ** (fewest - 1) - 1
        assert below < n <= reach or (n == 1 and fewest == 1)
    small = n % 3000 + 1
    table = knill.Line(small)
    s = knill.fewest_to_persist(small)
    assert table.persist(small, s) < knill.INFEASIBLE <= table.persist(small, s - 1)
    s = knill.fewest_to_visit(small)
    assert table.visit(small, s) < knill.INFEASIBLE <= table.visit(small, s - 1)


@given(st.integers(1, 400), st.integers(0, 30), st.sampled_from(GOALS), st.integers(1, 4))
def test_schedules_are_legal_and_cost_what_was_predicted(
    n: int, more: int, goal: str, unit: int
) -> None:
    """With `unit` > 1, all but every unit-th step are done in place."""
    steps = n - 1 if goal == "gradient" else n
    count = -(-steps // unit)
    fewest = knill.fewest_to_persist(count) if goal == "persist" else knill.fewest_to_visit(count)
    pebbles = fewest + more
    schedule = reversible(n, pebbles, goal, unit)
    in_place = frozenset(i for i in range(1, n + 1) if (i - 1) % unit)
    tally = check(Rules(n, goal, pebbles, in_place=in_place), schedule.actions())
    assert tally == schedule.tally()
    assert tally.moves == moves(n, pebbles, goal, unit)
    assert tally.reversals == (n if goal == "gradient" else 0)


@given(st.integers(1, 300), st.integers(2, 12), st.sampled_from(GOALS))
def test_bennett_is_legal_for_any_length(n: int, radix: int, goal: str) -> None:
    schedule = bennett.bennett(n, radix, goal)
    expected, pebbles = bennett.price(n, radix, goal)
    tally = check(Rules(n, goal, pebbles), schedule.actions())
    assert tally == schedule.tally()
    assert (tally.moves, tally.peak) == (expected, pebbles)


@given(st.integers(1, 200), st.integers(1, 40), st.sampled_from(["persist", "visit", "erase"]))
def test_the_best_radix_is_the_best(n: int, pebbles: int, goal: str) -> None:
    prices = [bennett.price(n, k, goal) for k in range(2, n + 2)]
    best = min((m for m, s in prices if s <= pebbles), default=None)
    radix = bennett.best_radix(n, pebbles, goal)
    assert (None if radix is None else bennett.price(n, radix, goal)[0]) == best


def test_the_first_adjoint_comes_at_the_last_step_and_each_in_its_turn() -> None:
    schedule = reversible(1000, 12, "gradient")
    order = [a.stop for a in schedule.actions() if a.kind == Kind.REVERSE]
    assert order == list(range(1000, 0, -1))


@pytest.mark.parametrize("chunk", [1, 1000, 1 << 16])
def test_blocks_are_the_actions(chunk: int) -> None:
    schedule = reversible(300, 10, "gradient")
    blocks = list(schedule.blocks(chunk))
    assert all(b.dtype == np.int64 and b.shape[0] == 3 and b.shape[1] <= chunk for b in blocks)
    together = np.concatenate(blocks, axis=1)
    assert [tuple(row) for row in together.T.tolist()] == [tuple(a) for a in schedule.actions()]


def test_blocks_of_a_long_schedule_go_up_and_down_by_one() -> None:
    """A million moves and more: every pebble but the last is taken off, and the peak is kept."""
    n, pebbles = 40_000, 22
    schedule = reversible(n, pebbles, "persist")
    held, peak, count = 0, 0, 0
    balance = np.zeros(n + 1, dtype=np.int64)
    for kinds, starts, stops in schedule.blocks():
        assert (stops - starts == 1).all() and (kinds <= 1).all()
        change = 1 - 2 * kinds
        levels = held + change.cumsum()
        held, peak, count = int(levels[-1]), max(peak, int(levels.max())), count + len(kinds)
        np.add.at(balance, stops, change)
    assert (count, peak) == (moves(n, pebbles, "persist"), pebbles)
    assert balance.nonzero()[0].tolist() == [n] and count > 10**6


@pytest.mark.soak
def test_tens_of_millions_of_moves_are_played_by_the_rules() -> None:
    schedule = reversible(10**6, 40, "persist")
    tally = check(Rules(10**6, "persist", 40), schedule.actions())
    assert tally == schedule.tally() and tally.moves == 35_216_829
