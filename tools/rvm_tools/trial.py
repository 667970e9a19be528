"""A trial: a function run forwards and back on one engine, and its parameters afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.derive.target import Target
from rvm.faults import LimitError, RvmError
from rvm.numbers import NumberSystem, system
from rvm.program import Function, Layout, Program, Record
from rvm.run.backup import snapshot
from rvm.run.binding import held_in
from rvm.run.machine import Machine
from rvm.state import Options, Silence
from rvm.types import Array, Stack, elem_of
from rvm_tools.digits import LostDigits, lost_digits
from rvm_tools.drift import Drift, drifts
from rvm_tools.show import number_text


@dataclass(slots=True)
class Trial:
    """The outcome. `ended_by` is the error that turned the run back, if there was one."""

    engine: str
    steps: int = 0
    regs: list[Any] = field(default_factory=list)
    """The parameters at the far end."""
    ended_by: RvmError | None = None
    failed: RvmError | None = None
    """The error on the way back; there should be none."""
    lost: list[Drift] = field(default_factory=list)
    erased_bits: int = 0
    residue_bytes: int = 0
    digits: list[LostDigits] | None = None
    """Results that have lost their digits; None if not known, or not requested."""


def attempt(
    program: Program,
    function: Function,
    inputs: Mapping[str, Any],
    *,
    engine: str,
    strict: bool,
    tolerance: float | None,
    max_steps: int | None = None,
    bits: str = "stated",
    estimates: bool = False,
) -> Trial:
    """Run `function` to its end, to an error or to the limit, and from there back.

    The arrays of `inputs` are used as they are.  What the program prints is dropped.  With
    `estimates` it is looked which results have lost their digits.
    """
    options = Options(
        engine=engine,
        strict=strict,
        tolerance=tolerance,
        max_steps=max_steps,
        output=lambda _: None,
        callbacks=Silence(),
        bits=bits,
    )
    machine = Machine.start(program, function.name, inputs, options)
    start = snapshot(function, machine.state.frames[0].regs)
    trial = Trial(machine.engine)
    try:
        machine.run()
    except RvmError as error:
        trial.ended_by = error
    frame = machine.state.frames[0]
    trial.steps = machine.time
    trial.regs = snapshot(function, frame.regs)
    trial.erased_bits = machine.erased_bits
    trial.residue_bytes = machine.residue_bytes
    if estimates and trial.ended_by is None:
        # Every engine has the same bits; this one begins soon, and goes on well.
        target = Target(program, function.name, options=Options(engine="python"))
        trial.digits = lost_digits(target, start, trial.regs, trial.steps)
    machine.options = replace(options, max_steps=None)
    try:
        machine.run_back()
    except RvmError as error:
        trial.failed = error
        return trial
    trial.lost = drifts(function, start, frame.regs, tolerance, trial.regs)
    return trial


def was_limited(trial: Trial) -> bool:
    """Whether the run was turned back by the limit on steps."""
    return isinstance(trial.ended_by, LimitError) and trial.ended_by.code == "R010"


def same(function: Function, a: Trial, b: Trial, within: float = 0.0) -> bool:
    """Whether two trials took as many steps, ended alike, and had the same bits at the far end.

    Floats may differ by the relative amount `within`.
    """
    codes = [None if t.ended_by is None else t.ended_by.code for t in (a, b)]
    if codes[0] != codes[1] or a.steps != b.steps:
        return False
    off = drifts(function, a.regs, b.regs, tolerance=within, between=a.regs)
    return all(within and drift.within for drift in off)


def differences(
    function: Function, regs: Sequence[Any], expected: Mapping[str, Any], within: float
) -> dict[str, tuple[str, str]]:
    """The unexpected values: the actual and the expected one; for an array, one number."""
    out: dict[str, tuple[str, str]] = {}
    for param in function.params:
        if param.name not in expected:
            continue
        for slot, want in _flat(function, param.layout, expected[param.name]):
            register = function.registers[slot]
            sys, name = system(elem_of(register.type)), register.name
            a, b = np.asarray(regs[slot], sys.dtype), np.asarray(want, sys.dtype)
            if a.shape != b.shape:
                out[f"the shape of {name}"] = (str(list(a.shape)), str(list(b.shape)))
                continue
            wrong = np.argwhere(~_agree(sys, a, b, within))
            if len(wrong):
                at = tuple(map(int, wrong[0]))
                index = f"[{', '.join(map(str, at))}]" if at else ""
                have, should = (number_text(sys.type, v[at].item()) for v in (a, b))
                out[name + index] = (have, should)
    return out


def _flat(function: Function, layout: Layout, value: Any) -> Iterator[tuple[int, Any]]:
    if isinstance(layout, Record):
        for f, inner in layout.fields:
            yield from _flat(function, inner, value[f])
        return
    register = function.registers[layout]
    t = register.type
    sys = system(elem_of(t))
    if isinstance(t, Array):
        yield layout, value
    elif isinstance(t, Stack):
        yield layout, held_in(register, register.name, value)
    else:
        yield layout, sys.from_python(value)


def _agree(sys: NumberSystem, a: NDArray[Any], b: NDArray[Any], within: float) -> NDArray[Any]:
    """For each number, whether it is the expected one."""
    if sys.exact and not sys.type.is_fixed:
        return np.asarray(a == b)
    with np.errstate(all="ignore"):
        x, y = (a * 2.0**-sys.type.frac, b * 2.0**-sys.type.frac) if sys.exact else (a, b)
        near = np.abs(x - y) <= within * np.maximum(1.0, np.abs(y))
        return np.asarray((a == b) | ((a != a) & (b != b)) | (near & np.isfinite(y)))
