"""Functions of NumPy's as templates and generated source call them."""

from __future__ import annotations

import numpy as np

UFUNC = "n_"
"""What the names of NumPy's functions begin with in generated source; without it they would be
those of the C library."""
SIGNS = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
    "==": "equal",
    "!=": "not_equal",
    "&": "bitwise_and",
    "|": "bitwise_or",
    "^": "bitwise_xor",
}
"""NumPy's functions for the operators in templates."""
UFUNCS = {
    **{f"({{0}} {sign} {{1}})": UFUNC + name for sign, name in SIGNS.items()},
    "(-{0})": UFUNC + "negative",
    "(~{0})": UFUNC + "invert",
    **{
        f"np.{name}({', '.join(f'{{{k}}}' for k in range(f.nin))})": UFUNC + name
        for name, f in vars(np).items()
        if isinstance(f, np.ufunc)
    },
}
"""The templates that call a function of NumPy's and do nothing else, and what source calls it."""
KEYWORD = (UFUNC + "maximum", UFUNC + "minimum")
"""Functions of NumPy's that want the name of the argument to write to."""
