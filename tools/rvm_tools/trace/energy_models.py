"""Energy models by name, with parameters, or from files of your own, in TOML:

title = "my device"             # all keys may be left out
source = "where the figures are from"
temperature = 300.0             # kelvin
bit = 2.9e-21                   # J for an erased bit; if not given, k T ln 2
step = 0.0                      # J for every executed instruction
scale = 1.0                     # what a reversible operation costs of an ordinary one

[adds]                          # also [moves], [mults], [nlops]
default = 1e-13                 # J for an operation on any other type
f64 = 1.8e-12                   # J for one on this type
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rvm.codes.words import instead
from rvm.faults import InputError, UsageError, Where
from rvm.host.read import read_bytes
from rvm.types import SCALARS
from rvm_tools.trace.energy import AMOUNT, CLASSES, DEFAULT, MODELS, NUMBERS, OWN, Model, amount


def model(text: str) -> Model:
    """The model that `NAME`, `FILE.toml` or either with `:key=value,…` after it names.

    UsageError U039 for an unknown name or parameter, InputError I030 for a wrong file.
    """
    name, given = _split(text)
    own = {k: v for k, v in given.items() if k in OWN.get(name, ())}
    if name.endswith(".toml"):
        base = read(name)
    elif name in MODELS:
        try:
            base = MODELS[name](**own)
        except ValueError as error:
            raise UsageError(
                "U039", f"the model `{name}` can't have these parameters: {error}"
            ) from None
    else:
        models = f"models: {', '.join(MODELS)}, or a file that ends in .toml"
        hint = instead(name, MODELS, models)
        raise UsageError("U039", f"there is no energy model `{name}`", hint=hint)
    changed: dict[str, Any] = {k: v for k, v in given.items() if k in NUMBERS}
    for key in given:
        if key not in own and key not in changed:
            raise UsageError(
                "U039",
                f"the model `{name}` has no parameter `{key}`",
                hint=f"parameters: {', '.join((*OWN.get(name, ()), *NUMBERS))}",
            )
    return replace(base, **changed)


def _split(text: str) -> tuple[str, dict[str, float]]:
    """A model's name and the parameters after it."""
    found = re.fullmatch(r"(.*?)(?::(\w+=.*))?", text, re.S)
    assert found is not None
    given = {}
    for part in (found[2] or "").split(",") if found[2] else ():
        key, _, value = part.partition("=")
        number = amount(value)
        if number is None:
            raise UsageError(
                "U039", f"`{part}` is not a parameter: KEY=NUMBER, the number {AMOUNT}"
            )
        given[key.strip()] = number
    return found[1], given


def read(file: str) -> Model:
    """The model in a TOML file; InputError I030 with the place of an error in it."""
    path = Path(file)
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError("U011", f"can't read {path}: {reason.lower()}") from None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\s*\(at line (\d+), column (\d+)\)", str(error))
        message = str(error).replace(found[0], "") if found else str(error)
        at = (int(found[1]), int(found[2])) if found else (len(text.splitlines()), 1)
        raise _wrong(path, text, message[:1].lower() + message[1:], *at) from None
    except (ValueError, RecursionError) as error:
        # Integers of thousands of digits, and arrays in arrays in arrays.
        raise _wrong(path, text, f"this is not an energy model: {error}", 1, 1) from None
    return _Reader(path, text).model(data)


class _Reader:
    """Checks the entries of a file, and finds their lines for messages."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text

    def model(self, data: Mapping[str, Any]) -> Model:
        given: dict[str, Any] = {}
        ops: dict[str, dict[str, float]] = {}
        for key, value in data.items():
            if key in ("title", "source"):
                if not isinstance(value, str):
                    raise self._at(key, f"`{key}` is a text")
                given[key] = value
            elif key in NUMBERS:
                given[key] = self._number(key, value)
            elif key in CLASSES:
                ops[CLASSES[key]] = self._class(key, value)
            else:
                every = ["title", "source", *NUMBERS, *CLASSES]
                raise self._at(key, f"there is no `{key}` in an energy model", every)
        return Model(self.path.stem, ops=ops, **given)

    def _class(self, cls: str, table: Any) -> dict[str, float]:
        if not isinstance(table, dict):
            raise self._at(cls, f"`{cls}` is a table of joules by type: [{cls}]")
        for key in table:
            if key != DEFAULT and key not in SCALARS:
                raise self._at(key, f"there is no type `{key}`", [DEFAULT, *SCALARS], cls)
        return {k: self._number(k, v, cls) for k, v in table.items()}

    def _number(self, key: str, value: Any, table: str = "") -> float:
        number = None if isinstance(value, str) else amount(value)
        if number is None:
            raise self._at(key, f"`{key}` is a number: {AMOUNT}", table=table)
        return number

    def _at(
        self, key: str, message: str, known: list[str] | None = None, table: str = ""
    ) -> InputError:
        """The error for a key, at its line."""
        inside = ""
        place = (1, 1)
        for number, line in enumerate(self.text.splitlines(), 1):
            head = re.match(r"\s*\[\s*([\w.\"-]+)\s*\]", line)
            if head:
                inside = head[1]
            if (head and not table and head[1] == key) or (
                inside == table and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line)
            ):
                place = (number, line.index(key) + 1)
                break
        hint = instead(key, known or (), f"keys: {', '.join(known)}" if known else "")
        return _wrong(self.path, self.text, message, *place, hint=hint, width=len(key))


def _wrong(
    path: Path, text: str, message: str, line: int, column: int, hint: str = "", width: int = 1
) -> InputError:
    lines = text.splitlines()
    shown = lines[line - 1] if 0 < line <= len(lines) else ""
    return InputError(
        "I030", message, where=Where(str(path), line, column, column + width, shown), hint=hint
    )
