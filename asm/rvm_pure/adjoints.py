"""Adjoints of values of any type: zeros, sums, and their notation."""

from __future__ import annotations

from rvm.isa.derivatives import adjoint_type
from rvm.types import F64, Scalar
from rvm_pure.terms import Each, Fold, Lam, Num, Op, Pattern, Proj, Term, Tup, Var
from rvm_pure.types import Arr, Product, Type, elem_type


def zero(t: Type, like: Term) -> Term:
    """The adjoint that is zero, of a value like `like`."""
    match t:
        case Scalar():
            return real(0.0, t)
        case Product(items):
            return Tup(tuple(zero(item, Proj(k, like)) for k, item in enumerate(items)))
    assert isinstance(t, Arr)
    return Each(Lam(("r'",), zero(t.elem, Var("r'"))), (like,))


def real(value: float, t: Scalar) -> Num:
    """A number in the type of a number's adjoint; a plain one if it has none."""
    own = adjoint_type(t)
    if own is None:
        return Num(False) if t.is_bool else Num(int(value), str(t))
    if own.is_complex:
        return Num(complex(value))
    return Num(value, "" if own == F64 else str(own))


def plus(t: Type, a: Term, b: Term) -> Term:
    """The sum of two adjoints of one type."""
    if isinstance(t, Product):
        return Tup(tuple(plus(item, Proj(k, a), Proj(k, b)) for k, item in enumerate(t.items)))
    if isinstance(elem_type(t), Scalar):
        return Op("+", (a, b)) if adjoint_type(elem_type(t)) is not None else a  # type: ignore[arg-type]
    assert isinstance(t, Arr)
    return Each(Lam(("u'", "v'"), plus(t.elem, Var("u'"), Var("v'"))), (a, b))


def total(t: Type, like: Term, array: Term) -> Term:
    """The sum of an array of adjoints of one type."""
    fn = Lam(("s'", "g'"), plus(t, Var("s'"), Var("g'")))
    return Fold("reduce", fn, zero(t, like), array)


def structured(p: Pattern, t: Type, adjoints: dict[str, Term]) -> Term:
    """The adjoint of a value that a pattern takes apart, from those of the names."""
    if isinstance(p, str):
        return adjoints[p] if p in adjoints else zero(t, Var(p))
    assert isinstance(t, Product)
    return Tup(tuple(structured(q, item, adjoints) for q, item in zip(p, t.items, strict=True)))


def value_of(p: Pattern) -> Term:
    """The value that a pattern takes apart, put together again."""
    return Var(p) if isinstance(p, str) else Tup(tuple(map(value_of, p)))
