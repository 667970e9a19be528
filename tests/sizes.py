"""How much a test does: a part of it in an ordinary run, more of it in CI, all with `--deep`.

Four decorators hand what is left out over to the marker `deep`:

- `@sample` on a parametrised test: a few of its cases, in which each value of each parameter
  comes; `@sample(2)`, each pair of values of two parameters.
- `@some` on a parametrised test: a quarter of its cases, other ones for each test of a table.
- `@examples(n)` on a test of Hypothesis: a twentieth of n examples.
- `@sized` on a test that asks `part(n)` how many random cases to try, or `first_and_another` or
  `one_of` which engines to compare.

Two hand it over to the marker `wide`, which CI runs after an ordinary run:

- `@wide` on a test that takes seconds, of what other tests look at as well: all of it.
- `@thin` on a parametrised test: of the cases that the decorators above leave, or else of a few
  with each value of each parameter, an eighth is ordinary, and CI does another eighth. What
  other cases there are goes to `deep`. `@thin(n)` has an n-th for an eighth: of `@thin(2)` CI
  does all that is left.
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
thin = pytest.mark.thin
wide = pytest.mark.wide


def part(n: int) -> int:
    """A twentieth of n, of few a quarter, or with `--deep` all."""
    return n if DEEP else max(-(-n // 20), min(-(-n // 4), 2))


def first_and_another(options: Sequence[T], key: object) -> Sequence[T]:
    """The first of some options and another, which a key's text picks; with `--deep` all."""
    if DEEP:
        return options
    return options[0], options[1 + crc32(repr(key).encode()) % (len(options) - 1)]


def one_of(options: Sequence[T], key: object) -> Sequence[T]:
    """One of some options, which a key's text picks; with `--deep` all."""
    return options if DEEP else (options[crc32(repr(key).encode()) % len(options)],)


def examples(n: int, **more: Any) -> Callable[[Any], Any]:
    """Settings for a test of Hypothesis, of n examples or a part of them."""
    # Where the tour runs on the plain wheel, Hypothesis is not there.
    from hypothesis import settings

    chosen = settings(max_examples=part(n), deadline=None, **more)
    return lambda test: sized(chosen(test))


Case = pytest.Function
Value = tuple[str, str]


def left_out(items: Iterable[pytest.Item]) -> dict[str, list[pytest.Item]]:
    """The cases that an ordinary run leaves out, by the marker of the run that takes them."""
    found: dict[str, list[Case]] = defaultdict(list)
    marks = {"sample", "some", "thin"}
    for item in items:
        if isinstance(item, Case) and not marks.isdisjoint(m.name for m in item.iter_markers()):
            found[item.nodeid.partition("[")[0]].append(item)
    out: dict[str, list[pytest.Item]] = {"deep": [], "wide": []}
    for name, cases in found.items():
        # A sequence of its own for each name, whichever other tests there are.
        order = random.Random(name).sample(cases, len(cases))
        mark = cases[0].get_closest_marker("sample")
        if mark is not None:
            kept = _each(order, *mark.args)
        elif cases[0].get_closest_marker("some"):
            kept = order[: -(-len(order) // 4)]
        else:
            kept = _each(order)
        out["deep"] += _without(order, kept)
        thinned = cases[0].get_closest_marker("thin")
        if thinned is not None:
            ordinary = [case for case in kept if not case.get_closest_marker("deep")]
            share = -(-len(ordinary) // (thinned.args[0] if thinned.args else 8))
            out["wide"] += ordinary[share : 2 * share]
            out["deep"] += ordinary[2 * share :]
    return out


def _values(case: Case) -> list[Value]:
    """The values of a case's parameters, by the parameters' names."""
    return [(key, str(value)) for key, value in case.callspec.params.items()]


def _each(cases: Sequence[Case], together: int = 1) -> list[Case]:
    """Those of some cases, in their order, that have a value, or several, that none before has."""
    out, seen = [], set[tuple[Value, ...]]()
    for case in cases:
        groups = set(combinations(_values(case), together))
        if not groups <= seen:
            out.append(case)
        seen |= groups
    return out


def _without(cases: Iterable[Case], kept: Iterable[Case]) -> list[Case]:
    left = set(kept)
    return [case for case in cases if case not in left]
