"""Elementary functions of f64: one text each, with the same bits wherever it is evaluated.

`text(name)` is a function over leaf operations; its module is imported when it is asked for.
`written(name)` is its code for all targets.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from rvm.leaf import Function
from rvm.leaf.python import on_arrays, on_numbers
from rvm.numbers.code import Code
from rvm.numbers.llvm import written as by_text
from rvm.numbers.support import NAMES

MODULES = {
    "exponentials": ("exp", "expm1", "exp2", "sinh", "cosh", "tanh", "sech", "sigmoid"),
    "logarithms": ("log", "log1p", "log2", "log10", "log_add", "log_sub"),
    "powers": ("pow",),
    "circles": ("sin", "cos", "tan"),
    "arcs": ("asin", "acos", "atan", "atan2"),
    "errors": ("erf", "erfc"),
    "roots": ("hypot", "versor", "leg", "cbrt", "asinh", "acosh", "atanh", "softplus"),
}
"""Functions by the module that holds their texts."""
TEXTS = {name: module for module, names in MODULES.items() for name in names}


@cache
def text(name: str) -> Function:
    """The text of a function."""
    module = import_module(f"{__name__}.{TEXTS[name]}")
    for found in vars(module).values():
        if isinstance(found, Function) and found.name == name:
            return found
    raise KeyError(name)


@cache
def written(name: str) -> Code:
    """The code of a function of f64 numbers that has a text; it is total."""
    function = text(name)
    scalar, array = f"f64_{name}", f"f64_{name}_array"
    NAMES[scalar], NAMES[array] = on_numbers(function), on_arrays(function)
    args = ", ".join(f"{{{k}}}" for k in range(len(function.params)))
    return Code(f"{scalar}({args})", f"{array}({args})", None, by_text(function))


__all__ = ["MODULES", "TEXTS", "text", "written"]
