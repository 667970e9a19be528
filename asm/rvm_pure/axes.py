"""Axes of traced arrays: reductions along some, other orders of them, other shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rvm.types import I64, Scalar
from rvm_pure.combinators import mapped
from rvm_pure.lengths import size_of
from rvm_pure.recorder import refused
from rvm_pure.terms import Each, Index, Lam, Num, Op, Prim, Term, Var
from rvm_pure.traced import Traced, term_of
from rvm_pure.types import elem_type


def axis_of(x: Any, axis: Any, more: int = 0) -> int:
    """An axis as a number from 0 on, of an array with `more` dimensions than x."""
    rank = x.ndim + more
    if not isinstance(axis, (int, np.integer)) or not -rank <= axis < rank:
        count = f"{rank} dimension{'s' * (rank != 1)}"
        raise refused(f"there is no axis {axis} of an array of {count}", "axes begin at 0")
    k = int(axis)
    return k + rank if k < 0 else k


def axes_of(x: Any, axis: Any) -> list[int]:
    """The axes that an argument names: None stands for all."""
    if axis is None:
        return list(range(x.ndim))
    return [axis_of(x, a) for a in (axis if isinstance(axis, tuple) else (axis,))]


def reduced(f: Callable[[Any], Any], x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """A function of all elements, of the parts of an array along some of its axes."""
    gone = axes_of(x, axis)
    left = [k for k in range(x.ndim) if k not in gone]
    out = down(f, transposed(x, (*left, *gone)), len(left))
    if keepdims is True and x.ndim:
        places = iter(range(len(left)))
        shape = [Num(1) if k in gone else lengths(x)[k] for k in range(x.ndim)]
        order = [None if k in gone else next(places) for k in range(x.ndim)]
        return built(x, shape, lambda ks: term_of(_item(out, ks, order)))
    return out


def _item(x: Any, ks: list[Any], order: Sequence[int | None]) -> Any:
    at = [k for k, place in zip(ks, order, strict=True) if place is not None]
    return Traced(x.recorder, Index(x.term, tuple(at))) if at else x


def down(f: Callable[[Any], Any], x: Any, levels: int) -> Any:
    """A function of the parts of an array that begin after some axes."""
    return mapped(lambda row: down(f, row, levels - 1), x) if levels else f(x)


def along(f: Callable[[Any], Any], x: Any, axis: Any) -> Any:
    """A function from vectors to vectors, along an axis; without one, of all elements in a row."""
    if axis is None:
        return f(reshaped(x, -1))
    k = axis_of(x, axis)
    order = [*(j for j in range(x.ndim) if j != k), k]
    out = down(f, transposed(x, order), x.ndim - 1)
    return transposed(out, np.argsort(order))


def lengths(x: Any) -> list[Term]:
    """The lengths of an array as terms."""
    return [term_of(n) for n in x.shape]


def built(x: Any, shape: Sequence[Term], body: Callable[[list[Any]], Term]) -> Any:
    """An array of a shape, with an element for each list of indices."""
    ks = [Var(x.recorder.names.new("k"), type=I64) for _ in shape]
    for k in ks:
        x.recorder.env[k.name] = I64
    made = x.recorder.block(lambda: body(ks))
    for k, n in zip(reversed(ks), reversed(shape), strict=True):
        made = Each(Lam((k.name,), made), (Prim("iota", (n,)),))
    return x._new(made)


def viewed(x: Any, shape: Sequence[Term], at: Callable[[list[Any]], Sequence[Term]]) -> Any:
    """An array of a shape whose elements are those of x with the indices that `at` returns."""
    out = built(x, shape, lambda ks: Index(x.term, tuple(at(ks))) if x.ndim else x.term)
    out.is_shared = x.is_shared = True
    return out


def transposed(x: Any, order: Any = None) -> Any:
    """`np.transpose`: the axes in another order, by default the opposite one."""
    order = range(x.ndim)[::-1] if order is None else [axis_of(x, k) for k in order]
    if sorted(order) != list(range(x.ndim)):
        raise refused(f"the axes {tuple(order)} are not those of an array with {x.ndim} dimensions")
    if list(order) == sorted(order):
        return x
    if x.ndim == 2:
        out = x._new(Op("transpose", (x.term,)))
        out.is_shared = x.is_shared = True
        return out
    n, place = lengths(x), np.argsort(order)
    return viewed(x, [n[k] for k in order], lambda ks: [ks[k] for k in place])


def swapped(x: Any, a: Any, b: Any) -> Any:
    """`np.swapaxes`."""
    order = list(range(x.ndim))
    a, b = axis_of(x, a), axis_of(x, b)
    order[a], order[b] = b, a
    return transposed(x, order)


def moved(x: Any, source: Any, destination: Any) -> Any:
    """`np.moveaxis` of one axis."""
    a, b = axis_of(x, source), axis_of(x, destination)
    order = [k for k in range(x.ndim) if k != a]
    return transposed(x, (*order[:b], a, *order[b:]))


Monomial = tuple[int, tuple[str, ...]]
"""A product of a number and of lengths, in the order of the alphabet."""


def _monomial(lengths: Sequence[Term]) -> Monomial:
    count, names = 1, []
    for n in lengths:
        size = size_of(n)
        if size is not None and not size.name:
            count *= size.more
        else:
            names.append(str(n) if size is None else str(size))
    return count, tuple(sorted(names))


def reshaped(x: Any, *shape: Any, **named: Any) -> Any:
    """`np.reshape`: the elements in the order of the last axis, in another shape.

    One length may be -1.  The product of all must be seen to be that of x.
    """
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    if named or not given:
        raise refused("`reshape` is traced with a shape only, in the order of the last axis")
    old = lengths(x)
    open_ = [k for k, n in enumerate(given) if isinstance(n, (int, np.integer)) and n == -1]
    new = [term_of(n) for n in given]
    if len(open_) == 1:
        new[open_[0]] = _rest(x, old, [n for k, n in enumerate(new) if k not in open_], given)
    elif open_ or _monomial(old) != _monomial(new):
        raise _apart(x, given)
    if len(old) == len(new) and _same(old, new):
        return x
    return viewed(x, new, lambda ks: _places(_flat(ks, new), old))


def _same(a: Sequence[Term], b: Sequence[Term]) -> bool:
    return [str(size_of(n)) for n in a] == [str(size_of(n)) for n in b]


def _rest(x: Any, old: list[Term], others: list[Term], given: Any) -> Term:
    """The length that -1 stands for."""
    count, names = _monomial(old)
    by, more = _monomial(others)
    left = list(names)
    for name in more:
        if name not in left:
            raise _apart(x, given)
        left.remove(name)
    if not by or count % by:
        raise _apart(x, given)
    known = {str(size_of(n) or n): n for n in old}
    parts = [known[name] for name in left]
    if count // by != 1 or not parts:
        parts.append(Num(count // by))
    return _product(parts)


def _apart(x: Any, given: Any) -> Exception:
    shape = "(" + ", ".join(str(term_of(n)) if isinstance(n, Traced) else str(n) for n in given)
    what = f"an array of type {x.term.type} cannot be seen to have the shape {shape})"
    return refused(what, "lengths that are numbers in the types, or `x.shape[0]`, can be compared")


def _product(parts: Sequence[Term]) -> Term:
    out = parts[0]
    for n in parts[1:]:
        out = Op("*", (out, n))
    return out


def _flat(ks: Sequence[Term], shape: Sequence[Term]) -> Term:
    """The number of an element, from its indices."""
    out: Term = Num(0)
    for k, n in zip(ks, shape, strict=True):
        if n == Num(1):
            continue
        out = k if out == Num(0) else Op("+", (Op("*", (out, n)), k))
    return out


def _places(at: Term, shape: Sequence[Term]) -> list[Term]:
    """The indices of an element, from its number."""
    out: list[Term] = []
    for k, n in enumerate(shape):
        rest = [m for m in shape[k + 1 :] if m != Num(1)]
        one = Op("//", (at, _product(rest))) if rest else at
        first = all(m == Num(1) for m in shape[:k])
        out.append(Num(0) if n == Num(1) else one if first else Op("%", (one, n)))
    return out


def squeezed(x: Any, axis: Any = None) -> Any:
    """`np.squeeze`: without the axes whose lengths are the number 1."""
    ones = [k for k, n in enumerate(x.shape) if isinstance(n, int) and n == 1]
    gone = ones if axis is None else axes_of(x, axis)
    if any(k not in ones for k in gone):
        raise refused("`np.squeeze` is traced of axes whose length is the number 1")
    return x[tuple(0 if k in gone else slice(None) for k in range(x.ndim))] if gone else x


def expanded(x: Any, axis: Any) -> Any:
    """`np.expand_dims`: with one more axis of length 1."""
    k = axis_of(x, axis, 1)
    return x[(*[slice(None)] * k, None)]


def spread(x: Any, shape: Any) -> Any:
    """`np.broadcast_to`."""
    shape = shape if isinstance(shape, (tuple, list)) else (shape,)
    new, old = [term_of(n) for n in shape], lengths(x)
    more = len(new) - len(old)
    if more < 0 or any(
        n != Num(1) and not _same([n], [m]) for n, m in zip(old, new[more:], strict=True)
    ):
        raise _apart(x, shape)
    return viewed(
        x,
        new,
        lambda ks: [Num(0) if n == Num(1) else k for k, n in zip(ks[more:], old, strict=True)],
    )


def is_integer(x: Any) -> bool:
    elem = elem_type(x.term.type)
    return isinstance(elem, Scalar) and elem.is_integer
