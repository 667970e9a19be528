"""Number systems: what each scalar type can compute, and what it can undo.

`system(t)` gives the arithmetic of a scalar type; engines and the function table ask it, and know
no number type by name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from rvm.numbers.base import NumberSystem
from rvm.numbers.code import Code, compiled, compose, fill
from rvm.numbers.complexes import ComplexSystem
from rvm.numbers.fixedpoint import Fixed, FixedSystem
from rvm.numbers.floats import FloatSystem
from rvm.numbers.integers import BoolSystem, IntegerSystem
from rvm.numbers.logs import LogNumber, LogSystem
from rvm.numbers.support import NAMES, NumberFault
from rvm.types import SCALARS, TYPES, Scalar

__all__ = [
    "NAMES",
    "SYSTEMS",
    "Code",
    "Fixed",
    "LogNumber",
    "NumberFault",
    "NumberSystem",
    "compiled",
    "compose",
    "fill",
    "has_own_system",
    "system",
]


SYSTEMS: dict[str, Callable[[Scalar], NumberSystem]] = {
    "bool": BoolSystem,
    "integer": IntegerSystem,
    "float": FloatSystem,
    "complex": ComplexSystem,
    "fixed": FixedSystem,
    "log": LogSystem,
}
"""What makes the number system of a type, by the kind of its numbers or by its own name."""


def has_own_system(t: Scalar) -> bool:
    """Whether a type's numbers are of no kind that engines add up in ways of their own."""
    return t.name in SYSTEMS


@cache
def system(t: Scalar) -> NumberSystem:
    """The number system of a scalar type; TypeError if there is none."""
    known = (t.name, t.row.kind) if t.name in TYPES else ()
    make = next((SYSTEMS[k] for k in known if k in SYSTEMS), None)
    if make is None:
        raise TypeError(f"no number system computes on {t.name}")
    return make(t)


# Making a system enters its helpers in NAMES: all are there before any source is compiled.
for _t in SCALARS.values():
    system(_t)
