"""The number of uses of named values, and substitution of values for names."""

from __future__ import annotations

from dataclasses import replace

from rvm.isa import FUNCTIONS
from rvm.types import I64, Scalar
from rvm_pure.elements import elem
from rvm_pure.expressions import Hard
from rvm_pure.terms import If, Index, Let, Names, Num, Op, Prim, Term, Var, again, rebuild
from rvm_pure.types import Arr


def replaced(e: Term, part: Term, by: Term) -> Term:
    if e is part:
        return by
    return rebuild(e, lambda x: replaced(x, part, by))


def put_in(e: Term, name: str, by: Term, names: Names) -> Term:
    """A term with another for a variable, and elements of that for its elements.

    Every name is bound once, so that none is caught.
    """
    if isinstance(e, Var):
        return by if e.name == name else e
    if isinstance(e, Index) and isinstance(e.of, Var) and e.of.name == name:
        first, *rest = (put_in(i, name, by, names) for i in e.items)
        try:
            one = elem(by, first, names)
        except Hard:
            pass
        else:
            return replace(e, of=one, items=tuple(rest)) if rest else one
    return rebuild(e, lambda x: put_in(x, name, by, names))


def is_light(e: Term) -> bool:
    """Whether an element is one of another array, perhaps one of several, by its number."""
    match e:
        case Let(_, a, b):
            return is_light(a) and is_light(b)
        case If(Op("<", _), a, b):
            return is_light(a) and is_light(b)
        case Op("+" | "-", args):
            return e.type == I64 and all(map(is_light, args))
    return isinstance(e, (Index, Var, Num))


def spread(e: Term) -> tuple[Term, ...]:
    """The terms directly inside that a loop over elements has in every round."""
    match e:
        case Prim("replicate", (_, a)):
            return (a,)
        case Op(fn, args) if isinstance(e.type, Arr) and FUNCTIONS[fn].is_elementwise:
            return tuple(a for a in args if isinstance(a.type, Scalar))
    return again(e)
