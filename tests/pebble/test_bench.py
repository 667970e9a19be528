"""The benchmark of plans prints what plans are."""

from __future__ import annotations

import re

import pytest
from rvm_bench import pebble_peers, pebbling
from sizes import wide

import rvm.pebble


def test_the_table_has_a_line_for_each_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pebbling, "BUDGETS", {60: (3, 9)})
    header, *lines = pebbling.table(pebbling.rows())
    assert header.split()[:4] == ["steps", "pebbles", "strategy", "goal"]
    found = {tuple(line.split()[1:3]): line.split()[3:7] for line in lines}
    # With 3 pebbles nothing beyond node 7 is reached without erasing.  Revolve takes
    # 6 * 60 - C(9, 4) moves, as C(8, 3) < 60 <= C(9, 3).
    assert ("3", "knill") not in found and ("9", "knill") in found
    assert found["3", "revolve"] == ["gradient", "234", "3", "234"]
    assert len(found) == 8 + 5


def test_rates_count_what_comes_out() -> None:
    assert pebbling.rate(iter([2, 3])).split()[:2] == ["5", "actions"]


def test_speeds_are_of_what_comes_in_a_spell() -> None:
    made = rvm.pebble.plan(5_000, pebbles=20)
    assert sum(pebbling.one_by_one(made)) == sum(pebbling.block_sizes(made)) == made.cost.actions
    endless = iter(int, 1)
    assert pebbling.speed(endless, spell=0.01) == 0


@wide
def test_optimal_schedules_of_all_libraries_do_as_many_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pebble_peers, "BUDGETS", {60: (3,)})
    lines = [line for line in pebble_peers.peers() if not line.startswith("not installed")]
    found = {row[2]: row[3] for row in (re.split(r"\s{2,}", v.strip()) for v in lines[1:])}
    disk = {name: steps for name, steps in found.items() if "at 5" in name}
    # Revolve's 234 steps, and one with each adjoint.
    assert {steps for name, steps in found.items() if name not in disk} == {"294"}
    assert "rvm" in found and len(set(disk.values())) == 1


def test_a_schedule_is_followed_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pebble_peers, "LIMIT", -1.0)
    monkeypatch.setattr(pebble_peers, "PATIENCE", -1.0)
    found = pebble_peers.follow(lambda: iter([1] * 10_000))
    assert (found.actions, found.steps, found.memory) == (4096, None, None)
    assert " - " in pebble_peers.line(1, 1, "endless", found)
