"""Traps: engines stop at the same ticks, whichever way they go, and only where a trap is due."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from attack.programs.sound import inputs, program
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples, wide

import rvm
from rvm.engines.reference import step
from rvm.engines.trapping import due
from rvm.expr import Place
from rvm.image import Code, image_of
from rvm.image.traps import Traps
from rvm.isa import typed
from rvm.probes import Armory, Binding, Changed, Trap, arm, changed_places, disarm
from rvm.run.events import observe
from rvm.run.machine import Machine
from rvm.types import BOOL, Scalar
from rvm.verify.alias import overlap


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


@examples(60)
@given(seed=st.integers(0, 10_000), where=st.integers(0, 10_000))
def test_engines_stop_at_the_same_ticks(seed: int, where: int) -> None:
    made = rvm.assemble(program(seed))
    armory = random_armory(made.program, where)
    slow = Machine(made, "main", engine="reference", **inputs(seed))
    fast = Machine(made, "main", engine="python", **inputs(seed))
    expected = every_tick(slow, armory)
    assert stops(fast, armory, 10**9) == expected
    for machine in (slow, fast):
        machine.state.turn()
    back = every_tick(slow, armory)
    assert stops(fast, armory, 10**9) == back
    assert fast.time == slow.time == 0


@wide
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10_000), where=st.integers(0, 10_000), strict=st.booleans())
def test_machine_code_stops_at_the_same_ticks(seed: int, where: int, strict: bool) -> None:
    pytest.importorskip("llvmlite")
    made = rvm.assemble(program(seed))
    armory = random_armory(made.program, where)
    slow = Machine(made, "main", engine="reference", strict=strict, **inputs(seed))
    fast = Machine(made, "main", engine="native", strict=strict, **inputs(seed))
    for _ in range(2):
        assert stops(fast, armory, 10**9) == every_tick(slow, armory)
        assert fast.residue_bytes == slow.residue_bytes
        for machine in (slow, fast):
            machine.state.turn()


def told(seed: int, kinds: tuple[str, ...], turned: bool) -> list[tuple[str, int, str, int]]:
    """The events of a whole run, on the fast engine."""
    machine = Machine(rvm.assemble(program(seed)), "main", engine="python", **inputs(seed))
    if turned:
        machine.run()
        machine.state.turn()
    found: list[tuple[str, int, str, int]] = []
    observe(machine, lambda e: found.append((e.kind, e.time, repr(e.code), e.pc)), kinds)
    assert machine.state.at_end and not machine.state.armed
    return found


@examples(15)
@given(seed=st.integers(0, 10_000), turned=st.booleans())
def test_every_tick_is_reported(seed: int, turned: bool) -> None:
    """Each tick is one instruction or one return; each call that is entered returns."""
    found = told(seed, ("after", "return", "call"), turned)
    ticks = [time for kind, time, _, _ in found if kind in ("after", "return")]
    length = len(ticks)
    assert ticks == (list(range(length - 1, -1, -1)) if turned else list(range(1, length + 1)))
    count = Counter(kind for kind, _, _, _ in found)
    assert count["call"] == count["return"]


@examples(15)
@given(seed=st.integers(0, 10_000))
def test_the_events_of_a_run_back_mirror_those_of_the_run(seed: int) -> None:
    """What is allocated on the way out is freed on the way back, at the same tick."""
    out = told(seed, ("alloc", "free"), False)
    back = told(seed, ("alloc", "free"), True)
    other = {"alloc": "free", "free": "alloc"}
    assert [(other[k], t - 1, pc) for k, t, _, pc in reversed(out)] == [
        (k, t, pc) for k, t, _, pc in back
    ]


def test_events_can_be_narrowed_to_some_instructions() -> None:
    made = rvm.assemble("func f(x: i64, n: i64)\n    for i = 1 to n\n        add x, i\n    end\n")
    machine = Machine(made, "f", x=0, n=10)
    seen: list[tuple[int, int]] = []
    observe(
        machine,
        lambda e: seen.append((e.time, machine["x"])),
        ["after"],
        where=lambda code, pc: (
            code.instrs[pc].op == "add"
            and len(code.instrs[pc].args) == 2
            and code.instrs[pc].args[0].reg == 0
        ),
    )
    assert [x for _, x in seen] == [1, 3, 6, 10, 15, 21, 28, 36, 45, 55]


# ---------------------------------------------------------------- what is watched


NESTED = """
func outer(a: i64, x: i64[n])
    add a, 1
    call inner(a, x[1:3])
    sub a, 5
    uncall inner(a, x[0:2])

func inner(b: i64, y: i64[m])
    add y[0], b
    add b, 3
    add y[1], 2
"""


def changes_seen(name: str, turned: bool) -> list[tuple[int, str, int]]:
    """Where a run stops for changes of a parameter of the outermost frame."""
    made = rvm.assemble(NESTED)
    machine = Machine(made, "outer", a=10, x=np.zeros(4, np.int64))
    if turned:
        machine.run()
        machine.state.turn()
    state = machine.state
    frame = state.frames[0]
    slot = {"a": 0, "x": 1}[name]
    register = frame.code.function.registers[slot]
    cell: list[object] = [None]

    def traps(code: Code, bindings: frozenset[Binding], extra: object) -> dict[int, Traps]:
        found = {}
        for b in bindings:
            t = code.function.registers[b.reg].type
            place = Place(b.reg, (), t)  # type: ignore[arg-type]
            look = (
                (lambda regs: frame.regs[1].copy())
                if name == "x"
                else (lambda regs, k=b.reg: regs[k])
            )
            guard = Changed(cell, look, place if name == "a" else None)
            for pc in range(len(code)):
                if any(overlap(p, place) != "never" for p in changed_places(code, pc)):
                    found[pc + 1] = (Trap("w", guard),)
        return found

    cell[0] = frame.regs[slot] if name == "a" else frame.regs[slot].copy()
    armory = Armory(image_of(made), traps)  # type: ignore[arg-type]
    arm(state, armory, {0: frozenset([Binding("w", slot, True)])}, {})
    seen = []
    assert register.name == name
    while not state.at_end:
        step(state)
        if not due(state):
            machine.go()
        if due(state):
            top = state.top
            guard = due(state)[0].guard
            assert isinstance(guard, Changed)
            cell[0] = guard.look(top.regs)
            seen.append((state.time, top.code.name, top.pc - 1))
    disarm(state)
    return seen


def test_a_scalar_is_watched_through_the_calls_that_it_is_passed_to() -> None:
    # Ticks: add, enter, add y, add b, add y, return, sub, enter, sub y, sub b, sub y, return.
    assert changes_seen("a", False) == [
        (1, "outer", 0),
        (4, "inner", 1),
        (7, "outer", 2),
        (10, "inner", 1),
    ]
    back = changes_seen("a", True)
    assert [t for t, _, _ in back] == [9, 6, 3, 0]


def test_an_array_is_watched_under_the_names_that_it_is_passed_by() -> None:
    forth = [t for t, _, _ in changes_seen("x", False)]
    assert forth == [3, 5, 9, 11]
    assert [t for t, _, _ in changes_seen("x", True)] == [t - 1 for t in reversed(forth)]
