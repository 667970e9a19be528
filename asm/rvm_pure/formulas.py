"""Conversion between the table's expressions and terms: formulas, and terms of adjoints."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from rvm.expr import Apply, Const, Expr, Formal, substitute
from rvm.isa import FUNCTIONS
from rvm.isa.derivatives import adjoint_type, gains
from rvm.isa.simplify import simplify
from rvm.isa.typing import literal, typed
from rvm.numbers import system
from rvm.types import Scalar, ValueType, elem_of, rank_of, with_rank
from rvm_pure.terms import Num, Op, Term, Var
from rvm_pure.types import from_machine, machine_type


def formula_of(e: Op) -> tuple[Term, tuple[str, ...]] | None:
    """The table's formula for a function, if there is one, and the names in it."""
    if FUNCTIONS[e.fn].formula is None:
        return None
    types = tuple(_machine(a) for a in e.args)
    return _formula(e.fn, types)


@cache
def _formula(fn: str, types: tuple[ValueType, ...]) -> tuple[Term, tuple[str, ...]]:
    formula = FUNCTIONS[fn].formula
    assert formula is not None
    made = typed(substitute(formula, tuple(Formal(k, t) for k, t in enumerate(types))))
    names = tuple(f"x{k}" for k in range(len(types)))
    return term_of(
        made,
        [
            Var(n, type=from_machine(t, (None,) * rank_of(t)))
            for n, t in zip(names, types, strict=True)
        ],
    ), names


def _machine(e: Term) -> ValueType:
    assert e.type is not None
    t = machine_type(e.type)
    assert t is not None
    return t


def term_of(e: Expr, args: Sequence[Term]) -> Term:
    """An expression of the table over formals as a term."""
    match e:
        case Formal(k):
            return args[k]
        case Const(held, t):
            if t is None:
                return Num(held)
            if t.is_fixed or t.is_log:
                return Op(str(t), (Num(system(t).to_python(held)),))
            found = from_machine(t, ())
            return Num(held, type=found)
        case Apply(fn, items, t):
            made = tuple(term_of(a, args) for a in items)
            rank = 0 if t is None else rank_of(t)
            return Op(fn, made, type=None if t is None else from_machine(t, (None,) * rank))
    raise TypeError(f"a {type(e).__name__} is not a term")


def adjoint_gains(e: Op, args: Sequence[Term], z: Term) -> tuple[Term | None, ...]:
    """The terms for the adjoints of a typed function's arguments, if that of its value is `z`.

    `args` are the arguments as they are named; None where an argument carries no derivative.
    """
    types = tuple(_machine(a) for a in e.args)
    assert e.type is not None
    result = machine_type(e.type)
    assert result is not None
    found = adjoint_type(elem_of(result))
    if found is None:
        return (None,) * len(args)
    seed = with_rank(found, rank_of(result))
    constants = tuple(
        a.value if isinstance(a, Num) and isinstance(t, Scalar) else None
        for a, t in zip(e.args, types, strict=True)
    )
    made = _gains(e.fn, types, seed, constants)
    return tuple(None if g is None else term_of(g, [*args, z]) for g in made)


@cache
def _gains(
    fn: str, types: tuple[ValueType, ...], seed: ValueType, constants: tuple[object, ...]
) -> tuple[Expr | None, ...]:
    formals: list[Expr] = []
    for k, (t, c) in enumerate(zip(types, constants, strict=True)):
        known = c is not None and isinstance(t, Scalar)
        formals.append(literal(c, t) if known and isinstance(t, Scalar) else Formal(k, t))
    made = gains(fn, tuple(formals), Formal(len(types), seed))
    return tuple(None if g is None else simplify(g) for g in made)
