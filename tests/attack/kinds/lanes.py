"""Random programs over many inputs at once: every lane is what a single run of it is."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attack.cases import Broken, InputKind
from attack.kinds.programs import read, written
from attack.mutations import texts
from attack.reduction import LINES
from attack.runs import LIMITS, bits, copied
from rvm.engines import LAW
from rvm.faults import InternalError, RvmError
from rvm.numbers import system
from rvm.program import Function, Program
from rvm.run.lanes import LaneRun, run_lanes
from rvm.run.machine import Machine
from rvm.state import Options
from rvm.types import Array, Stack, elem_of

FEW, MANY = 4, 35
"""Lanes in NumPy; and in machine code, which takes them in groups from 32 on."""
_EXACT = texts(
    """+ - * / neg abs sign sqrt square min max relu floor // % select identity detach & | ^ ~ << >>
    rotl rotr < <= > >= == != and or not real imag conj complex bool i32 i64 u8 u32 u64 f32 f64 len
    dim for_end gather scatter transpose sum"""
)
"""Functions that lanes in NumPy round as single runs do."""


def _make(rng: random.Random) -> bytes:
    """A program; on a tenth of them machine code."""
    how = "native" if rng.random() < 0.1 else "vector"
    return written("sound", rng.randrange(10**9), how)


def _attack(data: bytes, folder: Path) -> bool:
    """Run lanes, and each lane by itself on the reference engine."""
    found = read(data)
    program = found.program
    native = "native" in found.flags
    lanes = [found.inputs(k) for k in range(MANY if native else FEW)]
    some = random.Random(found.seed)
    count = program.function("main").n_args
    shared = some.sample(range(count), some.randrange(count)) if some.random() < 0.5 else []
    given = [_raw(program, "main", values) for values in lanes]
    for regs in given:
        for k in shared:
            regs[k] = copied(given[0][k])
    run = _in_lanes(program, "main", given, shared, "native" if native else "vector")
    _compare(program, "main", given, run)
    return True


def _raw(program: Program, name: str, inputs: Mapping[str, Any]) -> list[Any]:
    """The raw parameters of a single run, before it."""
    regs = Machine.start(program, name, copied(inputs)).state.frames[0].regs
    return regs[: program.function(name).n_args]


def _in_lanes(
    program: Program, name: str, given: Sequence[list[Any]], shared: Sequence[int], engine: str
) -> LaneRun:
    """A run with a lane for each of the inputs; registers in `shared` are given once."""
    function = program.function(name)
    varying = {
        k: _by_lane(function, k, [regs[k] for regs in given])
        for k in range(function.n_args)
        if k not in shared
    }
    if not varying:
        varying[0] = _by_lane(function, 0, [regs[0] for regs in given])
    options = Options(engine=engine, max_steps=LIMITS["max_steps"])
    return run_lanes(program, name, copied(given[0]), varying, options)


def _by_lane(function: Function, k: int, values: Sequence[Any]) -> Any:
    """Raw values of a register, one a lane, as `run_lanes` takes them."""
    t = function.registers[k].type
    if isinstance(t, Stack):
        return [list(v) for v in values]
    return np.array(values, system(elem_of(t)).dtype)


def _compare(program: Program, name: str, given: Sequence[list[Any]], run: LaneRun) -> None:
    """Raise Broken unless every lane ended as a single run of it does."""
    function = program.function(name)
    options = Options(engine=LAW, max_steps=LIMITS["max_steps"])
    for lane, regs in enumerate(given):
        start = copied(regs)
        machine = Machine.entered(program, name, copied(regs), options, False)
        error: RvmError | None = None
        try:
            machine.run()
        except InternalError:
            raise
        except RvmError as caught:
            error = caught
        found = run.errors.get(lane)
        if (error is None) != (found is None) or str(error) != str(found):
            raise Broken("a lane ends otherwise than a single run", f"{lane}: {error}\n{found}")
        # The registers of a failed lane hold its inputs.
        wanted = start if error is not None else machine.state.frames[0].regs
        for k in range(function.n_args):
            _same(function, k, lane, run.regs[k], wanted[k])
        if error is None and (run.ticks[lane], run.erased[lane]) != (
            machine.time,
            machine.erased_bits,
        ):
            raise Broken("a lane has other ticks or erased bits than a single run", str(lane))


def _same(function: Function, k: int, lane: int, held: Any, wanted: Any) -> None:
    """Raise Broken unless a lane's register has the bits of a single run's."""
    t = function.registers[k].type
    if isinstance(t, Stack):
        value = held[lane] if held and isinstance(held[0], list) else held
        found, law = bits(list(map(_plain, value))), bits(list(wanted))
    else:
        rank = t.rank if isinstance(t, Array) else 0
        value = held[lane] if np.ndim(held) > rank else held
        dtype = system(elem_of(t)).dtype
        found, law = bits(np.asarray(value, dtype)), bits(np.asarray(wanted, dtype))
    if found != law:
        name = function.registers[k].name
        seen = f"lane {lane}, {name}: {value} is not {wanted}"
        raise Broken(f"a lane's {t} differs from a single run's", seen)


def _plain(value: Any) -> Any:
    """A NumPy number as the Python number it is."""
    return value.item() if isinstance(value, np.generic) else value


KIND = InputKind("lanes", "random programs in lanes", ".rasm", _make, _attack, (LINES,), share=0.9)
