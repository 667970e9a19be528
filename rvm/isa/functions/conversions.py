"""Conversions, named for the type that they give: `i64(x)`, `f64(x)`, `fixed(30)(x)`."""

from __future__ import annotations

from functools import cache

from rvm.expr import Expr
from rvm.isa.functions.formulas import Partials, const, elem
from rvm.isa.rows import FunctionRow, add_function
from rvm.isa.rules import conversion
from rvm.types import DEFAULT_FRAC, SCALARS, Scalar, fixed


def _partials(x: Expr) -> Partials:
    t = elem(x)
    return (None,) if t is None or t.is_integer or t.is_bool else (const(1, x),)


def _row(name: str, target: Scalar) -> FunctionRow:
    carries = not (target.is_integer or target.is_bool)
    return FunctionRow(
        name,
        1,
        conversion(target),
        f"x as a number of type {target}",
        cost="MOVES",
        partials=_partials if carries else None,
    )


@cache
def conversion_row(name: str) -> FunctionRow:
    """The row of the conversion `fixed(n)`, 0 <= n <= 62."""
    return _row(name, fixed(int(name[len("fixed(") : -1])))


for _name, _target in SCALARS.items():
    add_function(_row(_name, _target if _name != "fixed" else fixed(DEFAULT_FRAC)))
