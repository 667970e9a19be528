"""Random programs: gradients by differences, tangents, inverses, on all engines."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import rvm_asm
from attack.programs import smooth
from gradients import properties
from gradients.agreeing import ENGINES, bits
from hypothesis import assume, given
from hypothesis import strategies as st
from sizes import examples

import rvm
from rvm.derive.named import named_duals
from rvm.library.handle import FunctionHandle
from rvm.verify import findings

SEEDS = st.integers(0, 10**9)
LOSSES = ("x2", "q0", "z1.im", "g0", "u[1]", "M[2, 0]", "p.pos[0]", "p.m")


def case(seed: int) -> tuple[FunctionHandle, dict[str, Any], np.random.Generator]:
    f = rvm.assemble(smooth.program(seed), f"random{seed}").main
    return f, smooth.inputs(seed), np.random.default_rng(seed)


def first_order(seed: int) -> None:
    """Against tangents, against differences, on both engines, backwards."""
    f, inputs, rng = case(seed)
    if not properties.steady(f, inputs):
        return
    before = bits(inputs)
    properties.adjoints_transpose_tangents(f, inputs, rng, 1e-10)
    properties.differences_agree(f, inputs, rng, 1e-6)
    properties.inverses_undo(f, inputs, rng, 1e-6)
    bars = properties.seeds(f, inputs, rng)
    found = [bits(f.with_options(engine=e).vjp(bars, **inputs)) for e in ENGINES]
    assert found[0] == found[1], "the engines differ"
    assert bits(inputs) == before, "the inputs were changed"


def second_order(seed: int, loss: str) -> None:
    f, inputs, rng = case(seed)
    if not properties.steady(f, inputs):
        return
    properties.hessians_are_symmetric(f, inputs, loss, rng, 1e-8, 1e-4)


def programs(seed: int) -> None:
    """The derived programs verify, come back from their texts, and run back bit for bit."""
    f, inputs, rng = case(seed)
    properties.gradients_run_back(f, inputs, rng)
    for program in (f.gradient_program, rvm.tangent(f.program, "main")):
        assert findings(program) == []
        assert rvm_asm.assemble(rvm_asm.disassemble(program)) == program


@pytest.mark.deep
@examples(40)
@given(SEEDS)
def test_first_derivatives(seed: int) -> None:
    first_order(seed)


@pytest.mark.deep
@examples(12)
@given(SEEDS, st.sampled_from(LOSSES))
def test_second_derivatives(seed: int, loss: str) -> None:
    second_order(seed, loss)


@pytest.mark.deep
@examples(12)
@given(SEEDS)
def test_derived_programs(seed: int) -> None:
    programs(seed)


@examples(10)
@given(SEEDS)
def test_work_is_bounded(seed: int) -> None:
    """Ticks: an instruction goes forwards, is undone, and passes adjoints to what it read."""
    f, inputs, rng = case(seed)
    assume(properties.steady(f, inputs))
    pull = f.pullback(**inputs)
    forward = pull.ticks
    pull.seed_all(properties.drawn(named_duals(pull.function, pull.bars, pull.result.info), rng))
    pull()
    assert pull.ticks <= 8 * forward + 20


@pytest.mark.soak
def test_many_random_programs() -> None:
    rng = random.Random(20240301)
    for _ in range(1000):
        seed = rng.randrange(10**9)
        first_order(seed)
        second_order(seed, rng.choice(LOSSES))
        programs(seed)
