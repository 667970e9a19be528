"""Graphs whose moves cost differently, against Dijkstra's algorithm over sets of nodes."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pebble.graphs import adder, all_graphs, least_cost
from sizes import examples

from rvm.faults import BudgetError, UsageError
from rvm.pebble import Dag, check_dag, parse_bench, plan_dag
from rvm.pebble.graphs.board import Board
from rvm.pebble.graphs.bounds import least_moves
from rvm.pebble.graphs.exact import connected, shortest, thriftiest
from rvm.pebble.graphs.floors import eager_dag

COSTS = (7, 1, 30, 2, 11, 5)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_optima_of_all_small_graphs(n: int) -> None:
    for dag in all_graphs(n):
        priced = replace(dag, costs=COSTS[:n])
        for budget in range(1, n + 1):
            least = least_cost(priced, budget)
            found = shortest(priced, budget)
            assert (found and check_dag(priced, found, budget).cost) == least
            assert least is None or least_moves(priced, budget) <= least


@given(st.data())
@examples(60)
def test_optima_with_sizes_and_costs(data: st.DataObject) -> None:
    dag = data.draw(st.sampled_from(GRAPHS))
    n = len(dag)
    sizes, costs = (
        tuple(data.draw(st.lists(st.integers(1, most), min_size=n, max_size=n)))
        for most in (4, 1000)
    )
    priced = replace(dag, sizes=sizes, costs=costs)
    budget = data.draw(st.integers(1, sum(sizes)))
    least = least_cost(priced, budget)
    try:
        found = plan_dag(priced, pebbles=budget)
    except BudgetError:
        assert least is None
        return
    assert found.check() == found.cost and found.optimal
    assert found.cost.cost == least
    assert found.cost.cost == sum(costs[m if m >= 0 else ~m] for m in found.schedule)
    again = plan_dag(priced, max_moves=found.cost.cost)
    assert again.check().cost <= found.cost.cost and again.cost.peak <= budget


GRAPHS = Random(5).sample(list(all_graphs(5)), 40)


@pytest.mark.parametrize(("dear", "cheap"), [("a", "b"), ("b", "a")])
def test_what_is_computed_again_is_the_cheap_one(dear: str, cheap: str) -> None:
    # With 4 pebbles either a or b is gone when o is computed, and has to come back.
    preds: dict[str, list[str]] = {"a": [], "b": [], "p": ["a"], "q": ["b"], "o": ["p", "q"]}
    dag = Dag.of(preds, ["o"], costs={name: 100 if name == dear else 1 for name in preds})
    found = plan_dag(dag, pebbles=4)
    moved = [dag.name(node) for _, node in found.moves()]
    assert (moved.count(dear), moved.count(cheap)) == (2, 4)
    assert found.cost.cost == 200 + 4 + 2 + 2 + 1


@given(st.integers(0, 200), st.integers(0, 40))
@examples(40)
def test_windows_are_cheapest_ways(seed: int, budget: int) -> None:
    random = Random(seed)
    dag = replace(
        random.choice(GRAPHS),
        costs=tuple(random.randint(1, 9) for _ in range(5)),
    )
    need = [sum(1 << u for u in preds) for preds in dag.preds]
    goal = sum(1 << v for v in dag.outputs)
    found = connected(need, [1] * 5, 0, goal, budget, list(dag.costs or ()))
    least = least_cost(dag, budget)
    assert (None if found is None else sum(dag.cost(v) for v in found)) == least


def test_boards_keep_count_of_costs() -> None:
    random = Random(8)
    dag = parse_bench(adder(4))
    dag = replace(dag, costs=tuple(random.randint(1, 50) for _ in range(len(dag))))
    b = Board(dag, [m if m >= 0 else ~m for m in eager_dag(dag)], 12)
    made = 0
    for _ in range(600):
        p = random.randrange(len(b))
        held = [v for v in range(len(dag)) if b.pebbled(v, p)]
        change = random.choice(
            [
                lambda p=p: b.keep(p),
                lambda p=p: b.slide(p, random.random() < 0.5, random.random()),
                lambda p=p: b.window(p, 5),
                lambda p=p, held=held: b.drop(p, random.choice(held)) if held else None,
            ]
        )()
        if change is None or (len(b) > 200 and change.moves > 0):
            continue
        before = b.cost
        b.do(change)
        made += 1
        assert b.cost == sum(dag.cost(v) for v in b.schedule()) == before + change.moves
    assert made > 100


def test_the_search_saves_what_is_dear() -> None:
    dag = parse_bench(adder(6))
    # Half sums are dear: of the same schedules, those win that compute other nodes again.
    costs = tuple(20 if dag.name(v).startswith("x") else 1 for v in range(len(dag)))
    even = plan_dag(dag, pebbles=11, rounds=15_000)
    dear = plan_dag(replace(dag, costs=costs), pebbles=11, rounds=15_000)
    assert dear.check() == dear.cost and dear.cost.peak <= 11
    assert dear.bound <= dear.cost.cost
    assert dear.cost.cost < sum(costs[m if m >= 0 else ~m] for m in even.schedule)
    assert "  cost      " in dear.describe() and "no less cost than" in dear.describe()


def test_the_thriftiest_schedule_within_a_cost() -> None:
    dag = replace(Dag(((), (0,), (1,), (2,)), (3,)), costs=(5, 1, 1, 1))
    # 2 * (5 + 1 + 1) + 1 with four pebbles; with three, something is done again.
    assert plan_dag(dag, max_moves=15).cost.peak == 4
    with pytest.raises(BudgetError, match="15 is the least cost"):
        plan_dag(dag, max_moves=14)
    least = least_cost(dag, 3)
    assert least is not None
    found = thriftiest(dag, least)
    assert check_dag(dag, found, 3).cost == least


def test_values_that_are_not_costs() -> None:
    for costs in ((1,), (1, 0), (1, -2)):
        with pytest.raises(UsageError) as error:
            Dag(((), (0,)), (1,), costs=costs)
        assert error.value.code == "P008"
