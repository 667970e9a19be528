"""NumPy's functions of numbers that have other names than the table's."""

from __future__ import annotations

_OTHERS = """
add: +, subtract: -, multiply: *, divide: /, true_divide: /, floor_divide: //, remainder: %,
power: **, float_power: **, negative: neg, absolute: abs, fabs: abs, maximum: max, minimum: min,
less: <, less_equal: <=, greater: >, greater_equal: >=, equal: ==, not_equal: !=,
logical_and: and, logical_or: or, logical_not: not,
bitwise_and: &, bitwise_or: |, bitwise_xor: ^, matmul: @, conjugate: conj,
arcsin: asin, arccos: acos, arctan: atan, arctan2: atan2,
arcsinh: asinh, arccosh: acosh, arctanh: atanh
"""
UFUNCS = dict(other.strip().split(": ") for other in _OTHERS.split(","))
"""The table's names by NumPy's."""


def numpy_name(fn: str) -> str:
    """The name that NumPy has for a function of the table."""
    return next((name for name, other in UFUNCS.items() if other == fn), fn)
