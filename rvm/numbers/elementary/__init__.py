"""Elementary functions of f64: one text each, with the same bits wherever it is evaluated.

`text(name)` is a function over leaf operations; its module is imported on demand.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from rvm.leaf import Function

MODULES = {
    "exponentials": ("exp", "expm1", "exp2", "sinh", "cosh", "tanh", "sech", "sigmoid"),
    "logarithms": ("log", "log1p", "log2", "log10", "log_add", "log_sub"),
    "powers": ("pow",),
    "circles": ("sin", "cos", "tan"),
    "arcs": ("asin", "acos", "atan", "atan2"),
    "errors": ("erf", "erfc"),
    "gammas": ("lgamma", "digamma", "polygamma"),
    "roots": ("hypot", "versor", "leg", "cbrt", "asinh", "acosh", "atanh", "softplus"),
}
"""Functions by the module that holds their texts."""
TURNING = ("sin", "cos")
"""The functions that a rotation by an angle needs both, in the order of `rvm_turn`'s results."""
TEXTS = {name: module for module, names in MODULES.items() for name in names}


@cache
def text(name: str) -> Function:
    """The text of a function."""
    module = import_module(f"{__name__}.{TEXTS[name]}")
    for found in vars(module).values():
        if isinstance(found, Function) and found.name == name:
            return found
    raise KeyError(name)


__all__ = ["MODULES", "TEXTS", "TURNING", "text"]
