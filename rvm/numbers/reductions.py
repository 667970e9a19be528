"""The order in which elements are added up and multiplied: one for all engines and machines.

Elements are taken in the order of their indices.  There are 64 partial results; the element at
position i goes into number i modulo 64.  Then those beyond the first 32 are combined with the first
32, those beyond 16 with the first 16, and so on down to one.  If there are fewer than 64 elements,
there are only as many partial results; no zero is added anywhere.  So sums suit vectors of any
width, and their bits depend on no library (`tests/engines/test_sums.py` implements the order again,
one element at a time).  Elements of a product with a matrix are summed one after the other.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvm.numbers.support import name, unequal_lengths

WIDTH = 64
"""Partial results."""
BLOCK = 1 << 14
"""Products that are made at once: they stay in the processor's cache."""
ROWS = 4
"""With room for fewer products of an element at once, each is added as it is made."""
Array = NDArray[Any]
Operation = Callable[[Any, Any], Any]
"""An operation on the elements of two arrays."""


@cache
def folded(n: int) -> Callable[..., Any]:
    """The sum of up to 64 Python numbers, its arguments."""
    names = parts = [f"a{k}" for k in range(n)]
    width = WIDTH
    while width > 1:
        width //= 2
        more = [f"({a} + {b})" for a, b in zip(parts, parts[width:], strict=False)]
        parts = more + parts[len(more) : width]
    found: Callable[..., Any] = eval(f"lambda {', '.join(names)}: {parts[0]}")
    return found


def ordered(f: Operation, x: Any, empty: Any) -> Any:
    """The elements along an array's first axis combined by `f`; `empty` if there are none."""
    n = len(x)
    if not x.size:
        return np.full(x.shape[1:], empty, x.dtype)
    rows = n // WIDTH
    if rows < 2 or f not in (np.add, np.multiply):
        parts = np.array(x[:WIDTH])
        for k in range(WIDTH, rows * WIDTH, WIDTH):
            parts = f(parts, x[k : k + WIDTH])
    else:
        whole = np.ascontiguousarray(x)[: rows * WIDTH].reshape(rows, -1)
        parts = _reduced(f, whole).reshape(WIDTH, *x.shape[1:])
    if rows and n % WIDTH:
        parts[: n % WIDTH] = f(parts[: n % WIDTH], x[rows * WIDTH :])
    width, held = WIDTH, min(n, WIDTH)
    while width > 1:
        width //= 2
        if held > width:
            more = held - width
            parts[:more] = f(parts[:more], parts[width:held])
            held = width
    return parts[0]


def stretched(shape: tuple[int, ...], given: tuple[int, ...]) -> tuple[int, ...]:
    """The axes along which an array of a shape was broadcast to another shape."""
    lead = len(given) - len(shape)
    return tuple(range(lead)) + tuple(
        lead + k for k, m in enumerate(shape) if m == 1 and given[lead + k] != 1
    )


def sum_over(x: Any, axes: tuple[int, ...]) -> Any:
    """The sums over some axes of an array, taken in order; exact numbers wrap."""
    if x.dtype.kind not in "fc":
        return np.sum(x, axis=axes, dtype=x.dtype)
    others = tuple(k for k in range(x.ndim) if k not in axes)
    count = math.prod(x.shape[k] for k in axes)
    turned = x.transpose(*axes, *others).reshape(count, *(x.shape[k] for k in others))
    return ordered(np.add, turned, 0)


def _reduced(f: Any, rows: Array) -> Array:
    """The rows of a contiguous matrix combined one after the other; complex ones by addition.

    NumPy goes along the last axis first, so each sum is made in its order.
    """
    # Complex numbers are added by their parts.  What -0 is added to stays as it is.
    parts = rows.view(rows.real.dtype)
    start = parts.dtype.type(-0.0 if f is np.add else 1)
    found: Array = f.reduce(parts, axis=0, initial=start).view(rows.dtype)
    return found


@name
def ordered_sum(x: Any) -> Any:
    """The sum of all elements of an array of floats or complex numbers, as a Python number."""
    x = x.reshape(-1)
    if x.dtype == np.float32 or not len(x):
        return ordered(np.add, x, 0).item()
    if len(x) > WIDTH:
        n = len(x) // WIDTH * WIDTH
        parts = _reduced(np.add, np.ascontiguousarray(x[:n]).reshape(-1, WIDTH))
        if n < len(x):
            parts[: len(x) - n] += x[n:]
        x = parts
    return folded(len(x))(*x.tolist())


@name
def ordered_prod(f: Operation, x: Any, one: Any) -> Any:
    """The product of all elements of an array, by `f`; `one` if there are none."""
    return ordered(f, x.reshape(-1), one).item()


@name
def complex_times(a: Any, b: Any) -> Any:
    """The product of complex numbers in arrays, each product of parts rounded by itself."""
    real = np.multiply(a.real, b.real) - np.multiply(a.imag, b.imag)
    found = np.empty(real.shape, np.complex128)
    found.real = real
    found.imag = np.multiply(a.real, b.imag) + np.multiply(a.imag, b.real)
    return found


@name
def complex_square(a: Any) -> Any:
    """The squares of complex numbers in an array."""
    return complex_times(a, a)


def times(a: Any, b: Any) -> Any:
    """The products of elements of two arrays, in C order whatever the order of the arrays."""
    if a.dtype.kind == "c" or b.dtype.kind == "c":
        return complex_times(a, b)
    return np.multiply(a, b, order="C")


@name
def outer_product(a: Any, b: Any) -> Any:
    """The products of each element of a vector with each of another."""
    return times(a[:, None], b[None, :])


def dotted(a: Any, b: Any) -> Any:
    """The sums of products of elements along the first axis of two arrays."""
    return ordered(np.add, times(a, b), 0)


def contracted(a: Any, b: Any, times: Operation = times) -> Any:
    """The same, one product after the other."""
    if a.size * b.size <= BLOCK * len(a):
        return _in_turn(times(a, b))
    shape = np.broadcast_shapes(a.shape[1:], b.shape[1:])
    step = BLOCK // math.prod(shape)
    if step < ROWS and times is _times and "c" not in (a.dtype.kind, b.dtype.kind):
        return _in_place(a, b, shape)
    found = times(a[:1], b[:1])[0]
    for k in range(1, len(a), step or 1):
        products = times(a[k : k + (step or 1)], b[k : k + (step or 1)])
        if step:
            products[0] = np.add(found, products[0])
            found = _in_turn(products)
        else:
            found += products[0]
    return found


_times = times


def _in_place(a: Array, b: Array, shape: tuple[int, ...]) -> Array:
    """The same of real numbers, for large results: a few rows at a time stay in the cache."""
    found = np.empty(shape, np.result_type(a, b))
    rows = max(1, round(BLOCK / math.prod(shape[1:])))
    products = np.empty((min(rows, len(found)), *shape[1:]), found.dtype)
    for k in range(0, len(found), rows):
        sums = found[k : k + rows]
        some = products[: len(sums)]
        x, y = (v if v.shape[1] == 1 else v[:, k : k + rows] for v in (a, b))
        np.multiply(x[0], y[0], out=sums)
        for one, other in zip(x[1:], y[1:], strict=True):
            np.multiply(one, other, out=some)
            np.add(sums, some, out=sums)
    return found


def _in_turn(x: Array) -> Array:
    """The sums of the elements along the first axis of a contiguous array, in order."""
    if not x.size:
        return np.zeros(x.shape[1:], x.dtype)
    if x.size == len(x):
        found: Array = np.add.accumulate(x, axis=0)[-1]
        return found
    return _reduced(np.add, x.reshape(len(x), -1)).reshape(x.shape[1:])


@name
def ordered_dot(a: Any, b: Any) -> Any:
    """The sum of products of two vectors of floats or complex numbers."""
    n = len(a)
    if n != len(b):
        raise unequal_lengths(a.shape, b.shape)
    if 0 < n <= WIDTH and a.dtype == b.dtype == np.float64:
        return folded(n)(*map(operator.mul, a.tolist(), b.tolist()))
    return ordered_sum(times(a, b))


@name
def ordered_product(a: Any, b: Any) -> Any:
    """`a @ b` of floats or complex numbers: a number, a vector or a matrix."""
    return ordered_dot(a, b) if a.ndim == b.ndim == 1 else matrix_product(a, b)


def matrix_product(a: Any, b: Any, times: Operation = times, ranks: tuple[int, ...] = ()) -> Any:
    """`a @ b` for vectors and matrices, each element a sum of products one after the other.

    With `ranks` the arrays have more axes after those, the same in both: lanes.
    """
    rows, columns = ranks or (a.ndim, b.ndim)
    if a.shape[rows - 1] != len(b):
        raise unequal_lengths(a.shape, b.shape)
    if rows == 2:
        a, b = a.swapaxes(0, 1), b[:, None]
    if columns == 2:
        a = a[:, :, None] if rows == 2 else a[:, None]
    return contracted(a, b, times)
