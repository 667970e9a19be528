"""Functions called by generated code over lanes: spreading, picking, checking.

W is the number of lanes; a scalar that varies has the shape (W,), an array (..., W).  A function
that finds failing lanes raises `Failing` before it changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count, repeat
from typing import Any

import numpy as np

from rvm.emit.numpy.ufuncs import UFUNC
from rvm.engines.evaluate import has_shape
from rvm.engines.heap import fits
from rvm.engines.lanes.arrays import FORMS
from rvm.engines.lanes.faults import Failing, Varied
from rvm.engines.lanes.stacks import LaneStack
from rvm.engines.python import execute
from rvm.engines.support import SUPPORT, Trouble, defined_in
from rvm.numbers import NumberSystem
from rvm.numbers.base import differing
from rvm.numbers.rounding import allowance, away, extent, is_lost
from rvm.numbers.support import NAMES

Lanes = Any
"""An array whose last axis is that of the lanes."""


# ---------------------------------------------------------------- shapes


def spread(x: Any, w: int) -> Lanes:
    """A scalar as a vector of all lanes; not copied if it is one."""
    return x if np.shape(x) == (w,) else np.full(w, x)


def own(x: Any, w: int) -> Lanes:
    """A vector of lanes that shares no memory with another value."""
    return x if np.shape(x) == (w,) and x.base is None else np.array(np.broadcast_to(x, (w,)))


def vector(x: Any, dtype: np.dtype[Any], w: int) -> Lanes:
    """A new vector of lanes that holds x."""
    out = np.empty(w, dtype)
    out[...] = x
    return out


def array_of(shape: tuple[int, ...], x: Any, dtype: np.dtype[Any], w: int) -> Lanes:
    """A new array in every lane (a vector for the shape ()), filled with x."""
    if any(n < 0 for n in shape):
        raise Trouble
    out = np.empty((*shape, w), dtype)
    fits(out, x)
    out[...] = x
    return out


def copy(x: Any) -> Any:
    """A copy of an array; scalars are not changed in place."""
    return x.copy() if isinstance(x, np.ndarray) else x


def turned(x: Lanes) -> Lanes:
    """The transposed view in every lane."""
    return np.moveaxis(x.T, 0, -1)


def shaped_lanes(x: Lanes, *dims: int) -> Lanes:
    """The elements of one axis arranged in rows in every lane; Trouble if the number differs."""
    if not has_shape(dims, len(x)):
        raise Trouble
    return x.reshape(*dims, x.shape[-1])


def length(x: Any, rank: int, axis: int, w: int) -> Lanes:
    """The length of an axis of a view of the given rank in every lane."""
    if not 0 <= axis < rank:
        raise Trouble
    return np.full(w, x.shape[axis], np.int64)


def one(x: Any) -> int:
    """An integer that all lanes share; Varied if they do not."""
    if not np.ndim(x):
        return int(x)
    first = x.flat[0]
    if np.any(x != first):
        raise Varied(x)
    return int(first)


# ---------------------------------------------------------------- elements by lane


def inside(i: Any, n: int) -> Any:
    """Indices within an axis of length n; Failing where they are not."""
    if not np.ndim(i):
        if not 0 <= i < n:
            raise Trouble
        return i
    if i.size and i.view(f"u{i.itemsize}").max() >= n:
        raise Failing(i >= n if i.dtype.kind == "u" else (i < 0) | (i >= n))
    return i


def pick(x: Lanes, key: tuple[Any, ...], w: int) -> Lanes:
    """x at a key whose indices differ by lane: a copy, lanes last."""
    if x.ndim == 2 and len(key) == 1:
        return x[key[0], np.arange(w)]
    found = np.moveaxis(x, -1, 0)[(np.arange(w), *key)]
    return np.moveaxis(found, 0, -1)


def pick_shared(x: Any, key: tuple[Any, ...], w: int) -> Lanes:
    """An array that all lanes share, at a key whose indices differ by lane; lanes last."""
    if x.ndim == len(key) and not any(isinstance(k, slice) for k in key):
        return x[key]
    shared = np.broadcast_to(x, (w, *x.shape))
    return np.moveaxis(shared[(np.arange(w), *key)], 0, -1)


def put(x: Lanes, key: tuple[Any, ...], value: Any, w: int) -> None:
    """Store a value in x at a key whose indices differ by lane."""
    if x.ndim == 2 and len(key) == 1:
        x[key[0], np.arange(w)] = value
        return
    rows = np.moveaxis(x, -1, 0)
    index = (np.arange(w), *key)
    shape = np.moveaxis(rows[index], 0, -1).shape
    rows[index] = np.moveaxis(np.broadcast_to(value, shape), -1, 0)


def pick_guarded(x: Any, key: tuple[Any, ...], mask: Lanes, shared: bool, w: int) -> Lanes:
    """x at a key, in the lanes of a mask; Failing where one of these is outside."""
    safe, lost = [], False
    for i, n in zip(key, x.shape, strict=False):
        bad = (i < 0) | (i >= n)
        if 1 in (bad & mask).tobytes():
            raise Failing(bad & mask)
        lost = lost or not n
        safe.append(np.broadcast_to(np.where(bad, 0, i), (w,)))
    if lost:
        rest = x.shape[len(key) :] if shared else x.shape[len(key) : -1]
        return np.zeros((*rest, w), x.dtype)
    return (pick_shared if shared else pick)(x, tuple(safe), w)


def guarded(x: Any, mask: Lanes, instead: int) -> Lanes:
    """x in the lanes of the mask, a harmless value in the others."""
    return np.where(mask, x, np.asarray(instead, np.asarray(x).dtype))


# ---------------------------------------------------------------- checks


def must(m: Any, w: int) -> None:
    """Failing unless a condition holds in every lane."""
    m = spread(m, w)
    if 0 in m.tobytes():
        raise Failing(~m)


def must_not(m: Any, w: int) -> None:
    """Failing if a condition holds in a lane."""
    m = spread(m, w)
    if 1 in m.tobytes():
        raise Failing(m)


def any_true(m: Lanes) -> bool:
    """Whether a condition holds in a lane."""
    return 1 in m.tobytes()


def by_lane(ok: Any, w: int) -> Lanes:
    """Whether a condition on elements holds for all of a lane's."""
    ok = np.asarray(ok)
    if ok.ndim < 2:
        return spread(ok, w)
    return np.logical_and.reduce(ok.reshape(-1, ok.shape[-1]), axis=0)


def factors(x: Any, kind: str, w: int) -> None:
    """Failing where a factor could not be divided out again."""
    ok = np.isfinite(x)
    if kind == "nonzero":
        ok = ok & np.not_equal(x, 0)
    must(by_lane(ok, w), w)


def cell(x: Any) -> Any:
    """A number in a test of overlap, where it overlaps nothing."""
    return np.asarray(x)[..., None]


def distinct(x: Lanes, y: Lanes, same_ok: bool) -> None:
    """Trouble if two views that must be apart share memory; the same in all lanes."""
    a, b = x[..., :1], y[..., :1]
    if not np.shares_memory(a, b):
        return
    same = a.shape == b.shape and a.strides == b.strides and _address(a) == _address(b)
    if not (same_ok and same):
        raise Trouble


def _address(x: Lanes) -> int:
    return int(x.__array_interface__["data"][0])


# ---------------------------------------------------------------- registers that go


class Context:
    """The results of a block's code besides registers.

    They are the bits erased in each lane, and the largest residue, relative to the allowed one.
    """

    __slots__ = ("drift", "erased", "tolerance")

    def __init__(self, tolerance: float | None) -> None:
        self.tolerance = tolerance
        self.erased: Any = None
        self.drift: Any = None

    def erase(self, bits: Any) -> None:
        """Count bits that were lost, for each lane."""
        self.erased = bits if self.erased is None else self.erased + bits

    def note(self, drift: Any) -> None:
        """Note residues that were passed, for each lane."""
        self.drift = drift if self.drift is None else np.maximum(self.drift, drift)


def residues(
    ctx: Context,
    sys: NumberSystem,
    held: Lanes,
    expected: Any,
    w: int,
    *sizes: Any,
    returns: bool = False,
) -> None:
    """Failing where a freed value is not close enough to the expected one; residues are counted.

    `sizes` are the recorded sizes, in each lane or in all; none: it only needs to be finite.  For
    `returns` see `rvm.engines.heap.residue`.
    """
    off = differing(held, expected, bits=ctx.tolerance == 0)
    if 1 not in off.tobytes():
        return
    if sys.exact or ctx.tolerance == 0:
        must(by_lane(~off, w), w)
    gaps = np.where(off, extent(np.subtract(held, expected)), 0.0).reshape(-1, w)
    gap = gaps.max(axis=0)
    must(np.isfinite(gap), w)
    if sizes or returns:
        expected_sizes = extent(np.broadcast_to(expected, held.shape)).reshape(-1, w)
    if returns and ctx.tolerance != np.inf:
        ctx.note(away(sys.type, gaps, expected_sizes))
    if sizes:
        expects = expected_sizes.max(axis=0)
        size = np.maximum(sizes[0], expects)
        allowed = allowance(sys.type, size, sizes[1], ctx.tolerance)
        must((gap <= allowed) & ~is_lost(gap, expects), w)
        with np.errstate(all="ignore"):
            ctx.note(np.where(gap > 0, gap / allowed, 0.0))
    ctx.erase(sys.type.bits * off.reshape(-1, w).sum(axis=0))


def cleared(ctx: Context, sys: NumberSystem, held: Lanes, w: int) -> None:
    """Failing where a place is not zero."""
    must(~differing(held, sys.zero, bits=ctx.tolerance == 0), w)


def drop_lanes(
    ctx: Context,
    sys: NumberSystem,
    held: Lanes,
    shape: tuple[int, ...],
    expected: Any,
    w: int,
    *sizes: Any,
    **how: bool,
) -> None:
    """Check that an array has this shape and these values in every lane."""
    if held.shape[:-1] != shape:
        raise Trouble
    fits(held, expected)
    residues(ctx, sys, held, np.asarray(expected, sys.dtype), w, *sizes, **how)


def erased(ctx: Context, bits: int, held: Lanes, w: int) -> None:
    """Count the bits of a value that is forgotten."""
    lost = np.not_equal(held, 0).reshape(-1, w).sum(axis=0)
    if lost.any():
        ctx.erase(bits * lost)


# ---------------------------------------------------------------- numbers


FEW = 64
"""Lanes that are not halved to find where a function fails."""


def each(f: Callable[..., Any], value: Callable[..., Any], dtype: Any, *args: Any) -> Lanes:
    """A function of scalars for each lane (and element): `f`, or where that fails `value`."""
    if max(map(np.ndim, args)) > 1:
        many = np.broadcast_arrays(*args)
        return each(f, value, dtype, *map(np.ravel, many)).reshape(many[0].shape)
    n = max(map(np.size, args))
    try:
        return np.fromiter(map(f, *[_numbers(a, n) for a in args]), dtype, n)
    except (ArithmeticError, ValueError, TypeError):
        if n > FEW:
            # Few lanes need the other function, which is slower.
            parts = [np.array_split(a, 2) if np.ndim(a) else (a, a) for a in args]
            return np.concatenate(
                [each(f, value, dtype, *half) for half in zip(*parts, strict=True)]
            )
        return np.array(list(map(value, *[_numbers(a, n) for a in args])), dtype)


def _numbers(lanes: Any, n: int) -> Iterable[Any]:
    """A value's lanes as Python numbers."""
    if not np.ndim(lanes):
        return repeat(lanes.item() if isinstance(lanes, np.ndarray) else lanes, n)
    found: Iterable[Any] = lanes.data if lanes.dtype.kind in "fiu" else lanes.tolist()
    return found


LANE_NAMES: dict[str, object] = {
    **SUPPORT,
    **{UFUNC + name: f for name, f in vars(np).items() if isinstance(f, np.ufunc)},
    **FORMS,
    **defined_in(globals()),
    "LaneStack": LaneStack,
    "asarray": np.asarray,
}
"""Names in generated code over lanes, besides those of the number systems."""
_serial = count()


def defined(kind: str, text: str, more: dict[str, object]) -> dict[str, Any]:
    """The definitions in a text over lanes;

    `more` are names that it uses besides the common ones.
    """
    names = {**NAMES, **LANE_NAMES, **more}
    execute(text, f"<rvm lanes {kind} #{next(_serial)}>", names)
    return names
