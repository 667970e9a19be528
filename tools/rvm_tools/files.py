"""Values in files: `.npy`, `.npz`, `.csv` and `.json`, with `:name` for one of several."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.archives import read_array, read_arrays
from rvm.faults import InputError
from rvm_tools.literals import MAX_DEPTH, MAX_DIGITS, File, read_literal

MAX_REASON = 300
"""How much of what NumPy says of a file is shown: it quotes lines of the file."""
SUFFIXES = (".npy", ".npz", ".csv", ".json")


@dataclass(frozen=True, slots=True)
class Stored:
    """An array as the machine stores it: of `fixed` the raw integers, of `log64` the logarithms."""

    array: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Grid:
    """An array of plain numbers, i64 or f64, still to be given a type."""

    array: NDArray[Any]


def read_all(file: File, base: Path) -> dict[str, Any]:
    """Every named value of an `.npz` or `.json` file."""
    path, name = _split(file, base)
    if name is None and path.suffix == ".npz":
        return {k: Stored(v) for k, v in _arrays(path).items()}
    if name is None and path.suffix == ".json":
        found = _json(path)
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
    path, name = _split(file, base)
    match path.suffix:
        case ".npy":
            return Stored(_opened(path))
        case ".npz":
            arrays = _arrays(path)
            only = next(iter(arrays)) if len(arrays) == 1 else None
            key = name or (parameter if parameter in arrays else only)
            return Stored(_pick(arrays, key, path, parameter))
        case ".json":
            found = _json(path)
            return _plain(found if name is None else _pick(found, name, path, parameter), path)
        case ".csv":
            return Grid(_csv(path, name))
        case other:
            raise InputError(
                "I011",
                f"values are not read from `{other or path.name}` files",
                hint=f"known: {', '.join(SUFFIXES)}",
            )


def _split(file: File, base: Path) -> tuple[Path, str | None]:
    spec, colon, name = file.spec.rpartition(":")
    if colon and Path(spec).suffix in SUFFIXES:
        return base / spec, name
    return base / file.spec, None


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


def _opened(path: Path) -> Any:
    try:
        return read_array(path)
    except (OSError, ValueError) as error:
        raise _failed(path, error) from None


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        return read_arrays(path)
    except (OSError, ValueError) as error:
        raise _failed(path, error) from None


def _json(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8-sig")
        return json.loads(text, parse_float=Decimal)
    except (OSError, ValueError, ArithmeticError, RecursionError) as error:
        raise _failed(path, error) from None


def _plain(value: Any, path: Path, depth: int = 0) -> Any:
    """JSON as our literals: a string holds what JSON has no number for."""
    if depth > MAX_DEPTH:
        raise _failed(path, "it is nested too deeply")
    if isinstance(value, dict):
        return {k: _plain(v, path, depth + 1) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v, path, depth + 1) for v in value]
    if value is None:
        raise _failed(path, "null is no value")
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) > MAX_DIGITS:
        raise _failed(path, "a number is out of all range")
    return read_literal(value) if isinstance(value, str) else value


def _csv(path: Path, column: str | None) -> NDArray[Any]:
    """The numbers of a table, comma-separated; one column or row is a vector."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise _failed(path, error) from None
    lines = [line for line in lines if line.strip() and not line.startswith("#")]
    if not lines:
        return np.zeros(0)
    header = [cell.strip().strip('"') for cell in lines[0].split(",")]
    has_header = not all(map(_is_number, header))
    if column is not None and (not has_header or column not in header):
        names = header if has_header else []
        _pick(dict.fromkeys(names), column, path, column)
    use = None if column is None else header.index(column)
    body = lines[1:] if has_header else lines
    if not body:
        return np.zeros(0)
    for dtype in (np.int64, np.float64):
        try:
            with warnings.catch_warnings():
                # NumPy 1 takes 1.5 for the whole number 1, and only warns.
                warnings.simplefilter("error", DeprecationWarning)
                table = np.loadtxt(body, dtype=dtype, delimiter=",", ndmin=2, usecols=use)
        except (ValueError, OverflowError, DeprecationWarning) as error:
            reason = error
            continue
        return table.reshape(-1) if 1 in table.shape else table
    raise _failed(path, reason)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
