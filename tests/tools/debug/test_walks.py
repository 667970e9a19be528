"""However a session came to a time, it finds what a fresh run to that time finds."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pytest
from attack.programs.sound import inputs, program
from hypothesis import given
from hypothesis import strategies as st
from rvm_tools.debug import Session, Stop
from rvm_tools.debug.passing import settle
from sizes import examples, thin

import rvm
from rvm.run.machine import Machine
from rvm.state import Options
from rvm.types import elem_of

MOVES = ("s", "rs", "n", "rn", "si", "rsi", "fin", "rfin", "c", "rc", "goto")


def picture(machine: Machine) -> list[Any]:
    """A machine's frames with positions and registers, to be compared."""
    out: list[Any] = []
    for frame in machine.state.frames:
        regs = [v.tolist() if isinstance(v, np.ndarray) else copy(v) for v in frame.regs]
        out.append((frame.code.name, frame.code.undo, frame.pc, regs))
    return out


def fresh(seed: int, time: int) -> Machine:
    """A run of the reference engine, forwards only."""
    machine = Machine(rvm.assemble(program(seed)), "main", engine="reference", **inputs(seed))
    machine.step(time)
    settle(machine.state)
    return machine


def session_of(seed: int) -> Session:
    made = rvm.assemble(program(seed))
    return Session(made, "main", inputs(seed), say=lambda line: None)


def move(session: Session, name: str, number: int, length: int) -> Stop:
    """A command by its name; `number` is its count or time."""
    way = -1 if name.startswith("r") else 1
    plain = name.removeprefix("r")
    if plain == "goto":
        return session.goto(number % (length + 1))
    if plain == "fin":
        return session.finish(way)
    if plain == "c":
        return session.resume(way)
    how = {"s": session.step, "n": session.next, "si": session.instruction}[plain]
    return how(number % 7 + 1, way)


moves = st.lists(st.tuples(st.sampled_from(MOVES), st.integers(0, 10_000)), min_size=1, max_size=8)


@pytest.mark.deep
@examples(40)
@given(seed=st.integers(0, 10_000), walk=moves, line=st.integers(0, 200))
def test_walks_agree_with_a_fresh_run(seed: int, walk: list[tuple[str, int]], line: int) -> None:
    session = session_of(seed)
    length = session.find_end()
    lines = session.program.sources[0].text.count("\n")
    try:
        session.break_at(str(line % lines + 1))
    except rvm.UsageError:
        session.break_at("main")
    for name, number in walk:
        before = session.time
        stop = move(session, name, number, length)
        assert stop.reason not in ("error", "limit"), stop
        assert session.time == stop.time
        assert session.machine.direction == 1
        if name != "goto":
            assert (stop.time - before) * (-1 if name.startswith("r") else 1) >= 0
        assert repr(picture(session.machine)) == repr(picture(fresh(seed, session.time)))


@pytest.mark.deep
@examples(20)
@given(seed=st.integers(0, 10_000), walk=moves)
def test_walks_in_strict_mode_agree_to_the_bit(seed: int, walk: list[tuple[str, int]]) -> None:
    """The log of residues is used up and refilled, however often the direction changes."""
    made = rvm.assemble(program(seed))
    options = Options(strict=True)
    session = Session(made, "main", inputs(seed), options, say=lambda line: None)
    length = session.find_end()
    for name, number in walk:
        move(session, name, number, length)
        session.select(0)
        session.seek_write("x0", -1 if number % 2 else 1)
        while len(session.frames) > 1:
            session.finish(-1)
        machine = Machine(made, "main", engine="reference", strict=True, **inputs(seed))
        machine.step(session.time)
        assert repr(picture(session.machine)) == repr(picture(machine))


@pytest.mark.deep
@examples(25)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_steps_forwards_and_back_visit_the_same_places(seed: int, data: st.DataObject) -> None:
    """What `s` visits on the way out, `rs` visits on the way back; so with n and c."""
    session = session_of(seed)
    name = data.draw(st.sampled_from(["s", "n", "c"]))
    if name == "c":
        lines = session.program.sources[0].text.count("\n")
        for _ in range(3):
            where = str(data.draw(st.integers(1, lines)))
            try:
                session.break_at(where)
            except rvm.UsageError:
                continue
    out, back = [], []
    while len(out) < 500:
        stop = move(session, name, 0, 0)
        if stop.reason == "end":
            break
        out.append(stop.time)
    session.goto(1 << 60)
    while len(back) < 500:
        stop = move(session, "r" + name, 0, 0)
        if stop.reason == "start":
            break
        back.append(stop.time)
    if len(out) < 500:
        assert [t for t in back if t] == [t for t in reversed(out) if t]


@pytest.mark.deep
@examples(25)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_a_watch_stops_at_every_change_and_at_no_other(seed: int, data: st.DataObject) -> None:
    """Against a record of all values, made by stepping through the whole run."""
    session = session_of(seed)
    function = session.frame.code.function
    name = data.draw(st.sampled_from([p.name for p in function.params]))
    machine = fresh(seed, 0)
    seen = [_value(machine, name)]
    while machine.step():
        seen.append(_value(machine, name))
    changed = [t for t in range(1, len(seen)) if not _same(seen[t], seen[t - 1])]
    session.watch(name)
    found = []
    while (stop := session.resume()).reason == "watchpoint":
        found.append(stop.time)
    assert stop.reason == "end"
    assert set(changed) <= set(found) | _inside_calls(seed, found)
    back = []
    while (stop := session.resume(-1)).reason == "watchpoint":
        back.append(stop.time + 1)
    assert stop.reason == "start"
    if all(elem_of(r.type).is_exact for r in function.registers):
        assert sorted(back) == found


def _value(machine: Machine, name: str) -> Any:
    """A parameter of the outermost function, through the calls that it was passed to."""
    value = machine.result[name]
    return value.copy() if isinstance(value, np.ndarray) else value


def _same(a: Any, b: Any) -> bool:
    return bool(np.array_equal(a, b))


def _inside_calls(seed: int, found: list[int]) -> set[int]:
    """Times at which a call returns a scalar whose change inside it was stopped at before."""
    out = set()
    machine = fresh(seed, 0)
    depth, last = 1, 0
    while machine.step():
        now = len(machine.state.frames)
        if now < depth and any(last <= t < machine.time for t in found):
            out.add(machine.time)
        if (now != depth and now == 1) or (now == 2 and depth == 1):
            last = machine.time
        depth = now
    return out


@thin
@pytest.mark.parametrize("name", ["s", "n", "si", "c"])
def test_nothing_is_recorded(name: str) -> None:
    """A session's own data are as many after a long run as after a short one."""
    source = "func f(x: i64, n: i64)\n    for i = 1 to n\n        add x, i\n    end\n"
    session = Session(rvm.assemble(source), "f", {"x": 0, "n": 200_000}, say=lambda line: None)
    session.break_at("3", "i == 100")
    move(session, "c", 0, 0)
    sizes = []
    for time in (1_000, 400_000):
        session.goto(time)
        for _ in range(5):
            move(session, name, 3, 0)
        sizes.append(
            (
                len(session._visited.times) <= 1000,
                len(session.frames),
                len(session._travel._armer._armories),
            )
        )
    assert sizes[0] == sizes[1]
