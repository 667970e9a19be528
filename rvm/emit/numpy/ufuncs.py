"""Functions of NumPy's as templates and generated source call them."""

from __future__ import annotations

import numpy as np

from rvm.isa.numpy_names import numpy_name

UFUNC = "n_"
"""The prefix of NumPy functions in generated source, which distinguishes them from those of the C
library."""
SIGNS = ["+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!=", "&", "|", "^"]
"""The operators in templates."""
UFUNCS = {
    **{f"({{0}} {sign} {{1}})": UFUNC + numpy_name(sign) for sign in SIGNS},
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
"""NumPy functions that take the array to write to as a keyword argument."""
