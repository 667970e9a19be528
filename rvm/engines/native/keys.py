"""The dependences of machine code, as text that identifies it.

Machine code is found by the program from which it was generated, so nothing has to be transformed
or printed first, and LLVM need not be loaded.  In addition to the program, a key contains what was
generated from it, the processor, the compiler, and the state of rvm's own sources.
"""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from rvm.expr import Apply, Expr, walk
from rvm.host import kept
from rvm.image import Code
from rvm.ir.kind import Kind
from rvm.isa import FUNCTIONS, OPCODES, SHIPPED, SHIPPED_ROWS
from rvm.isa.functions.conversions import conversion_target
from rvm.program import Program
from rvm.types import SCALARS, elem_of

TRAITS = ("vendor_id", "cpu family", "model", "stepping", "flags", "CPU ", "Features", "isa")
"""The prefixes of lines that describe a processor's features."""


def key_of(code: Code, kind: Kind, *more: str) -> str | None:
    """The key of compiled plain code; None if it must be looked up by its LLVM text."""
    if type(code) is not Code:
        return None
    return key(code.image.program, *_described(code.name, code.undo, kind), *more)


def _described(name: str, undo: bool, kind: Kind) -> tuple[str, ...]:
    scattered = sorted(kind.scattered)
    return name, f"undo={undo}", repr(kind).replace(repr(kind.scattered), repr(scattered))


def key(program: Program, *what: str) -> str | None:
    """The key of code derived from a program, as described by `what`; None if there is none.

    Programs with user-defined opcodes or functions have none, since nothing shows whether those
    have changed.
    """
    about = fingerprint(program)
    if not about or not environment():
        return None
    parts = [about, environment(), *what]
    return kept.digest(*(p.encode() for p in parts)).hex()


def fingerprint(program: Program) -> str:
    """A text that is equal for equal programs only; "" if there is none."""
    found = program.cache.get(fingerprint)
    if not isinstance(found, str):
        # Where in a text an instruction stands is nothing to its code.
        parts = [
            (f.name, f.params, f.registers, f.code, f.dims, f.undoing and sorted(f.undoing))
            for f in program.functions
        ]
        text = "" if _has_users(program) else repr((parts, program.entry))
        found = program.cache[fingerprint] = text and kept.digest(text.encode()).hex()
    return found


def _has_users(program: Program) -> bool:
    """Whether a program names an opcode or a function that a user has defined."""
    if len(FUNCTIONS) + len(OPCODES) + len(SCALARS) == SHIPPED_ROWS:
        return False
    for f in program.functions:
        if any(elem_of(r.type).name not in SHIPPED for r in f.registers):
            return True
        if any(i.op not in SHIPPED for i in f.code):
            return True
        if any(_is_users(arg) for i in f.code for arg in i.args):
            return True
        if any(_is_users(d) for r in f.registers for d in r.dims if d is not None):
            return True
    return False


def _is_users(value: Expr) -> bool:
    return any(
        (isinstance(n, Apply) and n.fn not in SHIPPED and conversion_target(n.fn) is None)
        or (n.type is not None and elem_of(n.type).name not in SHIPPED)
        for n in walk(value)
    )


@cache
def environment() -> str:
    """The environment on which compiling depends, besides the program; "" if it is not known."""
    parts = (_sources(), _library(), _processor())
    return "\n".join((*parts, platform.machine())) if all(parts) else ""


def _sources() -> str:
    """The state of rvm's own modules."""
    return kept.sources(str(Path(__file__).parents[2]))


def _library() -> str:
    """The state of llvmlite, without loading it."""
    spec = find_spec("llvmlite")
    if spec is None or not spec.submodule_search_locations:
        return ""
    home = f"{spec.submodule_search_locations[0]}/binding"
    try:
        with os.scandir(home) as entries:
            found = sorted(kept.state(e) for e in entries if "llvmlite." in e.name)
    except OSError:
        return ""
    return "\n".join(found)


def _processor() -> str:
    """The processor and its features, as LLVM detects them; "" if only LLVM can tell."""
    if sys.platform != "linux":
        from rvm.engines.native.compiler import compiler

        return compiler().version
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as file:
            # The first processor's lines; of many, making all of them takes long.
            text = file.read(1 << 14).split("\n\n", 1)[0]
    except OSError:
        return ""
    return "\n".join(line for line in text.split("\n") if line.startswith(TRAITS))
