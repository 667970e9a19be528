"""The native engine: compiled code between gates, the reference engine for what is between them."""

from __future__ import annotations

import ctypes
import math
import struct
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from rvm.emit.llvm import context
from rvm.emit.llvm.kind import ANYWHERE, Kind
from rvm.emit.llvm.module import ROOT, ModulePrinter, plan_of
from rvm.emit.llvm.reading import read_by
from rvm.emit.llvm.traps import CELL, ELEMENT
from rvm.engines.native.compiler import Run, compiler
from rvm.engines.native.frames import FORMATS, Layout, free, layout_of
from rvm.engines.protocol import FIRST_CHUNK
from rvm.engines.reference import step
from rvm.engines.trapping import due
from rvm.image import Code, Image
from rvm.isa import VARIADIC
from rvm.probes.traps import Changed
from rvm.state import Frame, Options, State
from rvm.types import Array, Scalar

CONTEXT = struct.Struct("<qqqqqqdQQ")
HEADER = struct.Struct("<Qqq")
NO_LIMIT = 1 << 62
STACK_BYTES = 8 << 20
WORK = 4_000_000
"""Ticks of scalars that take some hundredths of a second."""
WINDOWS_STACK_BYTES = 1 << 20
PAYS = 5.0
"""How many times the time of compiling code has to run before it is compiled for another gate."""
SOON = 0.02
"""Seconds."""


class Native:
    """Machine code."""

    name = "native"
    exact = False

    def __init__(self) -> None:
        compiler()

    def first_chunk(self, state: State) -> int:
        """How many ticks to begin with: fewer where one may be a loop over a large array."""
        root = state.frames[0]
        return most_ticks(root.code, {k: v.size for k, v in enumerate(root.regs) if _is_array(v)})

    def advance(self, state: State, ticks: int) -> int:
        """Execute up to `ticks` ticks; may stop some short of them, at a gate."""
        n, frames, options = ticks, state.frames, state.options
        while n > 0:
            frame = frames[-1]
            if state.armed and due(state):
                break
            flow = plan_of(frame.code, options.checks, options.strict).flow
            pc = frame.pc
            if pc in flow.gates and pc not in flow.apart:
                if flow.needs(0)[pc] > n:
                    break
                n, how = run(state, frame, kind_for(frame, options), n)
                if how == context.SPENT or n == 0:
                    break
                frame = frames[-1]
            if len(frames) == 1 and frame.pc == len(frame.code):
                break
            if state.armed and due(state):
                break
            step(state)
            n -= 1
        return ticks - n


def _is_array(v: object) -> bool:
    return isinstance(v, np.ndarray)


def most_ticks(code: Code, sizes: Mapping[int, int]) -> int:
    """How many ticks take some hundredths of a second, as far as that can be foreseen.

    `sizes` are the numbers of elements of arrays among the registers.
    """
    own, others = _whole_arrays(code)
    involved = sizes.values() if others else (n for k, n in sizes.items() if k in own)
    return max(FIRST_CHUNK, WORK // max(*involved, 1, 1))


def _whole_arrays(code: Code) -> tuple[frozenset[int], bool]:
    """The registers of a function's own statements on whole arrays; whether callees have such."""
    key = (_whole_arrays, code.name)
    cache = code.image.program.cache
    if key not in cache:
        name, *callees = code.image.reachable(code.name)
        others = any(any(True for _ in _array_operands(code.image, f)) for f in callees)
        cache[key] = frozenset(_array_operands(code.image, name)), others
    found: tuple[frozenset[int], bool] = cache[key]  # type: ignore[assignment]
    return found


def _array_operands(image: Image, name: str) -> Iterator[int]:
    for instr in image.program.function(name).code:
        if instr.op not in VARIADIC:
            for place in (p for arg in instr.args for p in read_by(arg)):
                if isinstance(place.type, Array):
                    yield place.reg


class Cell:
    """The memory in which compiled code finds what a guard compares with."""

    def __init__(self, guard: Changed) -> None:
        self.guard = guard
        self.words = (ctypes.c_int64 * 3)()
        self.address = ctypes.addressof(self.words)
        t = guard.place.type if guard.place is not None else (guard.element or (None, None))[1]
        assert isinstance(t, Scalar)
        self.struct = struct.Struct("<q" + FORMATS[t.name])

    def fill(self) -> None:
        """Put the value there; the flag in front is set where there is none."""
        value = self.guard.cell[0]
        parts = (value.real, value.imag) if isinstance(value, complex) else (value,)
        if value is None:
            self.words[0] = 1
        else:
            self.struct.pack_into(self.words, 0, 0, *parts)


class Root:
    """The machine code of a code from one gate on, and the codes that its frames name."""

    def __init__(self, code: Code, kind: Kind) -> None:
        llvm, began = compiler(), perf_counter()
        printer = ModulePrinter(code, kind)
        text = printer.text(llvm.triple, llvm.layout)
        self.codes = tuple(printer.codes)
        self.busy = 0.0
        """Seconds of runs, for code that others may replace."""
        self.cells = [Cell(guard) for guard in printer.cells]
        memory: dict[str, int] = {}
        for k, cell in enumerate(self.cells):
            memory[f"{CELL}{k}"] = cell.address
            if cell.guard.element is not None:
                memory[f"{ELEMENT}{k}"] = cell.guard.element[0].__array_interface__["data"][0]
        self.run: Run = llvm.function(text, ROOT, printer.symbols, memory)
        self.compiling = perf_counter() - began
        """Seconds that making it took."""


def kind_for(frame: Frame, options: Options) -> Kind:
    """What to run from where a frame stands.

    In the middle of a function that is the code for all gates, until it has run for so long that
    compiling for this one pays.
    """
    code = frame.code
    exact = Kind(frame.pc, layout_of(code).scattered(frame.regs), options.checks, options.strict)
    if frame.pc == 0 or exact in code.compiled:
        return exact
    anywhere = replace(exact, entry=ANYWHERE)
    root = code.compiled.get(anywhere)
    if isinstance(root, Root) and root.busy > PAYS * root.compiling:
        root.busy = 0.0
        return exact
    return anywhere


def root_of(code: Code, kind: Kind) -> Root:
    """A code's machine code, compiled at first use."""
    found = code.compiled.get(kind)
    if not isinstance(found, Root):
        found = code.compiled[kind] = Root(code, kind)
    return found


def source_of(code: Code, kind: Kind) -> str:
    """The LLVM code of a root, to be read."""
    llvm = compiler()
    return ModulePrinter(code, kind).text(llvm.triple, llvm.layout)


class Flight:
    """A run of machine code: what it was given, and what it left."""

    __slots__ = ("entry", "fields", "how", "layout", "root", "slots", "ticks")

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

    def go(self, live: int, peak: int, options: Options) -> None:
        """Run, with so many live bytes at the start and at most."""
        limit = options.max_memory
        CONTEXT.pack_into(
            self.fields,
            0,
            self.ticks,
            self.entry,
            live,
            peak,
            0,
            NO_LIMIT if limit is None else limit,
            options.tolerance,
            stack_room(),
            0,
        )
        for cell in self.root.cells:
            cell.fill()
        self.how = self.root.run(_address(self.slots), _address(self.fields))

    @property
    def done(self) -> bool:
        """Whether the function has come to its end."""
        return self.how == context.DONE

    def land(self, state: State) -> int:
        """Put a state where the run has come to; the ticks that are left.

        Frames that were entered on the way and not left again are put on the state's.
        """
        left, pc, live, peak, erased, _, _, _, first = CONTEXT.unpack(self.fields)
        frame, account = state.frames[-1], state.account
        stacks: dict[int, list[Any]] = {}
        self.layout.unpack(self.slots, pc, frame.regs, stacks)
        frame.pc = pc
        while first:
            first = _stopped(state, self.root, first, stacks)
        account.live_bytes, account.peak_bytes = live, peak
        account.erased_bits += erased
        state.time += (self.ticks - left) * state.direction
        return int(left)


def run(state: State, frame: Frame, kind: Kind, ticks: int) -> tuple[int, int]:
    """Run the innermost frame's code from a gate: the ticks that are left, and how it ended."""
    layout, options, root = layout_of(frame.code), state.options, root_of(frame.code, kind)
    flight = Flight(root, layout, layout.packed(frame.regs), ticks, frame.pc)
    began = perf_counter()
    flight.go(state.account.live_bytes, state.account.peak_bytes, options)
    root.busy += perf_counter() - began
    return flight.land(state), flight.how


class Launch:
    """A code that is run from its beginning on registers without gaps, again and again."""

    def __init__(self, code: Code, checks: bool) -> None:
        self.layout = layout_of(code)
        self.root = root_of(code, Kind(0, frozenset(), checks))
        self.code = code
        self.ticks = 0
        """How many ticks a run is given; more after a run that was over soon without its end."""
        registers = code.function.registers
        self.locals: list[None] = [None] * (len(registers) - code.function.n_args)

    def run(self, values: list[Any], live: int, options: Options) -> Flight:
        """A run, on what the slots are packed from."""
        return self._fly(bytearray(self.layout.struct.pack(*values)), live, options)

    def run_registers(self, regs: list[Any], live: int, options: Options) -> Flight:
        """A run on the parameters' raw values; locals are added."""
        return self._fly(self.layout.packed(regs + self.locals), live, options)

    def _fly(self, slots: bytearray, live: int, options: Options) -> Flight:
        if not self.ticks:
            self.ticks = self._foreseen(slots)
        flight = Flight(self.root, self.layout, slots, self.ticks)
        began = perf_counter()
        flight.go(live, live, options)
        if flight.how == context.SPENT and perf_counter() - began < SOON:
            self.ticks = min(8 * self.ticks, NO_LIMIT)
        return flight

    def _foreseen(self, slots: bytearray) -> int:
        values, sizes = self.layout.struct.unpack(slots), {}
        for k, (t, at) in enumerate(zip(self.layout.types, self.layout.places, strict=True)):
            if isinstance(t, Array):
                sizes[k] = math.prod(values[at + 2 : at + 2 + t.rank])
        return most_ticks(self.code, sizes)


def _address(data: bytearray) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(data))


def _stopped(state: State, root: Root, address: int, stacks: dict[int, list[Any]]) -> int:
    """Make a frame of one that generated code left; the address of the next."""
    following, number, pc = HEADER.unpack(ctypes.string_at(address, HEADER.size))
    code = root.codes[number]
    layout = layout_of(code)
    data = ctypes.string_at(address + HEADER.size, layout.struct.size)
    regs: list[Any] = [None] * len(code.function.registers)
    layout.unpack(data, pc, regs, stacks)
    free(address)
    state.frames.append(Frame(code, regs, pc))
    return int(following)


def stack_room() -> int:
    """How many bytes of the host's stack generated code may take."""
    if threading.get_ident() == threading.main_thread().ident:
        return _main_room()
    return threading.stack_size() // 2 or STACK_BYTES // 16


@cache
def _main_room() -> int:
    if sys.platform == "win32":
        return WINDOWS_STACK_BYTES // 2
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return (STACK_BYTES if soft == resource.RLIM_INFINITY else min(soft, STACK_BYTES)) // 2
