"""Traps: engines stop at the same ticks, whichever way they go, and only where a trap is due."""

from __future__ import annotations

import random

from engines.programs_random import inputs, program
from hypothesis import given, settings
from hypothesis import strategies as st

import rvm
from rvm.engines.reference import step
from rvm.engines.trapping import due
from rvm.expr import Place
from rvm.image import Code, image_of
from rvm.isa import typed
from rvm.machine import Machine
from rvm.probes import Armory, Trap, arm, disarm
from rvm.types import BOOL, Scalar


def stops(machine: Machine, armory: Armory, limit: int = 4000) -> list[tuple[int, int, str, int]]:
    """Every (time, depth, function, position) at which an armed run stops."""
    out = []
    state = machine.state
    arm(state, armory, {}, {})
    while not state.at_end and len(out) < limit:
        step(state)
        machine.go()
        if due(state):
            top = state.top
            out.append((state.time, len(state.frames), repr(top.code), top.pc))
    disarm(state)
    return out


def every_tick(machine: Machine, armory: Armory) -> list[tuple[int, int, str, int]]:
    """The same, found by stepping and asking after each tick."""
    out = []
    state = machine.state
    arm(state, armory, {}, {})
    while not state.at_end:
        step(state)
        if due(state):
            out.append((state.time, len(state.frames), repr(state.top.code), state.top.pc))
    disarm(state)
    return out


def random_armory(text_program: rvm.Program, seed: int) -> Armory:
    """Traps at random positions; some with conditions over the function's integers."""
    rng = random.Random(seed)
    density = rng.choice([0.02, 0.2, 0.6])
    made: dict[tuple[str, bool], dict[int, tuple[Trap, ...]]] = {}

    def traps(code: Code, bindings: object, extra: object) -> dict[int, tuple[Trap, ...]]:
        key = (code.name, code.undo)
        if key not in made:
            found = {}
            for position in range(len(code) + 1):
                if rng.random() < density:
                    found[position] = (Trap("t", guard(code)),)
            made[key] = found
        return made[key]

    def guard(code: Code) -> object:
        numbers = [
            k
            for k, r in enumerate(code.function.registers)
            if isinstance(r.type, Scalar) and r.type.is_integer
        ]
        if not numbers or rng.random() < 0.4:
            return None
        k = rng.choice(numbers)
        t = code.function.registers[k].type
        return typed(Place(k, (), t) > rng.randrange(4), BOOL)

    return Armory(image_of(text_program), traps)  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), where=st.integers(0, 10_000))
def test_engines_stop_at_the_same_ticks(seed: int, where: int) -> None:
    made = rvm.assemble(program(seed))
    armory = random_armory(made, where)
    slow = Machine(made, "main", engine="reference", **inputs(seed))
    fast = Machine(made, "main", engine="python", **inputs(seed))
    expected = every_tick(slow, armory)
    assert stops(fast, armory, 10**9) == expected
    for machine in (slow, fast):
        machine.state.turn()
    back = every_tick(slow, armory)
    assert stops(fast, armory, 10**9) == back
    assert fast.time == slow.time == 0
