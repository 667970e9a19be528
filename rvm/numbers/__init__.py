"""Number systems: what each scalar type can compute, and what it can undo.

`system(t)` gives the arithmetic of a scalar type; engines and the function table ask it, and know
no number type by name.
"""

from __future__ import annotations

from functools import cache

from rvm.numbers.base import NumberSystem
from rvm.numbers.code import Code, compiled, compose, fill
from rvm.numbers.fixedpoint import Fixed, FixedSystem
from rvm.numbers.floats import ComplexSystem, FloatSystem
from rvm.numbers.integers import BoolSystem, IntegerSystem
from rvm.numbers.logs import LogNumber, LogSystem
from rvm.numbers.support import NAMES, NumberFault
from rvm.types import SCALARS, Scalar

__all__ = [
    "NAMES",
    "Code",
    "Fixed",
    "LogNumber",
    "NumberFault",
    "NumberSystem",
    "compiled",
    "compose",
    "fill",
    "system",
]


@cache
def system(t: Scalar) -> NumberSystem:
    """The number system of a scalar type."""
    if t.is_bool:
        return BoolSystem(t)
    if t.is_integer:
        return IntegerSystem(t)
    if t.is_float:
        return FloatSystem(t)
    if t.is_complex:
        return ComplexSystem(t)
    if t.is_fixed:
        return FixedSystem(t)
    if t.is_log:
        return LogSystem(t)
    raise TypeError(f"no number system computes on {t}")


# Making a system enters its helpers in NAMES: all are there before any source is compiled.
for _t in SCALARS.values():
    system(_t)
