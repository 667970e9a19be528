"""Known facts about constant terms: numbers, and arrays of one number."""

from __future__ import annotations

import math
from typing import Any

from rvm.expr import LENGTHS
from rvm.faults import RvmError
from rvm.isa import FUNCTIONS
from rvm.isa.implementation import value
from rvm.isa.rows import COSTS
from rvm.numbers import system
from rvm.types import F64, Scalar
from rvm_pure.terms import Each, Fold, Num, Op, Prim, Term, Tup, Var
from rvm_pure.types import Arr, elem_type

_, ADDS, MULTS, _ = COSTS


def constant(e: Term) -> Any:
    """The number that a term is, or that all elements of it are; None where that is not known."""
    match e:
        case Num(held):
            return held
        case Each(fn):
            return constant(fn.body)
        case Prim("replicate", (_, a)):
            return constant(a)
        case Op("spread_like", (a, _)):
            return constant(a)
    return None


def is_value(e: Term) -> bool:
    """Whether a term takes no work, so that it can be substituted wherever it is used."""
    match e:
        case Num() | Var():
            return True
        case Tup(items):
            return all(map(is_value, items))
        case Each() | Prim("replicate"):
            return constant(e) is not None
        case Prim("iota", (n,)):
            return is_value(n)
        case Op(fn, args) if fn in LENGTHS:
            return all(map(is_value, args))
    return False


def like_zero(e: Term) -> Term:
    """Zeros in the place of a typed term."""
    t = e.type
    elem = None if t is None else elem_type(t)
    if not isinstance(elem, Scalar):
        return e
    zero = Num(0.0 if elem.is_float else 0j if elem.is_complex else 0)
    if elem not in (F64,) and not elem.is_complex:
        zero = Num(zero.value, str(elem))
    if isinstance(t, Scalar):
        return zero
    return spread(zero, e)


def spread(c: Num, like: Term) -> Term:
    """An array of one number with the lengths of another."""
    from rvm_pure.terms import Lam

    assert isinstance(like.type, Arr)
    if isinstance(like.type.elem, Arr):
        row = Var("r'", type=like.type.elem)
        inner = spread(c, row)
        return Each(Lam(("r'",), inner), (base(like),))
    return Each(Lam(("_",), c), (base(like),))


def base(e: Term) -> Term:
    """An array with the length of a term's first axis that takes less work."""
    while True:
        match e:
            case Each(_, arrays) if isinstance(arrays[0].type, Arr) or isinstance(
                arrays[0], (Var, Each, Prim)
            ):
                e = arrays[0]
            case Op(_, args) if e.type is not None and any(
                isinstance(a.type, Arr) and a.type == e.type for a in args
            ):
                if not FUNCTIONS[e.fn].is_elementwise:
                    return e
                e = next(a for a in args if a.type == e.type)
            case Prim("shift1R" | "shift1L", (Fold("scanl" | "scanr", _, _, a),)):
                e = a
            case _:
                return e


def folded(e: Op) -> Term | None:
    """The value of arithmetic on f64 literals; None for others, and where it is undefined."""
    if not all(isinstance(a, Num) for a in e.args):
        return None
    return _computed(e, [a.value for a in e.args if isinstance(a, Num)])


def spread_constant(e: Op, known: list[Any]) -> Term | None:
    """Arithmetic on arrays of one f64 number each, as such an array."""
    if any(k is None for k in known) or not isinstance(e.type, Arr):
        return None
    found = _computed(e, known)
    return None if found is None else spread(found, e)


def _computed(e: Op, known: list[Any]) -> Num | None:
    """The result of arithmetic on f64 numbers, or on each element; None for others."""
    row = FUNCTIONS[e.fn]
    types = [None if a.type is None else elem_type(a.type) for a in (e, *e.args)]
    if not row.is_elementwise or row.cost not in (ADDS, MULTS) or set(types) != {F64}:
        return None
    try:
        found = value(e.fn, (F64,) * len(known))(*(system(F64).literal(k) for k in known))
    except RvmError:
        return None
    return Num(found, type=F64) if math.isfinite(found) else None
