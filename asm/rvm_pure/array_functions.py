"""NumPy's functions of whole arrays, of traced values."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, cast

import numpy as np

from rvm.isa import FUNCTIONS
from rvm.numbers import system
from rvm.types import BOOL, I64, U64, Scalar
from rvm_pure.axes import (
    along,
    axes_of,
    axis_of,
    expanded,
    is_integer,
    moved,
    reduced,
    reshaped,
    spread,
    squeezed,
    swapped,
    transposed,
)
from rvm_pure.combinators import folded, iota, mapped, where
from rvm_pure.einsum import einsum
from rvm_pure.joins import (
    above,
    alike,
    beside,
    concatenated,
    diagonal,
    diagonal_or_matrix,
    difference,
    flipped,
    repeated,
    rolled,
    stacked,
    tiled,
    triangle,
)
from rvm_pure.recorder import refused
from rvm_pure.terms import Num, Op, Term
from rvm_pure.traced import ARRAY_FUNCTIONS, Traced, scalar_of
from rvm_pure.types import elem_type


def whole(fn: str) -> Callable[..., Any]:
    """A reduction of the table: of all elements, or along axes."""

    def all_of(x: Any) -> Any:
        return x._new(Op(fn, (x.term,))) if x.ndim else x

    def made(
        x: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        **more: Any,
    ) -> Any:
        _plain(fn.removeprefix("a") if fn[:2] == "am" else fn, out=out, **more)
        if dtype is not None:
            x = x.astype(dtype)
        elif not FUNCTIONS[fn].exact:
            x = _widened(x)
        return reduced(all_of, x, axis, keepdims)

    return made


_UNSAID = (None, False, np._NoValue)


def _plain(name: str, **more: Any) -> None:
    """UsageError U060 for arguments that are not traced."""
    words = ", ".join(f"`{k}`" for k, v in more.items() if not any(v is x for x in _UNSAID))
    if words:
        raise refused(f"`np.{name}` is traced without {words}")


def _widened(x: Any) -> Any:
    """What sums are taken of: whole numbers of 64 bits, where there are fewer."""
    x = x._number()
    elem = cast(Scalar, elem_type(x.term.type))
    if is_integer(x) and elem.bits < I64.bits:
        return x._new(Op(str(I64 if elem.is_signed else U64), (x.term,)))
    return x


total = whole("sum")


def _count(x: Any, axis: Any) -> Any:
    """The number of elements along axes."""
    return prod((x.shape[k] for k in axes_of(x, axis)), start=1)


def mean(
    x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False
) -> Any:
    x = x._real() if dtype is None else x.astype(dtype)
    return total(x, axis, None, out, keepdims) / _count(x, axis)


def variance(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
) -> Any:
    """`np.var`: the mean of the squares of what is apart from the mean."""
    x = x if dtype is None else x.astype(dtype)
    apart = x - mean(x, axis, None, out, axis is not None)
    squares = apart.apply("abs2", apart) if apart._is_complex() else apart * apart
    return total(squares, axis, keepdims=keepdims) / (_count(x, axis) - ddof)


def deviation(*args: Any, **named: Any) -> Any:
    return np.sqrt(variance(*args, **named))


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    """`np.linalg.norm`: the root of the sum of the squares, or another norm of vectors."""
    x = x._real()
    rank = x.ndim if axis is None else len(axes_of(x, axis))
    if ord is None or (ord == 2 and rank == 1) or (ord == "fro" and rank == 2):
        squares = x.apply("abs2", x) if x._is_complex() else x * x
        return np.sqrt(total(squares, axis, keepdims=keepdims))
    found = {1: total, np.inf: whole("amax"), -np.inf: whole("amin")}.get(ord)
    if rank != 1 or found is None:
        how = "of vectors it is traced for 1, 2, inf and -inf; `axis=` says along what"
        raise refused(f"`np.linalg.norm` is not traced for the order {ord} here", how)
    return found(np.abs(x), axis, keepdims=keepdims)


def extreme(fn: str) -> Callable[..., Any]:
    """`np.argmax`, `np.argmin`: the first index of the greatest or least element, or of a NaN."""

    def of_vector(x: Any) -> Any:
        if x.ndim != 1:
            x = reshaped(x, -1)
        best = x._new(Op(fn, (x.term,)))
        n = x.shape[0]
        return whole("amin")(where((x == best) | (x != x), iota(n), n))

    def made(x: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        _plain("argmax", out=out)
        return reduced(of_vector, x, axis, keepdims)

    return made


def truth(name: str) -> Callable[..., Any]:
    """`np.any`, `np.all`."""

    def of(x: Any) -> Any:
        holds = x if elem_type(x.term.type) == BOOL else x != 0
        if not x.ndim:
            return holds
        if name == "any":
            return total(where(holds, 1, 0)) > 0
        return total(where(holds, 0, 1)) == 0

    def made(x: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
        _plain(name, out=out, **more)
        return reduced(of, x, axis, keepdims)

    return made


def counted(x: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """`np.count_nonzero`."""
    holds = x if elem_type(x.term.type) == BOOL else x != 0
    return total(where(holds, 1, 0), axis, keepdims=keepdims)


def clipped(
    x: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
) -> Any:
    """`np.clip`: at least the one number, and at most the other."""
    low, high = a_min if min is None else min, a_max if max is None else max
    if low is not None:
        x = np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def cumulated(fn: str) -> Callable[..., Any]:
    """`np.cumsum`, `np.cumprod`."""

    def of_vector(x: Any) -> Any:
        if fn == "+":
            return x._new(Op("scan_left", (x.term,)))
        one = x._new(Num(1, str(elem_type(x.term.type))))
        return folded("scanl")(lambda s, a: s * a, one, x)[1:]

    def made(x: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        _plain("cumsum" if fn == "+" else "cumprod", out=out)
        return along(of_vector, _widened(x if dtype is None else x.astype(dtype)), axis)

    return made


def taken(x: Any, indices: Any, axis: Any = None) -> Any:
    """`np.take`."""
    x, k = (reshaped(x, -1), 0) if axis is None else (x, axis_of(x, axis))
    return x[(*[slice(None)] * k, indices)]


def selected(conditions: Any, values: Any, default: Any = 0) -> Any:
    """`np.select`: the value of the first condition that holds."""
    for c, v in reversed(list(zip(conditions, values, strict=True))):
        default = where(c, v, default)
    return default


def averaged(x: Any, axis: Any = None, weights: Any = None) -> Any:
    """`np.average`."""
    if weights is None:
        return mean(x, axis)
    (weights,) = alike([weights], "average")
    weights = weights._real()
    return total(x._real() * weights, axis) / total(weights, axis)


def integrated(y: Any, x: Any = None, dx: Any = 1.0) -> Any:
    """`np.trapezoid` of a vector."""
    if y.ndim != 1:
        raise refused("`np.trapezoid` is traced of vectors")
    widths = dx if x is None else x[1:] - x[:-1]
    return total(widths * (y[1:] + y[:-1]) / 2)


def crossed(a: Any, b: Any) -> Any:
    """`np.cross` of two vectors of three numbers."""
    if [np.shape(v) for v in (a, b)] != [(3,), (3,)]:
        raise refused("`np.cross` is traced of vectors of length 3", 'their type is `f64["3"]`')
    return stacked([a[i] * b[j] - a[j] * b[i] for i, j in ((1, 2), (2, 0), (0, 1))])


def multiplied(a: Any, b: Any) -> Any:
    """`a @ b`, also of arrays of matrices."""
    if max(np.ndim(a), np.ndim(b)) <= 2:
        return recorder_first(a, b).apply("@", a, b)
    if np.ndim(a) == np.ndim(b):
        return mapped(multiplied, a, b)
    if np.ndim(a) > np.ndim(b) and np.ndim(b) <= 2:
        return mapped(lambda row: multiplied(row, b), a)
    if np.ndim(a) == 2:
        return mapped(lambda row: multiplied(a, row), b)
    raise refused("arrays of matrices are multiplied with as many, or with one")


def dotted(a: Any, b: Any) -> Any:
    """`np.dot` of numbers, vectors and matrices."""
    if not (np.ndim(a) and np.ndim(b)):
        return a * b
    if max(np.ndim(a), np.ndim(b)) > 2:
        raise refused("`np.dot` is traced of vectors and matrices", "`a @ b`, or `np.einsum`")
    return multiplied(a, b)


def inner(a: Any, b: Any) -> Any:
    return dotted(a, b.T) if np.ndim(a) and np.ndim(b) else a * b


def conjugate_dot(a: Any, b: Any) -> Any:
    """`np.vdot`: of all elements, the first conjugated."""
    a, b = (v if isinstance(v, Traced) else alike([v], "vdot")[0] for v in (a, b))
    return dotted(reshaped(a.conj(), -1), reshaped(b, -1))


def outer(a: Any, b: Any) -> Any:
    a, b = (reshaped(v, -1) if isinstance(v, Traced) and v.ndim > 1 else v for v in (a, b))
    if not (np.ndim(a) and np.ndim(b)):
        raise refused("`np.outer` is traced of vectors and matrices")
    return recorder_first(a, b).apply("outer", a, b)


def contracted(a: Any, b: Any, axes: Any = 2) -> Any:
    """`np.tensordot` over the last axes of the one and the first of the other."""
    if not isinstance(axes, int) or not 0 <= axes <= min(np.ndim(a), np.ndim(b)):
        raise refused("`np.tensordot` is traced for a number of axes", "`np.einsum` names them")
    first, second = "abcdefgh"[: np.ndim(a) - axes], "ijklmnop"[: np.ndim(b) - axes]
    both = "qrstuvwx"[:axes]
    return einsum(f"{first}{both},{both}{second}->{first}{second}", a, b)


def like(value: float | None) -> Callable[..., Any]:
    """`np.zeros_like` and its like."""

    def made(x: Any, *given: Any, dtype: Any = None) -> Any:
        fill = given[0] if value is None else value
        if value is not None and given:
            dtype = given[0]
        elem = scalar_of(x) if dtype is None else scalar_of(np.empty(0, dtype))
        assert elem is not None
        filled = _as_type(fill, elem)
        return x._new(Op("spread_like", (filled, x.term)) if x.ndim else filled)

    return made


def _as_type(v: Any, to: Scalar) -> Term:
    """A number as one of another type, as NumPy makes it when it fills an array."""
    if isinstance(v, Traced):
        if v.ndim:
            raise refused("`np.full_like` is traced with a number")
        if to == BOOL:
            return v.apply("!=", v, 0).term
        return v.term if scalar_of(v) == to else Op(str(to), (v._number().term,))
    try:
        one = np.full_like(np.empty((), system(to).dtype), v).item()
    except (TypeError, ValueError, OverflowError) as error:
        raise refused(f"`np.full_like`: {error}") from None
    return Num(one, "" if to == BOOL else str(to))


def copied(x: Any) -> Any:
    return Traced(x.recorder, x.term)


def recorder_first(*values: Any) -> Traced:
    return next(v for v in values if isinstance(v, Traced))


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
        "average": averaged,
        "var": variance,
        "std": deviation,
        "linalg.norm": norm,
        "ptp": lambda x, axis=None, keepdims=False: (
            whole("amax")(x, axis, keepdims=keepdims) - whole("amin")(x, axis, keepdims=keepdims)
        ),
        "any": truth("any"),
        "all": truth("all"),
        "count_nonzero": counted,
        "argmax": extreme("amax"),
        "argmin": extreme("amin"),
        "where": where,
        "select": selected,
        "clip": clipped,
        "matmul": multiplied,
        "dot": dotted,
        "inner": inner,
        "vdot": conjugate_dot,
        "outer": outer,
        "tensordot": contracted,
        "einsum": einsum,
        "cross": crossed,
        "trapezoid": integrated,
        "cumsum": cumulated("+"),
        "cumprod": cumulated("*"),
        "diff": difference,
        "trace": lambda x: total(diagonal(x)),
        "diagonal": diagonal,
        "diag": diagonal_or_matrix,
        "tril": triangle("<="),
        "triu": triangle(">="),
        "transpose": lambda x, *axes: transposed(
            x, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        ),
        "swapaxes": swapped,
        "moveaxis": moved,
        "reshape": reshaped,
        "ravel": lambda x: reshaped(x, -1),
        "squeeze": squeezed,
        "expand_dims": expanded,
        "broadcast_to": spread,
        "concatenate": concatenated,
        "stack": stacked,
        "hstack": beside,
        "vstack": above,
        "append": lambda x, v: beside([reshaped(x, -1), v]),
        "repeat": repeated,
        "tile": tiled,
        "flip": flipped,
        "roll": rolled,
        "take": taken,
        "copy": copied,
        "zeros_like": like(0.0),
        "ones_like": like(1.0),
        "full_like": like(None),
        "angle": lambda x: x.apply("angle", x),
        "real": lambda x: x.real,
        "imag": lambda x: x.imag,
        "shape": lambda x: x.shape,
        "ndim": lambda x: x.ndim,
        "size": lambda x: x.size,
    }
)
