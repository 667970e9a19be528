"""Random programs: all engines agree, and running back restores every bit."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from attack.programs import sound as random_programs
from hypothesis import given
from hypothesis import strategies as st
from sizes import examples, wide

import rvm
from rvm.engines import executing
from rvm.run.machine import Machine

ENGINES = executing()


def machine(seed: int, engine: str, **options: Any) -> Machine:
    program = rvm.assemble(random_programs.program(seed), f"random{seed}")
    return Machine.start(
        program, "main", random_programs.inputs(seed), rvm.Options(engine=engine, **options)
    )


def bits(result: Any) -> dict[str, Any]:
    """A result as exact text, arrays as bytes."""
    return {k: v.tobytes() if isinstance(v, np.ndarray) else repr(v) for k, v in result.items()}


@examples(60)
@given(st.integers(0, 10**9), st.booleans())
def test_engines_agree(seed: int, strict: bool) -> None:
    seen = []
    for engine in ENGINES:
        m = machine(seed, engine, strict=strict)
        m.run()
        seen.append((bits(m.result), m.time, m.erased_bits, m.residue_bytes))
    assert seen == seen[:1] * len(seen)


@examples(60)
@given(st.integers(0, 10**9), st.sampled_from(ENGINES))
def test_strict_run_back_restores_every_bit(seed: int, engine: str) -> None:
    m = machine(seed, engine, strict=True)
    start = bits(m.result)
    m.run().run_back()
    assert bits(m.result) == start
    assert m.time == 0
    assert m.residue_bytes == 0
    assert m.state.account.live_bytes == machine(seed, engine).state.account.live_bytes


@wide
@examples(40)
@given(st.integers(0, 10**9), st.sampled_from(ENGINES), st.data())
def test_every_time_is_one_state(seed: int, engine: str, data: st.DataObject) -> None:
    """A state reached by any walk is the one that a fresh machine reaches by stepping."""
    m = machine(seed, engine, strict=True)
    m.run()
    end = m.time
    for _ in range(4):
        t = data.draw(st.integers(0, end))
        assert m.seek(t) == t
        fresh = machine(seed, "reference", strict=True)
        fresh.step(t)
        assert bits(m.registers()) == bits(fresh.registers())
        assert [(f.code.name, f.code.undo != (m.direction < 0)) for f in m.state.frames] == [
            (f.code.name, f.code.undo) for f in fresh.state.frames
        ]


@examples(25)
@given(st.integers(0, 10**9))
def test_the_inverse_program_is_the_function_backwards(seed: int) -> None:
    """`invert(program)` and `~f` are made in different ways and do the same, bit for bit."""
    program = rvm.assemble(random_programs.program(seed))
    out = program.main(**random_programs.inputs(seed))
    copies = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in out.items()}
    assert bits(rvm.invert(program).main(**out)) == bits((~program.main)(**copies))


@pytest.mark.soak
def test_many_random_programs() -> None:
    rng = random.Random(20240229)
    for _ in range(3000):
        seed = rng.randrange(10**9)
        seen = []
        for engine in ENGINES:
            m = machine(seed, engine, strict=True)
            start = bits(m.result)
            m.run()
            seen.append((bits(m.result), m.time, m.residue_bytes))
            m.run_back()
            assert bits(m.result) == start, seed
        assert seen == seen[:1] * len(seen), seed
