"""Functions in Python as text in the assembly language."""

from __future__ import annotations

from rvm_asm.build import Build
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
        texts = Texts(emitter.became, emitter.scope.types)
        functions.append((quoted(plain(name)), emitter.func, texts))
    return structured(
        functions,
        declarations.sources,
        positions=positions,
        records=[r for n, r in declarations.records.items() if n != A_RECORD],
        entry=quoted(program.entry),
    )
