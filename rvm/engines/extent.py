"""The possible duration of a tick, from a function's statements on whole arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rvm.engines.native.artifact import Sketch
from rvm.engines.protocol import Engine, Foresighted
from rvm.expr import reads
from rvm.host.once import once
from rvm.image import Code, Image
from rvm.ir.fills import fills
from rvm.state import State
from rvm.types import Array

FIRST_CHUNK = 2_000
LEAST = 8
"""The least number of ticks requested; each may be an operation on a large array."""
WORK = 4_000_000
"""Ticks of scalars that take some hundredths of a second."""
DEEP = 16
"""The factor on this number for recursion, since stopping deep inside takes longer."""


def first_chunk(engine: Engine, state: State) -> int:
    """The first number of ticks requested from an engine, before its speed is known."""
    asked = engine.first_chunk(state) if isinstance(engine, Foresighted) else FIRST_CHUNK
    return min(asked, foreseen(state))


def most_ticks(sketch: Sketch, sizes: Mapping[int, int]) -> int:
    """The number of ticks that take some hundredths of a second (more for recursion), as estimated.

    `sizes` are the numbers of elements of arrays in the registers.
    """
    involved = sizes.values() if sketch.deep else (n for k, n in sizes.items() if k in sketch.whole)
    return ticks_of(sketch, max(involved, default=1))


def ticks_of(sketch: Sketch, size: int) -> int:
    """The same by the number of elements of the largest array that takes part."""
    work = DEEP * WORK if sketch.recurs else WORK
    return max(LEAST, work // (size or 1))


def foreseen(state: State) -> int:
    """The same for the contents of a machine's outermost frame."""
    root = state.frames[0]
    sizes = {k: v.size for k, v in enumerate(root.regs) if isinstance(v, np.ndarray)}
    return most_ticks(sketch_of(root.code), sizes)


def sketch_of(code: Code) -> Sketch:
    """The sketch of a code, made once."""
    cache = code.image.program.cache
    return once(cache, (Sketch, code.name, code.undo), Sketch, lambda: _sketch(code))


def _sketch(code: Code) -> Sketch:
    name, *callees = code.image.reachable(code.name)
    return Sketch(
        tuple(r.type for r in code.function.registers),
        code.function.n_args,
        frozenset(_array_operands(code.image, name)),
        any(any(True for _ in _array_operands(code.image, f)) for f in callees),
        code.image.recurs(name),
        frozenset() if code.undo else frozenset(fills(code)),
    )


def _array_operands(image: Image, name: str) -> Iterator[int]:
    for instr in image.program.function(name).code:
        if instr.op not in ("call", "uncall", "print", "callback"):
            for place in (p for arg in instr.args for p in reads(arg)):
                if isinstance(place.type, Array):
                    yield place.reg
