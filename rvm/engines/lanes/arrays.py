"""Functions of arrays in all lanes at once: sums, products, scans, gathering.

Each takes the element type of its result, the ranks of its arguments, the number W of lanes, and
arguments whose last axis is that of the lanes (of length 1 if all lanes share them; a shared scalar
has no axis).  The result has the lanes as its last axis.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from rvm.engines.lanes.faults import Failing
from rvm.engines.support import Trouble
from rvm.isa import FUNCTIONS
from rvm.isa.functions.arrays import fixed_prod, last_least, log_sum
from rvm.isa.rules import OF_ARRAYS
from rvm.numbers import NAMES, Code, compiled, system
from rvm.numbers.fixedpoint import fixed_mul_array
from rvm.numbers.reductions import (
    complex_times,
    dotted,
    matrix_product,
    ordered,
    stretched,
    sum_over,
    times,
)
from rvm.types import Scalar

Lanes = Any
Ranks = tuple[int, ...]


def wide(x: Any, rank: int, w: int) -> Lanes:
    """An argument with all lanes in its last axis, as a view."""
    x = np.asarray(x)
    return np.broadcast_to(x if x.ndim > rank else x[..., None], (*x.shape[:rank], w))


def lane_by_lane(code: Code, t: Scalar, ranks: Ranks, w: int, *args: Any) -> Lanes:
    """A function that has no form over lanes: called for each lane by itself."""
    f = compiled(code.numpy, len(args), NAMES)
    many = [wide(a, r, w) for a, r in zip(args, ranks, strict=True)]
    found = [
        f(*(a[..., k] if r else a[k].item() for a, r in zip(many, ranks, strict=True)))
        for k in range(w)
    ]
    return np.moveaxis(np.array(found, system(t).dtype), 0, -1)


def flat(x: Any, rank: int, w: int) -> Lanes:
    """Each lane's elements in C order, along the first axis."""
    return wide(x, rank, w).reshape(-1, w)


def lanes_sum(t: Scalar, ranks: Ranks, w: int, x: Any) -> Lanes:
    """The sum of each lane's elements."""
    x = flat(x, ranks[0], w)
    return log_sum(x) if t.is_log else sum_over(x, (0,))


def lanes_prod(t: Scalar, ranks: Ranks, w: int, x: Any) -> Lanes:
    """The product of each lane's elements."""
    x = flat(x, ranks[0], w)
    if t.is_log:
        return ordered(np.add, x, 0)
    if t.is_fixed:
        return fixed_prod(x, t.frac)
    if t.is_integer:
        return np.prod(x, axis=0, dtype=system(t).dtype)
    return ordered(complex_times if t.is_complex else np.multiply, x, 1)


def _extreme(f: Callable[..., Any]) -> Callable[..., Lanes]:
    def form(t: Scalar, ranks: Ranks, w: int, x: Any) -> Lanes:
        x = wide(x, ranks[0], w)
        if not x[..., :1].size:
            raise Trouble
        x = x.reshape(-1, w)
        return np.take_along_axis(x, f(x, axis=0)[None], 0)[0]

    return form


def _first(f: Callable[..., Any]) -> Callable[..., Lanes]:
    def form(t: Scalar, ranks: Ranks, w: int, x: Any) -> Lanes:
        x = wide(x, ranks[0], w)
        one = 1 << t.frac if t.is_fixed else 1
        out: Any = np.zeros((x[..., 0].size, w), system(t).dtype)
        if len(out):
            out[f(x.reshape(-1, w), axis=0), np.arange(w)] = one
        return out.reshape(x.shape)

    return form


def lanes_product(t: Scalar, ranks: Ranks, w: int, a: Any, b: Any) -> Lanes:
    """The product of vectors and matrices in each lane, as `@` contracts them."""
    a, b = wide(a, ranks[0], w), wide(b, ranks[1], w)
    if a.shape[ranks[0] - 1] != len(b):
        raise Trouble
    if ranks == (1, 1) and not t.is_exact:
        return dotted(a, b)
    multiply = partial(fixed_mul_array, frac=t.frac) if t.is_fixed else times
    return matrix_product(a, b, multiply, ranks)


def lanes_outer(t: Scalar, ranks: Ranks, w: int, a: Any, b: Any) -> Lanes:
    """All products of two vectors in each lane."""
    a, b = wide(a, 1, w)[:, None], wide(b, 1, w)[None]
    return fixed_mul_array(a, b, t.frac) if t.is_fixed else times(a, b)


def lanes_scan_left(t: Scalar, ranks: Ranks, w: int, x: Any) -> Lanes:
    """Running sums from the left in each lane."""
    return np.cumsum(wide(x, 1, w), axis=0, dtype=system(t).dtype)


def lanes_scan_right(t: Scalar, ranks: Ranks, w: int, x: Any) -> Lanes:
    """Running sums from the right in each lane."""
    return lanes_scan_left(t, ranks, w, wide(x, 1, w)[::-1])[::-1]


def _check(idx: Lanes, n: int, w: int) -> None:
    bad = (idx < 0) | (idx >= n)
    if bad.any():
        raise Failing(np.broadcast_to(bad, (len(idx), w)).any(axis=0))


def lanes_gather(t: Scalar, ranks: Ranks, w: int, x: Any, idx: Any) -> Lanes:
    """The elements at indices in each lane."""
    x, idx = wide(x, 1, w), wide(idx, 1, w)
    _check(idx, len(x), w)
    return np.take_along_axis(x, idx, 0)


def lanes_scatter(t: Scalar, ranks: Ranks, w: int, v: Any, idx: Any, n: Any) -> Lanes:
    """A vector of length n in each lane, each value added at its index."""
    v, idx = wide(v, 1, w), wide(idx, 1, w)
    lengths = np.unique(n)
    if len(lengths) != 1 or len(v) != len(idx) or lengths[0] < 0:
        raise Trouble
    _check(idx, int(lengths[0]), w)
    out = np.zeros((int(lengths[0]), w), v.dtype)
    np.add.at(out, (idx, np.arange(w)), v)
    return out


def lanes_transpose(t: Scalar, ranks: Ranks, w: int, x: Any) -> Lanes:
    """The matrix of each lane with rows and columns exchanged."""
    return wide(x, 2, w).swapaxes(0, 1).copy()


def lanes_spread_like(t: Scalar, ranks: Ranks, w: int, g: Any, x: Any) -> Lanes:
    """g broadcast to the shape of x in each lane."""
    g, x = wide(g, ranks[0], w), wide(x, ranks[1], w)
    return np.array(np.broadcast_to(g, x.shape))


def lanes_sum_like(t: Scalar, ranks: Ranks, w: int, g: Any, x: Any) -> Lanes:
    """g summed over the axes along which an array like x was broadcast to it, in each lane."""
    g, x = wide(g, ranks[0], w), wide(x, ranks[1], w)
    shape = x.shape[:-1]
    if ranks[0] < len(shape):
        return np.array(np.broadcast_to(g, x.shape))
    axes = stretched(shape, g.shape[: ranks[0]])
    if not axes:
        return g.copy()
    return sum_over(g, axes).reshape(*shape, w)


lanes_amin, lanes_amax = _extreme(np.argmin), _extreme(np.argmax)
lanes_first_max, lanes_last_min = _first(np.argmax), _first(last_least)
lanes_dot = lanes_matvec = lanes_matmul = lanes_product
FORMS = {k: v for k, v in globals().items() if k.startswith("lane")}
"""Forms over lanes by their names in generated source."""


def form_of(fn: str) -> str | None:
    """The name over lanes of a function of arrays, "" if lane by lane; None for others."""
    name = "lanes_product" if fn == "@" else f"lanes_{fn}"
    return name if name in FORMS else "" if FUNCTIONS[fn].rule in OF_ARRAYS else None
