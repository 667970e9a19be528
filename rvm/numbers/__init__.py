"""Number systems: the operations of each scalar type, and the updates that can be undone.

`system(t)` is the arithmetic of a scalar type; engines and the function table use it, and do not
know any number type by name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from rvm.numbers.base import NumberSystem
from rvm.numbers.code import Code, compiled, fill
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
"""The constructors of number systems, by the kind of a type's numbers or by its own name."""


def has_own_system(t: Scalar) -> bool:
    """Whether a type's numbers are of a kind for which engines have no special sums."""
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
