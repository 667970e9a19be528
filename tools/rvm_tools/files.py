"""Values in files: `.npy`, `.npz`, `.csv` and `.json`, with `:name` for one of several.

`raw:` precedes any file whose bytes are the value; `-` is standard input, as bytes too.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import rich_click as click
from numpy.typing import NDArray

from rvm.codes.words import count
from rvm.faults import InputError
from rvm.host.archives import read_array, read_arrays
from rvm.host.read import DATA, read_bytes, read_stream
from rvm_tools.literals import MAX_DEPTH, MAX_DIGITS, File, Typed, read_literal

MAX_REASON = 300
"""The number of characters of NumPy's message that are shown: it quotes lines of the file."""
RAW = "raw:"
"""The prefix of a file whose bytes are the value."""
STDIN = "-"
MAX_CELL = 40
"""The number of characters of a table cell that are shown."""
SUFFIXES = (".npy", ".npz", ".csv", ".json")


@dataclass(frozen=True, slots=True)
class Stored:
    """An array as the machine stores it: of `fixed` the raw integers, of `log64` the logarithms."""

    array: NDArray[Any]


class FileBytes(bytes):
    """The bytes of a file, still to be given a type."""


@dataclass(frozen=True, slots=True)
class Grid:
    """An array of plain numbers, i64 or f64, still to be given a type."""

    array: NDArray[Any]


def read_all(file: File, base: Path) -> dict[str, Any]:
    """Every named value of an `.npz` or `.json` file."""
    source = _split(file, base)
    path = source.path
    with _memory(path):
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
    with _memory(source.path):
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


@contextmanager
def _memory(path: Path) -> Iterator[None]:
    """A context for reading a file, in which lack of memory is an error of the file."""
    try:
        yield
    except MemoryError:
        raise _failed(path, "no memory is left for it") from None


def _pick(values: Any, name: str | None, path: Path, parameter: str) -> Any:
    if isinstance(values, Mapping) and name in values:
        return values[name]
    names = list(values) if isinstance(values, Mapping) else []
    near = get_close_matches(name or parameter, names, 1)
    raise InputError(
        "I011",
        f"{path} has no value called `{name or parameter}`",
        hint=f"did you mean `{near[0]}`?" if near else f"it has: {', '.join(names) or 'no names'}",
    )


def _failed(path: Path, reason: object) -> InputError:
    if isinstance(reason, OSError) and reason.strerror:
        reason = reason.strerror.lower()
    text = " ".join(str(reason).split()) or type(reason).__name__
    return InputError("I011", f"can't read values from {path}: {text[:MAX_REASON]}")


def _opened(source: _Source) -> Any:
    try:
        return read_array(source.opened, regular=source.regular)
    except (OSError, ValueError) as error:
        raise _failed(source.path, error) from None


def _arrays(source: _Source) -> dict[str, NDArray[Any]]:
    try:
        return read_arrays(source.opened, regular=source.regular)
    except (OSError, ValueError) as error:
        raise _failed(source.path, error) from None


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
        raise _failed(source.path, error) from None


def _text(source: _Source) -> str:
    try:
        return _bytes(source).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _failed(source.path, error) from None


def _json(source: _Source) -> Any:
    text = _text(source)
    try:
        return json.loads(text, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise _failed(source.path, error) from None


def _plain(value: Any, path: Path, depth: int = 0) -> Any:
    """JSON as our literals: a string holds numbers that JSON lacks."""
    if depth > MAX_DEPTH:
        raise _failed(path, "it is nested too deeply")
    if isinstance(value, dict):
        return {k: _plain(v, path, depth + 1) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v, path, depth + 1) for v in value]
    if value is None:
        raise _failed(path, "null is not a value")
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) > MAX_DIGITS:
        raise _failed(path, "a number is out of all range")
    return read_literal(value, files=None) if isinstance(value, str) else value


def _csv(source: _Source) -> Grid | list[Any]:
    """The numbers of a table, comma-separated; one column or row is a vector.

    Bools and numbers with a type, which NumPy does not read, are literals in lists.
    """
    path, column = source.path, source.name
    numbered = [
        (number, line)
        for number, line in enumerate(_text(source).splitlines(), 1)
        if line.strip() and not line.startswith("#")
    ]
    if not numbered:
        return Grid(np.zeros(0))
    header = [cell.strip().strip('"') for cell in numbered[0][1].split(",")]
    has_header = not any(map(_is_number, header))
    if column is not None and (not has_header or column not in header):
        names = header if has_header else []
        _pick(dict.fromkeys(names), column, path, column)
    use = None if column is None else header.index(column)
    body = numbered[1:] if has_header else numbered
    if not body:
        return Grid(np.zeros(0))
    lines = [line for _, line in body]
    # Whole numbers stay whole: those beyond i64 are u64, if none is below 0.
    kinds = _SIGNED if any("-" in line for line in lines) else _UNSIGNED
    for dtype in kinds:
        try:
            with warnings.catch_warnings():
                # NumPy 1 takes 1.5 for the whole number 1, and only warns.
                warnings.simplefilter("error", DeprecationWarning)
                table = np.loadtxt(lines, dtype=dtype, delimiter=",", ndmin=2, usecols=use)
        except (ValueError, OverflowError, DeprecationWarning) as error:
            reason = error
            continue
        return Grid(table.reshape(-1) if 1 in table.shape else table)
    wrong = _wrong_line(body, use)
    if wrong:
        raise _failed(path, wrong)
    rows = [line.split(",") if use is None else [line.split(",")[use]] for line in lines]
    cells = [[read_literal(cell.strip(), files=None) for cell in row] for row in rows]
    if all(type(cell) is not bool and not isinstance(cell, Typed) for row in cells for cell in row):
        raise _failed(path, reason)
    if len(cells) == 1 or len(cells[0]) == 1:
        return [cell for row in cells for cell in row]
    return cells


_SIGNED = (np.int64, np.float64, np.complex128)
_UNSIGNED = (np.int64, np.uint64, np.float64, np.complex128)


def _wrong_line(body: Sequence[tuple[int, str]], use: int | None) -> str:
    """The error in the first wrong line of a table."""
    first, wide = body[0][0], body[0][1].count(",") + 1
    for number, line in body:
        cells = line.split(",")
        if use is None and len(cells) != wide:
            return f"line {number} has {count(len(cells), 'number')}, and line {first} has {wide}"
        if use is not None and len(cells) <= use:
            return f"line {number} has {count(len(cells), 'number')}, too few for column {use + 1}"
        for k, cell in enumerate(cells if use is None else cells[use : use + 1], use or 0):
            if not _is_number(cell):
                what = (
                    f"`{cell.strip()[:MAX_CELL]}` is not a number" if cell.strip() else "is empty"
                )
                return f"line {number}, column {k + 1}: {what}"
    return ""


def _is_number(text: str) -> bool:
    text = text.strip().partition("'")[0]
    if text in ("true", "false"):
        return True
    is_complex = "j" in text and any(map(str.isdigit, text))  # `j` alone is a column's name
    try:
        complex(text) if is_complex else float(text)
    except ValueError:
        return False
    return True
