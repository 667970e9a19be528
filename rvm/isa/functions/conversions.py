"""Conversions, named for the type that they give: `i64(x)`, `f64(x)`, `fixed(30)(x)`."""

from __future__ import annotations

import re
from functools import cache

from rvm.expr import Expr
from rvm.isa.functions.formulas import Partials, const, elem
from rvm.isa.rows import FunctionRow, FunctionTable, add_function
from rvm.isa.rules import conversion
from rvm.types import SCALARS, Scalar, fixed

_FIXED = re.compile(r"fixed\((0|[1-9][0-9]?)\)")


def _partials(x: Expr) -> Partials:
    t = elem(x)
    return (const(1, x),) if t is not None and t.row.derivative else (None,)


@cache
def _row(name: str, target: Scalar) -> FunctionRow:
    return FunctionRow(
        name,
        ("x",),
        conversion(target),
        f"x as a number of type {target}",
        cost="MOVES",
        partials=_partials if target.row.derivative else None,
        partial="any" if target.is_exact and not target.is_bool else "",
    )


def conversion_target(name: str) -> Scalar | None:
    """The type that a conversion is named for: `f32`, `fixed(30)`; None for other names."""
    if name in SCALARS:
        return SCALARS[name]
    found = _FIXED.fullmatch(name) if name[-1:] == ")" else None
    return fixed(int(found[1])) if found and int(found[1]) <= 62 else None


def _on_demand(name: str) -> FunctionRow | None:
    target = conversion_target(name)
    return None if target is None else _row(name, target)


for _name, _target in SCALARS.items():
    add_function(_row(_name, _target))
FunctionTable.on_demand = staticmethod(_on_demand)
