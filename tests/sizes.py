"""How much a test does: a part of it in an ordinary run, all of it with `--deep`.

Four decorators, all of which hand the rest over to the marker `deep`:

- `@sample` on a parametrised test: a few of its cases, in which each value of each parameter
  comes; `@sample(2)`, each pair of values of two parameters.
- `@some` on a parametrised test: a quarter of its cases, other ones for each test of a table.
- `@examples(n)` on a test of Hypothesis: a twentieth of n examples.
- `@sized` on a test that asks `part(n)` how many random cases to try, or `first_and_another` which
  engines to compare.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any, TypeVar
from zlib import crc32

import pytest

T = TypeVar("T")
DEEP = False
"""Whether all is done; set in `conftest.py`, before any module of tests is imported."""

sample = pytest.mark.sample
some = pytest.mark.some
sized = pytest.mark.sized


def part(n: int) -> int:
    """A twentieth of n, of few a quarter, or with `--deep` all."""
    return n if DEEP else max(-(-n // 20), min(-(-n // 4), 2))


def first_and_another(options: Sequence[T], key: object) -> Sequence[T]:
    """The first of some options and another, which a key's text picks; with `--deep` all."""
    if DEEP:
        return options
    return options[0], options[1 + crc32(repr(key).encode()) % (len(options) - 1)]


def examples(n: int, **more: Any) -> Callable[[Any], Any]:
    """Settings for a test of Hypothesis, of n examples or a part of them."""
    # Where the tour runs on the plain wheel, Hypothesis is not there.
    from hypothesis import settings

    chosen = settings(max_examples=part(n), deadline=None, **more)
    return lambda test: sized(chosen(test))


def left_out(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The cases of tests marked `sample` or `some` that an ordinary run leaves out.

    Those of `sample` are looked through in an order that the test's name gives, and one is taken
    if it has a value of a parameter that none before it has; with `sample(2)`, a pair of values.
    """
    found: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        marked = item.get_closest_marker("sample") or item.get_closest_marker("some")
        if marked is not None and isinstance(item, pytest.Function):
            found[item.nodeid.partition("[")[0]].append(item)
    out: list[pytest.Item] = []
    for name, cases in found.items():
        mark = cases[0].get_closest_marker("sample")
        # A sequence of its own for each name, whichever other tests there are.
        order = random.Random(name).sample(cases, len(cases))
        if mark is None:
            out += order[-(-len(order) // 4) :]
            continue
        together = mark.args[0] if mark.args else 1
        seen: set[tuple[tuple[str, str], ...]] = set()
        for case in order:
            values = [(key, str(value)) for key, value in case.callspec.params.items()]
            groups = set(combinations(values, together))
            if groups <= seen:
                out.append(case)
            seen |= groups
    return out
