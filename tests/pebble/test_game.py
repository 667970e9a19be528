"""The player refuses what the rules forbid, and says where."""

from __future__ import annotations

from math import inf

import pytest

from rvm.faults import ScheduleError
from rvm.pebble.actions import Action, Kind, advance, at, overwrite, reverse, unadvance
from rvm.pebble.chains.reversible import reversible
from rvm.pebble.game import Rules, check

UP = [advance(0, 1), advance(1, 2), advance(2, 3)]


@pytest.mark.parametrize(
    ("rules", "actions", "number", "why"),
    [
        (Rules(3, "visit"), [advance(1, 2)], 1, "node 1 has no pebble"),
        (Rules(3, "visit"), [advance(0, 1), advance(0, 1)], 2, "node 1 has a pebble already"),
        (Rules(3, "visit"), [*UP, unadvance(0, 1), unadvance(1, 2)], 5, "node 1 has no pebble"),
        (Rules(3, "visit"), [*UP, Action(Kind.UNADVANCE, 1, 3)], 4, "only a single step"),
        (Rules(3, "visit", pebbles=2), UP, 3, "the budget is 2"),
        (Rules(3, "visit"), [advance(0, 1), at(Kind.FREE, 1)], 2, "0 may be lost in all"),
        (Rules(3, "visit"), [advance(0, 2)], 1, "0 may be lost in all"),
        (Rules(3, "visit", erasures=1), [advance(0, 3)], 1, "1 may be lost in all"),
        (Rules(3, "visit"), [advance(0, 1), overwrite(1, 2)], 2, "0 may be lost in all"),
        (Rules(3, "visit", erasures=9), [overwrite(0, 1)], 1, "the input is never changed"),
        (Rules(3, "visit", erasures=9), [at(Kind.FREE, 0)], 1, "the input is never lost"),
        (Rules(3, "visit"), [advance(0, 1), Action(Kind.SHIFT, 1, 2)], 2, "step 2 cannot be"),
        (Rules(3, "visit"), [advance(2, 4)], 1, "nodes are numbers from 0 to 3"),
        (Rules(3, "visit"), [Action(Kind.ADVANCE, 1, 1)], 1, "it does no step"),
        (Rules(3, "visit"), [Action(Kind.COPY, 0, 1)], 1, "it is about one node"),
        (Rules(3, "visit"), [Action(77, 1, 1)], 1, "no such kind"),
        (Rules(3, "erase"), [*UP, at(Kind.COPY, 2)], 4, "only the result, node 3"),
        (Rules(3, "gradient"), [reverse(1)], 1, "the adjoint of step 3 is the next"),
        (Rules(3, "gradient"), [reverse(3)], 1, "node 2 has no pebble"),
        (Rules(3, "gradient"), [advance(0, 1), at(Kind.SAVE, 1)], 2, "the disk holds 0 states"),
        (Rules(3, "gradient", disk=1), [at(Kind.LOAD, 1)], 1, "state 1 is not on disk"),
        (Rules(3, "gradient", disk=1), [at(Kind.DROP, 2)], 1, "state 2 is not on disk"),
        (
            Rules(3, "gradient", disk=9),
            [advance(0, 1), at(Kind.SAVE, 1), at(Kind.LOAD, 1)],
            3,
            "node 1 has a pebble already",
        ),
    ],
)
def test_illegal_actions(rules: Rules, actions: list[Action], number: int, why: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        check(rules, actions)
    assert caught.value.code == "P003"
    assert why in caught.value.message
    assert caught.value.values["action"] == number


@pytest.mark.parametrize(
    ("goal", "actions", "missing"),
    [
        ("persist", UP, "a pebble on node 3, and no other"),
        ("visit", UP[:2], "a pebble on node 3"),
        ("erase", UP, "no pebble left"),
        ("erase", [], "a copy of the result"),
        ("gradient", [], "the adjoints of all steps; 3 are missing"),
    ],
)
def test_goals_that_are_not_reached(goal: str, actions: list[Action], missing: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        check(Rules(3, goal), actions)
    assert caught.value.code == "P004" and missing in caught.value.message


def test_nothing_is_left_on_disk() -> None:
    actions = [advance(0, 1), at(Kind.SAVE, 1), reverse(2), unadvance(0, 1), reverse(1)]
    with pytest.raises(ScheduleError, match="nothing left on disk"):
        check(Rules(2, "gradient", disk=1), actions)
    with_drop = [*actions, at(Kind.DROP, 1)]
    assert check(Rules(2, "gradient", disk=1), with_drop).writes == 1


def test_any_single_fault_in_a_schedule_is_found() -> None:
    """Each action left out, one at a time: no such schedule passes."""
    rules = Rules(12, "gradient", 4)
    actions = list(reversible(12, 4, "gradient").actions())
    check(rules, actions)
    for k in range(len(actions)):
        with pytest.raises(ScheduleError):
            check(rules, [*actions[:k], *actions[k + 1 :]])


def test_what_is_lost_on_the_way_is_counted() -> None:
    tally = check(Rules(5, "visit", 1, erasures=inf), [advance(0, 3), overwrite(3, 5)])
    assert (tally.moves, tally.erased, tally.peak) == (5, 4, 1)
