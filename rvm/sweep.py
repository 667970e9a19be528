"""One derived program run along many directions: what Jacobians and Hessians are made of.

All runs start from the same values; what differs is the duals, which have a leading axis of as many
directions.  The runs are lanes of one; those that cannot be, such as runs in strict mode, are made
one after another by `rvm.lanes`, and so are few of them, for which lanes do not pay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.direct import Run
from rvm.lanes import run_lanes
from rvm.numbers import system
from rvm.program import Program
from rvm.returning import copied
from rvm.state import Options
from rvm.types import elem_of

FEW = 4
"""So many runs are made one by one."""


class Sweep:
    """The registers of all runs at their ends.

    `regs` are the raw values of the parameters' registers at the start, `varying` those that differ
    by direction.  Nothing that is passed is changed; an error is that of the first run that fails.
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
        types = [system(elem_of(r.type)) for r in self._function.registers]
        varying = {k: v.astype(types[k].dtype, copy=False) for k, v in varying.items()}
        self._runs: list[list[Any]] = []
        self._lanes: list[Any] = []
        if self.size > FEW:
            done = run_lanes(program, name, regs, varying, options, undo)
            for lane in sorted(done.errors):
                raise done.errors[lane]
            self._lanes = done.regs
            return
        for k in range(self.size):
            values = [copied(v) for v in regs]
            for slot, given in varying.items():
                values[slot] = given[k].copy() if given.ndim > 1 else given[k].item()
            self._runs.append(Run(program, name, values, options, undo=undo).regs)

    @property
    def first(self) -> list[Any]:
        """The parameters' registers at the end of the first run."""
        if not self._lanes:
            return self._runs[0]
        return [self._of_first(k) for k in range(len(self._lanes))]

    def _of_first(self, slot: int) -> Any:
        held = self._lanes[slot]
        if not self._by_lane(slot):
            return held
        return held[0].item() if np.ndim(held) == 1 and not isinstance(held, list) else held[0]

    def __getitem__(self, slot: int) -> NDArray[Any]:
        """What a register of numbers holds at the end of each run."""
        if not self._lanes:
            return np.array([regs[slot] for regs in self._runs])
        held = np.asarray(self._lanes[slot])
        return held if self._by_lane(slot) else np.broadcast_to(held, (self.size, *held.shape))

    def _by_lane(self, slot: int) -> bool:
        """Whether a register has an axis of lanes: one that never changes has none."""
        held, begun = self._lanes[slot], self._start[slot]
        if isinstance(begun, list):
            return bool(held) and isinstance(held[0], list)
        return np.ndim(held) > np.ndim(begun)


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
