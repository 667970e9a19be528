"""Running a program on many inputs at once: `run_lanes`, from registers to registers.

A *lane* is one run among B.  Values that differ by lane have a leading axis of length B; all others
are shared.  Inputs are copied, never changed.  Lanes that fail, and those that cannot continue
together with the others, are run again alone, so that errors are those of single runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.engines.auto import lanes_engine, native_is_there
from rvm.engines.lanes.engine import run_block
from rvm.engines.lanes.plan import LanePlan, acts_outside, plan_of
from rvm.engines.lanes.stacks import LaneStack
from rvm.engines.lanes.uniform import Uniformity
from rvm.faults import InputError, RvmError, UsageError
from rvm.host.once import once
from rvm.host.signals import Listening, deferred, left_whole, listen
from rvm.image import Code, image_of
from rvm.numbers import system
from rvm.program import Function, Program
from rvm.run.binding import outside
from rvm.run.bits import with_bits
from rvm.run.raw import Run
from rvm.state import Options, byte_size
from rvm.types import Array, Stack, elem_of

CACHE_DOUBLES = 1 << 17
"""The target size of the registers of a block of lanes, in doubles: a megabyte."""
LEAST_BLOCK, MOST_BLOCK = 256, 16_384
"""Bounds on the lanes of a block: fewer do not repay the calls, more exceed the caches."""


@dataclass(slots=True)
class LaneRun:
    """The outcome of a run in lanes.

    `regs`: the parameters' raw values at the end, by register; those that were given by lane or may
    have changed have a leading axis of length B (a stack: a list of lists), others are as given. A
    failed lane holds its inputs.  `errors` by lane; `ticks`, `erased` (bits) and `drifts` of each
    lane; `alone`: the lanes that ran alone, including failed ones; `bits`: the option.
    """

    regs: list[Any]
    errors: dict[int, RvmError] = field(default_factory=dict)
    ticks: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    erased: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    drifts: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    alone: tuple[int, ...] = ()
    bits: str = "stated"

    @property
    def erased_bits(self) -> int:
        """The number of bits erased by lanes that did not fail."""
        return int(self._without_failed(self.erased).sum())

    @property
    def drift(self) -> float:
        """The largest residue in lanes that did not fail, relative to the allowed residue."""
        return float(self._without_failed(self.drifts).max(initial=0.0))

    def _without_failed(self, counts: NDArray[Any]) -> NDArray[Any]:
        return np.delete(counts, list(self.errors)) if self.errors else counts


def run_lanes(
    program: Program,
    name: str,
    regs: Sequence[Any],
    varying: Mapping[int, Any],
    options: Options | None = None,
    undo: bool = False,
    *,
    block: int | None = None,
) -> LaneRun:
    """Run the function `name` (its inverse if `undo`) once for each of B lanes.

    `regs` are raw values of the parameters by register, as frames hold them: numbers, arrays of the
    storage dtype, lists for stacks. `varying` maps the registers that differ by lane to arrays of
    shape (B, …) of raw values (a stack: a list of B lists), and takes precedence over `regs`.  At
    least one register must vary.  Arguments are not changed.  `block` is the number of lanes that
    run together.

    Errors of lanes are not raised: they are in `errors` of the result.
    """
    with Listening():
        options = options or Options()
        batch = Batch(with_bits(program, options), name, regs, varying, undo)
        found = _run(batch, options, block)
        found.bits = options.bits
        return found


@deferred
def _run(batch: Batch, options: Options, block: int | None) -> LaneRun:
    """Run all lanes of a batch, and then one by one those that were set aside."""
    aside = batch.run(options, block)
    errors: dict[int, RvmError] = {}
    for lane in map(int, np.flatnonzero(aside)):
        listen()
        code = batch.code
        try:
            run = Run(code.image.program, code.name, batch.raw(lane), options, undo=code.undo)
        except RvmError as error:
            if left_whole(error):
                raise
            errors[lane] = error
            batch.restore(lane)
            continue
        batch.store(lane, run.regs)
        batch.ticks[lane] = run.ticks
        batch.erased[lane] = run.rounding.erased_bits
        batch.drifts[lane] = run.rounding.drift
    alone = tuple(map(int, np.flatnonzero(aside)))
    return LaneRun(batch.out, errors, batch.ticks, batch.erased, batch.drifts, alone)


class Batch:
    """B inputs of a function, and storage for its B results."""

    def __init__(
        self,
        program: Program,
        name: str,
        regs: Sequence[Any],
        varying: Mapping[int, Any],
        undo: bool = False,
    ) -> None:
        image = image_of(program)
        self.code: Code = image.code(name, undo)
        self.function: Function = self.code.function
        self.given = dict(varying)
        self.shared = list(regs[: self.function.n_args])
        sizes = {len(v) for v in varying.values()}
        if len(sizes) != 1:
            raise InputError("I021", "the lanes are not equally many", values={"lanes": sizes})
        self.size = sizes.pop()
        self._single = frozenset(
            k for k, v in varying.items() if k not in image.inout[name] and _all_equal(v)
        )
        """Registers given by lane that hold the same value in all lanes, and keep it."""
        self.plan: LanePlan = plan_of(
            self.code, frozenset(varying) - self._single, _uniformity(program)
        )
        self.inout = image.inout[name]
        self.ticks = np.zeros(self.size, np.int64)
        self.erased = np.zeros(self.size, np.int64)
        self.drifts = np.zeros(self.size)
        self.out: list[Any] = [self._room(k) for k in range(self.function.n_args)]

    def _room(self, k: int) -> Any:
        """The storage for the results of a register."""
        if k not in self.inout and k not in self.plan.varying:
            return self.given.get(k, self.shared[k])
        t = self.function.registers[k].type
        if isinstance(t, Stack):
            return [[] for _ in range(self.size)]
        shape = self.given[k].shape[1:] if k in self.given else np.shape(self.shared[k])
        return np.empty((self.size, *shape), system(elem_of(t)).dtype)

    # ------------------------------------------------------------ running

    def run(self, options: Options, block: int | None = None) -> NDArray[np.bool_]:
        """Run all lanes, and return a mask of those that were set aside."""
        aside = np.ones(self.size, bool)
        engine = self._engine(options)
        if engine == "native":
            try:
                return self._natively(options, block)
            except UsageError:
                if options.engine == "native" or not options.checks or native_is_there():
                    raise
                return self.run(options, block)
        if engine != "vector":
            return aside
        width = block or self._block()
        for lo in range(0, self.size, width):
            hi = min(lo + width, self.size)
            regs = [self._enter(k, lo, hi) for k in range(self.function.n_args)]
            regs += [None] * (len(self.function.registers) - len(regs))
            done = run_block(self.plan, regs, hi - lo, options)
            listen()
            aside[lo:hi] = done.aside
            self.ticks[lo:hi] = done.ticks
            self.erased[lo:hi] = done.erased
            self.drifts[lo:hi] = done.drifts
            for k in range(self.function.n_args):
                self._leave(k, regs[k], lo, hi)
        return aside

    def _engine(self, options: Options) -> str:
        """The engine that runs lanes together: "native" or "vector"; "" to run them one by one."""
        if options.strict or acts_outside(self.code) or not self.size:
            return ""
        if options.max_memory is not None and self._begun() > options.max_memory:
            return ""
        engine = options.engine
        if engine == "auto":
            engine = lanes_engine(self.code, options)
        return "" if engine == "vector" and options.max_memory is not None else engine

    def _begun(self) -> int:
        """The bytes that a lane holds at its beginning, at most."""
        total = 0
        for k, one in enumerate(self.shared):
            lanes = self.given.get(k)
            if isinstance(lanes, list):
                total += max(map(byte_size, lanes))
            else:
                total += byte_size(one if lanes is None else lanes[0])
        return total

    def _natively(self, options: Options, block: int | None) -> NDArray[np.bool_]:
        from rvm.engines.native.lanes import Batch as Runs
        from rvm.engines.native.lanes_batches import run_batch

        fresh = frozenset(
            k for k in range(self.function.n_args) if k in self.inout or k in self.plan.varying
        )
        varying = frozenset(self.given) - self._single
        counts = self.ticks, self.erased, self.drifts
        runs = Runs(self.code, self.given, varying, self.shared, fresh, self.out, *counts)
        return run_batch(runs, options, block)

    def _block(self) -> int:
        """The number of lanes to run together, such that their registers stay in the cache."""
        doubles = 0
        for k, register in enumerate(self.function.registers):
            if k in self.plan.varying:
                size = 1
                if k < self.function.n_args and isinstance(register.type, Array):
                    size = max(1, int(np.prod(np.shape(self._sample(k)))))
                doubles += size
        return min(MOST_BLOCK, max(LEAST_BLOCK, CACHE_DOUBLES // max(1, doubles)))

    def _sample(self, k: int) -> Any:
        """The value of a register in the first lane."""
        return self.given[k][0] if k in self.given else self.shared[k]

    def _enter(self, k: int, lo: int, hi: int) -> Any:
        """A register's value for some lanes in the engine's format: lanes last."""
        t = self.function.registers[k].type
        if k not in self.plan.varying:
            value = self._sample(k)
            if isinstance(t, Stack):
                return list(value)
            if isinstance(t, Array):
                return value.copy() if k in self.inout else value
            return value.item() if isinstance(value, np.generic) else value
        dtype = system(elem_of(t)).dtype
        width = hi - lo
        if isinstance(t, Stack):
            lists = self.given[k][lo:hi] if k in self.given else [self.shared[k]] * width
            return LaneStack.of(lists, dtype)
        if k in self.given:
            return np.array(np.moveaxis(self.given[k][lo:hi], 0, -1), dtype, order="C")
        value = np.asarray(self.shared[k], dtype)
        return np.array(np.broadcast_to(value[..., None], (*value.shape, width)), order="C")

    def _leave(self, k: int, value: Any, lo: int, hi: int) -> None:
        if k in self.plan.varying:
            if isinstance(value, LaneStack):
                self.out[k][lo:hi] = value.lists()
            else:
                self.out[k][lo:hi] = np.moveaxis(value, -1, 0)
        elif k in self.inout:
            if isinstance(value, list):
                self.out[k][lo:hi] = [list(value) for _ in range(lo, hi)]
            else:
                self.out[k][lo:hi] = value

    # ------------------------------------------------------------ single lanes

    def raw(self, lane: int) -> list[Any]:
        """Copies of the raw inputs of a lane, by register."""
        out = []
        for k in range(self.function.n_args):
            value = self.given[k][lane] if k in self.given else self.shared[k]
            if isinstance(value, np.generic):
                value = value.item()
            elif isinstance(value, np.ndarray):
                value = np.array(value, order="C")
            out.append(list(value) if isinstance(value, list) else value)
        return out

    def inputs(self, lane: int) -> dict[str, Any]:
        """The inputs of a lane by name, as for a single call."""
        regs = self.raw(lane)
        return {p.name: outside(self.function, p.layout, regs) for p in self.function.params}

    def store(self, lane: int, regs: Sequence[Any]) -> None:
        """Store the results of a single run for a lane."""
        for k in range(self.function.n_args):
            if k in self.inout or k in self.plan.varying:
                self.out[k][lane] = regs[k]

    def restore(self, lane: int) -> None:
        """Store a failed lane's inputs as its results."""
        self.store(lane, self.raw(lane))


def _all_equal(values: Any) -> bool:
    """Whether values given by lane are all equal."""
    if not isinstance(values, np.ndarray) or values.ndim != 1 or not len(values):
        return False
    if values[0] != values[-1]:
        return False
    same = values == values[0]
    if values.dtype.kind in "fc":
        # Not only equal: zeros have signs.
        same = same & (values != 0)
    return bool(np.all(same))


def _uniformity(program: Program) -> Uniformity:
    """The uniformity analysis of a program, computed once."""
    return once(program.cache, Uniformity, Uniformity, Uniformity)
