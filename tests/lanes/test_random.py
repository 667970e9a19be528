"""Random programs in lanes: forwards, back and gradients, each lane as a single run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attack.programs import smooth
from attack.programs import sound as programs_random
from hypothesis import given
from hypothesis import strategies as st
from lanes.singles import (
    agree,
    by_lane,
    copied,
    flat,
    in_lanes,
    perturbed,
    single,
    stacked,
)
from sizes import examples

import rvm
from rvm.program import Program
from rvm.run.binding import outside
from rvm.run.lanes import run_lanes

SEEDS = st.integers(0, 10**9)
LANES = 5


def alike(program: Program, lanes: list[dict[str, Any]], block: int | None = None) -> None:
    """A program in lanes, there and back, is what single runs are."""
    name, function = "main", program.function("main")
    run = in_lanes(program, name, lanes, block=block)
    agree(program, name, lanes, run)
    ended = [k for k in range(len(lanes)) if k not in run.errors]
    singles = [single(program, name, lanes[k])[0] for k in ended]
    back = run_lanes(
        program,
        name,
        [None] * function.n_args,
        {k: by_lane(function, k, [s[k] for s in singles]) for k in range(function.n_args)},
        rvm.Options(engine="vector"),
        undo=True,
    )
    results = [{p.name: outside(function, p.layout, s) for p in function.params} for s in singles]
    agree(program, name, results, back, undo=True)


@pytest.mark.deep
@examples(30)
@given(SEEDS, st.sampled_from([None, 1, 2]))
def test_paths_that_part(seed: int, block: int | None) -> None:
    """Branches, loops and calls on values that are anything, in every lane another."""
    program = rvm.assemble(programs_random.program(seed), f"random{seed}")
    alike(program.program, [programs_random.inputs(seed + 7 * k) for k in range(LANES)], block)


@examples(30)
@given(SEEDS, st.data())
def test_arguments_that_are_shared(seed: int, data: st.DataObject) -> None:
    """Whichever parameters are given once, the lanes are single runs with the same value."""
    program = rvm.assemble(programs_random.program(seed), f"random{seed}")
    n = program.program.function("main").n_args
    shared = data.draw(st.sets(st.integers(0, n - 1), max_size=n - 1))
    lanes = [programs_random.inputs(seed + 7 * k) for k in range(LANES)]
    names = [program.program.function("main").registers[k].name for k in shared]
    for inputs in lanes:
        inputs |= {name: copied(lanes[0][name]) for name in names}
    run = in_lanes(program.program, "main", lanes, tuple(shared))
    agree(program.program, "main", lanes, run)


@pytest.mark.deep
@examples(25)
@given(SEEDS)
def test_programs_of_every_type(seed: int) -> None:
    """Complex numbers, logarithms, stacks, records, products of matrices."""
    program = rvm.assemble(smooth.program(seed), f"smooth{seed}")
    rng = np.random.default_rng(seed)
    inputs = smooth.inputs(seed)
    alike(
        program.program,
        [inputs, *({k: perturbed(v, rng) for k, v in inputs.items()} for _ in "ab")],
    )


LOSSES = ("x2", "q0", "z1.im", "g0", "u[1]", "M[2, 0]", "p.pos[0]", "p.m")


@pytest.mark.deep
@examples(15)
@given(SEEDS, st.sampled_from(LOSSES), st.data())
def test_gradients(seed: int, loss: str, data: st.DataObject) -> None:
    """A lane's adjoints are those of a single gradient; shared ones are their sums."""
    f = rvm.assemble(smooth.program(seed), f"smooth{seed}").main.with_options(engine="vector")
    rng = np.random.default_rng(seed)
    first = smooth.inputs(seed)
    lanes = [first, *({k: perturbed(v, rng) for k, v in first.items()} for _ in "ab")]
    shared = data.draw(st.sets(st.sampled_from(sorted(first)), max_size=len(first) - 1))
    for inputs in lanes:
        inputs |= {name: copied(first[name]) for name in shared}
    given = {k: first[k] if k in shared else stacked([v[k] for v in lanes]) for k in first}
    losses, found = f.map.value_and_grad(loss=loss, on_error="return", **given)
    assert found.errors == {}
    alone = f.with_options(engine="python")
    singles = [alone.value_and_grad(loss=loss, **lane) for lane in lanes]
    assert np.allclose(losses, [value for value, _ in singles], rtol=1e-9)
    parts = [flat(grad) for _, grad in singles]
    for name, held in flat(found).items():
        want = [np.asarray(part[name], complex) for part in parts]
        value = np.asarray(held, complex)
        expected = sum(want) if name.split(".")[0] in shared else np.array(want)
        scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
        assert np.allclose(value, expected, rtol=1e-7, atol=1e-9 * scale), name


@pytest.mark.soak
def test_many_random_programs() -> None:
    rng = np.random.default_rng(20240301)
    for seed in map(int, rng.integers(0, 10**9, 150)):
        test_paths_that_part.hypothesis.inner_test(seed, None)
        test_programs_of_every_type.hypothesis.inner_test(seed)
