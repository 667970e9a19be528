"""Functions as computed by this machine's libraries: libm, NumPy and the BLAS that NumPy uses.

A run with `bits="machine"` uses them instead of those that the table specifies; their names begin
with `machine.`, which cannot be written in a program's text.  They are the same functions except
for the last bits, which depend on the libraries and the processor.  Machine code keeps the
specified functions, except for large products of matrices, under names that begin with `blas.`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from rvm.expr import Apply, Expr, rebuild
from rvm.isa.functions.arrays import product_of
from rvm.isa.lower import is_plain
from rvm.isa.numpy_names import numpy_name
from rvm.isa.rows import FUNCTIONS, FunctionRow, FunctionTable, Row
from rvm.numbers.code import Code
from rvm.numbers.reductions import matrix_product
from rvm.numbers.support import NAMES, name
from rvm.types import F64, Array, Scalar, elem_of

MACHINE, BLAS = "machine", "blas"
"""The prefixes of the names, before a dot."""
LARGE = 1 << 26
"""Matrix products of more multiplications are left to BLAS in machine code: that pays from there
on, for gradients too."""
LIBM = "exp expm1 exp2 sinh cosh tanh log log1p log2 log10 sin cos tan"
LIBM += " asin acos atan asinh acosh atanh cbrt atan2 hypot"
"""Functions of libm that NumPy has, too."""
WHOLE = {
    "sum": "np.sum({0}).item()",
    "prod": "np.prod({0}).item()",
    "dot": "product_of(np.dot, {0}, {1}).item()",
    "matvec": "product_of(np.matmul, {0}, {1})",
    "matmul": "product_of(np.matmul, {0}, {1})",
    "@": "whole_product({0}, {1})",
}
"""Functions of whole arrays of floats and complex numbers."""


def of_machine(node: Expr, kind: str) -> Expr:
    """An expression with its functions of a kind replaced by this machine's."""
    found = rebuild(node, lambda child: of_machine(child, kind))
    if isinstance(found, Apply) and (_is_there if kind == MACHINE else is_matrices)(found):
        return replace(found, fn=f"{kind}.{found.fn}")
    return found


def is_matrices(node: Apply) -> bool:
    """Whether an expression is a product of two matrices of floats or complex numbers."""
    types = [a.type for a in node.args if isinstance(a.type, Array)]
    products = node.fn in ("@", "matmul") and [t.rank for t in types] == [2, 2]
    return products and all(t.elem.is_float or t.elem.is_complex for t in types)


@name
def blas_product(a: Any, b: Any) -> Any:
    """The product of two matrices: by BLAS if it is large, else in the stated order."""
    if a.size * b.shape[1] > LARGE:
        return product_of(np.matmul, a, b)
    return matrix_product(a, b)


def _is_there(node: Apply) -> bool:
    types = [elem_of(a.type) for a in node.args if isinstance(a.type, (Scalar, Array))]
    if node.fn in WHOLE:
        return all(t.is_float or t.is_complex for t in types)
    if is_plain(node):
        return False
    return (node.fn == "**" or node.fn in LIBM.split()) and all(t == F64 for t in types)


@cache
def _row(kind: str, fn: str) -> FunctionRow:
    code: dict[str, Row]
    if fn in WHOLE:
        text = WHOLE[fn] if kind == MACHINE else "blas_product({0}, {1})"
        whole = Code(text, text, alike=True)
        code = {"float": whole, "complex": whole}
    else:
        code = {"f64": _from_libm(fn)}
    return replace(FUNCTIONS[fn], name=f"{kind}.{fn}", code=code, body=None, stated=fn)


def _from_libm(fn: str) -> Code:
    of_numbers: Callable[..., float] = getattr(math, "pow" if fn == "**" else fn)
    of_arrays: np.ufunc = getattr(np, numpy_name(fn))

    def value(*args: float) -> float:
        """The number, infinities and NaN included, which Python's functions raise instead."""
        try:
            return of_numbers(*args)
        except (ValueError, OverflowError):
            with np.errstate(all="ignore"):
                return float(of_arrays(*args))

    inline, whole = f"libm_{of_numbers.__name__}", f"numpy_{of_arrays.__name__}"
    NAMES.setdefault(inline, of_numbers)
    NAMES.setdefault(whole, of_arrays)
    slots = "({0}, {1})" if of_arrays.nin == 2 else "({0})"
    return Code(inline + slots, whole + slots, value)


_others = FunctionTable.on_demand


def _on_demand(name: str) -> FunctionRow | None:
    kind, _, fn = name.partition(".")
    if kind == BLAS:
        return _row(kind, fn) if fn in ("@", "matmul") else None
    if kind == MACHINE:
        return _row(kind, fn) if fn in WHOLE or fn == "**" or fn in LIBM.split() else None
    return _others(name)


FunctionTable.on_demand = staticmethod(_on_demand)
