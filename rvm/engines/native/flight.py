"""Runs of machine code, from packed registers to results; launches, for short runs."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Collection, Iterable, Sequence
from operator import itemgetter
from time import perf_counter
from typing import Any

from rvm.engines.extent import ticks_of
from rvm.engines.native.frames import Layout, free, layout_of, slots_of
from rvm.engines.native.gaps import Gaps
from rvm.engines.native.roots import Derived, Root, root_of
from rvm.engines.native.stacks import large_stack, stack_floor
from rvm.image import Code
from rvm.ir import context
from rvm.ir.kind import Kind
from rvm.ir.loop_facts import live_at
from rvm.state import Frame, Options, State
from rvm.types import Array, RegisterType, Scalar, Stack

CONTEXT = struct.Struct("<qqqqqqdQQdQ")
HEADER = struct.Struct("<Qqq")
FIELD = struct.Struct("<q")
DRIFT = struct.Struct("<d")
NO_LIMIT = 1 << 62
SOON = 0.02
"""Seconds."""
_addressof, _first = ctypes.addressof, ctypes.c_char.from_buffer


class Flight:
    """A run of machine code: its inputs and its results."""

    __slots__ = ("bits", "entry", "fields", "how", "layout", "root", "slots", "ticks")

    def __init__(
        self, root: Root, layout: Layout, slots: bytearray, ticks: int, entry: int = 0
    ) -> None:
        self.root = root
        self.layout = layout
        self.slots = slots
        self.ticks = ticks
        self.entry = entry
        self.fields = bytearray(CONTEXT.size)
        self.how = context.STOPPED
        self.bits = "stated"

    def go(
        self,
        live: int,
        options: Options,
        edited: bool = False,
        gaps: Gaps | None = None,
        frames: int = 1,
    ) -> None:
        """Run from so many live bytes and frames, and with a strict log if there is one.

        What holds too much already is left to the machine.
        """
        if gaps is not None:
            gaps.begin()
        self.bits = options.bits
        none = context.EDITED if edited else context.NO_TOLERANCE
        CONTEXT.pack_into(
            self.fields,
            0,
            self.ticks,
            self.entry,
            live,
            live,
            0,
            options.live_limit(live, frames),
            none if options.tolerance is None else options.tolerance,
            stack_floor(),
            0,
            0.0,
            0 if gaps is None else gaps.address,
        )
        for cell in self.root.cells:
            cell.fill()
        large = large_stack() if self.root.deep else None
        if options.max_memory is not None and live > options.max_memory:
            self.how = context.STOPPED
        elif large is None:
            self.how = self.root.run(_address(self.slots), _address(self.fields))
        else:
            FIELD.pack_into(self.fields, FIELD.size * context.DEEPEST, large.floor)
            self.how = large.run(self.root.run, _address(self.slots), _address(self.fields))
            large.tidy(FIELD.unpack_from(self.fields, FIELD.size * context.PEAK)[0] - live)
        if gaps is not None:
            gaps.land()

    @property
    def done(self) -> bool:
        """Whether the function has reached its end."""
        return self.how == context.DONE

    def has_filled(self, places: Collection[int]) -> bool:
        """Whether the run has come past certain positions at the beginning of its code."""
        at: int = CONTEXT.unpack_from(self.fields)[context.PC]
        return at > max(places, default=-1)

    @property
    def spent(self) -> int:
        """The ticks that it took."""
        left: int = CONTEXT.unpack_from(self.fields)[context.TICKS]
        return self.ticks - left

    @property
    def erased_bits(self) -> int:
        """The bits that it erased."""
        found: int = CONTEXT.unpack_from(self.fields)[context.ERASED]
        return found

    @property
    def drift(self) -> float:
        """The largest residue, relative to the allowed residue."""
        found: float = DRIFT.unpack_from(self.fields, DRIFT.size * context.DRIFT)[0]
        return found

    def land(self, state: State) -> int:
        """Update a state to where the run has stopped; return the ticks left.

        Frames that were entered and not left are pushed on the state's. MemoryError if there was no
        memory for them; the state is then inconsistent.
        """
        _, pc, _, _, _, _, _, _, first, _, _ = CONTEXT.unpack_from(self.fields)
        if self.how == context.LOST:
            _forget(first)
            raise MemoryError("no memory is left for the frames of a run of machine code")
        frame = state.frames[-1]
        stacks: dict[int, list[Any]] = {}
        self.layout.unpack(self.slots, live_at(frame.code, pc), frame.regs, stacks)
        frame.pc = pc
        while first:
            first = _stopped(state, self.root, first, stacks)
        return self.settle(state)

    def settle(self, state: State) -> int:
        """Add the costs of the run to a state's account and time; return the ticks left."""
        left, _, live, peak, erased, _, _, _, _, drift, _ = CONTEXT.unpack_from(self.fields)
        account = state.account
        account.live_bytes, account.peak_bytes = live, max(account.peak_bytes, peak)
        account.erased_bits += erased
        account.drift = max(account.drift, drift)
        state.time += (self.ticks - left) * state.direction
        return int(left)


def run(state: State, frame: Frame, kind: Kind, ticks: int) -> tuple[int, int]:
    """Run the innermost frame's code from a gate: the ticks that are left, and how it ended."""
    layout, options, root = layout_of(frame.code), state.options, root_of(frame.code, kind)
    flight = Flight(root, layout, layout.packed(frame.regs), ticks, frame.pc)
    began = perf_counter()
    gaps = None if state.residue is None else Gaps(state.residue)
    flight.go(state.account.live_bytes, options, state.edited, gaps, len(state.frames))
    root.busy += perf_counter() - began
    return flight.land(state), flight.how


class Launch:
    """A code that is run repeatedly from its beginning on contiguous registers.

    `logging` is the runs' use of their strict log, see `Code.logging`; for `unread`, `blank` and
    `finite` see `Kind`.
    """

    def __init__(
        self,
        origin: Code | Derived,
        checks: bool,
        logging: int = 0,
        unread: frozenset[int] = frozenset(),
        blank: bool = False,
        finite: frozenset[int] = frozenset(),
    ) -> None:
        kind = Kind(0, frozenset(), checks, logging, unread=unread, blank=blank, finite=finite)
        self.root = Root(origin, kind) if isinstance(origin, Derived) else root_of(origin, kind)
        self.layout = layout = Layout(self.root.sketch.types, self.root.sketch.n_args)
        # Who has waited for the compiler may wait as long once more before Ctrl-C is asked for,
        # rather than for code that goes on in the middle.
        self.patience = max(1.0, self.root.compiling / SOON)
        """The multiple of the estimated ticks that a run is given, raised after a run that had too
        few."""
        sketch = self.root.sketch
        self.shapes = [
            slice(at + 2, at + 2 + t.rank)
            for k, (t, at) in enumerate(zip(layout.types, layout.places, strict=True))
            if isinstance(t, Array) and k < layout.n_args and (sketch.deep or k in sketch.whole)
        ]
        """The slots of the shapes of the parameters on whose sizes ticks depend."""
        self._lengths = _taker(at for s in self.shapes for at in range(s.start, s.stop))
        self.ticks = self._within(1)
        """The number of ticks that a run is given if it depends on no sizes."""
        self._known: tuple[Any, int] = (), 0
        """The lengths of the last run, and the ticks for them."""
        self.parameters = range(layout.n_args)
        types = layout.types[: layout.n_args]
        self.scalars = [(k, t.parts > 1) for k, t in enumerate(types) if isinstance(t, Scalar)]
        """The parameters that a run leaves in slots."""
        self._slots = struct.Struct("<" + "".join(map(_scalar_slots, types)))
        self.stacks = any(isinstance(t, Stack) for t in types)

    @property
    def code(self) -> Code:
        """The code that is run."""
        return self.root.origin()

    def run(
        self, values: list[Any], live: int, options: Options, gaps: Gaps | None = None
    ) -> Flight:
        """A run on the values to be packed into slots."""
        flight = Flight(
            self.root,
            self.layout,
            bytearray(self.layout.struct.pack(*values)),
            self._foreseen(values) if self.shapes else self.ticks,
        )
        began = perf_counter()
        flight.go(live, options, gaps=gaps)
        if flight.how == context.SPENT and perf_counter() - began < SOON:
            self.patience = min(8 * self.patience, NO_LIMIT)
            self.ticks = self._within(1)
            self._known = (), 0
        return flight

    def run_registers(
        self, regs: Sequence[Any], live: int, options: Options, gaps: Gaps | None = None
    ) -> Flight:
        """A run on the parameters' raw values."""
        return self.run(self.layout.flat(regs), live, options, gaps)

    def results(self, flight: Flight, regs: list[Any]) -> None:
        """Store the parameters of a finished run in `regs`, which keep the objects they hold.

        There is room in `regs` for parameters only.
        """
        if self.stacks:
            self.layout.unpack(flight.slots, self.parameters, regs, {})
            return
        values = iter(self._slots.unpack_from(flight.slots))
        for k, pair in self.scalars:
            regs[k] = complex(next(values), next(values)) if pair else next(values)

    def _foreseen(self, values: Sequence[Any]) -> int:
        """The number of ticks for a run, by the sizes of its arrays."""
        lengths = self._lengths(values)
        of, ticks = self._known
        if of != lengths:
            size = max(math.prod(values[shape]) for shape in self.shapes)
            self._known = lengths, (ticks := self._within(size))
        return ticks

    def _within(self, size: int) -> int:
        return min(int(self.patience * ticks_of(self.root.sketch, size)), NO_LIMIT)


def _scalar_slots(t: RegisterType) -> str:
    """The slots of a register for `struct`, which leaves out those of arrays."""
    if isinstance(t, Scalar):
        return slots_of(t)
    return f"{8 * (2 + 2 * t.rank if isinstance(t, Array) else 1)}x"


def _taker(at: Iterable[int]) -> Callable[[Sequence[Any]], Any]:
    """A function that takes the values at some positions."""
    found = [*at]
    return itemgetter(*found) if found else lambda values: ()


def _address(data: bytearray) -> int:
    """The address of the data; a function without registers has none."""
    return _addressof(_first(data)) if data else 0


def _forget(address: int) -> None:
    """Free frames that generated code left, from the first on."""
    while address:
        following, _, _ = HEADER.unpack(ctypes.string_at(address, HEADER.size))
        free(address)
        address = following


def _stopped(state: State, root: Root, address: int, stacks: dict[int, list[Any]]) -> int:
    """Make a frame of one that generated code left; the address of the next."""
    following, number, pc = HEADER.unpack(ctypes.string_at(address, HEADER.size))
    code = root.code(number)
    layout = layout_of(code)
    data = ctypes.string_at(address + HEADER.size, layout.struct.size)
    regs: list[Any] = [None] * len(code.function.registers)
    layout.unpack(data, live_at(code, pc), regs, stacks)
    free(address)
    state.frames.append(Frame(code, regs, pc))
    return int(following)
