"""Runs in lanes beside single runs of the reference engine, and how they are compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import rvm
from rvm.numbers import system
from rvm.program import Function, Program
from rvm.run.lanes import LaneRun, run_lanes
from rvm.run.machine import Machine
from rvm.types import Array, Stack, elem_of

Inputs = Mapping[str, Any]


def copied(value: Any) -> Any:
    """A copy of an input, deep enough that a run does not touch the original."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, Mapping):
        return {k: copied(v) for k, v in value.items()}
    return list(value) if isinstance(value, list) else value


def raw(program: Program, name: str, inputs: Inputs) -> list[Any]:
    """The raw parameters of a single run, before it."""
    copies = {k: copied(v) for k, v in inputs.items()}
    regs = Machine.start(program, name, copies).state.frames[0].regs
    return regs[: program.function(name).n_args]


def by_lane(function: Function, k: int, values: Sequence[Any]) -> Any:
    """Raw values of a register, one a lane, as `run_lanes` takes them."""
    t = function.registers[k].type
    if isinstance(t, Stack):
        return list(values)
    return np.array(values, system(elem_of(t)).dtype)


def in_lanes(
    program: Program,
    name: str,
    lanes: Sequence[Inputs],
    shared: Sequence[int] = (),
    **options: Any,
) -> LaneRun:
    """A run with one lane for each of the inputs; registers in `shared` are given once."""
    function = program.function(name)
    block, undo = options.pop("block", None), options.pop("undo", False)
    options.setdefault("engine", "vector")
    given = [raw(program, name, inputs) for inputs in lanes]
    varying = {
        k: by_lane(function, k, [regs[k] for regs in given])
        for k in range(function.n_args)
        if k not in shared
    }
    return run_lanes(
        program, name, given[0], varying, rvm.Options(**options), undo=undo, block=block
    )


def single(
    program: Program, name: str, inputs: Inputs, undo: bool = False, **options: Any
) -> tuple[list[Any], int, int, rvm.RvmError | None]:
    """A run by itself on the reference engine: registers, ticks, bits erased, error."""
    copies = {k: copied(v) for k, v in inputs.items()}
    made = rvm.Options(engine="reference", **options)
    machine = Machine.start(program, name, copies, made, undo=undo)
    start = [copied(v) for v in machine.state.frames[0].regs]
    try:
        machine.run()
    except rvm.RvmError as error:
        return start, machine.time, machine.erased_bits, error
    return machine.state.frames[0].regs, machine.time, machine.erased_bits, None


def agree(
    program: Program,
    name: str,
    lanes: Sequence[Inputs],
    run: LaneRun,
    within: float = 0.0,
    undo: bool = False,
    ticks: bool = True,
    **options: Any,
) -> None:
    """Every lane is what a single run of it is; inexact numbers `within` a relative distance."""
    function = program.function(name)
    for lane, inputs in enumerate(lanes):
        regs, time, erased, error = single(program, name, inputs, undo, **options)
        assert (lane in run.errors) == (error is not None), (lane, error, run.errors)
        if error is not None:
            assert str(run.errors[lane]) == str(error)
            assert run.errors[lane].time == error.time
            # The registers of a failed lane hold its inputs.
        for k in range(function.n_args):
            held = run.regs[k]
            value = held[lane] if is_by_lane(function, k, held) else held
            same(function, k, value, regs[k], within, (name, lane))
        if error is None and ticks:
            assert run.ticks[lane] == time, lane
            if not within:
                assert run.erased[lane] == erased, lane


def is_by_lane(function: Function, k: int, held: Any) -> bool:
    """Whether a result has a lanes' axis."""
    t = function.registers[k].type
    if isinstance(t, Stack):
        return bool(held) and isinstance(held[0], list)
    return bool(np.ndim(held) > (t.rank if isinstance(t, Array) else 0))


def same(
    function: Function, k: int, value: Any, want: Any, within: float, what: object = ""
) -> None:
    """A register's value is what it must be: bit for bit, or within a relative distance."""
    t = function.registers[k].type
    at = (what, function.registers[k].name, value, want)
    a, b = np.asarray(value), np.asarray(want)
    assert a.shape == b.shape, at
    if elem_of(t).is_exact:
        assert np.array_equal(a, b), at
    elif within:
        scale = max(1.0, float(np.max(np.abs(b[np.isfinite(b)]), initial=0.0)))
        assert np.allclose(a, b, rtol=within, atol=within * scale, equal_nan=True), at
    else:
        dtype = system(elem_of(t)).dtype
        assert system(elem_of(t)).same(a.astype(dtype), b.astype(dtype)), at


def ulps(a: float, b: float) -> float:
    """How many units in the last place of b two numbers are apart."""
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    return abs(a - b) / math.ulp(b)


def perturbed(value: Any, rng: np.random.Generator) -> Any:
    """An input with its inexact numbers moved a little; exact ones as they are."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "fc":
            return value.copy()
        return (value * (1 + 0.05 * rng.standard_normal(value.shape))).astype(value.dtype)
    if isinstance(value, Mapping):
        return {k: perturbed(v, rng) for k, v in value.items()}
    if isinstance(value, (float, complex)):
        return value * (1 + 0.05 * rng.standard_normal())
    return copied(value)


def stacked(values: Sequence[Any]) -> Any:
    """Inputs of several runs as one argument of `map`."""
    first = values[0]
    if isinstance(first, Mapping):
        return {k: stacked([v[k] for v in values]) for k in first}
    return np.array(values) if isinstance(first, np.ndarray) else list(values)


def flat(result: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A result's numbers and arrays by dotted names."""
    out = {}
    for name, value in result.items():
        if isinstance(value, Mapping):
            out |= flat(value, f"{prefix}{name}.")
        else:
            out[prefix + name] = value
    return out
