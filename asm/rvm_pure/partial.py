"""Partial evaluation: functions are applied, tuples taken apart, the rest is left in lets.

No work is repeated or omitted: a value that is bound to a name is bound in the result, in the same
order.  An application of an unknown name, such as a continuation `Y`, remains.

Source: Huot and Shaikhha, section 5.1 (inlining and forward substitution).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rvm_pure.adjoints import zero
from rvm_pure.terms import (
    App,
    Each,
    Fold,
    If,
    Lam,
    Let,
    Loop,
    Names,
    Num,
    Pattern,
    Proj,
    Term,
    Tup,
    Var,
    rebuild,
    tup,
)
from rvm_pure.types import Type


@dataclass(frozen=True, slots=True)
class Parts:
    """A tuple whose parts are known."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Closure:
    """A function, and the values of its free variables."""

    fn: Lam
    env: Env


Value = Term | Parts | Closure
"""A term is a value of which nothing else is known."""
Env = Mapping[str, "Value"]


def reduced(e: Term, taken: Iterable[str]) -> Term:
    """A term without applications of functions that are known."""
    return Reducer(Names(taken)).block(e, {})


def closed(e: Term, params: Mapping[str, Type], continuation: Sequence[str]) -> Term:
    """A pair of a value and what takes its adjoint to a continuation, as value and gradient.

    The continuation gives the adjoints themselves; they begin at zero, and that of the value is 1.
    """
    y, *names = continuation
    identity = Lam(tuple(names), tup(map(Var, names)))
    start = (*(zero(params[n], Var(n)) for n in names), Num(1.0))
    pair: Term = Let(("v'", "Y'"), Let(y, identity, e), Tup((Var("v'"), App(Var("Y'"), start))))
    return reduced(pair, params)


class Reducer:
    """Evaluates terms as far as functions and tuples go; other work goes to lets."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.lets: list[tuple[Pattern, Term]] = []

    def block(self, e: Term, env: Env) -> Term:
        """The value of a term, after the lets that it takes."""
        outer, self.lets = self.lets, []
        body = self.term(self.value(e, env))
        for p, v in reversed(self.lets):
            body = Let(p, v, body)
        self.lets = outer
        return body

    def value(self, e: Term, env: Env) -> Value:
        match e:
            case Var(name):
                return env.get(name, e)
            case Num():
                return e
            case Lam():
                return Closure(e, env)
            case Let():
                inner = dict(env)
                while isinstance(e, Let):
                    self.bind(e.pattern, self.value(e.value, inner), inner)
                    e = e.body
                return self.value(e, inner)
            case Tup(items):
                return Parts(tuple(self.value(x, env) for x in items))
            case Proj(k, of):
                whole = self.value(of, env)
                if isinstance(whole, Parts):
                    return whole.items[k]
                return Proj(k, self.term(whole))
            case App(fn, args):
                return self._applied(self.value(fn, env), [self.value(a, env) for a in args])
            case If(c, a, b):
                return If(self.term(self.value(c, env)), self.block(a, env), self.block(b, env))
            case Each(fn, arrays):
                made = tuple(self.term(self.value(a, env)) for a in arrays)
                return Each(self.function(fn, env), made)
            case Fold(kind, fn, init, array):
                first, over = self.term(self.value(init, env)), self.term(self.value(array, env))
                return Fold(kind, self.function(fn, env), first, over)
            case Loop(p, init, var, count, body, down):
                first, n = self.term(self.value(init, env)), self.term(self.value(count, env))
                inner = dict(env)
                own = self._unknown(p, inner)
                i = self._unknown(var, inner)
                assert isinstance(i, str)
                return Loop(own, first, i, n, self.block(body, inner), down)
        return rebuild(e, lambda x: self.term(self.value(x, env)))

    def function(self, fn: Lam, env: Env) -> Lam:
        """A function that is not applied here, with new names for its parameters."""
        inner = dict(env)
        params = tuple(self._unknown(p, inner) for p in fn.params)
        return Lam(params, self.block(fn.body, inner))

    def term(self, v: Value) -> Term:
        """A value as a term."""
        if isinstance(v, Parts):
            return Tup(tuple(map(self.term, v.items)))
        return self.function(v.fn, v.env) if isinstance(v, Closure) else v

    def _applied(self, fn: Value, args: Sequence[Value]) -> Value:
        if not isinstance(fn, Closure):
            return App(self.term(fn), tuple(map(self.term, args)))
        inner = dict(fn.env)
        for p, a in zip(fn.fn.params, args, strict=True):
            self.bind(p, a, inner)
        return self.value(fn.fn.body, inner)

    def bind(self, p: Pattern, v: Value, env: dict[str, Value]) -> None:
        """Bind a pattern's names; values that take work are bound in the result."""
        if isinstance(p, str):
            env[p] = self._atom(v, p)
        elif isinstance(v, Parts):
            for q, item in zip(p, v.items, strict=True):
                self.bind(q, item, env)
        else:
            self.lets.append((self._unknown(p, env), self.term(v)))

    def _atom(self, v: Value, wish: str) -> Value:
        if isinstance(v, Parts):
            return Parts(tuple(self._atom(item, wish) for item in v.items))
        if isinstance(v, (Closure, Var, Num)):
            return v
        name = self.names.new(wish if wish != "_" else "t")
        self.lets.append((name, v))
        return Var(name)

    def _unknown(self, p: Pattern, env: dict[str, Value]) -> Pattern:
        """New names for a pattern of which nothing is known."""
        if not isinstance(p, str):
            return tuple(self._unknown(q, env) for q in p)
        name = self.names.new(p)
        if name != "_":
            env[p] = Var(name)
        return name
