"""Lanes in machine code: many runs of one compiled function, from blocks of slots.

A block has a row of slots and a context for each lane; arrays that differ by lane are adjacent in
the result's memory.  Compiled code goes from lane to lane without returning to Python.  Lanes that
do not reach their end are set aside for single runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.engines.extent import most_ticks, sketch_of
from rvm.engines.native.flight import Flight
from rvm.engines.native.frames import Layout, layout_of, moved_in, moved_out
from rvm.engines.native.lanes_threads import Piece, work_off
from rvm.engines.native.roots import Root
from rvm.host.once import once
from rvm.image import Code
from rvm.ir import context
from rvm.ir.kind import Kind
from rvm.numbers import system
from rvm.state import Frame, Options, State, byte_size
from rvm.types import Array, Scalar, Stack, elem_of

LONGEST = 25
"""Chunks of ticks that a lane may take; a longer one is left to a machine, which hears Ctrl-C."""
LANES = "lanes"
"""The function that runs a root for lanes one after the other."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Runs to be made: `given` by lane and `shared` raw values of parameters, by register.

    `varying` are those of `given` whose values are not all the same.  `out` has room for the
    results of the registers in `fresh`, with the lane axis first; `ticks`, `erased` (bits) and
    `drifts` of each lane are filled in too.
    """

    code: Code
    given: Mapping[int, Any]
    varying: frozenset[int]
    shared: Sequence[Any]
    fresh: frozenset[int]
    out: list[Any]
    ticks: NDArray[np.int64]
    erased: NDArray[np.int64]
    drifts: NDArray[np.float64]

    @property
    def size(self) -> int:
        return len(self.ticks)

    def part(self, lanes: NDArray[np.intp]) -> Batch:
        """Some of the lanes, with separate room for results."""
        given = {k: _taken(v, lanes) for k, v in self.given.items()}
        out = [_taken(v, lanes) if k in self.fresh else v for k, v in enumerate(self.out)]
        return replace(
            self,
            given=given,
            out=out,
            ticks=self.ticks[lanes],
            erased=self.erased[lanes],
            drifts=self.drifts[lanes],
        )

    def take(self, part: Batch, lanes: NDArray[np.intp]) -> None:
        """Put a part's results where they belong."""
        for k in self.fresh:
            if isinstance(self.out[k], list):
                for at, value in zip(lanes, part.out[k], strict=True):
                    self.out[k][at] = value
            else:
                self.out[k][lanes] = part.out[k]
        self.ticks[lanes], self.erased[lanes] = part.ticks, part.erased
        self.drifts[lanes] = part.drifts

    def columns(self, k: int, lo: int, hi: int) -> Any:
        """A register's values in some lanes; one value where it is shared."""
        return self.given[k][lo:hi] if k in self.given else self.shared[k]


class LaneRoot(Root):
    """The machine code of a code with its driver."""

    symbol = LANES


def lane_root(code: Code, checks: bool) -> LaneRoot:
    """A code's machine code for lanes, compiled at first use."""
    kind = Kind(0, frozenset(), checks)
    return once(code.compiled, (LaneRoot, checks), LaneRoot, lambda: LaneRoot(code, kind))


class Block:
    """The lanes from `lo` to `hi`: their slots and contexts."""

    def __init__(self, batch: Batch, lo: int, hi: int) -> None:
        self.batch, self.lo, self.hi = batch, lo, hi
        self.code = batch.code
        self.layout: Layout = layout_of(self.code)
        self.rows = np.zeros((hi - lo, self.layout.count), np.int64)
        self.live = np.zeros(hi - lo, np.int64)
        """The number of bytes counted for a lane's parameters."""
        self.kept: list[Any] = []
        """Shared arrays that pointers lead to."""

    def run(self, options: Options, aside: NDArray[np.bool_]) -> None:
        """Run the lanes and store their results; `aside` is set for lanes without results."""
        root = lane_root(self.code, options.checks)
        for k in range(self.code.function.n_args):
            self._enter(k)
        chunk = chunk_of(self.batch)
        fields = contexts(len(self.rows), context.FIELDS, chunk, options, self.live)
        hows = np.full(len(self.rows), context.STOPPED, np.int32)
        begun = fields[:, context.TICKS].copy()
        work_off(root.run, Piece(self.rows, fields, hows, chunk, self), root.deep)
        ended = hows == context.DONE
        for lane in map(int, np.flatnonzero(~ended)):
            self._discard(root, lane, int(hows[lane]), fields[lane], options)
        part = slice(self.lo, self.hi)
        self.batch.ticks[part] = begun - fields[:, context.TICKS]
        self.batch.erased[part] = fields[:, context.ERASED]
        self.batch.drifts[part] = fields.view(np.float64)[:, context.DRIFT]
        for k in self.batch.fresh:
            self._leave(k, ended)
        aside[:] = ~ended

    # ------------------------------------------------------------ in and out

    def column(self, start: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """A slot of all lanes as numbers of a type."""
        return self.rows.view(dtype)[:, start * 8 // dtype.itemsize]

    def _enter(self, k: int) -> None:
        """Fill the slots of a parameter."""
        t = self.layout.types[k]
        start, dtype = self.layout.places[k], self.layout.dtypes[k]
        if isinstance(t, Stack):
            self._enter_stack(k, start, t.elem)
            return
        values = self.batch.columns(k, self.lo, self.hi)
        if isinstance(t, Scalar):
            self.live += 8 * t.parts
            if t.parts > 1:
                self.column(start, np.dtype(np.float64))[:] = np.real(values)
                self.column(start + 1, np.dtype(np.float64))[:] = np.imag(values)
            else:
                self.column(start, dtype)[:] = values
            return
        assert isinstance(t, Array)
        if k in self.batch.fresh:
            held = self.batch.out[k][self.lo : self.hi]
            held[...] = values
            address, distance, one = held.ctypes.data, held.strides[0], held[0]
        else:
            # One array for all lanes, which none of them changes; or one by lane that holds one
            # value throughout.
            one = values[0] if k in self.batch.given else values
            one = np.array(one, dtype, order="C", copy=None)
            self.kept.append(one)
            address, distance = one.ctypes.data, 0
        self.live += one.nbytes
        self.rows[:, start] = address + distance * np.arange(len(self.rows))
        self.rows[:, start + 2 : start + 2 + t.rank] = one.shape
        self.rows[:, start + 2 + t.rank : start + 2 + 2 * t.rank] = one.strides

    def _enter_stack(self, k: int, start: int, t: Scalar) -> None:
        for lane in range(len(self.rows)):
            held = self.batch.given[k][self.lo + lane] if k in self.batch.given else None
            values = self.batch.shared[k] if held is None else held
            self.rows[lane, start] = moved_in(values, t)
            self.live[lane] += byte_size(values)

    def _leave(self, k: int, ended: NDArray[np.bool_]) -> None:
        """Store a parameter's results."""
        t = self.layout.types[k]
        start, out = self.layout.places[k], self.batch.out[k]
        if isinstance(t, Stack):
            dtype = system(elem_of(t)).dtype
            for lane in map(int, np.flatnonzero(ended)):
                address = int(self.rows[lane, start])
                out[self.lo + lane] = moved_out(address, dtype, None, {})
        elif isinstance(t, Scalar):
            part = out[self.lo : self.hi]
            if t.parts > 1:
                part.real = self.column(start, np.dtype(np.float64))
                part.imag = self.column(start + 1, np.dtype(np.float64))
            else:
                part[:] = self.column(start, self.layout.dtypes[k])

    def _discard(
        self, root: LaneRoot, lane: int, how: int, fields: NDArray[np.int64], o: Options
    ) -> None:
        """Free the memory of a lane that has stopped early."""
        row = bytearray(self.rows[lane].tobytes())
        flight = Flight(root, self.layout, row, 0)
        flight.how = how
        flight.fields[:] = fields.tobytes()
        state = State(Frame(self.code, [None] * len(self.layout.types)), o)
        # A lane that is lost begins anew, like all that are set aside.
        with suppress(MemoryError):
            flight.land(state)


def _taken(values: Any, lanes: NDArray[np.intp]) -> Any:
    return [values[k] for k in lanes] if isinstance(values, list) else values[lanes]


def contexts(n: int, fields: int, chunk: int, options: Options, live: Any) -> NDArray[np.int64]:
    """Contexts, each of a number of fields, for n runs; `live` are the bytes at their start."""
    out = np.zeros((n, fields), np.int64)
    most = options.max_steps
    out[:, context.TICKS] = LONGEST * chunk if most is None else min(LONGEST * chunk, most)
    out[:, context.LIVE] = out[:, context.PEAK] = live
    out[:, context.LIMIT] = options.live_limit(live, 1)
    out.view(np.float64)[:, context.TOLERANCE] = (
        context.NO_TOLERANCE if options.tolerance is None else options.tolerance
    )
    return out


def chunk_of(batch: Batch) -> int:
    """The number of ticks of a lane that take some hundredths of a second."""
    held = ((k, batch.columns(k, 0, 1)) for k in range(batch.code.function.n_args))
    sizes = {k: v.size for k, v in held if isinstance(v, np.ndarray)}
    return most_ticks(sketch_of(batch.code), sizes)
