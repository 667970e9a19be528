"""Functions of NumPy's as templates and generated source call them."""

from __future__ import annotations

import numpy as np

UFUNC = "n_"
"""The prefix of NumPy functions in generated source, which distinguishes them from those of the C
library."""
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
"""Templates that only call a NumPy function, and its name in source."""
KEYWORD = (UFUNC + "maximum", UFUNC + "minimum")
"""Functions of NumPy's that want the name of the argument to write to."""
