"""Values in files: `.npy`, `.npz`, `.csv` and `.json`, with `:name` for one of several.

`raw:` precedes any file whose bytes are the value; `-` is standard input, as bytes too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import rich_click as click
from numpy.typing import NDArray

from rvm.codes.words import instead
from rvm.faults import InputError
from rvm.host.archives import read_array, read_arrays
from rvm.host.read import DATA, read_bytes, read_stream
from rvm_tools.cells import Table, memory_for, read_table, unreadable
from rvm_tools.literals import MAX_DEPTH, MAX_DIGITS, File, read_literal

RAW = "raw:"
"""The prefix of a file whose bytes are the value."""
STDIN = "-"
SUFFIXES = (".npy", ".npz", ".csv", ".json")


@dataclass(frozen=True, slots=True)
class Stored:
    """An array as the machine stores it: of `fixed` the raw integers, of `log64` the logarithms."""

    array: NDArray[Any]


class FileBytes(bytes):
    """The bytes of a file, still to be given a type."""


def read_all(file: File, base: Path) -> dict[str, Any]:
    """Every named value of an `.npz` or `.json` file."""
    source = _split(file, base)
    path = source.path
    with memory_for(path):
        if source.name is None and path.suffix == ".npz":
            return {k: Stored(v) for k, v in _arrays(source).items()}
        if source.name is None and path.suffix == ".json":
            found = _json(source)
            # What `rvm run --json` prints has the parameters inside.
            if isinstance(found, dict) and isinstance(found.get("values"), dict):
                found = found["values"]
            if isinstance(found, dict):
                return {k: _plain(v, path) for k, v in found.items()}
    raise InputError(
        "I011",
        f"`@{file.spec}` does not say which parameter it is for",
        hint=f"write NAME=@{file.spec}; an .npz file, or a .json file with an object, names them",
    )


def read_value(file: File, base: Path, parameter: str) -> Any:
    """The value in a file that `parameter` is to have."""
    source = _split(file, base)
    with memory_for(source.path):
        return _value(source, parameter)


def _value(source: _Source, parameter: str) -> Any:
    path, name = source.path, source.name
    if source.raw:
        return FileBytes(_bytes(source))
    match path.suffix:
        case ".npy":
            return Stored(_opened(source))
        case ".npz":
            arrays = _arrays(source)
            only = next(iter(arrays)) if len(arrays) == 1 else None
            key = name or (parameter if parameter in arrays else only)
            return Stored(_pick(arrays, key, path, parameter))
        case ".json":
            found = _json(source)
            return _plain(found if name is None else _pick(found, name, path, parameter), path)
        case ".csv":
            return _csv(source)
        case other:
            raise InputError(
                "I011",
                f"values are not read from `{other or path.name}` files",
                hint=f"known: {', '.join(SUFFIXES)}; @{RAW}{path} has its bytes",
            )


@dataclass(frozen=True, slots=True)
class _Source:
    """A file that may be read: the path as written, the file opened, the value's name if any."""

    path: Path
    opened: Path
    name: str | None
    regular: bool
    """Whether it must be a regular file: there is no writer to a pipe that a text names."""
    raw: bool = False
    """Whether its bytes are the value, whatever its suffix."""


def _split(file: File, base: Path) -> _Source:
    spec, name = file.spec, ""
    if spec == STDIN and not file.allowed:
        return _Source(Path(STDIN), Path(STDIN), None, regular=False, raw=True)
    raw = spec.startswith(RAW)
    spec = spec.removeprefix(RAW)
    before, colon, after = spec.rpartition(":")
    if colon and Path(before).suffix in SUFFIXES and not raw:
        spec, name = before, after
    path = base / spec
    if not file.allowed:
        return _Source(path, path, name or None, regular=False, raw=raw)
    if file.allowed == "none":
        raise InputError(
            "I011",
            "this text may not read values from files",
            hint="--includes below allows those below its folder, --includes any every file",
        )
    try:
        opened = path.resolve()
    except (OSError, ValueError, RuntimeError):
        opened = None
    below = opened is not None and opened.is_relative_to(base.resolve())
    if file.allowed == "below" and not below:
        raise InputError(
            "I011",
            f"the file {spec!r} is not below the folder of the text",
            hint="--includes any allows every file",
        )
    if opened is None:
        raise InputError("I011", f"can't read values from {spec!r}: no file can have this path")
    return _Source(path, opened, name or None, regular=True, raw=raw)


def _pick(values: Any, name: str | None, path: Path, parameter: str) -> Any:
    if isinstance(values, Mapping) and name in values:
        return values[name]
    names = list(values) if isinstance(values, Mapping) else []
    hint = instead(name or parameter, names, f"it has: {', '.join(names) or 'no names'}")
    raise InputError("I011", f"{path} has no value called `{name or parameter}`", hint=hint)


def _opened(source: _Source) -> Any:
    try:
        return read_array(source.opened, regular=source.regular)
    except (OSError, ValueError) as error:
        raise unreadable(source.path, error) from None


def _arrays(source: _Source) -> dict[str, NDArray[Any]]:
    try:
        return read_arrays(source.opened, regular=source.regular)
    except (OSError, ValueError) as error:
        raise unreadable(source.path, error) from None


def _standard_input() -> bytes:
    """The contents of standard input, read once per command."""
    context = click.get_current_context(silent=True)
    kept: dict[str, Any] = {} if context is None else context.meta
    if STDIN not in kept:
        kept[STDIN] = read_stream(sys.stdin.buffer)
    data: bytes = kept[STDIN]
    return data


def _bytes(source: _Source) -> bytes:
    try:
        if source.path == Path(STDIN):
            return _standard_input()
        return read_bytes(source.opened, DATA, regular=source.regular)
    except OSError as error:
        raise unreadable(source.path, error) from None


def _text(source: _Source) -> str:
    try:
        return _bytes(source).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise unreadable(source.path, error) from None


def _json(source: _Source) -> Any:
    text = _text(source)
    try:
        return json.loads(text, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise unreadable(source.path, error) from None


def _plain(value: Any, path: Path, depth: int = 0) -> Any:
    """JSON as our literals: a string holds numbers that JSON lacks."""
    if depth > MAX_DEPTH:
        raise unreadable(path, "it is nested too deeply")
    if isinstance(value, dict):
        return {k: _plain(v, path, depth + 1) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v, path, depth + 1) for v in value]
    if value is None:
        raise unreadable(path, "null is not a value")
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) > MAX_DIGITS:
        raise unreadable(path, "a number is out of all range")
    return read_literal(value, files=None) if isinstance(value, str) else value


def _csv(source: _Source) -> Table:
    """A table, comma-separated, or a column of it."""
    name = source.name
    header, table = read_table(_text(source), source.path, name)
    if name is not None:
        _pick(dict.fromkeys(header), name, source.path, name)
        table = replace(table, column=header.index(name))
    table.check()
    return table
