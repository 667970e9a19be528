"""Programs that are kept from one process to the next, and found by their declarations.

A program is what the assembler makes of declarations.  So the name of its file is a hash of these,
of the texts that positions refer to, and of the state of the sources of rvm and the assembler.  The
file holds the program as bytecode, which is verified as any other, and its matched frees.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rvm.codec import decode, encode
from rvm.faults import BytecodeError, VerifyError
from rvm.host import kept
from rvm.isa import FUNCTIONS, OPCODES, SHIPPED_ROWS
from rvm.program import Function, Program
from rvm.types import SCALARS
from rvm.verify import verify
from rvm.verify.matching import Matched, matched
from rvm_asm.program import Declarations


def key_of(declarations: Declarations) -> str | None:
    """The name under which the program of some declarations is kept; None if it is not.

    Where users have defined opcodes, functions or types nothing shows whether those have changed.
    """
    if kept.folder() is None or len(FUNCTIONS) + len(OPCODES) + len(SCALARS) != SHIPPED_ROWS:
        return None
    about = _environment()
    if not about:
        return None
    try:
        what = _described(declarations)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError):
        return None
    return kept.digest(b"program", about.encode(), what).hex()


def found(key: str, declarations: Declarations) -> Program | None:
    """The program kept under a key, with the texts of its declarations; None if there is none."""
    body = kept.found(key)
    if body is None:
        return None
    size = int.from_bytes(body[:8], "little")
    try:
        bare = decode(body[8 : 8 + size])
        program = replace(bare, sources=declarations.sources.sources())
        verify(program)
        program.cache.update(_facts(program, body[8 + size :].decode()))
    except (BytecodeError, VerifyError, ValueError, KeyError):
        return None
    return program


def keep(key: str, program: Program) -> None:
    """Keep a program, unless bytecode does not hold all of it."""
    if any(f.undoing is not None or f.origins for f in program.functions):
        return
    bare = encode(replace(program, sources=()))
    kept.keep(key, len(bare).to_bytes(8, "little") + bare + _facts_text(program).encode())


@cache
def _environment() -> str:
    """What a program depends on beside its declarations; "" if that is not known."""
    folders = Path(kept.__file__).parents[1], Path(__file__).parent
    parts = [kept.sources(str(folder)) for folder in folders]
    return "\n".join((sys.version, np.__version__, *parts)) if all(parts) else ""


# ---------------------------------------------------------------- declarations


def _described(d: Declarations) -> bytes:
    """Bytes that are equal for equal declarations only."""
    files = [(f.text, f.base, f.index) for f in d.sources.files]
    options = d.keeps, d.keeps_values, d.keeps_numbers, d.keeps_faults, d.as_python
    named = d.functions, d.records, d.constants.definitions, d.macros, d.pures
    rest = d.entries, d.usual_entry, d.positions, sorted(map(repr, d.excused.items()))
    out = io.BytesIO()
    pickler = pickle.Pickler(out, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = copyreg.dispatch_table | {Function: _function}
    pickler.dump((files, options, named, rest))
    return out.getvalue()


def _function(f: Function) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A linked function: nodes of expressions hold what engines have found for them."""
    marks = None if f.undoing is None else sorted(f.undoing)
    return str, (repr((f, marks, f.origins)),)


# ---------------------------------------------------------------- facts


def _facts_text(program: Program) -> str:
    """The matched frees of functions for which they are known, a line for each function."""
    lines = []
    for k, f in enumerate(program.functions):
        fact = program.cache.get((matched, f.name))
        if isinstance(fact, Matched):
            lines.append(f"{k};{_numbers(fact.all)};{_numbers(fact.by_adjoint)}")
    return "\n".join(lines)


def _numbers(found: frozenset[int]) -> str:
    return " ".join(map(str, sorted(found)))


def _facts(program: Program, text: str) -> Iterator[tuple[object, Matched]]:
    """What such a text says; ValueError or KeyError if it says something of other instructions."""
    functions = dict(enumerate(program.functions))
    for line in text.splitlines():
        k, *parts = line.split(";")
        f = functions[int(k)]
        every, by_adjoint = (frozenset(map(int, part.split())) for part in parts)
        ends = {pc for pc, i in enumerate(f.code) if i.op in ("free", "pop", "drop")}
        if not by_adjoint | every <= ends:
            raise ValueError("such facts are about frees")
        yield (matched, f.name), Matched(every, by_adjoint)
