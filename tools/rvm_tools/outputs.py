"""Files that results are written to: `--out FILE` for all of them, `--out NAME=FILE` for one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.codes.words import instead
from rvm.faults import UsageError
from rvm.host.write import is_direct
from rvm_tools.programs import write_arrays, written

ALL = (".npz", ".json", ".csv")
"""Formats that hold several values by name."""
ONE = (".bin", ".npy", ".csv", ".json")
"""Formats that hold one value."""

RAW = "@raw:"
"""Stands before a file that gets the bytes of a value, as before one that they are read from."""


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file to be written: with one value, or with all if there is no name."""

    file: str
    name: str = ""
    raw: bool = False
    """Whether it receives the bytes of one value, whatever its suffix."""

    @property
    def kind(self) -> str:
        """The suffix of its format; a stream receives an archive, or one value's bytes."""
        suffix = Path(self.file).suffix.lower()
        if self.file == "-" or self.raw:
            return ".bin"
        if suffix not in (ONE if self.name else ALL) and is_direct(self.file):
            return ".bin" if self.name else ".npz"
        return suffix


def streamed(found: Iterable[OutputFile]) -> bool:
    """Whether one goes to standard output, where nothing else is then written."""
    return any(out.file == "-" for out in found)


def outputs(words: Sequence[str], what: str, as_json: bool) -> list[OutputFile]:
    """The files named by options `--out`; UsageError U012 for a format that cannot be written.

    `what` is the name of the values in messages; `as_json` says whether standard output is an
    object of JSON.
    """
    found = [_output(word, what) for word in words]
    if as_json and streamed(found):
        raise UsageError("U012", "--json and --out NAME=- both write to standard output")
    files = [o.file for o in found]
    again = next((f for f in files if files.count(f) > 1), None)
    if again is not None:
        raise UsageError("U012", f"--out names `{again}` twice")
    return found


def _output(word: str, what: str) -> OutputFile:
    name, equals, file = word.partition("=")
    named = bool(equals) and all(p.isidentifier() for p in name.replace(",", ".").split("."))
    raw = named and file.startswith(RAW)
    out = (
        OutputFile(file.removeprefix(RAW) if raw else file, name, raw)
        if named
        else OutputFile(word)
    )
    if out.file == "-" and not named:
        raise UsageError(
            "U012",
            f"all {what} can't go to standard output",
            hint="--out NAME=- writes the bytes of one there; --json prints all of them",
        )
    known = ONE if named else ALL
    if out.kind not in known:
        raise UsageError("U012", _unknown(out, what, known), hint=_hint(out, word, named))
    return out


def _unknown(out: OutputFile, what: str, known: Sequence[str]) -> str:
    listed = f"{', '.join(known[:-1])} or {known[-1]}"
    one = f"`{out.name}` is" if out.name else f"{what} are"
    return f"{one} written as a {listed} file, not `{out.file}`"


def _hint(out: OutputFile, word: str, named: bool) -> str:
    if not named and out.kind in ONE:
        return f"such a file holds one value: --out NAME={word}"
    start = f"{out.name}=" if named else ""
    whole = f"--out {start}{Path(out.file).with_suffix('.npy' if named else '.npz')}"
    return f"--out {start}{RAW}{out.file} writes its bytes; or {whole}" if named else whole


def check_names(found: Iterable[OutputFile], names: Sequence[str]) -> None:
    """UsageError U012 for a name that no value has."""
    for out in found:
        if out.name and out.name not in names:
            hint = instead(out.name, names, f"there are: {', '.join(names)}")
            message = f"--out {out.name}={out.file}: there is no `{out.name}`"
            raise UsageError("U012", message, hint=hint)


def write(
    found: Iterable[OutputFile],
    arrays: Mapping[str, NDArray[Any]],
    plain: Callable[[], dict[str, Any]],
) -> None:
    """Write values, each file whole or not at all.

    `arrays` has them as the machine stores them, fields of records under dotted names; `plain`
    gives them as values of JSON.
    """
    for out in found:
        if out.kind == ".npz":
            write_arrays(out.file, arrays)
        elif out.kind == ".json":
            _json(out, plain())
        elif out.kind == ".csv":
            one = {out.name: arrays[out.name]} if out.name else arrays
            _csv(out, one, plain())
        elif out.kind == ".npy":
            with written(out.file) as file:
                np.save(file, arrays[out.name], allow_pickle=False)
        else:
            _bytes(out, arrays[out.name])


def _bytes(out: OutputFile, array: NDArray[Any]) -> None:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    with written(out.file) as file:
        file.write(little.tobytes())


def _json(out: OutputFile, values: dict[str, Any]) -> None:
    found = _found(values, out.name) if out.name else values
    with written(out.file) as file:
        file.write((json.dumps(found, ensure_ascii=False) + "\n").encode())


def _csv(out: OutputFile, arrays: Mapping[str, NDArray[Any]], plain: dict[str, Any]) -> None:
    """A table of numbers: a column for each value with its name above, or one matrix."""
    shapes = {array.shape for array in arrays.values()}
    matrix = bool(out.name) and all(len(s) == 2 for s in shapes)
    if len(shapes) != 1 or (not matrix and any(len(s) != 1 for s in shapes)):
        listed = ", ".join(f"{name}: {_shape(a.shape)}" for name, a in arrays.items())
        raise UsageError(
            "U012",
            f"`{out.file}` is a table: it takes columns of one length, or one matrix by its name",
            values={"given": listed},
            hint="an .npz or a .json file takes all values",
        )
    columns = [_texts(_found(plain, name)) for name in arrays]
    with written(out.file) as file:
        if matrix:
            lines = [",".join(row) for row in columns[0]]
        else:
            lines = [",".join(arrays), *(",".join(row) for row in zip(*columns, strict=True))]
        file.write(("\n".join(lines) + "\n").encode())


def _shape(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) if shape else "a number"


def _found(plain: dict[str, Any], name: str) -> Any:
    """The value by its name, of a field by its dotted one."""
    if name in plain:
        return plain[name]
    head, _, rest = name.partition(".")
    return _found(plain[head], rest)


def _texts(value: Any) -> Any:
    """Values of JSON as cells."""
    if isinstance(value, list):
        return [_texts(v) for v in value]
    return value if isinstance(value, str) else json.dumps(value)
