"""The meanings of a Python function's names, inside it and outside."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from enum import Enum
from numbers import Number
from types import CellType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from rvm.faults import UsageError
from rvm.library.handle import Library


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = _Missing()
"""The meaning of an undefined name."""


@dataclass(eq=False, slots=True)
class Variable:
    """A parameter, an ancilla or a loop's variable: a register."""

    name: str
    """The name of the register."""
    line: int
    is_parameter: bool = False
    live: bool = True


@dataclass(eq=False, slots=True)
class Shorthand:
    """A name for an expression, with the meanings of the names in it."""

    value: ast.expr
    names: dict[str, Local]
    line: int


@dataclass(eq=False, slots=True)
class Block:
    """The name of a block that `rvm.compute()` begins, and the places that the block makes."""

    name: str
    made: list[Variable]


Local = Variable | Shorthand | Block


class Captured:
    """The outside values with which a program was made."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, str], tuple[Any, str, Any]] = {}

    def note(self, home: Any, name: str, value: Any) -> Any:
        """Enter what a name in a namespace, or a cell's, stands for."""
        self._seen.setdefault((id(home), name), (home, name, value))
        return value

    def is_current(self) -> bool:
        """Whether all of it is as it was."""
        if not self._seen:
            return True
        for home, name, value in self._seen.values():
            now = _held(home) if type(home) is CellType else home.get(name, MISSING)
            if now is not value and not _same(now, value):
                return False
        return True

    def values(self) -> list[tuple[str, Any]]:
        return [(name, value) for _, name, value in self._seen.values()]


def _held(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _same(a: Any, b: Any) -> bool:
    """Whether two objects are the same constant."""
    return type(a) is type(b) and isinstance(a, (Number, tuple)) and repr(a) == repr(b)


class Outside:
    """The names visible to a function from outside: its closure, its module, the builtins."""

    def __init__(self, function: FunctionType, captured: Captured) -> None:
        self._function = function
        self._captured = captured
        code = function.__code__
        self._cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))

    def named(self, name: str) -> Any:
        """The meaning of a name; MISSING if it is undefined."""
        note = self._captured.note
        if name in self._cells:
            cell = self._cells[name]
            return note(cell, name, _held(cell))
        home = self._function.__globals__
        found = note(home, name, home.get(name, MISSING))
        return getattr(builtins, name, MISSING) if found is MISSING else found

    def part(self, whole: Any, name: str) -> Any:
        """The attribute of a module or class with this name; a library's function."""
        if isinstance(whole, Library):
            try:
                return whole[name]
            except UsageError:
                return MISSING
        if not isinstance(whole, (ModuleType, type)):
            return MISSING
        found = getattr(whole, name, MISSING)
        if isinstance(whole, ModuleType) and name in vars(whole):
            self._captured.note(vars(whole), name, found)
        return found

    def namespace(self) -> dict[str, Any]:
        """All names, to evaluate annotations with."""
        inner = {n: _held(c) for n, c in self._cells.items()}
        return {
            **self._function.__globals__,
            **{n: v for n, v in inner.items() if v is not MISSING},
        }


def constant(value: Any) -> Any:
    """A Python object as a constant: a number, or a tuple of such; MISSING if it is none."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, float, complex)):
        return value
    if isinstance(value, tuple):
        parts = tuple(map(constant, value))
        return MISSING if MISSING in parts else parts
    return MISSING
