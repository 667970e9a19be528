"""What an ordinary run takes of a test's cases, and what it leaves to longer runs."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
import sizes

from rvm.engines import ENGINES

SHAPES = {
    "engines and programs": {"engine": ENGINES, "program": range(40)},
    "two of few": {"engine": ENGINES, "mode": ("tolerant", "strict"), "n": range(3)},
    "one of many": {"name": range(50)},
    "one of few": {"engine": ENGINES},
    "a single case": {"n": (1,)},
}


def cases(shape: dict[str, Any]) -> list[Any]:
    """A case for each combination of values."""
    every = [dict(zip(shape, values, strict=True)) for values in product(*shape.values())]
    return [SimpleNamespace(callspec=SimpleNamespace(params=params)) for params in every]


@pytest.mark.parametrize("name", SHAPES)
def test_a_thinned_test_keeps_each_value_of_parameters_with_few(name: str) -> None:
    every = cases(SHAPES[name])
    kept = sizes._thinned(every)
    assert all(any(case is one for one in every) for case in kept)
    for key, values in SHAPES[name].items():
        if len(values) <= sizes.FEW:
            assert {case.callspec.params[key] for case in kept} == set(values)
    few = sum(len(v) for v in SHAPES[name].values() if len(v) <= sizes.FEW)
    assert len(kept) <= -(-len(every) // 8) + few


@pytest.mark.parametrize("name", SHAPES)
def test_a_sample_has_each_value_and_no_case_too_many(name: str) -> None:
    every = cases(SHAPES[name])
    kept = sizes._each(every, lambda case: set(sizes._values(case)))
    shape = SHAPES[name]
    assert {v for case in kept for v in sizes._values(case)} == {
        (key, str(value)) for key in shape for value in shape[key]
    }
    assert len(kept) <= sum(map(len, shape.values()))


def test_of_every_test_some_cases_are_ordinary(request: pytest.FixtureRequest) -> None:
    items = request.session.items
    left = sizes.left_out(items)
    assert not set(left["deep"]) & set(left["wide"])
    functions = {item.nodeid.partition("[")[0] for item in items}
    apart = {item for cases in left.values() for item in cases}
    assert functions == {item.nodeid.partition("[")[0] for item in items if item not in apart}
