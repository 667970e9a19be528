"""The gradient of a function through lanes: a run forwards, and one back with adjoints.

Both are runs in lanes: of the function, and of its adjoint as `rvm.transform.gradient` makes it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rvm.derive.estimate import Estimate
from rvm.derive.evidence import Evidence, marks, muted
from rvm.derive.gate import is_demanding, later, limit_of
from rvm.derive.gradients import Pullback, changed_since, check_same, loss_place, seed_place
from rvm.derive.left_out import left_out
from rvm.derive.named import bar_layout, by_parameter, zero_dual
from rvm.derive.places import wanted
from rvm.derive.target import Target
from rvm.faults import InputError, RvmError
from rvm.host.signals import deferred, left_whole, listen
from rvm.numbers import system
from rvm.numbers.reductions import ordered_sum, sum_over
from rvm.numbers.rounding import returned
from rvm.run.bits import with_bits
from rvm.run.lane_binding import Lanes, values_of
from rvm.run.lanes import Batch, LaneRun
from rvm.run.results import Judge, Result
from rvm.transform.duals import bar_slots
from rvm.transform.gradient import adjoint_names
from rvm.transform.programs import differentiated, gradient_program
from rvm.types import Array, Stack, elem_of

if TYPE_CHECKING:
    from rvm.derive.places import Named


class LaneGradient:
    """The gradient of a loss in every lane; `losses` holds each lane's after `run`."""

    def __init__(self, target: Target, given: Lanes, loss: str, block: int | None) -> None:
        self.target = target
        self.function = target.function
        self.given = given
        self.loss = loss
        self.place = loss_place(self.function, loss)
        self.options = target.options
        self.block = block
        self.program = gradient_program(target.program, target.name)
        name = adjoint_names(target.program)[target.name]
        self.adjoint = self.program.function(name)
        self.slots = bar_slots(self.function)
        self.losses: NDArray[np.float64] = np.zeros(given.size)
        self.judge: Judge | None = None
        """The estimate of the error, after `run`."""

    @deferred
    def run(self, wrt: Collection[str] | None) -> tuple[dict[str, Any], LaneRun]:
        """The gradient by parameter, and the outcome of the lanes."""
        names = self._wanted(wrt)
        given, target = self.given, self.target
        program = with_bits(target.program, self.options)
        there = Batch(program, target.name, given.regs, given.varying, target.undo)
        self._loss_exists(there)
        aside = there.run(self.options, self.block)
        self._note_losses(there.out)
        back = self._back(there, ~aside)
        aside |= back.run(later(self.options), self.block)
        # In strict mode each lane has a log of its own.
        of = target.program, target.name, target.undo
        alone = self.options.strict or is_demanding(*of, self.options)
        # The derivatives of a gradient have a check of their own.
        alone |= not target.undo and differentiated(target.program, target.name) is not None
        aside |= alone or ~self._returned(there.out, back.out)
        aside |= back.drifts > 1
        bars = {k: self._bars(slot, back.out[slot]) for k, slot in self.slots.items()}
        done = LaneRun(
            [],
            {},
            there.ticks + back.ticks,
            there.erased + back.erased,
            np.maximum(there.drifts, back.drifts),
            _numbers(aside),
            self.options.bits,
        )
        for lane in done.alone:
            listen()
            try:
                self._alone(lane, wrt, there, bars, done)
            except RvmError as error:
                if left_whole(error):
                    raise
                done.errors[lane] = error
                self.losses[lane] = np.nan
                self._clear(bars, lane)
        without = left_out(target, wrt) - {self.place.slot}
        judged = {k: held for k, held in bars.items() if k not in without}
        self.judge = LaneJudge(target, given, self.place, judged, names, tuple(done.errors))
        return self._named(bars, names, done), done

    def _wanted(self, wrt: Collection[str] | None) -> set[str]:
        """The parameters whose adjoints are wanted."""
        able = [
            p.name for p in self.function.params if bar_layout(p.layout, self.slots) is not None
        ]
        return wanted(self.function, able, wrt)

    def _loss_exists(self, batch: Batch) -> None:
        """InputError I008 if the loss names an element outside its array."""
        slot, index = self.place.slot, self.place.index
        if index:
            shape = np.shape(batch.raw(0)[slot]) if batch.size else index
            if len(index) != len(shape) or any(
                not 0 <= i < n for i, n in zip(index, shape, strict=True)
            ):
                raise InputError(
                    "I008", f"`{self.loss}` is outside the array", values={"shape": list(shape)}
                )

    def _note_losses(self, out: list[Any]) -> None:
        held = out[self.place.slot]
        t = elem_of(self.function.registers[self.place.slot].type)
        at: Any = (..., *self.place.index)
        values = np.asarray(held)[at]
        if self.place.part:
            values = values.real if self.place.part == "re" else values.imag
        if t.is_fixed:
            values = values * 2.0**-t.frac
        self.losses[:] = values

    # ------------------------------------------------------------ running back

    def _back(self, there: Batch, able: Any) -> Batch:
        """The adjoint on the results, with the loss's adjoint seeded.

        Lanes that have failed take part with their inputs, and their results are ignored.
        """
        n = self.function.n_args
        regs: list[Any] = [None] * self.adjoint.n_args
        varying: dict[int, Any] = {}
        for k in range(n):
            value = there.out[k]
            if k in there.inout or k in there.plan.varying or k in self.given.varying:
                varying[k] = value
            else:
                regs[k] = value
        for lane in _numbers(~able):
            for k, value in enumerate(there.raw(lane)):
                if k in varying:
                    varying[k][lane] = value
        for k, slot in self.slots.items():
            self._seed(k, slot, there, regs, varying)
        program = with_bits(self.program, self.options)
        return Batch(program, self.adjoint.name, regs, varying, self.target.undo)

    def _seed(
        self, k: int, slot: int, there: Batch, regs: list[Any], varying: dict[int, Any]
    ) -> None:
        """A zero adjoint for a parameter, with a one at the loss."""
        t = self.adjoint.registers[slot].type
        sys = system(elem_of(t))
        if isinstance(t, Stack):
            if k in varying:
                varying[slot] = [[sys.zero] * len(held) for held in varying[k]]
            else:
                regs[slot] = [sys.zero] * len(regs[k])
            return
        zero: Any = sys.zero
        if isinstance(t, Array):
            shape = varying[k].shape[1:] if k in varying else regs[k].shape
            zero = np.zeros(shape, sys.dtype)
        if k == self.place.slot:
            one: Any = 1j if self.place.part == "im" else 1.0
            if self.place.index:
                zero[self.place.index] = one
            else:
                zero = sys.from_python(one)
        regs[slot] = zero

    def _bars(self, slot: int, held: Any) -> Any:
        """Adjoints of a parameter in every lane, with the lanes in front."""
        size = self.given.size
        if isinstance(held, list):
            by_lane = len(held) == size and all(isinstance(v, list) for v in held)
            return held if by_lane else [list(held) for _ in range(size)]
        t = self.adjoint.registers[slot].type
        if np.ndim(held) > (t.rank if isinstance(t, Array) else 0):
            return held
        return np.array(np.broadcast_to(held, (size, *np.shape(held))))

    def _returned(self, there: list[Any], out: list[Any]) -> Any:
        """The lanes whose values came back; others are judged as single gradients."""
        fine = np.ones(self.given.size, bool)
        for k in range(self.function.n_args):
            t, ended = self.function.registers[k].type, out[k]
            begun = self.given.varying.get(k, self.given.regs[k])
            if isinstance(t, Stack):
                if k in self.given.varying or ended is not begun:
                    fine &= self._stacks_returned(k, t, ended)
                continue
            if not isinstance(ended, np.ndarray) or ended is begun:
                continue
            elem, axes = elem_of(t), tuple(range(1, ended.ndim))
            held = np.abs(there[k].astype(np.complex128 if elem.is_complex else np.float64))
            held = np.max(held, axis=axes, keepdims=True, initial=0.0, where=np.isfinite(held))
            limit = limit_of(elem, self.options.tolerance == 0)
            begun = np.broadcast_to(begun, ended.shape)
            near = returned(elem, begun, ended, limit, held, axes)
            fine &= near.reshape(self.given.size, -1).all(axis=1)
        return fine

    def _stacks_returned(self, k: int, t: Stack, ended: Any) -> list[bool]:
        limit = limit_of(t.elem, self.options.tolerance == 0)
        varies = k in self.given.varying
        out = []
        for lane in range(self.given.size):
            begun = self.given.varying[k][lane] if varies else self.given.regs[k]
            back = ended[lane] if varies or (ended and isinstance(ended[0], list)) else ended
            out.append(len(begun) == len(back) and bool(returned(t.elem, begun, back, limit).all()))
        return out

    # ------------------------------------------------------------ single lanes, results

    def _alone(
        self,
        lane: int,
        wrt: Collection[str] | None,
        there: Batch,
        bars: dict[int, Any],
        done: LaneRun,
    ) -> None:
        """The gradient of one lane, computed alone."""
        pull = Pullback(self.target, there.inputs(lane))
        pull.seed(self.loss)
        self.losses[lane] = pull.value(self.loss)
        pull(wrt)
        regs = pull.machine.state.frames[0].regs
        for k, slot in self.slots.items():
            bars[k][lane] = regs[slot]
        done.ticks[lane] = pull.ticks
        done.erased[lane], done.drifts[lane] = pull.info.erased_bits, pull.info.drift

    def _clear(self, bars: dict[int, Any], lane: int) -> None:
        """A failed lane has adjoints of zero."""
        for held in bars.values():
            if isinstance(held, list):
                held[lane] = [0.0] * len(held[lane])
            else:
                held[lane] = 0

    def _named(self, bars: dict[int, Any], names: set[str], done: LaneRun) -> dict[str, Any]:
        """The adjoints by parameter: for each lane, or the sum for shared arguments."""
        regs: list[Any] = [None] * len(self.adjoint.registers)
        for k, slot in self.slots.items():
            regs[slot] = bars[k] if k in self.given.varying else _summed(bars[k])
        done.regs = regs
        found = {}
        for p in self.function.params:
            layout = bar_layout(p.layout, self.slots)
            if layout is not None and p.name in names:
                found[p.name] = values_of(self.adjoint, layout, regs)
        return found


class LaneJudge:
    """The estimate of the error of a gradient through lanes, lane by lane, in `error`.

    Shared arguments have the sum of the errors of all lanes; failed lanes have none.
    """

    def __init__(
        self,
        target: Target,
        given: Lanes,
        place: Named,
        bars: dict[int, Any],
        names: set[str],
        failed: tuple[int, ...],
    ) -> None:
        self.target, self.place = target, place
        self.size, self.regs, self.varying = given.size, given.regs, given.varying
        self.bars, self.names, self.failed = bars, names, failed
        self.marks = self._marks()

    def __getstate__(self) -> dict[str, Any]:
        """Callbacks stay behind."""
        target = replace(self.target, options=muted(self.target.options))
        return self.__dict__ | {"target": target}

    @cached_property
    def error(self) -> Result:
        """The possible error of each number; see `gradients.Judge`."""
        if self.marks != self._marks():
            raise changed_since()
        for lane in self._lanes:
            check_same(self._known(lane))
        self.now()
        return self.error

    def now(self) -> None:
        """Compute it while nothing has changed."""
        function = self.target.function
        errors = {k: np.zeros(np.shape(held)) for k, held in self.bars.items()}
        for lane in self._lanes:
            for k, error in Estimate(self._known(lane)).errors.items():
                errors[k][lane] = error
        for k in errors.keys() - self.varying.keys():
            errors[k] = errors[k].sum(axis=0)

        def shown(slot: int) -> Any:
            t = function.registers[slot].type
            is_list = isinstance(t, Stack) or not errors[slot].ndim
            return errors[slot].tolist() if is_list else errors[slot]

        self.error = by_parameter(function, errors, shown, wrt=self.names)

    def _marks(self) -> list[bytes]:
        return marks([*self.regs, *self.varying.values()])

    @property
    def _lanes(self) -> list[int]:
        return [lane for lane in range(self.size) if lane not in self.failed]

    def _known(self, lane: int) -> Evidence:
        target, function = self.target, self.target.function
        values = dict(enumerate(self.regs)) | {k: v[lane] for k, v in self.varying.items()}
        start = [
            v.item() if isinstance(v := values[k], np.generic) else v
            for k in range(function.n_args)
        ]
        seeds = {k: zero_dual(function, k, start[k]) for k in bar_slots(function)}
        seed_place(seeds, self.place)
        found = {k: held[lane] for k, held in self.bars.items()}
        name, undo = target.name, target.undo
        return Evidence(target.program, name, undo, target.options, start, seeds, found)


def _summed(held: Any) -> Any:
    """The sum over the lanes: a number, an array, or a list for a stack."""
    if isinstance(held, list):
        return [ordered_sum(np.array(column)) for column in zip(*held, strict=False)]
    total = sum_over(held, (0,))
    return total.item() if total.ndim == 0 else total


def _numbers(mask: Any) -> tuple[int, ...]:
    return tuple(map(int, np.flatnonzero(mask)))
