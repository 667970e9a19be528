"""Derivatives of functions of log64, in the field of logarithms.

A log64 register holds s = log x. `LOG_PARTIALS` gives, for each function with a log64 argument or
result, the derivative of the raw result by each raw argument, as f64 expressions: of a log64 its
logarithm is meant, of an f64 the number itself. The derivative by the value instead of its
logarithm is dL/dx = dL/ds / x, with x = f64(s).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rvm.expr import Const, Expr
from rvm.isa.functions.formulas import Partials, elem, fn
from rvm.types import F64


def _number(value: float) -> Const:
    return Const(value, F64)


ONE, ZERO = _number(1.0), _number(0.0)


def _f64(x: Expr) -> Expr:
    return fn("f64", x)


def _chosen(cond: Expr) -> Partials:
    return (fn("select", cond, ONE, ZERO), fn("select", cond, ZERO, ONE))


def _is_log(x: Expr) -> bool:
    t = elem(x)
    return t is not None and t.is_log


LOG_PARTIALS: Mapping[str, Callable[..., Partials]] = {
    "identity": lambda x: (ONE,),
    "detach": lambda x: (None,),
    "neg": lambda x: (_number(-1.0),),
    "abs": lambda x: (ONE,),
    "sqrt": lambda x: (_number(0.5),),
    "square": lambda x: (_number(2.0),),
    "*": lambda x, y: (ONE, ONE),
    "/": lambda x, y: (ONE, _number(-1.0)),
    "**": lambda x, y: (y, fn("log", x)),
    "+": lambda x, y: (_f64(x / (x + y)), _f64(y / (x + y))),
    "-": lambda x, y: (_f64(x / (x - y)), -_f64(y / (x - y))),
    "min": lambda x, y: _chosen(fn("<", x, y)),
    "max": lambda x, y: _chosen(fn(">=", x, y)),
    "select": lambda c, x, y: (None, *_chosen(c)),
    "log": lambda x: (ONE,),
    "f64": lambda x: (_f64(x),),
    "f32": lambda x: (_f64(x),),
    "fixed": lambda x: (_f64(x),),
    "c128": lambda x: (_f64(x),),
    "log64": lambda x: (ONE if _is_log(x) else ONE / _f64(x),),
    "exp_log64": lambda s: (ONE,),
    "prod": lambda x: (fn("spread_like", ONE, x),),
    "sum": lambda x: (_f64(x / fn("sum", x)),),
    "amin": lambda x: (fn("last_min", fn("log", x)),),
    "amax": lambda x: (fn("first_max", fn("log", x)),),
}
"""The derivatives of raw results by raw arguments where a log64 is among them."""
