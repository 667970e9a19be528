"""Comparisons to bool, logic, and choices between two values."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any

import numpy as np

from rvm.isa.functions.formulas import const, enter, select
from rvm.isa.rules import choice, elementwise, lazy_choice
from rvm.leaf import Function
from rvm.leaf import select as choose
from rvm.leaf.ops import BIT
from rvm.numbers.code import Code, kind_of
from rvm.numbers.support import name
from rvm.types import BOOL, Scalar


@name
def where(c: Any, a: Any, b: Any, dtype: np.dtype[Any]) -> Any:
    """`np.where` with a result of the storage type also where both values are scalars."""
    return np.where(c, a, b).astype(dtype, copy=False)


def _selected(t: Scalar) -> Code:
    kind, numpy = kind_of(t), f"where({{0}}, {{1}}, {{2}}, dtype_{t.name})"
    return Code("(({2}, {1})[{0}])", numpy, None, Function("select", choose, (BIT, kind, kind)))


def _chosen(t: Scalar) -> Code:
    return replace(_selected(t), python="({1} if {0} else {2})")


for _sign, _text, _exactly in (
    ("<", "less than", operator.lt),
    ("<=", "at most", operator.le),
    (">", "greater than", operator.gt),
    (">=", "at least", operator.ge),
):
    enter(
        f"{_sign} x y",
        elementwise("ordered", BOOL),
        f"whether x is {_text} y",
        cost="ADDS",
        binds=4,
        exactly=_exactly,
        cuts="ordered",
    )
enter(
    "== x y",
    elementwise("any", BOOL),
    "whether x equals y",
    cost="ADDS",
    binds=4,
    exactly=operator.eq,
)
enter(
    "!= x y",
    elementwise("any", BOOL),
    "whether x differs from y",
    cost="ADDS",
    binds=4,
    exactly=operator.ne,
)
enter(
    "and x y",
    elementwise("bool"),
    "whether both hold; y is evaluated only if x holds (for scalars)",
    cost="ADDS",
    lazy=True,
    binds=2,
    exactly=lambda a, b: a and b,
)
enter(
    "or x y",
    elementwise("bool"),
    "whether one of them holds; y is evaluated only if x does not (for scalars)",
    cost="ADDS",
    lazy=True,
    binds=1,
    exactly=lambda a, b: a or b,
)
enter("not x", elementwise("bool"), "whether x does not hold", cost="ADDS", exactly=operator.not_)
# All three arguments are evaluated, so that a fault in one is the same on every engine.
enter(
    "select c a b",
    choice,
    "a where c holds, else b; both are evaluated",
    cost="MOVES",
    partials=lambda c, a, b: (None, select(c, const(1, a), 0, a), select(c, const(0, b), 1, b)),
    code={"*": _selected},
    moves=True,
)
# Its derivatives are those of the expression that is evaluated (`rvm.transform.adjoint`).
enter(
    "choose c a b",
    lazy_choice,
    "a if c holds, else b; only that one is evaluated; both may be arrays",
    cost="MOVES",
    code={"*": _chosen},
    moves=True,
    lazy=True,
    exactly=lambda condition, a, b: a if condition else b,
)
