"""From texts to a program: read, declare, lower, verify."""

from __future__ import annotations

import gc
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rvm.faults import AssemblyError, Diagnostic, UsageError, Where
from rvm.program import Program
from rvm_asm.includes import MAX_BYTES, TOO_LARGE, Includes, policy_named
from rvm_asm.messages import Reporter
from rvm_asm.parser import parse_file
from rvm_asm.program import Declarations
from rvm_asm.source import SourceMap
from rvm_asm.stats import Declaration
from rvm_asm.texts import build


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without the cycle collector: millions of live nodes, and no garbage among them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def parse(text: str, name: str = "<text>") -> list[Declaration]:
    """The declarations of a text as syntax nodes; AssemblyError if it cannot be read."""
    sources = SourceMap()
    report = Reporter(sources)
    declarations, _ = parse_file(sources.add(name, text), report)
    report.raise_if_failed()
    return declarations


def assemble(
    text: str,
    name: str = "<text>",
    *,
    include_path: str | Path | Sequence[str | Path] = (),
    includes: str = "none",
    expand: bool = False,
    path: Path | None = None,
) -> Program:
    """The program of a source text.

    `name` is what messages call the text, `path` where it comes from: its includes are looked
    for beside it, then in the folders of `include_path`.  `includes` says which files they may
    be: "any", those "below" these folders, or "none".  With `expand`, nested expressions
    become temporaries, one function an instruction.  AssemblyError holds all that is wrong.
    """
    if len(text) > MAX_BYTES:
        raise _too_large(name)
    # One folder, and not the letters of its name, of which `/` would be the whole computer.
    if isinstance(include_path, (str, Path)):
        include_path = (include_path,)
    folders = tuple(Path(f) for f in include_path)
    declarations = Declarations(Includes(policy_named(includes), folders, path))
    with _no_collection():
        declarations.read(name, text, path)
        program = build(declarations)
    if expand:
        from rvm_asm.expand import expand as expanded

        program = expanded(program)
    return program


def load(
    path: str | Path,
    *,
    include_path: str | Path | Sequence[str | Path] = (),
    includes: str = "any",
    expand: bool = False,
) -> Program:
    """The program in a file; OSError if it cannot be read, UsageError U006 if it is not text."""
    path = Path(path)
    return assemble(
        read_source(path),
        str(path),
        include_path=include_path,
        includes=includes,
        expand=expand,
        path=path,
    )


def read_source(path: Path) -> str:
    """A source text; OSError if it cannot be read, UsageError U006 if it is not text."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise _too_large(str(path))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        wide = data[:2] in (BOM_UTF16_LE, BOM_UTF16_BE)
        hint = "it is UTF-16; save it as UTF-8" if wide else ""
        raise UsageError("U006", f"{path} is not UTF-8 text", hint=hint) from None


def _too_large(name: str) -> AssemblyError:
    return AssemblyError([Diagnostic("A046", TOO_LARGE, Where(name))])
