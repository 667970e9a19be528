"""Groups of lanes by LLVM's vectors: `WIDTH` lanes in a row of slots that are vectors.

If lanes diverge in a function, each continues by itself to the function's end; then they are
together again.

In a slot of a group, a value that differs by lane is a vector, and any other is a number at the
beginning of the slot.  Arrays that differ by lane have the shape (groups, …, WIDTH).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.emit.llvm.module import ModulePrinter
from rvm.engines.extent import sketch_of
from rvm.engines.lanes.uniform import Uniformity, varies
from rvm.engines.native.compiler import compiler
from rvm.engines.native.frames import layout_of
from rvm.engines.native.keys import key_of
from rvm.engines.native.lanes import LANES, Batch, chunk_of, contexts
from rvm.engines.native.lanes_threads import Piece, work_off
from rvm.engines.native.roots import Printed, machine_code, placed
from rvm.host.once import making, once
from rvm.image import Code
from rvm.ir import context
from rvm.ir.context import WIDTH
from rvm.ir.kind import Kind
from rvm.ir.typed import Unprintable
from rvm.leaf import Table
from rvm.program import Program
from rvm.state import Options
from rvm.stmt import Alloc, Branch, Drop, Free, Fresh, writes
from rvm.types import Array, Scalar, Stack

GROUPS_ENOUGH = 4
"""Fewer groups are not worth a compilation of their own."""


class Together(Uniformity):
    """The registers that differ by lane in functions whose lanes stay together as long as possible.

    Lanes that have diverged may return different values of parameters, and change any array.
    """

    parting = False

    def __init__(self) -> None:
        super().__init__()
        self._apart = Uniformity()

    def _once(self, code: Code, varying: set[int]) -> frozenset[int]:
        found = super()._once(code, varying)
        if not any(
            isinstance(stmt := code.stmts(pc)[0], Branch) and varies(stmt.cond, found)
            for pc in range(len(code))
        ):
            return found
        given = frozenset(range(code.function.n_args))
        changed = _changed(code)
        different = self._apart.varying(code, found & given)
        arrays = {k for k in changed if isinstance(code.function.registers[k].type, Array)}
        more = arrays | (given & changed & different)
        return found if more <= found else self._once(code, set(found | more))


def _changed(code: Code) -> frozenset[int]:
    """The registers that a code changes, itself or by calls."""
    return frozenset(
        place.reg
        for pc in range(len(code))
        for stmt in code.stmts(pc)
        if not isinstance(stmt, (Alloc, Free, Fresh, Drop))
        for place in writes(stmt, code.image.inout)
    )


class WideRoot:
    """The machine code of a code for groups of lanes whose registers `varying` differ.

    `parts` says that single lanes have done most of the work so far.
    """

    def __init__(
        self, code: Code, params: frozenset[int], varying: frozenset[int], checks: bool
    ) -> None:
        kind = _kind(checks)

        def printed() -> Printed:
            text, symbols, tables = _printed(code, params, checks)
            self._tables = placed(tables, memory)
            return Printed(text, symbols, ())

        name = key_of(code, kind, "groups", f"{sorted(params)}")
        memory: dict[str, int] = {}
        self.run, artifact = machine_code(name, LANES, printed, lambda: sketch_of(code), memory)
        self.deep = artifact.sketch.recurs
        self.varying = varying
        self.groups = 0
        self.left = 0
        """The number of groups run, and of those abandoned."""
        self.ticks = 0
        self.alone = 0
        """The number of ticks taken by lanes, and of these by lanes alone."""

    @property
    def tried(self) -> bool:
        """Whether it is known how lanes do."""
        return self.groups >= GROUPS_ENOUGH

    @property
    def parts(self) -> bool:
        """Whether lanes are better off one by one."""
        return self.tried and 2 * self.alone > self.ticks


def wide_root(batch: Batch, checks: bool) -> WideRoot | None:
    """The machine code for a batch's groups, compiled at first use; None if there is none."""
    code, registers = batch.code, batch.code.function.registers
    if any(isinstance(r.type, Stack) for r in registers):
        return None
    # Each lane has arrays of its own that it may change.
    changed = code.image.inout[code.name]
    params = batch.varying | {k for k in changed if isinstance(registers[k].type, Array)}
    key = (WideRoot, params, checks)
    if key not in code.compiled:
        with making():
            if key not in code.compiled:
                code.compiled[key] = _made(code, params, checks)
    found = code.compiled[key]
    assert found is None or isinstance(found, WideRoot)
    return found


def _made(code: Code, params: frozenset[int], checks: bool) -> WideRoot | None:
    varying = _together(code.image.program).varying(code, params)
    params = frozenset(k for k in varying if k < code.function.n_args)
    try:
        return WideRoot(code, params, varying, checks)
    except Unprintable:
        return None


def wide_source(code: Code, params: frozenset[int], checks: bool = True) -> str:
    """The LLVM code for groups of lanes in which `params` differ; Unprintable if there is none."""
    return _printed(code, params, checks)[0]


def _printed(
    code: Code, params: frozenset[int], checks: bool
) -> tuple[str, tuple[str, ...], dict[str, Table]]:
    llvm, known = compiler(), _together(code.image.program)
    printer = ModulePrinter(code, _kind(checks), params, known.varying, LANES)
    return printer.text(llvm.triple, llvm.layout), printer.symbols, printer.placed


def _kind(checks: bool) -> Kind:
    return Kind(0, frozenset(), checks, anew=True)


def _together(program: Program) -> Together:
    return once(program.cache, Together, Together, Together)


class WideBlock:
    """The lanes from `lo` to `hi` in groups; the last group is filled up with its last lane."""

    def __init__(self, batch: Batch, lo: int, hi: int, root: WideRoot) -> None:
        self.batch, self.lo, self.hi, self.root = batch, lo, hi, root
        self.layout = layout_of(batch.code)
        self.groups = -(-(hi - lo) // WIDTH)
        self.order = np.minimum(np.arange(self.groups * WIDTH), hi - lo - 1)
        self.rows = np.zeros((self.groups, self.layout.count, WIDTH), np.int64)
        self.live = 0
        """The number of bytes counted for a lane's parameters."""
        self.arrays: dict[int, NDArray[Any]] = {}

    def run(self, options: Options, aside: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Run the groups and take their results; a mask of the lanes to be run one by one.

        `aside` is set for those whose ticks did not suffice, and which need not be tried again.
        """
        for k in range(self.batch.code.function.n_args):
            self._enter(k)
        chunk = chunk_of(self.batch)
        fields = contexts(self.groups, context.LANE_FIELDS, chunk, options, self.live)
        begun = fields[:, context.TICKS].copy()
        hows = np.full(self.groups, context.STOPPED, np.int32)
        work_off(self.root.run, Piece(self.rows, fields, hows, chunk, self), self.root.deep)
        part = slice(self.lo, self.hi)
        size = self.hi - self.lo
        ticks = (begun - fields[:, context.TICKS])[:, None] - _by_lane(fields, context.SPARED)
        self.batch.ticks[part] = ticks.reshape(-1)[:size]
        self.batch.erased[part] = _by_lane(fields, context.LANE_ERASED).reshape(-1)[:size]
        drifts = _by_lane(fields, context.LANE_DRIFT).view(np.float64)
        self.batch.drifts[part] = drifts.reshape(-1)[:size]
        for k in self.batch.fresh:
            self._leave(k)
        stopped = np.flatnonzero(hows == context.STOPPED)
        self.root.groups += self.groups
        self.root.left += len(stopped)
        self.root.ticks += int(ticks.sum())
        self.root.alone += int(fields[:, context.ALONE].sum())
        if len(stopped):
            # What these have done is done again.
            self.root.alone += int(ticks[stopped].sum() - fields[stopped, context.ALONE].sum())
        ends = np.repeat(hows, WIDTH)[:size]
        aside[:] = ends != context.DONE
        left: NDArray[np.bool_] = ends == context.STOPPED
        return left

    def column(self, start: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """A slot of all groups as vectors of a type: (groups, WIDTH)."""
        return self.rows.view(dtype)[:, start, :WIDTH]

    def _values(self, k: int) -> Any:
        """A register's values with an axis of groups and one of lanes in front."""
        if k not in self.batch.given:
            return self.batch.shared[k]
        held = self.batch.given[k][self.lo : self.hi]
        if len(held) < len(self.order):
            held = held[self.order]
        return held.reshape(self.groups, WIDTH, *held.shape[1:])

    def _one(self, k: int) -> Any:
        """The value of a register that does not vary."""
        return self.batch.given[k][self.lo] if k in self.batch.given else self.batch.shared[k]

    def _enter(self, k: int) -> None:
        t, varies = self.layout.types[k], k in self.root.varying
        start, dtype = self.layout.places[k], self.layout.dtypes[k]
        if isinstance(t, Scalar):
            self.live += 8 * t.parts
            values = self._values(k) if varies else self._one(k)
            parts = (np.real(values), np.imag(values)) if t.parts > 1 else (values,)
            kind = np.dtype(np.float64) if t.parts > 1 else dtype
            for part, value in enumerate(parts):
                self.column(start + part, kind)[:, slice(None) if varies else 0] = value
            return
        assert isinstance(t, Array)
        if varies:
            values = self._values(k)
            if k in self.batch.given:
                shape, moved = values.shape[2:], np.moveaxis(values, 1, -1)
            else:
                shape, moved = values.shape, values[..., None]
            held = np.empty((self.groups, *shape, WIDTH), dtype)
            held[...] = moved
            distance, size = held.strides[0], held.nbytes // (self.groups * WIDTH)
        else:
            held = np.array(self._one(k), dtype, order="C", copy=None)
            shape, distance, size = held.shape, 0, held.nbytes
        self.arrays[k] = held
        self.live += size
        self.rows[:, start, 0] = held.ctypes.data + distance * np.arange(self.groups)
        for axis, n in enumerate(shape):
            self.rows[:, start + 2 + axis, 0] = n

    def _leave(self, k: int) -> None:
        """Store a parameter's results, including those of abandoned groups."""
        t, varies = self.layout.types[k], k in self.root.varying
        out, size = self.batch.out[k], self.hi - self.lo
        part = out[self.lo : self.hi]
        if isinstance(t, Array):
            if varies:
                held = np.moveaxis(self.arrays[k], -1, 1)
                part[...] = held.reshape(self.groups * WIDTH, *held.shape[2:])[:size]
            else:
                part[...] = self.arrays[k]
            return
        assert isinstance(t, Scalar)
        start, dtype = self.layout.places[k], self.layout.dtypes[k]
        kind = np.dtype(np.float64) if t.parts > 1 else dtype
        for k_part, target in enumerate((part.real, part.imag) if t.parts > 1 else (part,)):
            found = self.column(start + k_part, kind)
            if not varies:
                found = np.repeat(found[:, :1], WIDTH, axis=1)
            target[:] = found.reshape(-1)[:size]


def _by_lane(fields: NDArray[np.int64], first: int) -> NDArray[np.int64]:
    """The fields of contexts for each lane, from a field on: (groups, WIDTH)."""
    return np.ascontiguousarray(fields[:, first : first + WIDTH])
