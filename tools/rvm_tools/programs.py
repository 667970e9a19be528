"""Files as the command line names them, read and written, and programs and functions in them."""

from __future__ import annotations

import linecache
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from traceback import FrameSummary, extract_tb
from typing import Any, BinaryIO

import rich_click as click

from rvm.codes.words import meant
from rvm.faults import Fault, UsageError, Where
from rvm.host import read
from rvm.host.write import writing
from rvm.program import Function, Program, unknown_function

_SUFFIXES = (".rasm", ".rbc")


def _sources() -> set[str]:
    """The files that the command has read programs from, which it writes nothing to."""
    context = click.get_current_context(silent=True)
    return set() if context is None else context.meta.setdefault(__name__, set())


def load_program(file: str) -> Program:
    """The program in a file, or on standard input if that is `-`."""
    from rvm import load
    from rvm_tools.options import allowed_includes, reading_options

    _sources().add(file)
    try:
        return load(file, includes=allowed_includes(), **reading_options()).program
    except OSError as error:
        if _raised_in(file, error):
            raise _own(file, error) from error
        raise unreadable(file, error) from None
    except Fault:
        raise
    except Exception as error:
        if _raised_in(file, error):
            raise _own(file, error) from error
        raise


def _raised_in(file: str, error: BaseException) -> list[FrameSummary]:
    """The position in a Python file, which is run for its functions, from which an error comes."""
    if not file.endswith(".py"):
        return []
    path = str(Path(file).resolve())
    if isinstance(error, SyntaxError) and error.filename == path:
        return [FrameSummary(path, error.lineno or 1, "<module>", line=error.text or "")]
    frames = extract_tb(error.__traceback__)
    first = next((k for k, f in enumerate(frames) if f.filename == path), len(frames))
    return list(frames[first:])


def _own(file: str, error: Exception) -> UsageError:
    """An error that a file in Python raises itself: its own traceback."""
    frames = _raised_in(file, error)
    at = [f for f in frames if f.filename == frames[0].filename][-1]
    text = linecache.getline(at.filename, at.lineno or 1).rstrip("\n")
    column = len(text) - len(text.lstrip()) + 1
    notes = [f"{f.filename}:{f.lineno}, in {f.name}: {f.line}" for f in frames if f is not at]
    return UsageError(
        "U049",
        f"the file raises {type(error).__name__}: {error}",
        where=Where(file, at.lineno or 1, column, len(text) + 1, text),
        notes=notes,
        hint="it is run for its functions; `python` runs it alone",
    )


def checked(program: Program) -> Program:
    """The program, if its text's generic functions are right for every type that they may be of."""
    if program.generics is not None:
        program.generics.check()
    return program


def read_bytes(file: str, is_source: bool = True) -> bytes:
    """A file's bytes, or those of standard input; nothing is written to a source afterwards."""
    if is_source:
        _sources().add(file)
    try:
        return read.read_stream(sys.stdin.buffer) if file == "-" else read.read_bytes(file)
    except OSError as error:
        raise unreadable(file, error) from None


def read_text(file: str, is_source: bool = True) -> str:
    """A text, by default a source."""
    try:
        return read_bytes(file, is_source).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise unreadable(file, error) from None


def unreadable(file: str, error: OSError | UnicodeDecodeError) -> UsageError:
    """The error for a file that can't be read, with a file of nearly that name as a hint."""
    if isinstance(error, UnicodeDecodeError):
        wide = error.object[:2] in (BOM_UTF16_LE, BOM_UTF16_BE)
        return UsageError(
            "U011",
            f"can't read {file}: it is not UTF-8 text",
            hint="it is UTF-16; save it as UTF-8" if wide else "",
        )
    reason = (error.strerror or str(error)).lower()
    hint = ""
    if isinstance(error, FileNotFoundError):
        path = Path(file)
        try:
            names = [p.name for p in path.parent.iterdir() if p.suffix in _SUFFIXES]
        except OSError:
            names = []
        near = meant(path.name, names)
        hint = f"did you mean `{path.parent / near}`?" if near else ""
    return UsageError("U011", f"can't read {file}: {reason}", hint=hint)


@contextmanager
def written(file: str) -> Iterator[BinaryIO]:
    """A file to write to, whole or not at all, or standard output if that is `-`.

    UsageError U012 if it can't be written, or if it is what a program was read from.
    """
    if Path(file).is_file() and any(map(partial(_is_same, file), _sources())):
        raise UsageError(
            "U012",
            f"can't write {file}: it is what is read, and would be lost",
            hint="name another file",
        )
    try:
        if file == "-":
            sys.stdout.flush()
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
            return
        with writing(file) as out:
            yield out
    except OSError as error:
        raise unwritable(file, error) from None


def _is_same(file: str, other: str) -> bool:
    return Path(other).is_file() and Path(file).samefile(other)


def write_arrays(file: str, arrays: Mapping[str, Any]) -> None:
    """Write an `.npz` archive of arrays."""
    import numpy as np

    with written(file) as out:
        np.savez(out, **arrays)


def unwritable(file: str, error: OSError) -> UsageError:
    """The error for a file that can't be written."""
    return UsageError("U012", f"can't write {file}: {(error.strerror or str(error)).lower()}")


def pick_function(
    program: Program, name: str | None, values: Mapping[str, Any] | None = None, base: Path = Path()
) -> tuple[Program, Function]:
    """The function to run, and the program that has it: the named one, else the entry.

    A generic function is made for the types in its name, `axpy[f32]`, or for those that follow from
    the written `values`.  UsageError U001 if there is none.
    """
    given: Mapping[str, Any] = values or {}
    if program.generics is not None:
        from rvm_tools.generics import hints

        given = hints(given, base)
    found = program.having(name or "", given)
    if found is not None:
        return found[0], found[0].function(found[1])
    raise unknown_function(name or program.entry, program)


def base_of(file: str) -> Path:
    """The folder that paths in a file's own directives are relative to."""
    return Path() if file == "-" else Path(file).parent
