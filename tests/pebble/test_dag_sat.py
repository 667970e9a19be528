"""Parallel schedules: the fewest steps, against a breadth-first search of the parallel game."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from pebble.graphs import adder, all_graphs, least_budget

from rvm.faults import BudgetError, UsageError
from rvm.pebble.graphs.bench import parse_bench
from rvm.pebble.graphs.dag import Dag, chain
from rvm.pebble.graphs.sat import fewest_steps

pytest.importorskip("pysat")


def least_steps(dag: Dag, pebbles: int) -> int:
    """By breadth first: a step changes any nodes whose predecessors have pebbles throughout."""
    start: frozenset[int] = frozenset()
    goal = frozenset(dag.outputs)
    subsets = [
        frozenset(c) for k in range(1, len(dag) + 1) for c in combinations(range(len(dag)), k)
    ]
    seen, level, steps = {start}, [start], 0
    while goal not in level:
        following = []
        for held in level:
            for changed in subsets:
                after = held ^ changed
                if (
                    after not in seen
                    and len(after) <= pebbles
                    and all((held & after).issuperset(dag.preds[v]) for v in changed)
                ):
                    seen.add(after)
                    following.append(after)
        level, steps = following, steps + 1
    return steps


def test_fewest_steps_of_small_graphs() -> None:
    for dag in Random(2).sample(list(all_graphs(5)), 25):
        for pebbles in range(least_budget(dag), 6):
            found = fewest_steps(dag, pebbles)
            found.check()
            assert len(found.steps) == least_steps(dag, pebbles)


def test_six_pebbles_are_enough_for_the_fastest_chain_of_sixteen() -> None:
    found = fewest_steps(chain(16), 6)
    assert len(found.steps) == 2 * 16 - 1
    # No fewer than one by one: Knill's optimum is 51 moves.
    assert (found.check().moves, found.fewest_moves) == (51, True)


def test_steps_are_independent_moves() -> None:
    dag = parse_bench(adder(3))
    found = fewest_steps(dag, 9)
    assert found.check().peak <= 9
    held: set[int] = set()
    for step in found.steps:
        after = held ^ {m if m >= 0 else ~m for m in step}
        for m in step:
            assert (held & after).issuperset(dag.preds[m if m >= 0 else ~m])
        held = after


def test_too_few_pebbles_sizes_and_too_little_time() -> None:
    with pytest.raises(BudgetError) as error:
        fewest_steps(chain(9), 4)
    assert error.value.values["least"] == 5
    with pytest.raises(UsageError) as wrong:
        fewest_steps(Dag(((),), (0,), (), (2,)), 2)
    assert wrong.value.code == "P001"
    with pytest.raises(UsageError) as late:
        fewest_steps(parse_bench(adder(16)), 20, time_limit=0.01)
    assert late.value.code == "P012"
