"""Contexts of variables, and the continuations that adjoints are passed on to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from rvm.types import I64
from rvm_pure.adjoints import plus, zero
from rvm_pure.lengths import size_of, size_term
from rvm_pure.partial import Reducer
from rvm_pure.simplify import tidied
from rvm_pure.terms import App, Each, Lam, Let, Names, Pattern, Proj, Term, Tup, Var, free
from rvm_pure.types import Arr, Product, Type, is_active


@dataclass(frozen=True, slots=True)
class Slot:
    """A variable of the context."""

    name: str
    type: Type


Context = tuple[Slot, ...]
Gains = Mapping[str, Term]
"""The terms that the adjoints of variables of the context receive."""


def slots(p: Pattern, t: Type) -> Context:
    """The variables with derivatives that a pattern binds."""
    if isinstance(p, str):
        return (Slot(p, t),) if p != "_" and is_active(t) else ()
    assert isinstance(t, Product)
    return tuple(s for q, item in zip(p, t.items, strict=True) for s in slots(q, item))


def typeof(e: Term) -> Type:
    assert e.type is not None
    return e.type


def element_type(a: Term) -> Type:
    assert isinstance(a.type, Arr)
    return a.type.elem


class Continuations(ABC):
    """What the rules of D are made of; terms bind each name once."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._ys: list[str] = []
        self.z = names.new("z")

    def ys(self, context: Context) -> tuple[str, ...]:
        """The parameters for the adjoints of the context."""
        while len(self._ys) < len(context):
            self._ys.append(self.names.new("y1"))
        return tuple(self._ys[: len(context)])

    def back(
        self, context: Context, y: Term, more: Sequence[Term] = (), gains: Gains | None = None
    ) -> Lam:
        """`fun (y1, …, z) -> Y(y1 + gain, …, more)`."""
        return self.cont(context, lambda ys: self.onward(context, y, more, gains))

    def cont(self, context: Context, body: Callable[[tuple[str, ...]], Term]) -> Lam:
        ys = self.ys(context)
        return Lam((*ys, self.z), body(ys))

    def onward(
        self, context: Context, y: Term, more: Sequence[Term] = (), gains: Gains | None = None
    ) -> App:
        args: list[Term] = []
        for s, name in zip(context, self.ys(context), strict=True):
            gain = (gains or {}).get(s.name)
            args.append(Var(name) if gain is None else plus(s.type, Var(name), gain))
        return App(y, (*args, *more))

    @abstractmethod
    def d(self, e: Term, context: Context, y: Term) -> Term:
        """The pair of the value and the continuation."""

    def after(
        self,
        items: Sequence[Term],
        context: Context,
        y: Term,
        value: Callable[[list[Term]], Term],
        given: Callable[[list[Term]], Sequence[Term]],
        gains: Callable[[list[Term]], Gains] | None = None,
        between: Callable[[list[Term]], Sequence[tuple[Pattern, Term]]] | None = None,
        inside: Callable[[list[Term]], Sequence[tuple[Pattern, Term]]] | None = None,
    ) -> Term:
        """D of what is made of values: these first, from left to right, then itself.

        `given` are the adjoints of those that carry derivatives; `between` and `inside` are lets
        before the pair and in the continuation.
        """
        lets: list[tuple[Pattern, Term]] = []
        xs: list[Term] = []
        outer, last = context, y
        for e in items:
            size = size_of(e) if e.type == I64 else None
            if size is not None:
                # Types know lengths by their own names.
                xs.append(replace(size_term(size), type=I64))
                continue
            name = self.names.new("x1")
            xs.append(Var(name, type=e.type))
            if not is_active(e.type):
                lets.append((name, e))
                continue
            after = self.names.new("Y1")
            lets.append(((name, after), self.d(e, context, last)))
            last = Var(after)
            context = (*context, Slot(name, typeof(e)))
        lets += between(xs) if between is not None else ()

        def body(ys: tuple[str, ...]) -> Term:
            out: Term = self.onward(outer, last, given(xs), None if gains is None else gains(xs))
            for p, v in reversed(inside(xs) if inside is not None else ()):
                out = Let(p, v, out)
            return out

        out: Term = Tup((value(xs), self.cont(outer, body)))
        for p, v in reversed(lets):
            out = Let(p, v, out)
        return out

    # Vector-Jacobian products.

    def named(self, e: Term, context: Context) -> Context:
        """The variables of the context that a term names."""
        found = free(e)
        return tuple(s for s in context if s.name in found)

    def vjp(self, e: Term, context: Context, z: Term, result: Callable[[Gains], Term]) -> Term:
        """The adjoints of a term's variables if that of its value is z, reduced."""
        names = [self.names.new("y1") for _ in context]
        gains = {s.name: Var(n) for s, n in zip(context, names, strict=True)}
        identity = Lam(tuple(names), result(gains))
        inner = type(self)(self.names)
        zeros = tuple(zero(s.type, Var(s.name)) for s in context)
        pair = inner.d(e, context, identity)
        return tidied(Reducer(self.names).block(App(Proj(1, pair), (*zeros, z)), {}))

    def mapped(
        self, params: tuple[Pattern, ...], v: Term, count: int
    ) -> tuple[
        Callable[[tuple[Term, ...]], list[tuple[Pattern, Term]]],
        Callable[[int, tuple[Term, ...]], Term],
    ]:
        """Maps for the parts of a value: one for each where they share no work, else one for all.

        Given are the lets that it takes, and the map for a part, both over arrays.
        """
        if count == 1 or (isinstance(v, Tup) and not any(isinstance(x, Let) for x in v.items)):
            items = v.items if count > 1 and isinstance(v, Tup) else (v,)
            return lambda _: [], lambda k, arrays: Each(Lam(params, items[k]), arrays)
        whole = self.names.new("G")
        parts = tuple(self.names.new("g1") for _ in range(count))
        return (
            lambda arrays: [(whole, Each(Lam(params, v), arrays))],
            lambda k, _: Each(Lam((parts,), Var(parts[k])), (Var(whole),)),
        )
