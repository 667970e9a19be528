"""A plain evaluator of typed expressions for tests: places stand for raw values in a dict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rvm.expr import Apply, Const, Expr, Place
from rvm.isa.implementation import array_value, value
from rvm.types import Array, Scalar, elem_of, rank_of


def place(reg: int, t: Scalar, rank: int = 0) -> Place:
    """A register of a type as an expression."""
    return Place(reg, (), Array(t, rank) if rank else t)


def evaluate(node: Expr, raws: Mapping[int, Any]) -> Any:
    """The raw value of a typed expression; arguments of functions are evaluated first."""
    match node:
        case Const(v):
            return v
        case Place(reg, ()):
            return raws[reg]
        case Apply(fn, args):
            elems = tuple(elem_of(a.type) for a in args)
            values = [evaluate(a, raws) for a in args]
            if any(rank_of(a.type) for a in args):
                with np.errstate(all="ignore"):
                    return array_value(fn, elems)(*values)
            return value(fn, elems)(*values)
    raise TypeError(node)
