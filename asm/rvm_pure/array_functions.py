"""NumPy's functions of whole arrays, of traced values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rvm.isa import FUNCTIONS
from rvm_pure.combinators import folded, iota, mapped, recorder_of, where
from rvm_pure.lengths import size_of, size_term
from rvm_pure.recorder import refused
from rvm_pure.slices import length_of
from rvm_pure.terms import Each, If, Index, Lam, Num, Op, Prim, Term, Var
from rvm_pure.traced import ARRAY_FUNCTIONS, Traced


def numpy_sum(x: Any, fn: str, axis: Any = None, **named: Any) -> Any:
    """`np.sum` and its like, of all elements or along one axis of a matrix."""
    name = fn.removeprefix("a") if fn[:2] == "am" else fn
    if any(v not in (None, False, np._NoValue) for v in named.values()):
        more = ", ".join(f"`{k}`" for k, v in named.items() if v not in (None, np._NoValue))
        raise refused(f"`np.{name}` is traced with an axis only, without {more}")
    if axis is not None and (not isinstance(axis, int) or not -x.ndim <= axis < x.ndim):
        count = f"{x.ndim} dimension{'s' * (x.ndim != 1)}"
        raise refused(f"`np.{name}` along axis {axis} of an array of {count}", "axes begin at 0")
    if axis is None or x.ndim == 1:
        return x._new(Op(fn, (x.term,)))
    if x.ndim != 2:
        how = "`rvm.pure.map(f, x)` goes through the rows"
        raise refused(f"`np.{name}` is traced along an axis of a matrix only", how)
    rows = x if axis in (1, -1) else x.T
    return mapped(lambda row: numpy_sum(row, fn), rows)


def mean(x: Any, axis: Any = None, **named: Any) -> Any:
    count = x.size if axis is None else x.shape[axis]
    return numpy_sum(x, "sum", axis, **named) / count


def variance(x: Any) -> Any:
    """`np.var` of all elements."""
    apart = x - mean(x)
    return mean(apart * apart)


def concatenated(arrays: Any, axis: Any = 0) -> Any:
    """`np.concatenate`: arrays one after the other, by their first dimension."""
    if not isinstance(arrays, (tuple, list)) or not arrays or axis != 0:
        raise refused("it is traced of a list of arrays, along their first axis")
    parts = [a for a in arrays if isinstance(a, Traced)]
    if len(parts) < len(arrays) or any(a.ndim != parts[0].ndim or not a.ndim for a in parts):
        raise refused("it is traced of arrays of as many dimensions, all of them traced")
    lengths = [length_of(a.recorder, a.term) for a in parts]
    starts: list[Term] = [Num(0)]
    for n in lengths:
        starts.append(_total(starts[-1], n))
    k = Var(recorder_of(*parts).names.new("k"))
    elements: list[Term] = [
        Index(a.term, (k if start == Num(0) else Op("-", (k, start)),))
        for a, start in zip(parts, starts, strict=False)
    ]
    *others, body = elements
    for one, end in zip(reversed(others), reversed(starts[1:-1]), strict=True):
        body = If(Op("<", (k, end)), one, body)
    return parts[0]._new(Each(Lam((k.name,), body), (Prim("iota", (starts[-1],)),)))


def _total(a: Term, b: Term) -> Term:
    """A sum of lengths, as a length and so many more where it is one."""
    known = [size_of(x) for x in (a, b)]
    for x, n in zip((a, b), reversed(known), strict=True):
        if n is not None and not n.name:
            base = size_of(x)
            return Op("+", (a, b)) if base is None else size_term(base.plus(n.more))
    return Op("+", (a, b))


def rolled(x: Any, shift: Any, axis: Any = None) -> Any:
    """`np.roll` of an array with one dimension."""
    if x.ndim != 1 or not isinstance(shift, (int, np.integer)) or axis not in (None, 0, -1):
        raise refused("it is traced of arrays with one dimension, by a number that is written")
    n, k = length_of(x.recorder, x.term), Var(x.recorder.names.new("k"))
    last = Op("-", (n, Num(1)))
    body: Term = Index(x.term, (Op("%", (Op("-", (k, Num(int(shift)))), n)),))
    if shift == 1:
        before = Index(x.term, (Op("-", (k, Num(1))),))
        body = If(Op("<", (k, Num(1))), Index(x.term, (last,)), before)
    elif shift == -1:
        after = Index(x.term, (Op("+", (k, Num(1))),))
        body = If(Op("<", (k, last)), after, Index(x.term, (Num(0),)))
    return x._new(Each(Lam((k.name,), body), (Prim("iota", (n,)),)))


def difference(x: Any, *, axis: int = -1) -> Any:
    """`np.diff` of an array: the differences of neighbours, along the last axis or another."""
    if x.ndim == 1 or (x.ndim == 2 and axis == 0):
        return x[1:] - x[:-1]
    if x.ndim != 2:
        raise refused("`np.diff` is traced of arrays with one or two dimensions")
    return x[:, 1:] - x[:, :-1]


def clipped(x: Any, low: Any = None, high: Any = None) -> Any:
    """`np.clip`: at least the one number, and at most the other."""
    if low is not None:
        x = np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def flipped(x: Any, axis: Any = None) -> Any:
    """`np.flip`: the first axis from its end."""
    if axis != 0 and x.ndim != 1:
        raise refused("`np.flip` is traced along the first axis")
    n, k = length_of(x.recorder, x.term), Var(x.recorder.names.new("k"))
    at = Op("-", (Op("-", (n, Num(1))), k))
    return x._new(Each(Lam((k.name,), Index(x.term, (at,))), (Prim("iota", (n,)),)))


def trace(x: Any) -> Any:
    """`np.trace`: the sum of the diagonal of a matrix with as many rows as columns, or less."""
    if x.ndim != 2:
        raise refused("`np.trace` is traced of a matrix")
    return numpy_sum(mapped(lambda i: x[i][i], iota(np.minimum(*x.shape))), "sum")


def norm(x: Any) -> Any:
    """`np.linalg.norm` of all elements: the root of the sum of their squares."""
    return np.sqrt(numpy_sum(x * x, "sum"))


def stacked(arrays: Any) -> Any:
    """`np.stack`: values of one shape as the rows of an array."""
    parts = (
        [a for a in arrays if isinstance(a, Traced)] if isinstance(arrays, (tuple, list)) else []
    )
    if not parts or len(parts) < len(arrays):
        raise refused("`np.stack` is traced of a list of traced values")
    *others, body = (a.term for a in parts)
    k = Var(recorder_of(*parts).names.new("k"))
    for j, one in reversed(list(enumerate(others))):
        body = If(Op("==", (k, Num(j))), one, body)
    return parts[0]._new(Each(Lam((k.name,), body), (Prim("iota", (Num(len(parts)),)),)))


def like(value: float) -> Callable[..., Any]:
    def made(x: Any, dtype: Any = None) -> Any:
        made = x._new(Op("spread_like", (Num(value), x.term)))
        return made if dtype is None else made.astype(dtype)

    return made


def whole(fn: str) -> Callable[..., Any]:
    """A function of all elements, or along an axis."""

    def made(x: Any, axis: Any = None, **named: Any) -> Any:
        return numpy_sum(x, fn, axis, **named)

    return made


def recorder_first(*values: Any) -> Traced:
    return next(v for v in values if isinstance(v, Traced))


def _ranks(a: Any, b: Any) -> bool:
    return bool(np.ndim(a) and np.ndim(b))


ARRAY_FUNCTIONS.update(
    {
        # `np.max` is `amax`.
        **{
            name: whole(row.name)
            for row in FUNCTIONS.values()
            if row.repeats
            for name in (row.name, row.name.removeprefix("a"))
        },
        "mean": mean,
        "where": where,
        "dot": lambda a, b: recorder_first(a, b).apply("@", a, b) if _ranks(a, b) else a * b,
        "inner": lambda a, b: recorder_first(a, b).apply("@", a, b.T) if _ranks(a, b) else a * b,
        "var": variance,
        "std": lambda x: np.sqrt(variance(x)),
        "linalg.norm": norm,
        "clip": clipped,
        "flip": flipped,
        "stack": stacked,
        "cumprod": lambda x: folded("scanl")(lambda s, a: s * a, 1.0, x)[1:],
        "trace": trace,
        "vdot": lambda a, b: recorder_first(a, b).apply("@", a, b),
        "outer": lambda a, b: recorder_first(a, b).apply("outer", a, b),
        "transpose": lambda x: x.T,
        "cumsum": lambda x, axis=None: x._new(Op("scan_left", (x.term,))),
        "zeros_like": like(0.0),
        "ones_like": like(1.0),
        "take": lambda x, k: x[k],
        "concatenate": concatenated,
        "roll": rolled,
        "diff": difference,
        "shape": lambda x: x.shape,
        "ndim": lambda x: x.ndim,
        "size": lambda x: x.size,
    }
)
