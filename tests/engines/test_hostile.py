"""Damaged bytecode that the verifier lets through: no engine crashes, and all agree."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from attack.programs import sound as programs_random
from attack.programs.blind import random_program
from attack.surgery import mutated

import rvm
from rvm.codec import decode, encode
from rvm.engines import executing
from rvm.faults import BytecodeError
from rvm.numbers import system
from rvm.program import Function, Program
from rvm.run.machine import Machine
from rvm.types import Array, Stack, elem_of
from rvm.verify import findings

ENGINES = executing()
LIMITS = {"max_steps": 3_000, "max_memory": 1_000_000}
ALLOWED = (rvm.RvmError,)


def inputs(function: Function, rng: random.Random) -> dict[str, Any]:
    """Values that fit the parameters, lengths all alike; InputError elsewhere is an outcome."""
    out: dict[str, Any] = {}
    for param in function.params:
        register = function.registers[param.layout] if isinstance(param.layout, int) else None
        if register is None:
            continue
        t = register.type
        if isinstance(t, Stack):
            out[param.name] = []
        elif isinstance(t, Array):
            out[param.name] = np.ones((4,) * t.rank, system(t.elem).dtype)
        else:
            value = system(elem_of(t)).zero
            out[param.name] = system(t).to_python(type(value)(rng.randrange(3)))
    return out


def outcome(program: Program, name: str, engine: str, seed: int) -> tuple[Any, ...]:
    """What a run and its way back come to, as far as engines must agree on it."""
    values = inputs(program.function(name), random.Random(seed))
    options = rvm.Options(engine=engine, output=lambda line: None, **LIMITS)
    try:
        m = Machine.start(program, name, values, options)
    except ALLOWED as error:
        return (error.code,)
    try:
        m.run()
        end: Any = "end"
    except ALLOWED as error:
        end = (error.code, error.where.function, error.where.pc)
    there = (m.time, shown(m), m.erased_bits)
    try:
        m.run_back()
        return (end, there, "back", shown(m))
    except ALLOWED as error:
        return (end, there, error.code, m.time)


def shown(m: Machine) -> str:
    return repr([f.regs for f in m.state.frames])


def fuzz(seed: int, count: int) -> Counter[str]:
    rng = random.Random(seed)
    bases = [encode(random_program(k, 3 + k % 3)) for k in range(12)]
    bases += [encode(rvm.assemble(programs_random.program(k))) for k in range(12)]
    seen: Counter[str] = Counter()
    for _ in range(count):
        data = mutated(rng, rng.choice(bases), rng.choice(bases))
        try:
            program = decode(data)
        except BytecodeError:
            seen["refused"] += 1
            continue
        if findings(program):
            seen["unsound"] += 1
            continue
        for name in list(program)[:4]:
            results = [outcome(program, name, e, seed) for e in ENGINES]
            assert results[0] == results[1], name
            seen["run"] += 1
    return seen


@pytest.mark.deep
def test_damaged_programs_run_alike_on_all_engines() -> None:
    seen = fuzz(11, 1200)
    assert seen["run"] > 200


@pytest.mark.soak
def test_many_damaged_programs() -> None:
    for seed in range(40):
        fuzz(1000 + seed, 3000)
