"""Random permutations of places: those of Python, or refused where two are the same."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rvm_asm.nodes import Node, Ref
from rvm_python.exchanges import exchanges
from sizes import part, sized, some

import rvm
from rvm.engines import executing
from rvm.faults import RvmError

NUMBERS = [*("v[i]", "v[j]", "v[k]", "v[0]", "v[-1]", "w[i]", "w[j]", "m[i, j]", "m[1, k]")]
NUMBERS += ["x", "y", "p.a", "p.b"]
PARTS = ["v[i:i + 2]", "v[j:j + 2]", "w[k:k + 2]", "w[:2]", "m[i, :2]", "m[j, 1:]", "m[k, :2]"]
HEAD = "def f(v: Array[f64, 4], w: Array[f64, 4], m: Array[f64, 3, 3], x: f64, y: f64, p: Pair, "
HEAD += "i: i64, j: i64, k: i64):\n"


@rvm.record
class Pair:
    a: rvm.f64
    b: rvm.f64


def begun() -> dict[str, Any]:
    """Values that are all different, so that they tell where they come from."""
    made = {"v": np.arange(4.0), "w": np.arange(4.0, 8), "m": np.arange(8.0, 17).reshape(3, 3)}
    return {**made, "x": 17.0, "y": 18.0, "p": SimpleNamespace(a=19.0, b=20.0)}


def told(held: Any) -> list[float]:
    """All values, in order."""
    p = held["p"]
    arrays = np.concatenate([np.ravel(held[name]) for name in "vwm"]).tolist()
    return [*arrays, held["x"], held["y"], p.a, p.b]


@pytest.mark.parametrize("engine", executing())
@some
@sized
def test_a_permutation_is_that_of_python_or_refused(engine: str) -> None:
    rng, refused = np.random.default_rng(3), 0
    names = {"rvm": rvm, "Pair": Pair, "Array": rvm.Array, "f64": rvm.f64, "i64": rvm.i64}
    for _ in range(part(800)):
        kinds = NUMBERS if rng.random() < 0.7 else PARTS
        places = rng.choice(kinds, int(rng.integers(2, 6)), replace=False).tolist()
        sources = rng.permutation(places).tolist()
        line = f"{', '.join(places)} = {', '.join(sources)}"
        at = dict(zip("ijk", rng.integers(0, 3, 3).tolist(), strict=True))
        want = {**begun(), **at}
        cells = np.concatenate([np.ravel(eval(place, {}, want)) for place in places])
        distinct = len(set(cells.tolist())) == len(cells)
        values = ", ".join(f"copied({s})" for s in sources)
        exec(f"{', '.join(places)} = {values}", {"copied": np.copy}, want)
        start = begun()
        given = {**start, "p": Pair(19.0, 20.0), **at}
        try:
            f = rvm.reversible.source(f"{HEAD}    {line}\n", names).with_options(engine=engine)
            found = f(**given)
        except RvmError as error:
            assert not distinct and error.code in ("R004", "A014", "A016"), (line, at, error)
            assert told(given) == told(begun())
            refused += 1
            continue
        assert told(found) == told(want), (line, at)
        if distinct:
            assert told((~f)(**{**found, **at})) == told(begun()), (line, at)
    assert refused


def test_exchanges_of_two_make_every_permutation() -> None:
    for n in range(1, 7):
        places: list[Node] = [Ref(str(k), (), 0, 0) for k in range(n)]
        for sources in itertools.permutations(range(n)):
            held = list(range(n))
            for stat in exchanges(sources, places, 0, 0):
                a, b = (places.index(place) for place in stat.args)
                held[a], held[b] = held[b], held[a]
            assert held == list(sources)
