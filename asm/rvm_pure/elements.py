"""Elements and lengths of arrays that are not made: of a map the function of elements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from rvm.isa import FUNCTIONS
from rvm.types import BOOL, I64, Scalar
from rvm_pure.expressions import Hard
from rvm_pure.lengths import size_term
from rvm_pure.terms import (
    Each,
    Fold,
    If,
    Index,
    Lam,
    Let,
    Names,
    Num,
    Op,
    Prim,
    Proj,
    Term,
    Tup,
    Update,
    Var,
    binders,
    free,
    names_in,
    rebuild,
    substitute,
)
from rvm_pure.types import Arr, Product, Size, Type, dims, parts

_ONE = Num(1, type=I64)


def elem(e: Term, i: Term, names: Names) -> Term:
    """The element of an array with index `i`, as a term; Hard with the part to make first."""
    t = e.type
    assert isinstance(t, Arr)
    at = {"type": t.elem, "start": e.start, "end": e.end}
    match e:
        case Var():
            return Index(e, (i,), **at)  # type: ignore[arg-type]
        case Index(of, items):
            if not isinstance(of, Var):
                raise Hard(of)
            return Index(of, (*items, i), **at)  # type: ignore[arg-type]
        case Prim("shift1L", (a,)):
            return elem(a, Op("+", (i, _ONE), type=I64), names)
        case Prim("shift1R", (a,)):
            return elem(a, i, names)
        case Prim("iota"):
            return i
        case Prim("replicate", (_, a)):
            return a
        case Each(fn, arrays):
            own = substitute(fn, {}, names)
            body = own.body
            for p, a in reversed(list(zip(own.params, arrays, strict=True))):
                body = Let(p, elem(a, i, names), body, **at)  # type: ignore[arg-type]
            return body
        case Let(p, a, b):
            own = substitute(Lam((p,), b), {}, names)
            return Let(own.params[0], a, elem(own.body, i, names), **at)  # type: ignore[arg-type]
        case If(c, a, b):
            return If(c, elem(a, i, names), elem(b, i, names), **at)  # type: ignore[arg-type]
        case Update(of, (k, *more), v):
            old = elem(of, i, names)
            if more:
                v = Update(old, tuple(more), v, **at)  # type: ignore[arg-type]
            same = Op("==", (i, k), type=BOOL)
            return If(same, v, old, **at)  # type: ignore[arg-type]
        case Op("gather", (a, k)) if len(dims(k.type or t)) == 1:
            if not isinstance(a, Var):
                raise Hard(a)
            return Index(a, (elem(k, i, names),), **at)  # type: ignore[arg-type]
        case Op("outer", (a, b)):
            return Op("*", (elem(a, i, names), b), **at)  # type: ignore[arg-type]
        case Op("spread_like", (a, _)) if isinstance(a.type, Scalar) and len(dims(t)) == 1:
            return a
        case Op(fn, args) if FUNCTIONS[fn].is_elementwise:
            return Op(fn, tuple(_broadcast(a, t, i, names) for a in args), **at)  # type: ignore[arg-type]
    raise Hard(e)


def _broadcast(a: Term, t: Arr, i: Term, names: Names) -> Term:
    """What an operand of elementwise functions contributes to element i of a result of type t."""
    rank, own = len(dims(t)), dims(a.type or t)
    if len(own) < rank:
        return a  # It is combined with each row.
    if own[0] == dims(t)[0]:
        row = elem(a, i, names)
    elif own[0] == Size("", 1):
        row = elem(a, Num(0, type=I64), names)
    else:
        raise Hard(a)
    if dims(row.type or I64) == (Size("", 1),) != dims(t)[1:]:
        # Combined with a whole row, an array of one element is that element.
        with suppress(Hard):
            return elem(row, Num(0, type=I64), names)
    return row


def length(e: Term) -> Term:
    """The number of elements of an array, as a term."""
    match e:
        case Prim("shift1L" | "shift1R", (a,)):
            less = Op("-", (length(a), _ONE), type=I64)
            return Op("max", (less, Num(0, type=I64)), type=I64)
        case Prim("iota", (n,)) | Prim("replicate", (n, _)):
            return n
        case Each(_, arrays):
            return length(arrays[0])
        case Fold("scanl" | "scanr", _, _, array):
            return Op("+", (length(array), _ONE), type=I64)
        case Update(of) | Fold("reduce" | "foldl", _, of):
            return length(of)
        case If(_, a, _):
            return length(a)
        case Let(p, a, b):
            n = length(b)
            if isinstance(p, str) and isinstance(a.type, Arr):
                n = _known(n, Op("len", (Var(p),)), length(a))
            return Let(p, a, n, type=I64) if set(names_in(p)) & set(free(n)) else n
        case Op("scatter", (_, _, n)):
            return n
        case Op("gather" | "spread_like" | "sum_like", (_, k)):
            return length(k)
        case Op("scan_left" | "scan_right", (a,)):
            return length(a)
        case Op("transpose", (a,)):
            return Op("dim", (a, _ONE), type=I64)
        case Op("matmul" | "@" | "matvec" | "outer", (a, b)):
            if len(dims(a.type or I64)) == 2 or e.fn == "outer":
                return length(a)
            return Op("dim", (b, _ONE), type=I64)
        case Op(fn, args) if FUNCTIONS[fn].is_elementwise and isinstance(e.type, Arr):
            full = (
                a for a in args if a.type is not None and len(dims(a.type)) == len(dims(e.type))
            )
            same = [a for a in full if dims(a.type or I64)[0] == dims(e.type)[0]]
            if same:
                return length(same[0])
    return Op("len", (e,), type=I64)


def first_row(e: Term, t: Arr, names: Names) -> Term:
    """The first element of an array of type t, whose lengths are those of all elements."""
    if dims(t.elem):
        with suppress(Hard):
            return elem(e, Num(0, type=I64), names)
    return Index(e, (Num(0, type=I64),), type=t.elem, start=e.start, end=e.end)


def _known(e: Term, part: Op, by: Term) -> Term:
    """A term with another for all that is equal to a part, apart from types."""
    if isinstance(e, Op) and (e.fn, e.args) == (part.fn, part.args):
        return by
    return rebuild(e, lambda x: _known(x, part, by))


def lengths(e: Term, t: Type) -> Iterator[Term]:
    """The lengths of the arrays of numbers that a value consists of, outer ones first."""
    if isinstance(t, Product):
        for k, item in enumerate(t.items):
            part = e.items[k] if isinstance(e, Tup) else Proj(k, e, type=item)
            yield from lengths(part, item)
    elif isinstance(t, Arr):
        n = length(e) if t.length is None else size_term(t.length)
        row = first_row(e, t, Names({*binders(e), *free(e)}))
        # Of an array of tuples, each part is an array.
        for item in parts(t) or (t,):
            assert isinstance(item, Arr)
            yield Op("max", (n, Num(0)))
            yield from lengths(row, item.elem)
