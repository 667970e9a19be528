"""Every public object can be pickled, copied and copied deeply, before and after its use."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import copy, deepcopy
from typing import Any

import pytest
from objects.samples import PROGRAM, public_classes, samples, seen, work_inputs

from rvm.engines import executing

WAYS: dict[str, Callable[[Any], Any]] = {
    "copy": copy,
    "deepcopy": deepcopy,
    **{
        f"pickle {k}": lambda x, k=k: pickle.loads(pickle.dumps(x, k))
        for k in range(2, pickle.HIGHEST_PROTOCOL + 1)
    },
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", sorted(public_classes(), key=str), ids=lambda k: k.__name__)
def test_an_object_comes_back_as_it_was(kind: type[Any], way: str) -> None:
    tried = 0
    for thing in samples(kind):
        tried += 1
        again = WAYS[way](thing)
        assert type(again) is type(thing)
        assert seen(again) == seen(thing)
    assert tried


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("engine", executing(loops=False))
def test_a_pullback_that_has_run_is_a_value_too(engine: str, way: str) -> None:
    handle = PROGRAM.work.with_options(engine=engine)
    for _ in range(2):
        pull = handle.pullback(**work_inputs())
        other = WAYS[way](pull)
        assert repr(other.result) == repr(pull.result)
        assert other.value("y") == pull.value("y")
        assert other.ticks == pull.ticks
