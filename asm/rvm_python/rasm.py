"""Functions in Python as text in the assembly language."""

from __future__ import annotations

from itertools import chain

from rvm_asm.build import Build
from rvm_asm.disassemble import function_lines
from rvm_asm.generics import A_RECORD
from rvm_asm.names import plain, quoted
from rvm_asm.structured import Printed, structured
from rvm_asm.syntax_text import Texts

from rvm.program import Program


def written(build: Build, program: Program, *, positions: bool = True) -> str:
    """The program that a build has made, each function for its types; it makes the same bytes."""
    declarations = build.declarations
    functions: list[Printed] = []
    for name, emitter in build.emitters.items():
        of = declarations.mapped.get(name)
        if of is not None and of.linked is None:
            continue  # its `map` makes it
        texts = Texts(emitter.became, emitter.scope.types)
        functions.append((quoted(plain(name)), emitter.func, texts))
    linked = [f.linked for f in declarations.functions.values() if f.linked is not None]
    lines = [(*function_lines(f, program, positions=positions), "") for f in linked]
    return structured(
        functions,
        declarations.sources,
        positions=positions,
        records=[r for n, r in declarations.records.items() if n != A_RECORD],
        mapped={*declarations.mapped.values()},
        linked=chain.from_iterable(lines),
        entry=quoted(program.entry),
    )
