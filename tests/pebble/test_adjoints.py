"""Gradient schedules that may forget: Revolve, the hybrid, unknown lengths, and a disk."""

from __future__ import annotations

from collections import Counter
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pebble.search import least
from sizes import sample, thin

from rvm.pebble import plan
from rvm.pebble.actions import Kind
from rvm.pebble.chains import revolve as treeverse
from rvm.pebble.chains.disk import DiskTables
from rvm.pebble.chains.knill import INFEASIBLE
from rvm.pebble.chains.limited import limited
from rvm.pebble.chains.multistage import MultistageRules
from rvm.pebble.chains.online import Online, online
from rvm.pebble.chains.priced import PricedTables, priced
from rvm.pebble.chains.reversible import moves
from rvm.pebble.chains.revolve import beta, forwards, revolve
from rvm.pebble.game import Player, Rules, check

HYBRID = {
    # price: (cost, erased, moves) with 12 pebbles, and with 20; N = 1000
    0: ((3_440, 3_440, 3_440), (2_747, 2_747, 2_747)),
    1: ((6_880, 321, 6_559), (5_494, 75, 5_419)),
    8: ((8_440, 196, 6_872), (5_870, 48, 5_486)),
    32: ((10_644, 24, 9_876), (6_978, 32, 5_954)),
    128: ((12_534, 16, 10_486), (7_112, 0, 7_112)),
    inf: ((14_288, 0, 14_288), (7_112, 0, 7_112)),
}


def fewest(n: int, price: float, in_place: bool, goal: str) -> int:
    """The fewest pebbles that a chain needs where erasing has a price."""
    if goal == "gradient":
        return fewest(n - 1, price, in_place, "visit") if n > 1 else 0
    if price < inf and in_place:
        return 1
    if price == inf:
        return n.bit_length() if goal == "visit" else (n - 1).bit_length() + 1
    return 1 if n == 1 else 2


@thin
@pytest.mark.parametrize("price", HYBRID)
def test_the_hybrid_from_revolve_to_the_reversible_sweep(price: float) -> None:
    tables = priced(1000, price, True, 1000)
    for pebbles, (total, erased, steps) in zip((12, 20), HYBRID[price], strict=True):
        tally = tables.schedule(pebbles, "gradient").tally()
        assert tables.cost(pebbles, "gradient") == total
        assert (tally.erased, tally.moves, tally.peak) == (erased, steps, pebbles)


def test_the_ends_of_the_hybrid() -> None:
    n = 300
    free, dear = PricedTables(n, 0, True, 1000), PricedTables(n, inf, True, 1000)
    for pebbles in range(1, 25):
        assert free.cost(pebbles, "gradient") == forwards(n, pebbles)
        for goal in ("persist", "visit", "gradient"):
            exact = moves(n, pebbles, goal)
            assert dear.cost(pebbles, goal) == (inf if exact >= INFEASIBLE else exact)


@pytest.mark.parametrize("n", range(1, 8))
@pytest.mark.parametrize("overwriting", [True, False])
def test_prices_against_exhaustive_search(n: int, overwriting: bool) -> None:
    for price in (0, 0.5, 1, 3):
        tables = PricedTables(n, price, overwriting, 1000)
        for pebbles in range(n + 1):
            for goal in ("persist", "visit", "gradient"):
                exact = least(n, pebbles, goal, price=price, overwriting=overwriting)
                assert tables.cost(pebbles, goal) == exact, (price, pebbles, goal)
                enough = pebbles >= fewest(n, price, overwriting, goal)
                assert (exact < inf) == enough, (price, pebbles, goal)


@given(
    st.integers(1, 80),
    st.integers(0, 12),
    st.sampled_from([0, 0.5, 1, 2.5, 7, 40, inf]),
    st.booleans(),
    st.sampled_from([5, 8, 16, 1000]),
    st.sampled_from(["persist", "visit", "gradient"]),
)
def test_priced_schedules_are_legal(
    n: int, pebbles: int, price: float, overwriting: bool, blocks: int, goal: str
) -> None:
    tables = priced(n, price, overwriting, blocks)
    total = tables.cost(pebbles, goal)
    if total == inf:
        return
    schedule = tables.schedule(pebbles, goal)
    rules = Rules(n, goal, pebbles, erasures=0 if price == inf else inf)
    tally = check(rules, schedule.actions())
    assert tally == schedule.tally()
    assert tally.moves + (price * tally.erased if tally.erased else 0) == pytest.approx(total)
    if not overwriting:
        assert all(a.kind != Kind.OVERWRITE for a in schedule.actions())


def test_cutting_long_pieces_at_round_numbers_costs_little_and_never_gains() -> None:
    exact = PricedTables(603, 4, True, 1000)
    for blocks in (30, 100, 200):
        coarse = PricedTables(603, 4, True, blocks)
        for pebbles in (10, 16, 30):
            ratio = coarse.cost(pebbles, "gradient") / exact.cost(pebbles, "gradient")
            assert 1 <= ratio < 1.05


# ---------------------------------------------------------------- a number of erasures


def test_published_costs_with_few_erasures() -> None:
    assert [limited(16, e).moves(16, 5, "persist") for e in range(6)] == [71, 44, 35, 28, 27, 26]


@pytest.mark.parametrize("n", range(1, 9))
def test_few_erasures_against_exhaustive_search(n: int) -> None:
    for erasures in range(4):
        tables = limited(n, erasures)
        for pebbles in range(1, n + 1):
            for goal in ("persist", "visit"):
                exact = least(n, pebbles, goal, erasures=erasures)
                assert tables.moves(n, pebbles, goal) == exact, (erasures, pebbles, goal)
                if exact < inf:
                    schedule = tables.schedule(pebbles, goal)
                    tally = check(Rules(n, goal, pebbles, erasures), schedule.actions())
                    assert tally == schedule.tally() and tally.moves == exact


# ---------------------------------------------------------------- Revolve


@pytest.mark.parametrize(
    ("n", "slots", "evaluations"),
    [(1000, 10, 4_636), (1000, 100, 2_898), (10**6, 10, 12_647_922), (10**6, 100, 4_817_896)],
)
def test_revolve_evaluates_the_step_so_often(n: int, slots: int, evaluations: int) -> None:
    tally = revolve(n, slots).tally()
    assert tally.moves + tally.reversals == forwards(n, slots) + n == evaluations


def test_the_closed_form_of_revolve() -> None:
    """Against the recursion t(n, c) = min_m m + t(n-m, c-1) + t(m, c), and against search."""
    t = {(n, 1): n * (n - 1) // 2 for n in range(1, 80)}
    for c in range(2, 12):
        for n in range(1, 80):
            t[n, c] = min(
                (m + t[n - m, c - 1] + t[m, c] for m in range(1, n)),
                default=0,
            )
    assert all(forwards(n, c) == value for (n, c), value in t.items())
    for n in range(2, 8):
        for c in range(1, 4):
            assert forwards(n, c) == least(n, c, "gradient", price=0, overwriting=True)


@given(st.integers(1, 300), st.integers(1, 20))
def test_revolve_is_legal(n: int, slots: int) -> None:
    schedule = revolve(n, slots)
    tally = check(Rules(n, "gradient", slots, erasures=inf), schedule.actions())
    assert tally == schedule.tally()
    assert tally.moves == forwards(n, slots) == tally.erased


def test_a_slot_for_each_state() -> None:
    tally = revolve(10**6, 10**6).tally()
    assert (tally.moves, tally.peak, tally.actions) == (10**6 - 1, 10**6 - 1, 3 * 10**6 - 2)


# ---------------------------------------------------------------- unknown lengths


def repeated(actions: object) -> int:
    """How often the step done most often was done."""
    done: Counter[int] = Counter()
    for kind, i, j in actions:  # type: ignore[attr-defined]
        if kind in (Kind.ADVANCE, Kind.OVERWRITE):
            done.update(range(i + 1, j + 1))
    return max(done.values(), default=0)


@given(st.integers(1, 250), st.integers(1, 12))
def test_an_unknown_length_costs_no_repetition_more(n: int, pebbles: int) -> None:
    """s_n itself is computed, so n + 1 states count: beta(S, r) >= n + 1 allows r times."""
    schedule = online(n, pebbles)
    tally = check(Rules(n, "gradient", pebbles, erasures=inf), schedule.actions())
    assert tally == schedule.tally()
    assert repeated(schedule.actions()) <= treeverse.repetitions(n + 1, pebbles)
    assert forwards(n + 1, pebbles) <= tally.moves <= 1.5 * forwards(n + 1, pebbles)


def test_a_run_can_end_at_any_step() -> None:
    """One run, asked at every step what the way back would be, without being told the end."""
    pebbles, run = 4, Online(4)
    player = Player(Rules(10**6, "gradient", pebbles, erasures=inf))
    for n in range(1, 120):
        player.play(run.step())
        assert run.n == n and len(run.kept) <= pebbles and run.kept[-1] == n
        assert player.pebbles.keys() == {0, *run.kept}
    with pytest.raises(Exception, match="P001"):
        Online(0)


def test_a_finished_run_goes_no_further() -> None:
    run = Online(3)
    with pytest.raises(Exception, match="P001"):
        run.finish()
    run.step()
    list(run.finish())
    with pytest.raises(Exception, match="P001"):
        run.step()


def test_it_is_no_more_than_a_third_above_what_foresight_would_cost() -> None:
    for pebbles in (3, 5, 8, 10):
        ratios = []
        for n in range(1, 400, 7):
            ratios.append(online(n, pebbles).tally().moves / forwards(n + 1, pebbles))
        assert max(ratios) < 4 / 3 and sum(ratios) / len(ratios) < 1.1


# ---------------------------------------------------------------- a disk


PRICES = [(0, 0), (1, 1), (2, 1), (0.5, 2), (0, 3), (1, 5), (3, 0)]
"""Of a write and a read."""


def agrees(n: int, pebbles: int, rooms: float, write: float, read: float, keep: bool) -> None:
    """The tables cost what the exhaustive search finds, and their schedule is one of that cost."""
    tables = DiskTables(n, rooms, write, read, keep)
    total = tables.cost(pebbles)
    disk = n if rooms == inf else int(rooms)
    exact = least(
        n, pebbles, "gradient", price=0, overwriting=True,
        disk=disk, write=write, read=read, keep_input=keep,
    )  # fmt: skip
    assert total == exact
    if total < inf:
        rules = Rules(n, "gradient", pebbles, erasures=inf, disk=disk)
        tally = check(rules, tables.schedule(pebbles).actions())
        assert tally.moves + write * tally.writes + read * tally.reads == total


@pytest.mark.parametrize("n", range(1, 7))
@pytest.mark.parametrize("rooms", [0, 1, 2, inf])
@pytest.mark.parametrize("keep", [True, False])
@sample
def test_two_levels_against_exhaustive_search(n: int, rooms: float, keep: bool) -> None:
    for pebbles in (0, 1, 2, 3) if n < 6 else (0, 1):
        for write, read in PRICES:
            agrees(n, pebbles, rooms, write, read, keep)


@pytest.mark.soak
@pytest.mark.parametrize("n", [7, 8, 9])
@pytest.mark.parametrize("rooms", [1, 2, 3, inf])
@pytest.mark.parametrize("keep", [True, False])
def test_two_levels_on_longer_chains(n: int, rooms: float, keep: bool) -> None:
    for pebbles in (0, 1, 2):
        for write, read in PRICES if n == 7 else [(1, 5), (0.5, 2)]:
            agrees(n, pebbles, rooms, write, read, keep)


def test_an_input_on_disk_frees_its_place() -> None:
    """s_0 written, s_4 reached, 9..5 swept from there in 10 steps, s_0 read, 4..1 swept in 6."""
    terms = {"goal": "gradient", "pebbles": 1, "disk": inf, "write": 1, "read": 5}
    assert plan(9, **terms).cost.total == 1 + 4 + 10 + 5 + 6 == 26
    assert plan(9, **terms, keep_input=True).cost.total == 35
    alone = plan(5, **{**terms, "pebbles": 0})
    assert alone.check() == alone.schedule.tally()
    assert (alone.cost.peak, alone.cost.disk_peak) == (0, 4)


@given(
    st.integers(1, 120),
    st.integers(1, 6),
    st.sampled_from([0, 1, 3, inf]),
    st.integers(0, 9),
    st.integers(0, 9),
)
@settings(deadline=None)
def test_schedules_with_a_disk_are_legal(
    n: int, pebbles: int, rooms: float, write: int, read: int
) -> None:
    tables = DiskTables(n, rooms, write, read)
    schedule = tables.schedule(pebbles)
    rules = Rules(n, "gradient", pebbles, erasures=inf, disk=rooms)
    tally = check(rules, schedule.actions())
    assert tally == schedule.tally()
    assert tally.moves + write * tally.writes + read * tally.reads == tables.cost(pebbles)
    assert tables.cost(pebbles) <= forwards(n, pebbles)


@given(st.integers(1, 300), st.integers(1, 6), st.integers(0, 6))
def test_multistage_takes_as_few_steps_as_all_places_allow(n: int, pebbles: int, disk: int) -> None:
    stages = MultistageRules(n, pebbles, disk, 1, 1)
    schedule = stages.schedule()
    rules = Rules(n, "gradient", pebbles, erasures=inf, disk=disk)
    tally = check(rules, schedule.actions())
    assert tally == schedule.tally()
    assert tally.moves == forwards(n, pebbles + disk)
    uses = stages.uses()
    assert tally.writes == sum(uses[k][0] for k in stages.on_disk)
    assert tally.reads == sum(uses[k][1] for k in stages.on_disk)


def test_repetitions_are_binomial() -> None:
    for c in range(1, 8):
        for r in range(1, 8):
            assert treeverse.repetitions(beta(c, r), c) == r
            assert treeverse.repetitions(beta(c, r) + 1, c) == r + 1


@pytest.mark.soak
def test_a_million_steps_are_played_by_the_rules() -> None:
    schedule = revolve(10**6, 10)
    tally = check(Rules(10**6, "gradient", 10, erasures=inf), schedule.actions())
    assert tally == schedule.tally() and tally.moves == 11_647_922
    hybrid = priced(20_000, 8, True, 300).schedule(18, "gradient")
    assert check(Rules(20_000, "gradient", 18, erasures=inf), hybrid.actions()) == hybrid.tally()
