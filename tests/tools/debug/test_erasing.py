"""What a session knows of erased bits, against a run whose numbers are all known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rvm_tools.debug import erasing
from rvm_tools.debug.erasing import Erased
from sizes import examples

rises = st.lists(st.integers(0, 3), min_size=1, max_size=60)
journeys = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=40)


@examples(300)
@given(rises=rises, journeys=journeys)
def test_bounds_hold_and_what_is_exact_is_so(
    rises: list[int], journeys: list[tuple[int, int]]
) -> None:
    """Going back erases bits too, any number, which are no part of the run from the start."""
    truth = [0]
    for rise in rises:
        truth.append(truth[-1] + rise)
    known, time, grown = Erased(), 0, 0
    for goal, lost in journeys:
        goal = min(goal, len(truth) - 1)
        grown += truth[goal] - truth[time] if goal >= time else lost
        time = goal
        for _ in range(2):
            bits, exact = known.at(time, grown)
            assert bits <= truth[time]
            assert not exact or bits == truth[time]
            known.arrive(time, grown)


@examples(50)
@given(rises=rises)
def test_a_run_that_only_goes_forwards_is_known_everywhere(rises: list[int]) -> None:
    known, grown = Erased(), 0
    for time, rise in enumerate(rises, 1):
        grown += rise
        known.arrive(time, grown)
    total = 0
    for time, rise in enumerate(rises, 1):
        total += rise
        assert known.at(time, grown) == (total, True)


def test_what_is_known_is_bounded() -> None:
    known = Erased()
    for time in range(1, 5 * erasing.MAX_KNOWN):
        known.arrive(time, time)
    assert len(known._times) <= erasing.MAX_KNOWN
    # From there, backwards into what is known no more: a bound, and not a wrong number.
    known.arrive(5 * erasing.MAX_KNOWN, 5 * erasing.MAX_KNOWN)
    for time in range(5 * erasing.MAX_KNOWN - 1, 0, -97):
        bits, exact = known.at(time, 0)
        assert bits <= time and (not exact or bits == time)
