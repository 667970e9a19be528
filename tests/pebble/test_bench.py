"""The benchmark of plans prints what plans are."""

from __future__ import annotations

import pytest
from rvm_tools.bench import pebbling


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
