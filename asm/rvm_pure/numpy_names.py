"""NumPy's functions by the names that the table has for them."""

from __future__ import annotations

from rvm.isa import FUNCTIONS

UFUNCS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "true_divide": "/",
    "divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "power": "**",
    "float_power": "**",
    "negative": "neg",
    "absolute": "abs",
    "fabs": "abs",
    "maximum": "max",
    "minimum": "min",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
    "logical_and": "and",
    "logical_or": "or",
    "logical_not": "not",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "matmul": "@",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "conjugate": "conj",
}
"""NumPy's functions of numbers whose names are not the table's."""
WHOLE = {
    name: row.name
    for row in FUNCTIONS.values()
    if row.repeats
    for name in (row.name, row.name.removeprefix("a"))
}
"""NumPy's functions of whole arrays: `np.max` is `np.amax`."""
