"""Let normalisation: every name bound once, and lets out of arguments and of each other's values.

`f(let x = a in b)` becomes `let x = a in f(b)`, never out of a function's body or out of a branch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rvm_pure.terms import (
    If,
    Lam,
    Let,
    Loop,
    Names,
    Pattern,
    Term,
    Var,
    rebuild,
    substitute,
)

Binding = tuple[Pattern, Term, Term]
"""A pattern, its value, and the let that it comes from."""


def normal(e: Term, taken: Iterable[str]) -> Term:
    """A term with its lets in a row, at its beginning and at those of bodies and branches.

    `taken` are the names that are free in it: what it binds has others.
    """
    return _inside(substitute(e, {}, Names(taken)))


def _inside(e: Term, is_function: bool = False) -> Term:
    found: list[Binding] = []
    body = _hoisted(e, found)
    while is_function and found and isinstance(body, Var) and body.name == found[-1][0]:
        # A name for the whole value, as traces have them, says nothing.
        body = found.pop()[1]
    for p, value, let in reversed(found):
        body = replace(let, pattern=p, value=value, body=body, type=body.type)  # type: ignore[call-arg]
    return body


def _hoisted(e: Term, out: list[Binding]) -> Term:
    match e:
        case Let(p, a, b):
            out.append((p, _hoisted(a, out), e))
            return _hoisted(b, out)
        case If(c, a, b):
            return replace(e, cond=_hoisted(c, out), yes=_inside(a), no=_inside(b))
        case Lam(_, b):
            return replace(e, body=_inside(b, True))
        case Loop(init=a, count=n, body=b):
            init, count = _hoisted(a, out), _hoisted(n, out)
            return replace(e, init=init, count=count, body=_inside(b))
    return rebuild(e, lambda x: _hoisted(x, out))
