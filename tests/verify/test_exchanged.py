"""A place exchanged with itself changes nothing, whatever is done and undone beside it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sizes import one_of, sample, sized

import rvm
from rvm.engines import executing

EXCHANGES = ["swap {0}, {0}", "exch {0}, {0}", "cswap k, {0}, {0}"]
PLACES = {"number": ("x: f64", 2.0), "array": ("x: f64[n]", np.array([2.0, 3.0]))}


@sample
@sized
@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_at_every_position(exchange: str, kind: str) -> None:
    declared, value = PLACES[kind]
    body = ["add x, 1.0", "alloc t = x", "add t, x", "sub t, x", "free t = x", "sub x, 1.0"]
    for places in itertools.product((0, 1), repeat=len(body) + 1):
        if sum(places) != 2:
            continue
        lines = []
        for k, stands in enumerate(places):
            held = "t" if 2 <= k <= 4 else "x"
            lines += [exchange.format(held)] * stands + body[k : k + 1]
        f = rvm.assemble(f"func f({declared}, k: bool)\n " + "\n ".join(lines)).f
        for engine in one_of(executing(), (exchange, kind, places)):
            assert np.array_equal(f(x=np.copy(value)[()], k=True, engine=engine).x, value)
