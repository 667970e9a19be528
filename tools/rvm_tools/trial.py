"""One trial: a function run there and back on one engine, and what became of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rvm.binding import snapshot
from rvm.faults import LimitError, RvmError
from rvm.machine import Machine
from rvm.numbers import system
from rvm.program import Function, Layout, Program, Record
from rvm.state import Options
from rvm.types import Array, Stack, elem_of
from rvm_tools.drift import Drift, drifts


@dataclass(slots=True)
class Trial:
    """What happened.  `ended_by` is the error that turned the run round, if one did."""

    engine: str
    steps: int = 0
    regs: list[Any] = field(default_factory=list)
    """The parameters at the far end."""
    ended_by: RvmError | None = None
    failed: RvmError | None = None
    """The error on the way back, of which there should be none."""
    lost: list[Drift] = field(default_factory=list)
    erased_bits: int = 0
    residue_bytes: int = 0


class _Silence(dict[str, Callable[..., None]]):
    """Callbacks by any name, which do nothing."""

    def get(self, name: str, default: Any = None) -> Any:
        return lambda *_: None


def attempt(
    program: Program,
    function: Function,
    inputs: Mapping[str, Any],
    *,
    engine: str,
    strict: bool,
    tolerance: float,
    max_steps: int | None = None,
) -> Trial:
    """Run `function` to its end, to an error or to the limit, and from there back.

    The arrays of `inputs` are used as they are.  What the program prints is dropped.
    """
    options = Options(
        engine=engine,
        strict=strict,
        tolerance=tolerance,
        max_steps=max_steps,
        output=lambda _: None,
        callbacks=_Silence(),
    )
    machine = Machine.start(program, function.name, inputs, options)
    start = snapshot(function, machine.state.frames[0].regs)
    trial = Trial(machine.engine)
    try:
        machine.run()
    except RvmError as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        trial.ended_by = error
    frame = machine.state.frames[0]
    trial.steps = machine.time
    trial.regs = snapshot(function, frame.regs)
    trial.erased_bits = machine.erased_bits
    trial.residue_bytes = machine.residue_bytes
    machine.options = replace(options, max_steps=None)
    try:
        machine.run_back()
    except RvmError as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        trial.failed = error
        return trial
    trial.lost = drifts(function, start, frame.regs, tolerance)
    return trial


def was_limited(trial: Trial) -> bool:
    """Whether the run was turned round by the limit on steps."""
    return isinstance(trial.ended_by, LimitError) and trial.ended_by.code == "R010"


def differences(
    function: Function, regs: Sequence[Any], expected: Mapping[str, Any], within: float
) -> dict[str, tuple[Any, Any]]:
    """The parameters that are not what is expected: (what they are, what they should be)."""
    out: dict[str, tuple[Any, Any]] = {}
    for param in function.params:
        if param.name not in expected:
            continue
        for slot, want in _flat(function, param.layout, expected[param.name]):
            if not _agree(function, slot, regs[slot], want, within):
                out[function.registers[slot].name] = (regs[slot], want)
    return out


def _flat(function: Function, layout: Layout, value: Any) -> Iterator[tuple[int, Any]]:
    if isinstance(layout, Record):
        for f, inner in layout.fields:
            yield from _flat(function, inner, value[f])
        return
    t = function.registers[layout].type
    sys = system(elem_of(t))
    if isinstance(t, Array):
        yield layout, value
    elif isinstance(t, Stack):
        yield layout, [sys.from_python(v) for v in value]
    else:
        yield layout, sys.from_python(value)


def _agree(function: Function, slot: int, have: Any, want: Any, within: float) -> bool:
    t = function.registers[slot].type
    sys = system(elem_of(t))
    a, b = np.asarray(have, sys.dtype), np.asarray(want, sys.dtype)
    if a.shape != b.shape:
        return False
    if sys.type.is_fixed:
        unit = 2.0**-sys.type.frac
        far = np.abs(a.astype(object) - b.astype(object)) * unit
        return bool(np.all(far <= within * np.maximum(1.0, np.abs(b * unit))))
    return sys.same(a, b) or sys.close(a, b, within)
