"""The gradient of a definition as a definition: D applied, partially evaluated, simplified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rvm.types import I64, Scalar
from rvm_pure.adjoints import real, zero
from rvm_pure.continuations import Slot
from rvm_pure.deep import deep
from rvm_pure.definition import Definition
from rvm_pure.direct import Direct
from rvm_pure.faults import StageFault
from rvm_pure.normal import normal
from rvm_pure.partial import Reducer
from rvm_pure.simplify import simplified, typed
from rvm_pure.terms import App, Lam, Let, Names, Proj, Term, Tup, Var, binders, tup
from rvm_pure.types import Type, is_active
from rvm_pure.typing import lengths_of


def variables(d: Definition) -> dict[str, Type]:
    """The types of the names available in a definition's body."""
    return {**{p.name: p.type for p in d.params}, **dict.fromkeys(lengths_of(d.params), I64)}


@deep
def direct(d: Definition, wrt: Sequence[str] | None = None) -> Definition:
    """D of the body in the context of the parameters, with the continuation `Y` free."""
    env = variables(d)
    y = Names(env).new("Y")
    body = typed(normal(d.body, {*env, y}), env)
    names = Names({*env, *binders(body), y})
    slots = context(d, wrt)
    made = Direct(names).d(body, slots, Var(y))
    return replace(d, body=made, block=False, continuation=(y, *(s.name for s in slots)))


def context(d: Definition, wrt: Sequence[str] | None) -> tuple[Slot, ...]:
    """The variables that a real number is differentiated by, all that can be if none are named.

    StageFault if there are none, or the value is no real number.
    """
    t = d.body.type
    if not isinstance(t, Scalar) or not is_active(t):
        what = f"a gradient is of a real number, and this is of type {t}"
        value = d.body
        while isinstance(value, Let):
            value = value.body
        raise StageFault(value, what, "sum it, or take one element")
    found = tuple(
        Slot(p.name, p.type)
        for p in d.params
        if is_active(p.type) and (wrt is None or p.name in wrt)
    )
    if not found:
        raise StageFault(d.body, "there is no parameter to differentiate with respect to")
    return found


def _pair(d: Definition, wrt: Sequence[str] | None) -> tuple[Names, Term, tuple[Term, ...]]:
    """D of the body with the identity for a continuation, and the adjoints to begin with."""
    slots = context(d, wrt)
    t = d.body.type
    assert isinstance(t, Scalar)
    env = variables(d)
    body = typed(normal(d.body, env), env)
    names = Names({*env, *binders(body)})
    ys = tuple(names.new("y1") for _ in slots)
    pair = Direct(names).d(body, slots, Lam(ys, tup(map(Var, ys))))
    zeros = tuple(zero(s.type, Var(s.name)) for s in slots)
    return names, pair, (*zeros, real(1.0, t))


@deep
def raw(d: Definition, wrt: Sequence[str] | None = None) -> Term:
    """The gradient after partial evaluation, before algebra."""
    names, pair, start = _pair(d, wrt)
    return Reducer(names).block(App(Proj(1, pair), start), {})


@deep
def with_value(d: Definition, wrt: Sequence[str] | None = None) -> Definition:
    """The definition of value and gradient, in which loops save their states for the way back."""
    names, pair, start = _pair(d, wrt)
    x, y = names.new("v"), names.new("Y1")
    both = Let((x, y), pair, Tup((Var(x), App(Var(y), start))))
    body = simplified(Reducer(names).block(both, {}), variables(d))
    return replace(d, body=body, block=False)


@deep
def gradient(d: Definition, wrt: Sequence[str] | None = None) -> Definition:
    """The definition of the gradient by the named parameters, or all; of one it is that term."""
    body = simplified(raw(d, wrt), variables(d))
    return replace(d, body=body, block=False)


@deep
def simple(d: Definition) -> Definition:
    """The definition itself, simplified."""
    return replace(d, body=simplified(d.body, variables(d)), block=False)
