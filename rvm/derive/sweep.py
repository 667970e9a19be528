"""One derived program run along many directions, for Jacobians and Hessians.

All runs start from the same values; only the duals differ, and have a leading axis for the
directions.  The runs are lanes of one run. Runs that cannot be lanes, such as those in strict mode,
are made one after another by `rvm.run.lanes`, and so are small numbers of runs, for which lanes do
not pay.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.engines.auto import A_CALL, choice_of, is_warm
from rvm.image import image_of
from rvm.numbers import system
from rvm.program import Program
from rvm.run.backup import copied
from rvm.run.lanes import run_lanes
from rvm.run.raw import Run
from rvm.state import Options
from rvm.types import RegisterType, Stack, elem_of

Shape = tuple[int, ...]
FEW = 4
"""The largest number of runs that are made one by one."""
AS_PYTHON = 4
"""The number of ticks of generated Python that take as long as one NumPy tick over some lanes."""


class Sweep:
    """The registers of all runs at their ends.

    `regs` are the raw values of the parameters' registers at the start, `varying` those that differ
    by direction, as real numbers in the shape of `real_shape`.  Nothing that is passed is changed;
    an error is that of the first run that fails.
    """

    def __init__(
        self,
        program: Program,
        name: str,
        regs: Sequence[Any],
        varying: Mapping[int, NDArray[Any]],
        options: Options,
        undo: bool = False,
    ) -> None:
        self.size = len(next(iter(varying.values())))
        self._function = program.function(name)
        self._start = list(regs)
        registers = self._function.registers
        varying = {k: raw_directions(registers[k].type, v) for k, v in varying.items()}
        self._runs: list[list[Any]] = []
        self._lanes: list[Any] = []
        self.bits = options.bits
        self.erased_bits, self.drift = 0, 0.0
        """As in a single run, for all runs together."""
        if self.size > FEW:
            options = _lanes_options(program, name, options, undo)
            done = run_lanes(program, name, regs, varying, options, undo)
            if self.size:
                image_of(program).heat[name] += A_CALL + AS_PYTHON * int(done.ticks.max())
            for lane in sorted(done.errors):
                raise done.errors[lane]
            self._lanes = done.regs
            self.erased_bits, self.drift = done.erased_bits, done.drift
            return
        for k in range(self.size):
            values = [copied(v) for v in regs]
            for slot, given in varying.items():
                values[slot] = direction(given, k)
            run = Run(program, name, values, options, undo=undo)
            self._runs.append(run.regs)
            self.erased_bits += run.rounding.erased_bits
            self.drift = max(self.drift, run.rounding.drift)

    @property
    def first(self) -> list[Any]:
        """The parameters' registers at the end of the first run."""
        if not self.size:
            return self._start
        if not self._lanes:
            return self._runs[0]
        return [self._of_first(k) for k in range(len(self._lanes))]

    def _of_first(self, slot: int) -> Any:
        held = self._lanes[slot]
        if not self._by_lane(slot):
            return held
        return held[0].item() if np.ndim(held) == 1 and not isinstance(held, list) else held[0]

    def __getitem__(self, slot: int) -> NDArray[Any]:
        """The contents of a register at the end of each run, as real numbers in a row."""
        if not self.size:
            held = np.asarray(self._start[slot])[None][:0]
        elif not self._lanes:
            held = np.array([regs[slot] for regs in self._runs])
        else:
            held = np.asarray(self._lanes[slot])
            if not self._by_lane(slot):
                held = np.broadcast_to(held, (self.size, *held.shape))
        held = np.ascontiguousarray(held)
        wide = np.float64 if held.dtype.kind == "c" else held.dtype
        return held.reshape(self.size, held[:1].size if self.size else 0).view(wide)

    def _by_lane(self, slot: int) -> bool:
        """Whether a register has an axis of lanes: one that never changes has none."""
        held, begun = self._lanes[slot], self._start[slot]
        if isinstance(begun, list):
            return bool(held) and isinstance(held[0], list)
        return np.ndim(held) > np.ndim(begun)


def raw_directions(t: RegisterType, directions: NDArray[Any]) -> Any:
    """Directions in real numbers as raw values of a register, with their axis in front."""
    elem = elem_of(t)
    if elem.is_complex:
        directions = directions[..., 0] + 1j * directions[..., 1]
    out = directions.astype(system(elem).dtype, copy=False)
    return out.tolist() if isinstance(t, Stack) else out


def direction(given: Any, k: int) -> Any:
    """One of several raw directions, as a separate copy."""
    return copied(given[k]) if np.ndim(given[k]) else given[k].item()


def real_row(held: Any) -> NDArray[Any]:
    """The real numbers in a raw value, in a row."""
    flat = np.ascontiguousarray(held).reshape(-1)
    return flat.view(np.float64) if flat.dtype.kind == "c" else flat


def real_shape(t: RegisterType, held: Any) -> tuple[int, ...]:
    """The shape of a register's contents in real numbers: a complex number is a pair of them."""
    return (*np.shape(held), *((2,) if elem_of(t).is_complex else ()))


def _lanes_options(program: Program, name: str, options: Options, undo: bool) -> Options:
    """Options of lanes: in NumPy until machine code is warm, since no run back follows."""
    code = image_of(program).code(name, undo)
    if options.engine != "auto" or not options.checks:
        return options
    choice = choice_of(code, options)._replace(first="python")
    return options if is_warm(code, choice) else replace(options, engine="vector")


def units(shapes: Mapping[int, tuple[int, ...]]) -> dict[int, NDArray[np.float64]]:
    """Unit directions: one for each number in registers of these shapes, in order."""
    sizes = {k: int(np.prod(shape, dtype=np.int64)) for k, shape in shapes.items()}
    every = np.eye(sum(sizes.values()))
    out: dict[int, NDArray[np.float64]] = {}
    at = 0
    for k, shape in shapes.items():
        out[k] = every[:, at : at + sizes[k]].reshape(len(every), *shape)
        at += sizes[k]
    return out


def blocks(
    sweep: Sweep | Mapping[int, NDArray[np.float64]],
    to: Mapping[int, Shape],
    of: Mapping[int, Shape],
    slots: Mapping[int, int],
    *,
    rows: bool,
) -> dict[tuple[int, int], Any]:
    """The derivatives of registers by others, from runs along either (`rows`: along the former).

    `sweep` has for each register a row for each run.
    """
    out: dict[tuple[int, int], Any] = {}
    along, across = (to, of) if rows else (of, to)
    for k, shape in across.items():
        found = sweep[slots[k]]
        at = 0
        for j, other in along.items():
            part = found[at : at + math.prod(other)]
            at += math.prod(other)
            if rows:
                out[j, k] = plain(part.reshape((*other, *shape)))
            else:
                out[k, j] = plain(part.T.reshape((*shape, *other)))
    return out


def plain(array: NDArray[Any]) -> Any:
    """An array, or the number that one of no dimensions holds."""
    return array.item() if array.ndim == 0 else array
