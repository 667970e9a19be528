"""Programs that call derivatives, run there and back on one machine: right ones are never refused.

Accumulators hold numbers already, in any unit; whatever bars are left out, what the call brings
back is back by construction.  A forgotten undo is refused all the same.
"""

from __future__ import annotations

import random
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from gradients.agreeing import ENGINES, bits
from rvm_tools.debug import Session
from sizes import first_and_another, part, sized, some, thin, wide

import rvm
from rvm.engines import LAW
from rvm.faults import InvertibilityError
from rvm.image import image_of
from rvm.state import Frame
from rvm.stmt import Free
from rvm.transform.derived import MARKS

TYPES = {"f64": np.float64, "f32": np.float32, "c128": np.complex128}
SCALES = {"f64": (-200, -30, 0, 30, 200), "f32": (-20, 0, 20), "c128": (-200, 0, 200)}
LINES = (
    "add e, x * x * 0.3\n    add e, sin(x) * y",
    "mul e, 1.5 + 0.2 * tanh(y)",
    "sub e, exp(-(x * x)) / (2.0 + 0.1 * y)",
    "for i = 0 to len(v) - 1\n        add e, v[i] * x\n    end",
    "for i = 0 to len(v) - 1\n        add v[i], 0.1 * x * y\n    end",
    "add v, x * 0.7",
    "mul v, 1.25",
    "swap v[0], e",
    "neg e",
    "add e, sum(v * v) * 0.1",
    "routine r{k}\n        alloc t{k}: T = x * y\n        add t{k}, y\n    end\n"
    "    add e, t{k} * 0.5\n    undo r{k}",
    "call inner(e, x, v)",
    "uncall inner(e, y, v)",
    "if len(v) > 2\n        add e, x\n    else\n        sub e, y\n    end",
)
INNER = """
func inner(e: T, x: T, v: T[n])
    add e, x * x
    mul e, 0.75
    add v[1], x * 0.2
"""
OWN = ("x", "y", "v", "e")
CHANGED = ("v", "e")


def body(rng: random.Random) -> str:
    """Some lines of a function of x, y, v and e, of which it changes the last two."""
    chosen = rng.sample(LINES, rng.randint(2, 6))
    return "\n".join(f"    {line}".replace("{k}", str(k)) for k, line in enumerate(chosen))


def head(name: str, suffix: str = "") -> str:
    pairs = [(p, "T[n]" if p == "v" else "T") for p in OWN]
    more = [(p + suffix, t) for p, t in pairs] if suffix else []
    return f"func {name}({', '.join(f'{p}: {t}' for p, t in (*pairs, *more))})"


def program(seed: int, t: str, mark: str, undo: bool) -> str:
    """A text with a function `outer` that calls a derivative, or takes one back, twice.

    Of what that only reads bars are left out, at random; a tangent has them all.
    """
    rng = random.Random(seed)
    lines = body(rng)
    passed = [
        "_" if mark != "." and p not in CHANGED and rng.random() < 0.5 else f"{p}_b" for p in OWN
    ]
    call = f"    {'uncall' if undo else 'call'} f{mark}(x, y, v, e; {', '.join(passed)})\n"
    between = rng.choice(("", "    add x, 0.25 * y\n", "    mul e_b, 0.5\n"))
    text = f"{INNER}\n{head('f')}\n{lines}\n\n{head('outer', '_b')}\n{call}{between}{call}"
    return text.replace("T", t)


def inputs(seed: int, t: str, scale: int) -> dict[str, Any]:
    """Values near one, and accumulators times 2 ** scale."""
    rng = np.random.default_rng(seed)

    def draw(p: str) -> Any:
        x = rng.normal(size=4)
        if t == "c128":
            x = x + 1j * rng.normal(size=4)
        x = x.astype(TYPES[t])
        return x if p == "v" else x[0].item()

    far = TYPES[t](2.0**scale)
    bars = {f"{p}_b": draw(p) * far for p in OWN}
    given = {p: draw(p) for p in OWN} | bars
    return {p: v if isinstance(v, np.ndarray) else np.asarray(v).item() for p, v in given.items()}


@thin
@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("undo", [False, True])
@pytest.mark.parametrize("mark", MARKS)
@sized
def test_right_programs_come_back(mark: str, undo: bool, t: str) -> None:
    for seed in range(part(40)):
        outer = rvm.assemble(program(seed, t, mark, undo)).outer
        for k, engine in enumerate(first_and_another(ENGINES, (seed, mark, undo, t))):
            given = inputs(seed, t, SCALES[t][(seed + k) % len(SCALES[t])])
            machine = rvm.Machine(outer.program, "outer", engine=engine, **given)
            machine.run()
            machine.run_back()
            assert machine.state.at_end and machine.time == 0
            # As two calls it is the same, but for what a machine would know.
            (~outer)(**outer(**given, engine=engine), engine=engine)


def frames(machine: rvm.Machine) -> list[Frame]:
    """Copies of a machine's frames, facing forwards."""
    state = deepcopy(machine.state)
    if state.direction < 0:
        state.turn()
    return state.frames


def position(machine: rvm.Machine) -> list[tuple[str, bool, int]]:
    """Where a machine stands, seen facing forwards."""
    return [(f.code.name, f.code.undo, f.pc) for f in frames(machine)]


STRAYING = """
func f(y: f64, x: f64, k: f64)
    alloc t: f64 = sin(k * x)
    call g(t, x)
    add y, t ** 2
    uncall g(t, x)
    free t = sin(k * x)

func g(t: f64, x: f64)
    alloc c: f64 = cos(x)
    add t, c * c
    free c = cos(x)

func twice(y: f64, x: f64, k: f64, y_b: f64, x_b: f64)
    extern forward
        print "there"
    end
    call f'(y, x, k; y_b, x_b, _)
    add y, 0.5 * x
    uncall f'(y, x, k; y_b, x_b, _)
    call f'(y, x, k; y_b, x_b, _)
    extern backward
        print "back"
    end
"""
"""Adjoints that pass over gains and calls, but only forwards: their way back is another one."""


def straying() -> list[tuple[rvm.Library, str, dict[str, Any]]]:
    """Programs whose way back without a log takes other ticks, and inputs."""
    x = {"y": 0.3, "x": 0.7, "k": 2.0}
    f = rvm.assemble(STRAYING)
    derived, bars = f.f.gradient_program, {"y_bar": 0.0, "x_bar": 0.5, "k_bar": 0.25}
    found = [(f, "twice", x | {"y_b": 1.0, "x_b": 0.25}), (derived, "f_gradient", x | bars)]
    found.append((derived, "f_adjoint", x | bars | {"y_bar": -1.5}))
    for seed, mark, undo in ((7, "'", False), (9, "'", True), (20, "~'", False)):
        outer = rvm.assemble(program(seed, "f64", mark, undo))
        found.append((outer, "outer", inputs(seed, "f64", 0)))
    return found


@sized
@thin
@pytest.mark.parametrize("engine", ENGINES)
def test_from_anywhere_the_way_back_leads_to_the_beginning(engine: str) -> None:
    """Also from the middle of an adjoint, where some of what it has made is dropped by now."""
    for library, name, given in straying()[: part(6)]:
        length = rvm.Machine(library.program, name, **deepcopy(given), output=[].append).run().time
        for time in range(0, length, 1 if engine == LAW else 7):
            options = {"engine": engine, "output": [].append}
            machine = rvm.Machine(library.program, name, **deepcopy(given), **options)
            assert machine.step(time) == time
            result = machine.run_back().result
            assert machine.time == 0
            assert all(np.allclose(result[n], v, 1e-12, 1e-12) for n, v in given.items()), time


@sized
@thin
@pytest.mark.parametrize(("engine", "strict"), [*((e, False) for e in ENGINES), (LAW, True)])
def test_times_are_those_of_the_way_there(engine: str, strict: bool) -> None:
    """A time is one place, from whichever side a machine comes to it; the beginning is time 0."""
    rng = random.Random(engine)
    for library, name, given in straying()[: part(6)]:
        image = image_of(library.program)
        assert image.strays(name)
        options = {"strict": strict, "output": [].append}
        way = rvm.Machine(library.program, name, **deepcopy(given), engine=LAW, **options)
        places = [position(way)]
        while way.step():
            places.append(position(way))
        machine = rvm.Machine(
            library.program, name, **deepcopy(given), engine=engine, **options
        ).run()
        end = deepcopy(dict(machine.result))
        for _ in range(2):
            assert machine.time == len(places) - 1
            for step in (1, 3, rng.randrange(1, len(places)), 10**6):
                time = max(machine.time - step, 0)
                assert (machine.seek(time), machine.time) == (time, time)
                assert machine.direction == -1 and position(machine) == places[time]
                time = rng.randrange(machine.time, len(places))
                assert machine.seek(time) == time and position(machine) == places[time]
            machine.run()
            assert machine.step(-2) == 2 and machine.step(2) == 2
            machine.run_back()
            assert machine.time == 0 and machine.state.at_end and machine.step(-1) == 0
            assert all(np.allclose(machine.result[n], v, 1e-12, 1e-12) for n, v in given.items())
            machine.run()
            assert all(np.allclose(machine.result[n], v, 1e-12, 1e-12) for n, v in end.items())


@thin
@pytest.mark.parametrize("undo", [False, True])
@pytest.mark.parametrize("mark", MARKS)
@sized
def test_any_time_has_the_state_of_a_run_to_it(mark: str, undo: bool) -> None:
    """From whichever side, and although accumulators begin as zero: bits, where the way back may
    take other ticks; elsewhere up to the rounding of the way back."""
    for seed in range(part(40)):
        outer = rvm.assemble(program(seed, "f64", mark, undo)).outer
        rng = random.Random(seed)
        for engine in first_and_another(ENGINES, (seed, mark, undo)):
            given = inputs(seed, "f64", 0) | {"e": 0.0, "y_b": 0.0}
            length = (
                rvm.Machine(outer.program, "outer", engine=engine, **deepcopy(given)).run().time
            )
            machine = rvm.Machine(outer.program, "outer", engine=engine, **deepcopy(given))
            for _ in range(6):
                time = rng.randrange(length + 1)
                fresh = rvm.Machine(outer.program, "outer", engine=engine, **deepcopy(given))
                assert machine.seek(time) == fresh.seek(time) == time
                assert position(machine) == position(fresh)
                have, want = ([f.regs for f in frames(m)] for m in (machine, fresh))
                if image_of(outer.program).forgets("outer"):
                    assert bits(have) == bits(want), (seed, engine, time)
                    assert machine.info == fresh.info
                    continue
                for one, two in zip(
                    machine.registers().values(), fresh.registers().values(), strict=True
                ):
                    assert np.allclose(one, two, 1e-12, 1e-12), (seed, engine, time)


@sized
def test_a_session_goes_back_over_the_places_of_the_way_there() -> None:
    for library, name, given in straying()[: part(6)]:
        way = rvm.Machine(library.program, name, **deepcopy(given), output=[].append, engine=LAW)
        places = [position(way)]
        while way.step():
            places.append(position(way))
        session = Session(library, name, deepcopy(given))
        session.goto(len(places) - 1)
        for time in reversed(range(len(places))):
            assert session.time == time and position(session.machine) == places[time]
            session.instruction(1, -1)


@sized
def test_a_session_undoes_by_the_inverse_code_from_anywhere() -> None:
    """To the beginning, and by some ticks."""
    rng = random.Random(4)
    for library, name, given in straying()[: part(6)]:
        session = Session(library, name, deepcopy(given))
        length = session.find_end()
        for time in [length, *rng.sample(range(1, length), 5)]:
            for ticks in (1, rng.randrange(1, time + 1), None):
                session.restart()
                session.goto(time)
                before = session.machine.work
                stop = session.compute_back(ticks)
                assert stop.reason == ("start" if session.machine.time == 0 else "step")
                if stop.reason == "start":
                    found = session.machine.registers()
                    assert all(np.allclose(found[n], v, 1e-12, 1e-12) for n, v in given.items())
                else:
                    assert session.machine.work - before == ticks


@pytest.mark.parametrize("engine", ENGINES)
@some
def test_a_run_goes_on_from_a_way_back_that_was_stopped(engine: str) -> None:
    for library, name, given in straying()[: part(6)]:
        machine = rvm.Machine(library.program, name, **deepcopy(given), engine=engine)
        end = bits(machine.run().result)
        length = machine.time
        for time in range(0, length, 11):
            machine.seek(length)
            machine.state.turn()
            machine.go(length - time)
            assert bits(machine.run().result) == end and machine.time == length


def test_what_is_run_again_on_a_way_back_is_not_told_again() -> None:
    said: list[str] = []
    library, name, given = straying()[0]
    machine = rvm.Machine(library.program, name, **given, output=said.append).run()
    machine.step(-3)
    machine.run()
    assert said == ["there"]
    machine.run_back()
    assert said == ["there", "back"]


@pytest.mark.parametrize("undo", [False, True])
@sized
def test_copies_that_gradients_keep_are_back_by_construction(undo: bool) -> None:
    for seed in range(part(200)):
        image = image_of(rvm.assemble(program(seed, "f64", "'", False)))
        for name in image.program:
            code = image.code(name, undo) if name.startswith("f'") else ()
            for pc in range(len(code)):
                for stmt in code.stmts(pc):
                    if isinstance(stmt, Free):
                        assert stmt.is_known or stmt.returns, (seed, name, stmt)


FORGOTTEN = """
func outer(x: T, y: T, v: T[n], e: T, x_b: T, e_b: T, out: T)
    alloc t: T
    alloc t_b: T
    add t, e
    add t_b, e_b
    call f'(x, y, v, t; x_b, _, _, t_b)
    add out, t_b
    sub t_b, e_b
    sub t, e
    free t_b
    free t
"""
READS = """
func f(x: T, y: T, v: T[n], e: T)
    add e, x * x * y
    for i = 0 to n - 1
        add e, v[i] * sin(x)
    end
"""


@wide
@pytest.mark.parametrize("t", TYPES)
@sized
def test_a_forgotten_undo_is_refused(t: str) -> None:
    wrongs = ("    sub t, e\n", "    sub t_b, e_b\n", "    add t, e\n")
    text = (READS + FORGOTTEN).replace("T", t)
    assert all(wrong in text for wrong in wrongs)
    right = rvm.assemble(text).outer
    forgotten = [rvm.assemble(text.replace(wrong, "")).outer for wrong in wrongs]
    for engine in first_and_another(ENGINES, t):
        for seed in range(part(8)):
            for scale in SCALES[t]:
                given = inputs(seed, t, scale) | {"out": 0.0}
                given = {p: given[p] for p in ("x", "y", "v", "e", "x_b", "e_b", "out")}
                right(**given, engine=engine)
                for wrong in forgotten:
                    with pytest.raises(InvertibilityError) as caught:
                        wrong(**given, engine=engine)
                    assert caught.value.code == "R001"
