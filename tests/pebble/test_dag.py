"""The game on graphs: legality, floors, bounds and optima against exhaustive search."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pebble.graphs import adder, all_graphs, least_budget, least_moves
from sizes import examples, wide

from rvm.faults import BudgetError, ScheduleError, UsageError
from rvm.pebble import plan
from rvm.pebble.graphs.bench import parse_bench
from rvm.pebble.graphs.board import Board
from rvm.pebble.graphs.bounds import least_budget as bound_budget
from rvm.pebble.graphs.bounds import least_moves as bound_moves
from rvm.pebble.graphs.dag import Dag, chain
from rvm.pebble.graphs.exact import narrow, shortest, thriftiest
from rvm.pebble.graphs.floors import bennett_dag, eager_dag
from rvm.pebble.graphs.game import check_dag, signed
from rvm.pebble.graphs.plan import plan_dag
from rvm.pebble.graphs.search import Search
from rvm.pebble.graphs.tree import edge_ranks, fewest_on_tree, tree_moves, tree_schedule

DIAMOND = Dag(((), (0,), (0,), (1, 2)), (3,), ("a", "b", "c", "d"))


@st.composite
def graphs(draw: st.DrawFn, most: int = 9, sized: bool = False) -> Dag:
    """Graphs with up to so many nodes; some nodes may be needed for no output."""
    n = draw(st.integers(1, most))
    preds = []
    for v in range(n):
        chosen = draw(st.sets(st.integers(0, v - 1), max_size=3)) if v else set()
        preds.append(tuple(sorted(chosen)))
    outputs = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3, unique=True))
    sizes = draw(st.lists(st.integers(1, 4), min_size=n, max_size=n)) if sized else None
    return Dag(tuple(preds), tuple(outputs), (), None if sizes is None else tuple(sizes))


# ---------------------------------------------------------------- the player


def test_the_player_counts() -> None:
    tally = check_dag(DIAMOND, [0, 1, 2, 3, ~2, ~1, ~0])
    assert (tally.moves, tally.nodes, tally.peak) == (7, 4, 4)
    sized = Dag(DIAMOND.preds, (3,), (), (10, 1, 2, 4))
    assert check_dag(sized, [0, 1, 2, 3, ~2, ~1, ~0]).peak == 17


@pytest.mark.parametrize(
    ("moves", "told"),
    [
        ([1], "move 1, a pebble on node b, is against the rules: predecessor a has no pebble"),
        ([0, 0], "it has a pebble already"),
        ([0, ~1], "it has no pebble"),
        ([0, 1, ~0, ~1], "the pebble off node b, is against the rules: predecessor a"),
        ([4], "nodes are numbers from 0 to 3"),
        ([0, 1, 2, 3], "the budget is 3"),
    ],
)
def test_the_player_refuses(moves: list[int], told: str) -> None:
    with pytest.raises(ScheduleError, match=told) as error:
        check_dag(DIAMOND, moves, 3)
    assert error.value.code == "P003"


def test_the_end_is_exactly_the_outputs() -> None:
    for moves in ([0, 1, 2, 3], [0, 1, ~1, ~0]):
        with pytest.raises(ScheduleError) as error:
            check_dag(DIAMOND, moves)
        assert error.value.code == "P004"


@pytest.mark.parametrize(
    ("preds", "outputs", "told"),
    [
        (((0,),), (0,), "node 0 is computed from 0"),
        (((), (0, 0)), (1,), "a predecessor twice"),
        (((),), (), "has an output"),
        (((),), (0, 0), "given twice"),
        (((),), (1,), "outputs are nodes"),
    ],
)
def test_what_is_not_a_graph(
    preds: tuple[tuple[int, ...], ...], outputs: object, told: str
) -> None:
    with pytest.raises(UsageError, match=told) as error:
        Dag(preds, outputs)  # type: ignore[arg-type]
    assert error.value.code == "P008"


def test_graphs_from_names() -> None:
    dag = Dag.of({"d": ["b", "c"], "c": ["a", "x"], "b": ["a"], "a": []}, ["d"])
    assert dag.names == ("a", "b", "c", "d") and dag.preds == DIAMOND.preds
    with pytest.raises(UsageError, match="computed from itself"):
        Dag.of({"a": ["b"], "b": ["c"], "c": ["a"]}, ["a"])


# ---------------------------------------------------------------- against exhaustive search


@pytest.mark.deep
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_optima_of_all_small_graphs(n: int) -> None:
    for dag in all_graphs(n):
        first = least_budget(dag)
        assert bound_budget(dag) <= first
        assert check_dag(dag, thriftiest(dag)).peak == first
        for budget in range(1, n + 1):
            least = least_moves(dag, budget)
            found = shortest(dag, budget)
            assert (found and len(found)) == least
            again = narrow(dag, budget)
            assert (again and check_dag(dag, again, budget).moves) == least
            if found is not None and least is not None:
                assert check_dag(dag, found, budget).moves == least
                assert bound_moves(dag, budget) <= least


def pyramid(rows: int, costs: bool = False) -> Dag:
    """Rows of nodes, each computed from two that are side by side in the row before."""
    preds: list[tuple[int, ...]] = [()] * rows
    for row in range(rows - 1, 0, -1):
        first = len(preds) - row - 1
        preds += [(first + k, first + k + 1) for k in range(row)]
    n = len(preds)
    return Dag(tuple(preds), (n - 1,), (), None, (1,) * (n - 1) + (2,) if costs else None)


def test_a_budget_that_the_search_misses_is_not_refused() -> None:
    """21 and 28 nodes: an exhaustive search of few positions finds what annealing does not."""
    found = plan_dag(pyramid(6), pebbles=8, rounds=3_000)
    assert (found.check().moves, found.strategy, found.optimal) == (105, "exact", True)
    with pytest.raises(BudgetError) as error:
        plan_dag(pyramid(6), pebbles=7, rounds=3_000)
    assert error.value.values["bound"] == 8
    # With costs, it is what the search begins with.
    found = plan_dag(pyramid(6, costs=True), pebbles=8, rounds=3_000)
    assert found.check().peak == 8 and found.strategy == "search"


@pytest.mark.soak
def test_a_pyramid_of_28_nodes_needs_ten_pebbles() -> None:
    assert narrow(pyramid(7), 9) is None
    found = narrow(pyramid(7), 10)
    assert found is not None and check_dag(pyramid(7), found, 10).moves == 99


@pytest.mark.soak
def test_optima_of_graphs_of_six_nodes() -> None:
    for dag in Random(6).sample(list(all_graphs(6)), 3_000):
        for budget in range(least_budget(dag) - 1, 7):
            found = shortest(dag, budget)
            assert (found and check_dag(dag, found, budget).moves) == least_moves(dag, budget)


def test_trees_at_their_fewest_pebbles() -> None:
    # A complete binary tree of 31 nodes, which eager cleanup cannot do with fewer than 31.
    preds = [() if v < 16 else (2 * (v - 16), 2 * (v - 16) + 1) for v in range(31)]
    dag = Dag(tuple(preds), (30,))
    assert plan_dag(dag, max_moves=61, strategy="eager").cost.peak == 31
    fewest = fewest_on_tree(dag)
    found = plan_dag(dag, pebbles=fewest, rounds=6_000)
    assert found.check().peak == fewest and found.cost.moves <= tree_moves(dag)


@wide
def test_the_search_against_the_optimum_of_small_graphs() -> None:
    # It proves nothing and may miss an optimum; it must not miss many, nor be better than one.
    cases = optimal = 0
    for dag in Random(1).sample(list(all_graphs(5)), 60):
        first = least_budget(dag)
        for budget in range(first, 6):
            start = tuple(m for m in bennett_dag(dag) if m >= 0)
            start = (*start, *(v for v in reversed(start) if v not in dag.outputs))
            found = Search(dag, start, budget, seed=3).run(4_000)
            least = least_moves(dag, budget)
            cases += 1
            if found.toggles is not None and least is not None:
                moves = check_dag(dag, signed(found.toggles), budget).moves
                assert moves >= least
                optimal += moves == least
    assert optimal >= 0.95 * cases


@given(graphs(sized=True), st.integers(1, 20))
@examples(60)
def test_few_positions_are_searched_alike(dag: Dag, budget: int) -> None:
    dag = dag.part(dag.live())
    found, again = shortest(dag, budget), narrow(dag, budget)
    assert (found is None) == (again is None)
    if found is not None and again is not None:
        assert check_dag(dag, found, budget).moves == check_dag(dag, again, budget).moves


@given(graphs(7, sized=True), st.integers(1, 28))
@examples(60)
def test_sizes(dag: Dag, budget: int) -> None:
    live = dag.live()
    part = dag.part(live)
    least = least_moves(part, budget)
    found = shortest(part, budget)
    assert (found and len(found)) == least
    assert bound_budget(part) <= least_budget(part)
    assert least is None or bound_moves(part, budget) <= least


# ---------------------------------------------------------------- floors


@given(graphs(30))
@settings(deadline=None)
def test_floors_compute_each_node_once(dag: Dag) -> None:
    live = dag.live()
    moves = 2 * len(live) - len(dag.outputs)
    bennett = check_dag(dag, bennett_dag(dag))
    assert (bennett.moves, bennett.peak) == (moves, len(live))
    eager = check_dag(dag, eager_dag(dag))
    assert eager.moves == moves and eager.peak <= bennett.peak


def test_eager_cleanup_saves_pebbles_where_cones_are_apart() -> None:
    # Two chains of three with nothing in common: the first is undone before the second is made.
    dag = Dag(((), (0,), (1,), (), (3,), (4,)), (2, 5))
    assert check_dag(dag, eager_dag(dag)).peak == 4


# ---------------------------------------------------------------- chains and trees


@pytest.mark.parametrize("n", [1, 2, 5, 9, 13])
def test_chains_agree_with_their_own_planner(n: int) -> None:
    for budget in range(1, n + 1):
        try:
            moves = plan(n, pebbles=budget).cost.moves
        except BudgetError as error:
            with pytest.raises(BudgetError) as other:
                plan_dag(chain(n), pebbles=budget)
            assert other.value.values["least"] == error.values["least"]
        else:
            for strategy in ("best", "exact"):
                found = plan_dag(chain(n), pebbles=budget, strategy=strategy)
                assert found.check().moves == moves and found.optimal


def test_long_chains() -> None:
    found = plan_dag(chain(1024), pebbles=11)
    assert (found.strategy, found.check().moves, found.gap) == ("knill", 27_231, 0)
    assert plan_dag(chain(1024), max_moves=27_231).check().peak == 11


def trees(n: int) -> list[Dag]:
    """Every tree of n nodes whose users have larger numbers."""
    out = []
    for users in product(*(range(k) for k in range(1, n))):
        preds: list[list[int]] = [[] for _ in range(n)]
        for k, user in enumerate(users, 1):
            preds[n - 1 - user].append(n - 1 - k)
        out.append(Dag(tuple(tuple(sorted(p)) for p in preds), (n - 1,)))
    return out


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_fewest_pebbles_of_all_small_trees(n: int) -> None:
    for dag in trees(n):
        fewest = fewest_on_tree(dag)
        assert fewest == least_budget(dag)
        schedule = tree_schedule(dag)
        assert check_dag(dag, schedule, fewest).moves == tree_moves(dag)


@given(st.integers(7, 11), st.randoms(use_true_random=False))
@examples(25)
def test_fewest_pebbles_of_random_trees(n: int, random: Random) -> None:
    preds: list[list[int]] = [[] for _ in range(n)]
    for v in range(n - 1):
        preds[random.randint(v + 1, n - 1)].append(v)
    dag = Dag(tuple(map(tuple, preds)), (n - 1,))
    assert fewest_on_tree(dag) == check_dag(dag, thriftiest(dag)).peak


@given(st.integers(2, 60), st.randoms(use_true_random=False))
@examples(40)
def test_edge_ranks_are_a_ranking(n: int, random: Random) -> None:
    preds: list[list[int]] = [[] for _ in range(n)]
    for v in range(n - 1):
        preds[random.randint(v + 1, n - 1)].append(v)
    dag = Dag(tuple(map(tuple, preds)), (n - 1,))
    ranks = edge_ranks(dag)
    # Without the edges above a rank, no part of the tree has two edges of it.
    for rank in range(1, max(ranks) + 1):
        part = list(range(n))
        for v in reversed(range(n)):
            if dag.users[v] and 0 < ranks[v] <= rank:
                part[v] = part[dag.users[v][0]]
        of_rank = [part[v] for v in range(n) if ranks[v] == rank]
        assert len(set(of_rank)) == len(of_rank)


def test_a_tree_that_is_too_large_to_search() -> None:
    # A complete binary tree of 127 nodes: the schedule keeps to the number of the ranking.
    preds = [() if v < 64 else (2 * (v - 64), 2 * (v - 64) + 1) for v in range(127)]
    dag = Dag(tuple(preds), (126,))
    fewest = fewest_on_tree(dag)
    assert check_dag(dag, tree_schedule(dag), fewest).peak == fewest
    with pytest.raises(BudgetError, match=f"{fewest} is the least") as error:
        plan_dag(dag, pebbles=fewest - 1)
    assert error.value.values["least"] == fewest


# ---------------------------------------------------------------- plans


@given(graphs(9), st.integers(1, 9))
@examples(60)
def test_plans_of_small_graphs_are_optimal(dag: Dag, budget: int) -> None:
    part = dag.part(dag.live())
    least = least_moves(part, budget)
    if least is None:
        with pytest.raises(BudgetError) as error:
            plan_dag(dag, pebbles=budget)
        assert error.value.values["least"] == least_budget(part)
        return
    found = plan_dag(dag, pebbles=budget)
    assert found.check() == found.cost
    assert found.cost.moves == least and found.optimal and found.gap == 0
    again = plan_dag(dag, max_moves=least)
    assert again.check().moves <= least and again.cost.peak <= budget and again.optimal


@given(graphs(40, sized=True), st.floats(0.3, 1.0), st.integers(0, 5))
@examples(25)
def test_whatever_is_found_is_legal_and_within_its_bounds(dag: Dag, part: float, seed: int) -> None:
    budget = int(part * sum(dag.size(v) for v in dag.live())) + 1
    try:
        found = plan_dag(dag, pebbles=budget, strategy="search", rounds=1_500, seed=seed)
    except BudgetError as error:
        assert error.values["least"] > budget
    else:
        assert found.check() == found.cost
        assert found.bound <= found.cost.moves


def test_the_search_on_an_adder() -> None:
    dag = parse_bench(adder(6))
    found = plan_dag(dag, pebbles=18, rounds=15_000, seed=1)
    assert found.strategy == "search" and found.check().peak <= 18
    assert found.cost.moves < 2 * found.bound and found.gap > 0
    assert found == plan_dag(dag, pebbles=18, rounds=15_000, seed=1)
    thrifty = plan_dag(dag, max_moves=found.cost.moves, rounds=15_000, seed=1)
    assert thrifty.check().moves <= found.cost.moves and thrifty.cost.peak <= 22
    assert "at most" in found.describe() and "(budget 18)" in found.describe()


@wide
def test_a_graph_of_a_thousand_nodes() -> None:
    random = Random(4)
    preds = [tuple(sorted(random.sample(range(max(0, v - 60), v), min(v, 2)))) for v in range(1000)]
    used = {u for us in preds for u in us}
    dag = Dag(tuple(preds), tuple(v for v in range(1000) if v not in used))
    eager = plan_dag(dag, max_moves=2_000, strategy="eager").check().peak
    found = plan_dag(dag, pebbles=round(0.9 * eager), rounds=9_000)
    assert found.strategy == "search" and found.check() == found.cost
    assert found.bound <= found.cost.moves < 2 * found.bound


def test_the_least_budget_is_named() -> None:
    dag = parse_bench(adder(5))
    with pytest.raises(BudgetError) as error:
        plan_dag(dag, pebbles=6, rounds=6_000)
    least, bound = error.value.values["least"], error.value.values["bound"]
    assert 7 <= bound <= least
    assert plan_dag(dag, pebbles=least, rounds=6_000).check().peak <= least
    with pytest.raises(BudgetError, match="44 moves are the fewest"):
        plan_dag(dag, max_moves=43)
    with pytest.raises(BudgetError, match="`bennett` holds 25") as error:
        plan_dag(dag, pebbles=24, strategy="bennett")
    assert error.value.values["least"] == 25


def test_time_and_interrupts_end_a_search_with_what_was_found() -> None:
    dag = parse_bench(adder(8))
    timed = plan_dag(dag, pebbles=26, rounds=10**9, time_limit=1.5)
    assert timed.check().peak <= 26 and "the time limit ended" in timed.describe()
    told: list[tuple[float, int, int]] = []

    def interrupt(fraction: float, moves: int, peak: int) -> None:
        told.append((fraction, moves, peak))
        if moves and fraction > 0.1:
            raise KeyboardInterrupt

    stopped = plan_dag(dag, pebbles=30, rounds=60_000, progress=interrupt)
    assert stopped.check().peak <= 30 and "interrupted" in stopped.describe()
    assert told[-1][1] >= stopped.cost.moves


def test_nodes_that_no_output_needs() -> None:
    dag = Dag(((), (0,), (0,), (1,)), (1,), ("a", "b", "dead", "gone"))
    found = plan_dag(dag, pebbles=2)
    assert found.check().moves == 3
    assert "2 nodes are needed for no output" in found.describe()
    assert [tuple(m) for m in found.moves()] == [(True, 0), (True, 1), (False, 0)]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({}, "P001"),
        ({"pebbles": 3, "max_moves": 9}, "P001"),
        ({"pebbles": 3, "strategy": "magic"}, "P001"),
        ({"pebbles": -1}, "P001"),
        ({"pebbles": 3, "rounds": 0}, "P001"),
        ({"pebbles": 20, "strategy": "exact"}, "P006"),
        ({"max_moves": 100, "strategy": "exact"}, "P006"),
    ],
)
def test_wrong_arguments(options: dict[str, object], code: str) -> None:
    with pytest.raises(UsageError) as error:
        plan_dag(parse_bench(adder(6)), **options)  # type: ignore[arg-type]
    assert error.value.code == code


# ---------------------------------------------------------------- changes


@given(graphs(12, sized=True), st.integers(3, 20), st.randoms(use_true_random=False))
@examples(50)
def test_changes_are_legal_and_keep_count(dag: Dag, budget: int, random: Random) -> None:
    part = dag.part(dag.live())
    start = tuple(m if m >= 0 else ~m for m in eager_dag(part))
    board = Board(part, start, budget)
    for _ in range(40):
        if not len(board):
            break
        p = random.randrange(len(board))
        kind, v = random.randrange(5), random.randrange(len(part))
        change = None
        if kind < 2 and board.pebbled(v, p):
            change = board.drop(p, v)
        elif kind == 2:
            change = board.keep(p)
        elif kind == 3:
            change = board.slide(p, random.random() < 0.5, random.random())
        elif kind == 4:
            change = board.window(p, 4)
        if change is None:
            continue
        expected = list(board.schedule())
        expected[change.low : change.high] = map(ord, change.toggles)
        excess = board.excess
        board.do(change)
        assert list(board.schedule()) == expected
        assert board.excess == excess + change.excess
        tally = check_dag(part, signed(board.schedule()))
        assert tally.peak == board.peak()
        positions = range(len(board) + 1)
        assert board.excess == sum(max(0, board.held[k] - budget) for k in positions)
        for k in positions:
            held = sum(part.size(v) for v in range(len(part)) if board.pebbled(v, k))
            assert board.held[k] == held


def test_a_graph_with_more_nodes_than_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rvm.pebble.graphs.board.MOST", 25)
    ladder = Dag(tuple(tuple({max(v - 1, 0), max(v - 2, 0)} - {v}) for v in range(26)), (25,))
    assert plan_dag(ladder, pebbles=26).strategy == "bennett"
    with pytest.raises(UsageError) as caught:
        plan_dag(ladder, pebbles=8)
    assert caught.value.code == "P006" and "25 nodes" in caught.value.message
