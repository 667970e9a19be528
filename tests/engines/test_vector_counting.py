"""Loops as NumPy operations that count: the same numbers as by stepping."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from attack.programs import loops as loops_random
from engines.test_vector import SHORT, pieces
from hypothesis import given
from hypothesis import strategies as st
from sizes import examples, thin
from test_counting import plain

import rvm
from rvm.engines import LAW
from rvm.engines.python import compiled_of
from rvm.engines.vector.counted import CountedVectorSource
from rvm.faults import RvmError
from rvm.image import image_of
from rvm.program import Program
from rvm.run.machine import Machine


@pytest.fixture(autouse=True, scope="module")
def short_pieces() -> Iterator[None]:
    with pieces(SHORT):
        yield


def told(program: Program, inputs: Any, engine: str, undo: bool, stop: int) -> list[Any]:
    """The counts at a stop, at the end or an error, and of the way back."""
    copies = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in inputs.items()}
    options = rvm.Options(engine=engine)
    m = Machine.start(program, "main", copies, options, undo=undo)
    out: list[Any] = []
    counts = m.count()
    for go in (lambda m: m.step(stop), Machine.run, Machine.run_back):
        try:
            go(m)
        except RvmError as error:
            out.append(error.code)
        out.append((m.time, plain(counts), m.state.account.erased_bits))
        assert m.engine == engine
    return out


@examples(60)
@given(st.integers(0, 10**6), st.integers(0, 250), st.booleans())
def test_random_loops_are_counted_as_by_stepping(seed: int, stop: int, undo: bool) -> None:
    try:
        program = rvm.assemble(loops_random.RandomLoop(seed).text)
    except RvmError:
        return
    inputs = loops_random.inputs(seed)
    one, two = (told(program.program, inputs, e, undo, stop) for e in (LAW, "vector"))
    assert one == two


ARMS = """
func main(s: i64, x: f64[n], y: f64[n], k: i64)
    for i = 0 to n - 1
        alloc t: f64 = x[i]
        if x[i] > 0.25
            add s, i
            if x[i] > 0.75
                inc k
            end
        else
            sub s, i
            add k, 3
        end
        free t = x[i] * y[i] / y[i]
    end
"""


@thin
@pytest.mark.parametrize("n", [7, 16, 50, 333])
@pytest.mark.parametrize("undo", [False, True])
def test_arms_and_residues_are_counted_where_they_are(n: int, undo: bool) -> None:
    program = rvm.assemble(ARMS)
    code = image_of(program).code("main", undo)
    (found,) = compiled_of(code, 0, CountedVectorSource).source.plans.values()
    assert found.counters is not None
    random = np.random.default_rng(n + 2)
    inputs = {"s": 0, "x": random.random(n), "y": 1e4 * random.random(n), "k": 0}
    one, two = (told(program.program, inputs, e, undo, 100) for e in (LAW, "vector"))
    assert one == two
    assert one[1][2] > 0, "bits are erased in some iterations"


def test_loops_whose_updates_may_lose_bits_are_not_vectorised_to_be_counted() -> None:
    text = ARMS.replace("s: i64", "s: f64").replace("s, i", "s, x[i]")
    source = compiled_of(
        image_of(rvm.assemble(text)).code("main", False), 0, CountedVectorSource
    ).source
    assert not source.plans
    (why,) = source.declined.values()
    assert why == "the bits that its updates lose to rounding are to be counted"


def test_ordinary_pieces_have_no_counters() -> None:
    from rvm.engines.vector.engine import vector_of

    code = image_of(rvm.assemble(ARMS)).code("main", False)
    assert "row[" not in vector_of(code).source.text()
    assert "row[" in compiled_of(code, 0, CountedVectorSource).source.text()
