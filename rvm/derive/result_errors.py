"""Errors of the results of a run, estimated from runs with perturbed rounding.

The same run is repeated with perturbed rounding (`rvm.image.nudged`); the differences of its
results are the estimate.  Integers are compared too, since they may depend on rounded numbers.
User-defined types that round have no estimate, since their numbers are not perturbed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rvm.derive.evidence import SEEDS, muted, otherwise
from rvm.derive.named import by_parameter
from rvm.derive.target import Target
from rvm.faults import RvmError
from rvm.image import image_of
from rvm.image.nudged import ROUNDING
from rvm.numbers import system
from rvm.numbers.base import differing
from rvm.numbers.rounding import REPEATS, ULPS
from rvm.program import Function, Program
from rvm.run.backup import copied
from rvm.run.binding import rows_of
from rvm.run.lane_binding import Lanes
from rvm.run.lanes import LaneRun, run_lanes
from rvm.run.machine import Machine
from rvm.run.raw import Run
from rvm.run.results import Result
from rvm.run.transaction import Check
from rvm.state import Options
from rvm.types import RegisterType, Stack, elem_of, rank_of

Errors = dict[int, Any]
"""The possible absolute error of each number, by parameter register."""


@dataclass(frozen=True, slots=True)
class Estimated:
    """An error that is known already, for `Info`."""

    error: Result

    def now(self) -> None:
        """It is computed."""


def begun(target: Target, regs: Sequence[Any]) -> list[Any]:
    """Raw values of the parameters' registers before a run, copies of those that it may change."""
    changed = image_of(target.program).inout[target.name]
    n = target.function.n_args
    return [copied(v) if k in changed else v for k, v in enumerate(regs[:n])]


def run_errors(target: Target, start: Sequence[Any], ended: Sequence[Any], ticks: int) -> Errors:
    """The possible errors of a run's registers at the end.

    `start` are those before it, `ticks` its length.  Infinite if a run with perturbed rounding
    fails, or takes very much longer.
    """

    def run(program: Program, options: Options) -> list[Any]:
        return Run(program, target.name, begun(target, start), options, undo=target.undo).regs

    try:
        others = list(repeated(target, ticks, run))
    except RvmError:
        others = None
    changed = image_of(target.program).inout[target.name]
    found = {}
    for k in _compared(target.function):
        t, known = target.function.registers[k].type, others if k in changed else ()
        found[k] = _off(t, start[k], ended[k], None if known is None else [o[k] for o in known])
    return found


def lane_errors(target: Target, given: Lanes, ended: LaneRun, block: int | None) -> Errors:
    """The possible errors of the results of lanes, all lanes of a register together.

    Lanes that failed hold their inputs, which are right; a lane that fails under perturbed rounding
    may be off by any amount.
    """

    def run(program: Program, options: Options) -> LaneRun:
        regs, varying = given.regs, given.varying
        return run_lanes(program, target.name, regs, varying, options, target.undo, block=block)

    others = list(repeated(target, int(ended.ticks.max(initial=0)), run))
    lost = {lane for other in others for lane in other.errors} - ended.errors.keys()
    found = {}
    for k in _compared(target.function):
        t, was, now = target.function.registers[k].type, *(r[k] for r in (given.regs, ended.regs))
        was, rest = given.varying.get(k, was), [other.regs[k] for other in others]
        if not isinstance(t, Stack):
            # A shared argument may have changed in each lane.
            if np.ndim(was) < np.ndim(now):
                was = np.broadcast_to(was, now.shape)
            found[k] = _off(t, was, now, rest)
            if np.ndim(now) > rank_of(t):
                found[k][list(lost)] = np.inf
            continue
        if not (now and isinstance(now[0], list)):
            found[k] = _off(t, was, now, rest)
            continue
        found[k] = [
            _off(
                t,
                was[lane] if k in given.varying else was,
                v,
                None if lane in lost else [other[lane] for other in rest],
            ).tolist()
            for lane, v in enumerate(now)
        ]
    return found


def repeated(target: Target, ticks: int, run: Callable[[Program, Options], Any]) -> Any:
    """The result of each run with perturbed rounding, one after another."""
    options = replace(muted(target.options), strict=False, max_steps=REPEATS * (ticks + 1))
    for seed in SEEDS:
        yield run(*otherwise(target.program, options, seed))


def untouched(target: Target, ended: Sequence[Any]) -> Errors:
    """The errors of a run that rounds nothing, such as a run back by a strict log."""
    return {
        k: np.zeros(np.shape(_numbers(target.function.registers[k].type, ended[k])))
        for k in _compared(target.function)
    }


class Judging:
    """A check at the end of a call that estimates its error, which is then in `found`.

    `machine` is at the start; `by_log`: it undoes a strict call. `check` is a further check.
    """

    def __init__(self, target: Target, machine: Machine, by_log: bool, check: Check | None) -> None:
        self._target, self._machine, self._by_log, self._check = target, machine, by_log, check
        self._start = begun(target, machine.state.frames[0].regs)

    def __call__(self, ended: list[Any], drift: float) -> None:
        """Judge the registers at the end."""
        if self._check is not None:
            self._check(ended, drift)
        target, ticks = self._target, self._machine.time
        errors = (
            untouched(target, ended)
            if self._by_log
            else run_errors(target, self._start, ended, ticks)
        )
        if self._check is not None:
            # A check puts values back: these are exact.
            exact = untouched(target, ended)
            same = (k for k in exact if np.array_equal(ended[k], self._start[k], equal_nan=True))
            errors |= {k: exact[k] for k in same}
        self.found = estimated(target.function, errors)


def estimated(function: Function, errors: Errors) -> Estimated:
    """Errors by parameter register as a result by parameter."""

    def shown(slot: int) -> Any:
        found, register = errors[slot], function.registers[slot]
        if isinstance(found, np.ndarray) and isinstance(register.type, Stack):
            return rows_of(register.shape, found)
        return found.tolist() if isinstance(found, np.ndarray) and not found.ndim else found

    return Estimated(by_parameter(function, errors, shown))


def _compared(function: Function) -> list[int]:
    """The parameters' registers whose numbers are perturbed where they round, or do not."""
    types = [elem_of(r.type) for r in function.registers[: function.n_args]]
    return [k for k, t in enumerate(types) if t in ROUNDING or system(t).exact]


def _off(t: RegisterType, start: Any, ended: Any, others: Sequence[Any] | None) -> Any:
    """The possible error of each number in a register; infinite where there are no other runs.

    Numbers that were the same in every run are exact.
    """
    found = _numbers(t, ended)
    rest = [_numbers(t, other) for other in others or ()]
    if others is None or any(other.shape != found.shape for other in rest):
        return np.full(found.shape, np.inf)
    wide: Any = np.complex128 if np.iscomplexobj(found) else np.float64
    elem, worst = elem_of(t), np.zeros(found.shape)
    with np.errstate(all="ignore"):
        for other in rest:
            gap = np.abs(other.astype(wide) - found.astype(wide))
            if found.dtype.kind in "iu":
                # Of large integers floats lose what is small, and of distant ones the difference.
                near = np.abs(other.astype(np.int64) - found.astype(np.int64))
                gap = np.where(gap < 2.0**62, near, gap)
            worst = np.maximum(worst, np.where(differing(found, other), gap, 0.0))
        was = _numbers(t, start)
        moved = (worst != 0) | (differing(found, was) if was.shape == found.shape else True)
        if elem in ROUNDING:
            worst += np.where(moved, ULPS * system(elem).unit * np.abs(found), 0.0)
        worst *= elem.unit
    return np.where(np.isnan(worst), np.inf, worst)


def _numbers(t: RegisterType, raw: Any) -> Any:
    return np.asarray(raw, system(elem_of(t)).dtype)
