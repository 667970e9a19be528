"""Functions with rare cases over whole arrays: the bits of the law, wherever rare cases stand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sizes import thin

import rvm
from rvm.engines import LAW
from rvm.ir.typed import Unprintable
from rvm.ir.values import body_of
from rvm.isa import FUNCTIONS, apply, place
from rvm.types import F64

RARE = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -1e-310, 1e308, -1e308, 709.9, -745.2]
SIZES = (1, 2, 63, 64, 65, 130, 200)


def with_rare_cases() -> list[str]:
    """The functions of one real number that machine code calls for what is not rare."""
    found = []
    for name, row in FUNCTIONS.items():
        if row.arity != 1 or row.lazy or not row.is_elementwise:
            continue
        try:
            body = body_of(name, (F64,))
        except (Unprintable, rvm.DefinitionError):
            continue
        called = [n.aux for n in body.ordered.nodes if n.op == "call"]
        if any(f.guard is not None for f in called) and apply(name, place(0, F64)).type == F64:
            found.append(name)
    return found


NAMES = with_rare_cases()


def inputs(n: int, rare: int) -> np.ndarray[Any, Any]:
    """Numbers near one, some of which are replaced by rare ones."""
    rng = np.random.default_rng(n)
    x = rng.uniform(0.1, 1.9, n) * rng.choice([1.0, -1.0], n)
    at = rng.choice(n, min(rare, n), replace=False)
    x[at] = rng.choice(RARE, len(at))
    return x


def test_there_are_such_functions() -> None:
    assert {"exp", "log", "tanh", "sin", "sigmoid"} <= set(NAMES)


@thin
@pytest.mark.parametrize("name", NAMES)
def test_bits_are_those_of_the_law(name: str) -> None:
    program = rvm.assemble(
        f"""
        func each(y: f64[n], s: f64, x: f64[n])
            alloc t: f64[n] = {name}(x) * 2.0
            add y, t + {name}(0.5 * x) * {name}({name}(x))
            free t = {name}(x) * 2.0
            add s, sum({name}(x))
        func rows(y: f64[n, m], s: f64, x: f64[n, m])
            add y, {name}(x)
            add s, amax(abs({name}(x)))
            if len(x[0]) > 1
                add s, dot({name}(x[0]), x[0])
            end
        """
    )
    for n in SIZES:
        for rare in (0, 1, n):
            x = inputs(n, rare)
            for f, given in (("each", x), ("rows", x.reshape(-1, n)), ("rows", x.reshape(n, -1))):
                found = []
                for engine in ("native", LAW):
                    g = program[f].with_options(engine=engine)
                    try:
                        found.append(g(y=np.zeros(given.shape), s=0.0, x=given))
                    except rvm.RvmError as error:
                        found.append(error.code)
                if isinstance(found[1], str):
                    assert found[0] == found[1]
                    continue
                for k in ("y", "s"):
                    a, b = (np.asarray(r[k]) for r in found)
                    same = (a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))
                    assert np.all(same), (n, rare, f, k)
