"""Python's functions and types as those of the machine's table."""

from __future__ import annotations

import builtins
import cmath
import math
from functools import cache
from typing import Any

import numpy as np

from rvm.isa import FUNCTIONS, OPCODES
from rvm.isa.numpy_names import UFUNCS
from rvm.isa.rows import defining_module
from rvm.library.vocabulary import ArrayWord, StackWord, TypeWord, Word, empty, top
from rvm.numbers import system
from rvm.types import SCALARS

_RENAMED: dict[Any, dict[str, str]] = {
    math: {"fabs": "abs", "pow": "**"},
    cmath: {"phase": "angle"},
    np: {
        **UFUNCS,
        "max": "amax",
        "min": "amin",
        "pow": "**",
        "where": "select",
        "dot": "@",
        "cumsum": "scan_left",
    },
}
"""Functions that the table has under another name, by their modules."""
_OTHERS = frozenset({"select", "choose", "identity", "bool", "complex", "floor"})
"""Names that mean something else there."""
_BUILT_IN = {"abs": "abs", "min": "min", "max": "max", "sum": "sum", "pow": "**"}
_TYPES: dict[Any, str] = {float: "f64", int: "i64", bool: "bool", complex: "c128"}


@cache
def _functions() -> dict[Any, str]:
    found: dict[Any, str] = {}
    for module, renamed in _RENAMED.items():
        for name in (*FUNCTIONS, *renamed):
            value = getattr(module, name, None) if name.isidentifier() else None
            if callable(value) and name not in _OTHERS:
                found[value] = renamed.get(name, name)
    found[math.prod] = "prod"
    found.update({np.floor: "floor", math.floor: "floor"})
    found.update({getattr(builtins, n): f for n, f in _BUILT_IN.items()})
    return found


def is_real(value: Any) -> bool:
    """Whether it is a function whose values are real, of whole numbers too, unlike the table's."""
    return any(value is f for f in (math.pow, math.fabs, np.fabs, np.float_power))


def function_named(value: Any) -> str:
    """The function of the table that an object is; "" if it is none."""
    if isinstance(value, Word):
        return value.name if value.name in FUNCTIONS or value in (top, empty) else ""
    try:
        known = _functions().get(value)
    except TypeError:
        return ""
    if known is not None:
        return known
    name = type_named(value)
    if name:
        return name
    name = getattr(value, "__name__", "")
    row = FUNCTIONS.get(name)
    own = row is not None and row.module and row.module == defining_module(value)
    return name if own and not isinstance(value, type) else ""


def opcode_named(value: Any) -> str:
    """The opcode that an object is, the machine's own or a user's; "" if it is none."""
    if isinstance(value, Word):
        return value.name if value.name in OPCODES else ""
    name = getattr(value, "__name__", "").rstrip("_")
    row = OPCODES.get(name)
    return name if row is not None and row.module and row.module == defining_module(value) else ""


def type_named(value: Any) -> str:
    """The type of numbers that an object stands for; "" if it is none."""
    if isinstance(value, TypeWord):
        return value.name
    try:
        if value in _TYPES:
            return _TYPES[value]
    except TypeError:
        return ""
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        dtype = np.dtype(value)
        return next((t.name for t in SCALARS.values() if system(t).dtype == dtype), "")
    return ""


def is_type(value: Any) -> bool:
    """Whether an object may be an annotation."""
    words = isinstance(value, (ArrayWord, StackWord)) or hasattr(value, "__rvm_record__")
    return words or bool(type_named(value))
