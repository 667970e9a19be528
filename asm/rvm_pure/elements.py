"""Elements and lengths of arrays that are not made: of a map the function of elements."""

from __future__ import annotations

from collections.abc import Iterator

from rvm.isa import FUNCTIONS
from rvm.types import BOOL, I64, Scalar
from rvm_pure.expressions import Hard
from rvm_pure.lengths import size_term
from rvm_pure.terms import (
    Each,
    Fold,
    If,
    Index,
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
    free,
    names_in,
    substitute,
)
from rvm_pure.types import Arr, Product, Type, dims, parts

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
        case Op("spread_like", (a, _)) if isinstance(a.type, Scalar) and len(dims(t)) == 1:
            return a
        case Op(fn, args) if FUNCTIONS[fn].is_elementwise:
            if all(isinstance(a.type, Scalar) or dims(a.type or t) == dims(t) for a in args):
                found = [a if isinstance(a.type, Scalar) else elem(a, i, names) for a in args]
                return Op(fn, tuple(found), **at)  # type: ignore[arg-type]
    raise Hard(e)


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
            return Let(p, a, n, type=I64) if set(names_in(p)) & set(free(n)) else n
        case Op("scatter", (_, _, n)):
            return n
        case Op("gather" | "spread_like" | "sum_like", (_, k)):
            return length(k)
        case Op("transpose", (a,)):
            return Op("dim", (a, _ONE), type=I64)
        case Op("matmul" | "@" | "matvec" | "outer", (a, b)):
            if len(dims(a.type or I64)) == 2 or e.fn == "outer":
                return length(a)
            return Op("dim", (b, _ONE), type=I64)
        case Op(fn, args) if FUNCTIONS[fn].is_elementwise and isinstance(e.type, Arr):
            same = [a for a in args if a.type is not None and dims(a.type) == dims(e.type)]
            if same:
                return length(same[0])
    return Op("len", (e,), type=I64)


def lengths(e: Term, t: Type) -> Iterator[Term]:
    """The lengths of the arrays of numbers that a value consists of, outer ones first."""
    if isinstance(t, Product):
        for k, item in enumerate(t.items):
            part = e.items[k] if isinstance(e, Tup) else Proj(k, e, type=item)
            yield from lengths(part, item)
    elif isinstance(t, Arr):
        n = length(e) if t.length is None else size_term(t.length)
        row = Index(e, (Num(0, type=I64),), type=t.elem)
        # Of an array of tuples, each part is an array.
        for item in parts(t) or (t,):
            assert isinstance(item, Arr)
            yield Op("max", (n, Num(0)))
            yield from lengths(row, item.elem)
