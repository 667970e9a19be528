"""From a pure text to a program, and to its text in the assembly language."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rvm_asm.assembler import read_source
from rvm_asm.cursor import Bad
from rvm_asm.program import Declarations
from rvm_asm.structured import structured
from rvm_asm.texts import build

from rvm.program import Program
from rvm_pure.deep import deep
from rvm_pure.definition import Definition
from rvm_pure.lexer import lex
from rvm_pure.lowering import Lowering
from rvm_pure.reader import TextParser
from rvm_pure.typing import Typer


@deep
def assemble(
    text: str,
    name: str = "<text>",
    *,
    include_path: str | Path | Sequence[str | Path] = (),
    includes: str = "none",
) -> Program:
    """The program of a pure text; AssemblyError holds what is wrong with it.

    A definition `f(x)` is a function `f(out, x)`, which adds its value to `out`.
    """
    return build(_declared(text, name))


def load(
    path: str | Path,
    *,
    include_path: str | Path | Sequence[str | Path] = (),
    includes: str = "none",
) -> Program:
    """The program in a file; OSError if it cannot be read, UsageError U006 if it is not text."""
    path = Path(path)
    return assemble(read_source(path), str(path))


@deep
def rasm(text: str, name: str = "<text>", *, positions: bool = True) -> str:
    """The program of a pure text in the assembly language; it assembles to the same bytes."""
    declarations = _declared(text, name)
    build(declarations)
    return structured(declarations.functions.values(), declarations.sources, positions=positions)


@deep
def read(text: str, declarations: Declarations, name: str = "<text>") -> list[Definition]:
    """The definitions of a text, typed; AssemblyError with all that is wrong with them."""
    report = declarations.report
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    tokens = lex(declarations.sources.add(name, text), report)
    report.raise_if_failed()
    found = TextParser(tokens, report).definitions()
    report.raise_if_failed()
    seen: set[str] = set()
    for d in found:
        word = d.name
        if word.text in seen:
            what = f"`{word.text}` is defined twice"
            report.about(word, "A006", what)
        seen.add(word.text)
    typer = Typer(found, report)
    done: list[Definition] = []
    for d in found:
        try:
            done.append(typer.definition(d.name.text))
        except Bad:
            typer.give_up()
    report.raise_if_failed()
    return done


def _declared(text: str, name: str) -> Declarations:
    declarations = Declarations()
    for d in read(text, declarations, name):
        for func in Lowering(d).functions():
            declarations.enter(func, set())
    return declarations
