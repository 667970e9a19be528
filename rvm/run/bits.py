"""Programs as executed with `bits="machine"`: with functions from this machine's libraries."""

from __future__ import annotations

from dataclasses import replace

from rvm.host.once import once
from rvm.image import Code, image_of
from rvm.isa.functions.machine import BLAS, MACHINE, of_machine
from rvm.program import Function, Program
from rvm.registry import ENGINES
from rvm.state import Options


def with_bits(program: Program, options: Options) -> Program:
    """The program as executed with these options; unchanged if it is already such a program.

    Machine code has its own functions, which are fast: its programs differ only in large matrix
    products, on whichever engine they finish.
    """
    if options.bits == "stated":
        return program
    row = ENGINES.get(options.engine)
    kind = BLAS if row is not None and row.compiles and not row.chooses else MACHINE
    return once(program.cache, (with_bits, kind), Program, lambda: _of_machine(program, kind))


def code_of(program: Program, name: str, undo: bool, options: Options) -> Code:
    """A function's code in one direction, as executed with these options."""
    return image_of(with_bits(program, options)).code(name, undo)


def _of_machine(program: Program, kind: str) -> Program:
    def changed(f: Function) -> Function:
        code = [replace(i, args=tuple(of_machine(a, kind) for a in i.args)) for i in f.code]
        return replace(f, code=tuple(code))

    found = replace(program, functions=tuple(map(changed, program.functions)))
    found.cache[with_bits, kind] = found
    return found
