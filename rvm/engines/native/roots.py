"""Roots: machine code that Python enters, from the cache or newly compiled."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, NamedTuple

from rvm.engines.extent import sketch_of
from rvm.engines.native.artifact import Artifact, Sketch, decoded
from rvm.engines.native.elf import Block, linked
from rvm.engines.native.frames import layout_of, slots_of
from rvm.engines.native.host import Llvm
from rvm.engines.native.keys import key, key_of
from rvm.engines.native.memory import Run, loaded
from rvm.host import kept
from rvm.host.once import once
from rvm.host.signals import Listening, deferred
from rvm.image import Code
from rvm.image.traps import Changed
from rvm.ir.kind import ANYWHERE, ROOT, Kind
from rvm.leaf import Table
from rvm.program import Program
from rvm.state import Frame, Options
from rvm.types import Scalar

PAYS = 5.0
"""The multiple of the compile time that code must run before it is compiled for another gate."""


FEW = 8
RECENT: dict[str, Artifact] = {}
"""The artifacts made last, by their names, where none are kept on disk: perturbed programs have the
same text."""


class Cell:
    """The memory in which compiled code finds the value with which a guard compares."""

    def __init__(self, guard: Changed) -> None:
        self.guard = guard
        self.words = (ctypes.c_int64 * 3)()
        self.address = ctypes.addressof(self.words)
        t = guard.place.type if guard.place is not None else (guard.element or (None, None))[1]
        assert isinstance(t, Scalar)
        self.struct = struct.Struct("<q" + slots_of(t))

    def fill(self) -> None:
        """Store the value; the flag before it is set if there is none."""
        value = self.guard.cell[0]
        parts = (value.real, value.imag) if isinstance(value, complex) else (value,)
        if value is None:
            self.words[0] = 1
        else:
            self.struct.pack_into(self.words, 0, 0, *parts)


class Derived(NamedTuple):
    """Code made by a transformation of a program, unless its machine code is cached.

    `what` identifies the transformation, so that equal texts mean equal codes.
    """

    program: Program
    what: tuple[str, ...]
    make: Callable[[], Code]


class Printed(NamedTuple):
    """A module's text, its external calls, and the codes to which its frames refer by number."""

    text: str
    symbols: tuple[str, ...]
    codes: tuple[Code, ...]


def placed(tables: Mapping[str, Table], memory: dict[str, int]) -> list[Any]:
    """Tables in memory of their own, by their symbols in a module; their addresses are entered."""
    held = []
    for symbol, table in tables.items():
        words = (ctypes.c_int64 * len(table.values))(*table.values)
        memory[symbol] = ctypes.addressof(words)
        held.append(words)
    return held


class Root:
    """The machine code of a code from one gate on."""

    symbol = ROOT
    """The function that Python enters."""

    def __init__(self, origin: Code | Derived, kind: Kind) -> None:
        self._origin = origin
        self._kind = kind
        self._codes: tuple[Code, ...] = ()
        self.busy = 0.0
        """The run time in seconds of code that may be replaced."""
        self.cells: list[Cell] = []
        self._memory: dict[str, int] = {}
        self._tables: list[Any] = []
        if isinstance(origin, Derived):
            name = key(origin.program, *origin.what, repr(kind), self.symbol)
        else:
            name = key_of(origin, kind, self.symbol)
        self.run, artifact = machine_code(
            name, self.symbol, self._printed, self._sketch, self._memory
        )
        self.sketch = artifact.sketch
        self._names = artifact.codes
        self.deep = artifact.sketch.recurs and not kind.counts
        """Whether it goes deep, and never into Python, which must find its thread's own stack."""
        self.compiling = artifact.seconds
        """Seconds that making it took, in whichever process that was."""

    def origin(self) -> Code:
        """The code that this is the machine code of."""
        if isinstance(self._origin, Derived):
            self._origin = self._origin.make()
        return self._origin

    def code(self, number: int) -> Code:
        """The code that a stopped frame names by number."""
        if not self._codes:
            image = self.origin().image
            self._codes = tuple(image.code(*name) for name in self._names)
        return self._codes[number]

    def _sketch(self) -> Sketch:
        return sketch_of(self.origin())

    def _printed(self) -> Printed:
        from rvm.emit.llvm.module import ModulePrinter
        from rvm.emit.llvm.printer import CELL, ELEMENT
        from rvm.engines.native.compiler import compiler

        llvm, printer = compiler(), ModulePrinter(self.origin(), self._kind, entry=self.symbol)
        self._codes = tuple(printer.codes)
        self.cells = [Cell(guard) for guard in printer.cells]
        for k, cell in enumerate(self.cells):
            self._memory[f"{CELL}{k}"] = cell.address
            if cell.guard.element is not None:
                address = cell.guard.element[0].__array_interface__["data"][0]
                self._memory[f"{ELEMENT}{k}"] = address
        self._tables = placed(printer.placed, self._memory)
        text = printer.text(llvm.triple, llvm.layout)
        return Printed(text, printer.symbols, self._codes)


def machine_code(
    name: str | None,
    entry: str,
    printed: Callable[[], Printed],
    sketch: Callable[[], Sketch],
    memory: Mapping[str, int],
) -> tuple[Run, Artifact]:
    """A module's function `entry`: from the cache under a key, or else compiled from its text.

    Without a key it is cached by its text and its registers' types. `memory` are addresses of the
    module's own globals.
    """
    with Listening():
        found = _machine_code(name, entry, printed, sketch, memory)
    Llvm.works = True
    return found


@deferred
def _machine_code(
    name: str | None,
    entry: str,
    printed: Callable[[], Printed],
    sketch: Callable[[], Sketch],
    memory: Mapping[str, int],
) -> tuple[Run, Artifact]:
    """`machine_code`, with signals handled only between its parts.

    The destruction of LLVM's Python objects is not interrupted.
    """
    found = None if name is None else _kept(name, entry, memory)
    if found is not None:
        return found
    began = perf_counter()
    from rvm.engines.native.compiler import compiler

    llvm, made, about = compiler(), printed(), sketch()
    codes = tuple((c.name, c.undo) for c in made.codes)
    if name is None:
        # Types of either sign may have the same text.
        types = repr((about.types, about.n_args, sorted(about.whole), codes))
        name = kept.digest(llvm.version.encode(), made.text.encode(), types.encode()).hex()
        found = _recent(name, entry, memory) or _kept(name, entry, memory)
        if found is not None:
            return found
    data = llvm.compiled(made.text)
    seconds = perf_counter() - began
    artifact = Artifact(linked(data, entry) or data, made.symbols, codes, about, seconds)
    run = _running(artifact, entry, memory)
    if run is None:
        artifact = artifact._replace(code=data)
        run = llvm.function(data, entry, made.symbols, memory)
    if kept.folder() is not None:
        kept.keep(name, artifact.encoded())
        return run, artifact
    RECENT[name] = artifact
    while len(RECENT) > FEW:
        del RECENT[next(iter(RECENT))]
    return run, artifact


def _recent(name: str, entry: str, memory: Mapping[str, int]) -> tuple[Run, Artifact] | None:
    artifact = RECENT.get(name)
    run = None if artifact is None else _running(artifact, entry, memory)
    return None if run is None or artifact is None else (run, artifact)


def _kept(name: str, entry: str, memory: Mapping[str, int]) -> tuple[Run, Artifact] | None:
    raw = kept.found(name)
    artifact = None if raw is None else decoded(raw)
    run = None if artifact is None else _running(artifact, entry, memory)
    return None if run is None or artifact is None else (run, artifact)


def _running(artifact: Artifact, entry: str, memory: Mapping[str, int]) -> Run | None:
    if isinstance(artifact.code, Block):
        return loaded(artifact.code, memory)
    from rvm.engines.native.compiler import compiler

    return compiler().function(artifact.code, entry, artifact.symbols, memory)


def kind_for(
    frame: Frame, options: Options, way: int, *, counts: bool = False, watched: bool = False
) -> Kind:
    """The kind of code to run from a frame's position.

    In the middle of a function this is the code for all gates, until it has run long enough for
    compiling this gate alone to pay. `way` is the run's use of the strict log.
    """
    code = frame.code
    scattered = layout_of(code).scattered(frame.regs)
    exact = Kind(frame.pc, scattered, options.checks, way, counts, watched)
    if frame.pc == 0 or exact in code.compiled:
        return exact
    anywhere = exact._replace(entry=ANYWHERE)
    root = code.compiled.get(anywhere)
    if isinstance(root, Root) and root.busy > PAYS * root.compiling:
        root.busy = 0.0
        return exact
    return anywhere


def root_of(code: Code, kind: Kind) -> Root:
    """A code's machine code, compiled at first use."""
    return once(code.compiled, kind, Root, lambda: Root(code, kind))
