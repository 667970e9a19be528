"""From a Janus text to a program, and to its text in the assembly language."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rvm_asm.assembler import read_source
from rvm_asm.program import Declarations
from rvm_asm.stats import Func
from rvm_asm.structured import structured
from rvm_asm.texts import build

from rvm.faults import AssemblyError, UsageError
from rvm.program import Program
from rvm_janus.lexer import lex
from rvm_janus.messages import JanusReporter
from rvm_janus.program import ProgramParser, is_classic

DIALECTS = ("jana", "classic")
WIDTHS = (32, 64)


def assemble(
    text: str,
    name: str = "<text>",
    *,
    include_path: str | Path | Sequence[str | Path] = (),
    includes: str = "none",
    dialect: str = "",
    width: int = 32,
) -> Program:
    """The program of a Janus text; AssemblyError holds what is wrong with it.

    `dialect` is "jana" or "classic", and told from the text if not given; `width` the bits of an
    `int`, 32 or 64.  Janus has no includes.
    """
    return _read(text, name, dialect, width)[1]


def load(
    path: str | Path,
    *,
    include_path: str | Path | Sequence[str | Path] = (),
    includes: str = "none",
    dialect: str = "",
    width: int = 32,
) -> Program:
    """The program in a file; OSError if it cannot be read, UsageError U006 if it is not text."""
    path = Path(path)
    return assemble(read_source(path), str(path), dialect=dialect, width=width)


def rasm(
    text: str, name: str = "<text>", *, dialect: str = "", width: int = 32, positions: bool = True
) -> str:
    """The program of a Janus text in the assembly language; it assembles to the same bytes."""
    declarations, _ = _read(text, name, dialect, width)
    return structured(declarations.functions.values(), declarations.sources, positions=positions)


def _read(text: str, name: str, dialect: str, width: int) -> tuple[Declarations, Program]:
    """The declarations of a text, and their program.

    As interpreters only look at what is called, procedures that the entry does not reach are left
    out if they are what is wrong with a text.
    """
    if dialect not in ("", *DIALECTS) or width not in WIDTHS:
        raise UsageError(
            "U006",
            "Janus has the dialects jana and classic, and numbers of 32 or 64 bits",
            values={"dialect": dialect, "width": width},
        )
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    try:
        return _built(text, name, dialect, width, whole=True)
    except AssemblyError as error:
        try:
            return _built(text, name, dialect, width, whole=False)
        except AssemblyError:
            raise error from None


def _built(
    text: str, name: str, dialect: str, width: int, *, whole: bool
) -> tuple[Declarations, Program]:
    declarations = Declarations(reporter=JanusReporter)
    report = declarations.report
    tokens = lex(declarations.sources.add(name, text), report)
    report.raise_if_failed()
    classic = dialect == "classic" if dialect else is_classic(tokens.kinds, tokens.texts)
    parser = ProgramParser(tokens, report, f"i{width}", classic)
    functions: list[Func] = parser.functions(whole=whole)
    report.raise_if_failed()
    for func in functions:
        declarations.enter(func, set())
    return declarations, build(declarations)
