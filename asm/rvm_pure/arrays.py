"""Simplification of maps, folds, scans and shifts whose children are simple already."""

from __future__ import annotations

from dataclasses import replace

from rvm_pure.constants import base, constant, is_value
from rvm_pure.terms import (
    Each,
    Fold,
    Lam,
    Let,
    Num,
    Op,
    Pattern,
    Prim,
    Term,
    Tup,
    Var,
    free,
    names_in,
    put,
)
from rvm_pure.types import Arr


def each(e: Each) -> Term:
    """A map: parameters that are not named go, constants are put in, maps of maps are one."""
    params, arrays = list(e.fn.params), list(e.arrays)
    body = e.fn.body
    uses = free(body)
    # Parts of pairs that are not named, and arrays that are known to be one value.
    for k, (p, a) in enumerate(zip(params, arrays, strict=True)):
        found = _known(a)
        if found is not None and isinstance(p, str) and p in uses and is_value(found):
            return replace(e, fn=replace(e.fn, body=put(body, {p: found})))
        if isinstance(p, str) and a in arrays[:k] and isinstance(params[arrays.index(a)], str):
            first = params[arrays.index(a)]
            if p in uses and isinstance(first, str) and first != "_":
                merged = put(body, {p: Var(first)})
                return replace(e, fn=replace(e.fn, body=merged))
    kept = [k for k, p in enumerate(params) if any(n in uses for n in names_in(p))]
    if len(kept) < len(params):
        if kept:
            return _with(e, [params[k] for k in kept], [arrays[k] for k in kept], body)
        low = min(map(base, arrays), key=_weight)
        if len(params) > 1 or params[0] != "_" or low != arrays[0]:
            return _with(e, ["_"], [low], body)
    match body:
        case Var(name) if params == [name]:
            return arrays[0]
        case Op("+" | "*", (Var(x), Var(y))) if params == [y, x] and x != y:
            return _with(e, params, arrays, replace(body, args=body.args[::-1]))
    return _fused(e, params, arrays, body) or e


def _with(e: Each, params: list[Pattern], arrays: list[Term], body: Term) -> Each:
    return replace(e, fn=replace(e.fn, params=tuple(params), body=body), arrays=tuple(arrays))


def _known(a: Term) -> Term | None:
    """The value of every element, where that is one."""
    match a:
        case Prim("replicate", (_, v)):
            return v
        case Each(fn) if constant(fn.body) is not None and isinstance(fn.body, Num):
            return fn.body
    return None


def _weight(a: Term) -> int:
    return 0 if isinstance(a, Var) else 1 + sum(map(_weight, getattr(a, "arrays", ())))


def _fused(e: Each, params: list[Pattern], arrays: list[Term], body: Term) -> Term | None:
    """`map f (map g A)` as one map."""
    for k, a in enumerate(arrays):
        if isinstance(a, Each) and params[k] != "_":
            inner = Let(params[k], a.fn.body, body)
            more = [*params[:k], *a.fn.params, *params[k + 1 :]]
            over = [*arrays[:k], *a.arrays, *arrays[k + 1 :]]
            return _with(e, more, over, inner)
    return None


def fold(e: Fold) -> Term:
    """A fold: of constants, of pairs with an unused part, or of an unchanging state."""
    state, p = e.fn.params
    body = e.fn.body
    whole = e.kind.startswith("scan")
    if isinstance(body, Var) and body.name == state:
        return Prim("replicate", (more(e.array), e.init)) if whole else e.init
    uses = free(body)
    match p, e.array:
        case tuple(), Each(Lam(params, Tup(items)) as fn, arrays) if len(p) == len(items):
            pairs = zip(p, items, strict=True)
            known = {
                q: x for q, x in pairs if isinstance(x, Num) and isinstance(q, str) and q in uses
            }
            if known:
                return replace(e, fn=replace(e.fn, body=put(body, known)))
            kept = [k for k, q in enumerate(p) if any(n in uses for n in names_in(q))]
            if kept and len(kept) < len(p):
                made = tuple(items[k] for k in kept)
                part = made[0] if len(made) == 1 else Tup(made)
                q: Pattern = p[kept[0]] if len(made) == 1 else tuple(p[k] for k in kept)
                array = Each(replace(fn, params=params, body=part), arrays)
                return replace(e, fn=replace(e.fn, params=(state, q)), array=array)
    if not any(n in uses for n in names_in(p)) and p != "_":
        return replace(e, fn=replace(e.fn, params=(state, "_")), array=base(e.array))
    match body:
        case Op("+" | "*", (Var(b), Var(a))) if (a, b) == (state, p):
            return replace(e, fn=replace(e.fn, body=replace(body, args=body.args[::-1])))
        case Op("+", (Var(a), Var(b))) if not whole and {a, b} == {state, p}:
            if constant(e.array) == 0:
                return e.init
        case Op("*", (Var(a), Var(b))) if not whole and {a, b} == {state, p}:
            if constant(e.array) == 1:
                return e.init
    return e


def more(a: Term) -> Term:
    """One more than the length of an array."""
    return Op("+", (length(a), Num(1)))


def length(a: Term) -> Term:
    """The length of an array, of the simplest one that is as long."""
    a = base(a)
    match a:
        case Prim("replicate", (n, _)) | Prim("iota", (n,)):
            return n
        case Prim("shift1R" | "shift1L", (Fold("scanl" | "scanr", _, _, b),)):
            return length(b)
        case Fold("scanl" | "scanr", _, _, b):
            return more(b)
    return Op("len", (a,))


def prim(e: Prim) -> Term:
    """Shifts of constant arrays; a constant array by the array whose length it has."""
    match e.name, e.args:
        case "shift1L" | "shift1R", (Prim("replicate", (Op("+", (n, Num(1))), v)),):
            return Prim("replicate", (n, v))
        case "shift1L" | "shift1R", (Each(fn, arrays),) if constant(fn.body) is not None:
            if len(arrays) == 1:
                return Each(fn, (Prim(e.name, arrays),))
        case "shift1L" | "shift1R", (Prim("replicate", (Op("len", (a,)), v)),):
            return Prim("replicate", (Op("len", (Prim(e.name, (a,)),)), v))
        case "replicate", (Op("len", (a,)), Num() as v) if isinstance(a.type, Arr):
            return Each(Lam(("_",), v), (a,))
        case "shift1R", (Prim("shift1L", _),):
            pass
    return e
