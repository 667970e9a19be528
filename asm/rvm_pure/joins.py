"""NumPy's functions that put traced arrays together, and take them apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rvm.types import BOOL
from rvm_pure.axes import axes_of, axis_of, built, down, lengths, reshaped
from rvm_pure.combinators import iota, mapped, recorder_of
from rvm_pure.lengths import size_of
from rvm_pure.recorder import refused
from rvm_pure.slices import length_of, plus
from rvm_pure.terms import Each, If, Index, Lam, Num, Op, Prim, Term, Var
from rvm_pure.traced import Traced, common_type, converted, scalar_of, term_of
from rvm_pure.types import dims


def alike(arrays: Any, name: str) -> list[Any]:
    """Arrays and numbers as traced values of one element type."""
    if not isinstance(arrays, (tuple, list)) or not arrays:
        raise refused(f"`np.{name}` is traced of a list of arrays")
    arrays = [_array(a) if isinstance(a, (list, tuple)) else a for a in arrays]
    recorder = recorder_of(*arrays)
    arrays = [a if isinstance(a, Traced) else np.asarray(a) for a in arrays]
    truths = all(scalar_of(a) == BOOL for a in arrays)
    to = BOOL if truths else common_type(arrays)
    terms = [converted(a, to, not truths) for a in arrays]
    # Numbers that are written keep their type among terms that have none.
    known = [
        Num(e.value, str(to)) if isinstance(e, Num) and to is not None and to.is_integer else e
        for e in terms
    ]
    return [Traced(recorder, recorder.typed(e, to)) for e in known]


def _array(items: list[Any] | tuple[Any, ...]) -> Any:
    """A list as an array, with traced numbers or without."""
    return stacked(items) if any(isinstance(x, Traced) for x in items) else np.array(items)


def concatenated(arrays: Any, axis: Any = 0) -> Any:
    """`np.concatenate`: arrays one after the other along an axis."""
    parts = alike(arrays, "concatenate")
    if any(a.ndim != parts[0].ndim or not a.ndim for a in parts):
        raise refused("`np.concatenate` is traced of arrays of as many dimensions")
    k = axis_of(parts[0], axis)
    if k:
        return mapped(lambda *rows: concatenated(rows, k - 1), *parts)
    lengths = [_exact(length_of(a.recorder, a.term)) for a in parts]
    starts: list[Term] = [Num(0)]
    for n in lengths:
        starts.append(_end_of(starts[-1], n))
    at = Var(parts[0].recorder.names.new("k"))
    elements: list[Term] = [
        Index(a.term, (at if start == Num(0) else Op("-", (at, start)),))
        for a, start in zip(parts, starts, strict=False)
    ]
    *others, body = elements
    for one, end in zip(reversed(others), reversed(starts[1:-1]), strict=True):
        body = If(Op("<", (at, end)), one, body)
    return parts[0]._new(Each(Lam((at.name,), body), (Prim("iota", (starts[-1],)),)))


def _exact(n: Term) -> Term:
    """A length as a number that can be added: n - 2 is none for n = 1."""
    size = size_of(n)
    return Op("max", (n, Num(0))) if size is not None and size.name and size.more < 0 else n


def _end_of(a: Term, b: Term) -> Term:
    """A sum of lengths, as a length and so many more where it is one."""
    for x, y in ((a, b), (b, a)):
        n = size_of(x)
        if n is not None and not n.name:
            return plus(y, n.more)
    return Op("+", (a, b))


def stacked(arrays: Any, axis: Any = 0) -> Any:
    """`np.stack`: values of one shape as the parts of an array along a new axis."""
    parts = alike(arrays, "stack")
    if any(len(p.shape) != len(parts[0].shape) for p in parts):
        raise refused("`np.stack` is traced of values of one shape")
    k = axis_of(parts[0], axis, 1)
    if k:
        return mapped(lambda *rows: stacked(rows, k - 1), *parts)
    *others, body = (a.term for a in parts)
    at = Var(parts[0].recorder.names.new("k"))
    for j, one in reversed(list(enumerate(others))):
        body = If(Op("==", (at, Num(j))), one, body)
    return parts[0]._new(Each(Lam((at.name,), body), (Prim("iota", (Num(len(parts)),)),)))


def beside(arrays: Any) -> Any:
    """`np.hstack`."""
    parts = alike(arrays, "hstack")
    flat = [p if p.ndim else stacked([p]) for p in parts]
    return concatenated(flat, 0 if flat[0].ndim == 1 else 1)


def above(arrays: Any) -> Any:
    """`np.vstack`."""
    parts = alike(arrays, "vstack")
    return concatenated([p if p.ndim > 1 else (p if p.ndim else stacked([p]))[None] for p in parts])


def rolled(x: Any, shift: Any, axis: Any = None) -> Any:
    """`np.roll` along an axis, by a number that is written."""
    if not isinstance(shift, (int, np.integer)) or (axis is None and x.ndim != 1):
        raise refused("`np.roll` is traced by a number that is written, along an axis")
    levels = axis_of(x, 0 if axis is None else axis)
    if levels:
        return down(lambda row: rolled(row, shift, 0), x, levels)
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


def difference(x: Any, n: int = 1, axis: Any = -1) -> Any:
    """`np.diff`: the differences of neighbours along an axis, n times."""
    if n == 0:
        return x
    before = (slice(None),) * axis_of(x, axis)
    return difference(x[(*before, slice(1, None))] - x[(*before, slice(-1))], n - 1, axis)


def flipped(x: Any, axis: Any = None) -> Any:
    """`np.flip`: axes from their ends."""
    gone = axes_of(x, axis)
    return x[tuple(slice(None, None, -1 if k in gone else 1) for k in range(x.ndim))]


def diagonal(x: Any) -> Any:
    """`np.diagonal` of a matrix."""
    if x.ndim != 2:
        raise refused("the diagonal is traced of a matrix")
    rows, columns = dims(x.term.type)
    least = x.shape[0] if rows == columns is not None else np.minimum(*x.shape)
    return mapped(lambda i: x[i, i], iota(least))


def diagonal_or_matrix(x: Any) -> Any:
    """`np.diag`: the diagonal of a matrix, or the matrix with a diagonal."""
    if x.ndim != 1:
        return diagonal(x)
    return built(
        x, lengths(x) * 2, lambda ks: If(Op("==", tuple(ks)), Index(x.term, (ks[0],)), Num(0))
    )


def triangle(keep: str) -> Callable[..., Any]:
    """`np.tril`, `np.triu`: zeros above or below a diagonal."""

    def made(m: Any, k: int = 0) -> Any:
        if m.ndim != 2:
            raise refused("a triangle is traced of a matrix")

        def element(ks: list[Term]) -> Term:
            i, j = ks
            holds = Op(keep, (Op("-", (j, i)), Num(k)))
            return If(holds, Index(m.term, (i, j)), Num(0))

        return built(m, lengths(m), element)

    return made


def repeated(x: Any, repeats: Any, axis: Any = None) -> Any:
    """`np.repeat`, of each part along an axis as often."""
    if not isinstance(repeats, (int, np.integer)) or repeats < 1:
        raise refused("`np.repeat` is traced for a number of repeats that is written")
    x, k = (reshaped(x, -1), 0) if axis is None else (x, axis_of(x, axis))
    n = [*x.shape]
    n[k] = n[k] * int(repeats)
    return built(
        x,
        [term_of(m) for m in n[: k + 1]],
        lambda ks: Index(x.term, (*ks[:k], Op("//", (ks[k], Num(int(repeats)))))),
    )


def tiled(x: Any, reps: Any) -> Any:
    """`np.tile` of a vector."""
    if x.ndim != 1 or not isinstance(reps, (int, np.integer)) or reps < 1:
        raise refused("`np.tile` is traced of vectors, for a number that is written")
    return concatenated([x] * int(reps))
