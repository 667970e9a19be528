"""Hoisting of loop invariants that take more than one operation.

A value that may not exist, such as the greatest element of an empty array, is computed only if the
loop runs.
"""

from __future__ import annotations

from dataclasses import replace

from rvm.expr import LENGTHS
from rvm.isa import FUNCTIONS
from rvm.types import BOOL, I64, Scalar
from rvm_pure.terms import (
    Each,
    Fold,
    If,
    Index,
    Lam,
    Let,
    Loop,
    Names,
    Num,
    Op,
    Prim,
    Term,
    Update,
    Var,
    binders,
    free,
    names_in,
    rebuild,
    walk,
)
from rvm_pure.types import Arr, elem_type

Lets = list[tuple[str, Term]]


def lifted(e: Term, names: Names) -> Term:
    """A normal term with loop invariants moved before their loops."""
    found: Lets = []
    body = _strict(e, names, found)
    return _with(found, body)


def _with(found: Lets, body: Term) -> Term:
    for name, value in reversed(found):
        body = Let(name, value, body, start=value.start, end=value.end, type=body.type)
    return body


def _strict(e: Term, names: Names, out: Lets) -> Term:
    """A term whose loops' constants go to `out`, those in bodies and branches to lets there."""
    match e:
        case Let(_, a, b):
            return replace(e, value=_strict(a, names, out), body=lifted(b, names))
        case If(c, a, b):
            yes, no = lifted(a, names), lifted(b, names)
            return replace(e, cond=_strict(c, names, out), yes=yes, no=no)
        case Each(fn, arrays):
            made = tuple(_strict(a, names, out) for a in arrays)
            return replace(e, arrays=made, fn=_body(fn, made[0], names, out))
        case Fold(_, fn, init, array):
            first, over = _strict(init, names, out), _strict(array, names, out)
            return replace(e, init=first, array=over, fn=_body(fn, over, names, out))
        case Prim("replicate", (n, a)) if _is_heavy(a) and isinstance(a.type, Scalar):
            name = names.new("c")
            out.append((name, _strict(a, names, out)))
            return replace(e, args=(_strict(n, names, out), Var(name, type=a.type)))
        case Loop(p, init, var, n, body):
            first, count = _strict(init, names, out), _strict(n, names, out)
            inner = without(lifted(body, names), {*names_in(p), var}, loop_runs(count), names, out)
            return replace(e, init=first, count=count, body=inner)
    return rebuild(e, lambda x: _strict(x, names, out))


def _body(fn: Lam, array: Term, names: Names, out: Lets) -> Lam:
    bound = {n for p in fn.params for n in names_in(p)}
    size = array.type.length if isinstance(array.type, Arr) else None
    runs = None
    if isinstance(array, Var):
        runs = loop_runs(Op("len", (array,), type=I64))
    elif size is not None and not size.more and size.name in names.taken:
        runs = loop_runs(Var(size.name, type=I64))
    return replace(fn, body=without(lifted(fn.body, names), bound, runs, names, out))


def loop_runs(count: Term) -> Term:
    """Whether a loop runs."""
    return Op(">", (count, Num(0, type=I64)), type=BOOL)


def without(body: Term, bound: set[str], runs: Term | None, names: Names, out: Lets) -> Term:
    """A loop's body without what takes work and names nothing that is bound in it.

    `runs` is whether the loop runs, if that is known to be a term of what is bound outside of it.
    """
    bound = {*bound, *binders(body)}

    def lift(e: Term) -> Term:
        if isinstance(e, (If, Lam)):
            return replace(e, cond=lift(e.cond)) if isinstance(e, If) else e
        if isinstance(e.type, Scalar) and _is_heavy(e) and not bound & set(free(e)):
            partial = any(_is_partial(x) for x in walk(e))
            if not partial or runs is not None:
                name = names.new("c")
                zero = Num(False if e.type.is_bool else 0, type=e.type)
                value = If(runs, e, zero, type=e.type) if partial and runs is not None else e
                out.append((name, value))
                return Var(name, type=e.type, start=e.start, end=e.end)
        if isinstance(e, Loop):
            return replace(e, init=lift(e.init), count=lift(e.count))
        return rebuild(e, lift)

    return lift(body)


def _is_heavy(e: Term) -> bool:
    """Whether a term takes more than a step for each function in it."""
    return any(
        isinstance(x, (Fold, Loop))
        or (
            isinstance(x, Op)
            and x.fn not in LENGTHS
            and not FUNCTIONS[x.fn].is_elementwise
            and any(isinstance(a.type, Arr) for a in x.args)
        )
        for x in walk(e)
    )


def _is_partial(e: Term) -> bool:
    if not isinstance(e, Op):
        return isinstance(e, (Index, Update))
    t = e.args[0].type
    elem = None if t is None else elem_type(t)
    return isinstance(elem, Scalar) and FUNCTIONS[e.fn].is_partial(elem)
