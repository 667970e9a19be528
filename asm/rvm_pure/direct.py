"""The reverse transformation with continuations: a value, and a function of its adjoint.

D(e) in a context of variables with a continuation Y is the pair of the value of e and a function of
the adjoints of all variables, and of that of the value, which continues with Y.  Functions of maps
and folds are differentiated once, as vector-Jacobian products, and with respect to their free
variables.

Source: Huot and Shaikhha, figure 5, with the rule for conditionals over the adjoints of both
branches and one rule for all folds; for loops R. Schenck et al., *AD for an array language with
nested parallelism*: states are saved on the way forwards, and restored on the way back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rvm.types import Scalar
from rvm_pure.adjoints import plus, structured, total, value_of, zero
from rvm_pure.continuations import Context, Continuations, Gains, element_type, slots, typeof
from rvm_pure.faults import StageFault, what
from rvm_pure.folds import FoldRule
from rvm_pure.formulas import adjoint_gains, formula_of
from rvm_pure.terms import (
    App,
    Each,
    Fold,
    If,
    Index,
    Lam,
    Let,
    Loop,
    Num,
    Op,
    Pattern,
    Prim,
    Proj,
    Term,
    Tup,
    Update,
    Var,
    rebuild,
    tup,
)
from rvm_pure.types import Arr, Product, Type, is_active


class Direct(Continuations):
    """D of typed terms whose names are bound once."""

    def d(self, e: Term, context: Context, y: Term) -> Term:
        """The pair of the value and the continuation."""
        if not is_active(e.type) or isinstance(e, Num):
            return Tup((e, self.back(context, y)))
        z = Var(self.z)
        match e:
            case Var(name):
                return Tup((e, self.back(context, y, (), {name: z})))
            case Let():
                return self._let(e, context, y)
            case Tup(items):
                given = [Proj(k, z) for k, item in enumerate(items) if is_active(item.type)]
                return self.after(items, context, y, lambda xs: Tup(tuple(xs)), lambda xs: given)
            case Proj(k, of):
                t = typeof(of)
                assert isinstance(t, Product)

                def only(xs: Sequence[Term]) -> list[Term]:
                    parts = (
                        z if j == k else zero(item, Proj(j, xs[0]))
                        for j, item in enumerate(t.items)
                    )
                    return [Tup(tuple(parts))]

                return self.after((of,), context, y, lambda xs: Proj(k, xs[0]), only)
            case Op():
                return self._op(e, context, y)
            case If():
                return self._if(e, context, y)
            case Each():
                return self._each(e, context, y)
            case Fold():
                return self._fold(e, context, y)
            case Loop():
                return self._loop(e, context, y)
            case Index(of, items):
                return self.after(
                    (of, *items),
                    context,
                    y,
                    lambda xs: Index(xs[0], tuple(xs[1:])),
                    lambda xs: [Update(zero(typeof(of), xs[0]), tuple(xs[1:]), z)],
                )
            case Update():
                return self._update(e, context, y)
            case Prim():
                return self._prim(e, context, y)
        raise StageFault(e, f"{what(e)} has no derivative here")

    def _let(self, e: Let, context: Context, y: Term) -> Term:
        if not is_active(e.value.type):
            return replace(e, body=self.d(e.body, context, y), type=None)
        own = slots(e.pattern, typeof(e.value))
        first = self.names.new("Y1")
        pattern: Pattern = (e.pattern, first)
        go: Term = Var(first)
        if not isinstance(e.pattern, str):
            # The adjoint of the whole from those of its parts.
            ys = (*self.ys(context), *(self.names.new("y1") for _ in own))
            parts = {s.name: Var(n) for s, n in zip(own, ys[len(context) :], strict=True)}
            whole = structured(e.pattern, typeof(e.value), dict(parts))
            go = Lam(ys, App(go, (*map(Var, ys[: len(context)]), whole)))
        x, last = self.names.new("x1"), self.names.new("Y1")
        zeros = [zero(s.type, Var(s.name)) for s in own]
        out: Term = Tup((Var(x), self.back(context, Var(last), (*zeros, Var(self.z)))))
        name: Term = go
        if isinstance(go, Lam):
            name = Var(self.names.new("Y1"))
        out = Let((x, last), self.d(e.body, (*context, *own), name), out)
        if isinstance(name, Var) and isinstance(go, Lam):
            out = Let(name.name, go, out)
        return Let(pattern, self.d(e.value, context, y), out)

    def _op(self, e: Op, context: Context, y: Term) -> Term:
        formula = formula_of(e)
        if formula is not None:
            body, names = formula
            fresh = [self.names.new(n) for n in names]
            for old, new in zip(names, fresh, strict=True):
                body = _renamed(body, old, new)
            for new, a in reversed(list(zip(fresh, e.args, strict=True))):
                body = Let(new, a, body, type=e.type)
            return self.d(body, context, y)

        def given(xs: list[Term]) -> list[Term]:
            found = adjoint_gains(e, xs, Var(self.z))
            out = []
            for x, a, g in zip(xs, e.args, found, strict=True):
                if is_active(a.type):
                    out.append(zero(typeof(a), x) if g is None else _factor_first(g, self.z))
            return out

        return self.after(e.args, context, y, lambda xs: Op(e.fn, tuple(xs)), given)

    def _if(self, e: If, context: Context, y: Term) -> Term:
        named = self.named(Tup((e.yes, e.no)), context)
        c = self.names.new("c")
        z = Var(self.z)
        yes, no = (
            self.vjp(b, named, z, lambda g: tup(g[s.name] for s in named)) for b in (e.yes, e.no)
        )
        gained = [self.names.new("g1") for _ in named]
        pattern: Pattern = gained[0] if len(gained) == 1 else tuple(gained)
        gains = {s.name: Var(g) for s, g in zip(named, gained, strict=True)}
        onward: Term = self.onward(context, y, (), gains)
        if gained:
            onward = Let(pattern, If(Var(c), yes, no), onward)
        pair = Tup((If(Var(c), e.yes, e.no), self.cont(context, lambda _: onward)))
        return Let(c, e.cond, pair)

    def _each(self, e: Each, context: Context, y: Term) -> Term:
        named = self.named(e.fn, context)
        elems = [element_type(a) for a in e.arrays]
        own = [slots(p, t) for p, t in zip(e.fn.params, elems, strict=True)]
        given = self.names.new("z")

        def result(g: Gains) -> Term:
            adjoints = [
                structured(p, t, dict(g))
                for p, t in zip(e.fn.params, elems, strict=True)
                if is_active(t)
            ]
            return tup((*adjoints, *(g[s.name] for s in named)))

        inner = (*(s for found in own for s in found), *named)
        v = self.vjp(e.fn.body, inner, Var(given), result)
        params = (*e.fn.params, given)
        count = sum(map(is_active, elems)) + len(named)
        lets, made = self.mapped(params, v, count)
        z = Var(self.z)

        def over(xs: list[Term], k: int) -> Term:
            return made(k, (*xs, z))

        first = sum(map(is_active, elems))
        return self.after(
            e.arrays,
            context,
            y,
            lambda xs: Each(e.fn, tuple(xs)),
            lambda xs: [over(xs, k) for k in range(first)],
            lambda xs: {
                s.name: total(s.type, Var(s.name), over(xs, first + k)) for k, s in enumerate(named)
            },
            inside=lambda xs: lets((*xs, z)),
        )

    def _fold(self, e: Fold, context: Context, y: Term) -> Term:
        return FoldRule(self, e, context).pair(y)

    def _loop(self, e: Loop, context: Context, y: Term) -> Term:
        named = self.named(e.body, context)
        state = typeof(e.init)
        own = slots(e.pattern, state)
        given = self.names.new("z")
        sums = [self.names.new("g1") for _ in named]

        def result(g: Gains) -> Term:
            gained = [plus(s.type, Var(n), g[s.name]) for s, n in zip(named, sums, strict=True)]
            return tup((structured(e.pattern, state, dict(g)), *gained))

        v = self.vjp(e.body, (*own, *named), Var(given), result)
        n, saved, ended = self.names.new("n"), self.names.new("S"), self.names.new("x1")
        again = self.names.new("S")

        def between(xs: list[Term]) -> list[tuple[Pattern, Term]]:
            """The loop with its states saved."""
            body = Tup((e.body, Update(Var(again), (Var(e.var),), value_of(e.pattern))))
            room = Prim("replicate", (Var(n), _blank(state, xs[0])))
            loop = Loop((e.pattern, again), Tup((xs[0], room)), e.var, Var(n), body, e.down)
            return [((ended, saved), loop)]

        def inside(xs: list[Term]) -> list[tuple[Pattern, Term]]:
            restored: Term = Let(e.pattern, Index(Var(saved), (Var(e.var),)), v)
            start = tup((Var(self.z), *(zero(s.type, Var(s.name)) for s in named)))
            pattern: Pattern = (given, *sums) if sums else given
            loop = Loop(pattern, start, e.var, Var(n), restored, not e.down)
            return [(pattern, loop)]

        out = self.after(
            (e.init,),
            context,
            y,
            lambda xs: Var(ended),
            lambda xs: [Var(given)],
            lambda xs: {s.name: Var(k) for s, k in zip(named, sums, strict=True)},
            between,
            inside,
        )
        return Let(n, e.count, out)

    def _update(self, e: Update, context: Context, y: Term) -> Term:
        z = Var(self.z)

        def given(xs: list[Term]) -> list[Term]:
            at = tuple(xs[1:-1])
            return [Update(z, at, zero(typeof(e.value), xs[-1])), Index(z, at)]

        return self.after(
            (e.of, *e.items, e.value),
            context,
            y,
            lambda xs: Update(xs[0], tuple(xs[1:-1]), xs[-1]),
            given,
        )

    def _prim(self, e: Prim, context: Context, y: Term) -> Term:
        z = Var(self.z)
        i = Var(self.names.new("i"))

        def given(xs: list[Term]) -> list[Term]:
            a = xs[-1]
            t = typeof(e.args[-1])
            if e.name == "dup":
                return [plus(t, Proj(0, z), Proj(1, z))]
            if e.name == "replicate":
                return [total(t, a, z)]
            assert isinstance(t, Arr)
            none = zero(t.elem, Index(a, (i,)))
            if e.name == "shift1L":
                edge, old = Op("==", (i, Num(0))), Index(z, (Op("-", (i, Num(1))),))
            else:
                edge, old = Op("==", (i, Op("len", (z,)))), Index(z, (i,))
            fn = Lam((i.name,), If(edge, none, old))
            return [Each(fn, (Prim("iota", (Op("len", (a,)),)),))]

        return self.after(e.args, context, y, lambda xs: Prim(e.name, tuple(xs)), given)


def _blank(t: Type, like: Term) -> Term:
    """A value of a type, of zeros."""
    match t:
        case Product(items):
            return Tup(tuple(_blank(item, Proj(k, like)) for k, item in enumerate(items)))
        case Arr(elem):
            return Each(Lam(("r'",), _blank(elem, Var("r'"))), (like,))
    assert isinstance(t, Scalar)
    return Num(False) if t.is_bool else Num(0, "" if str(t) == "f64" else str(t))


def _renamed(e: Term, old: str, new: str) -> Term:
    if isinstance(e, Var):
        return replace(e, name=new) if e.name == old else e
    return rebuild(e, lambda x: _renamed(x, old, new))


def _factor_first(g: Term, z: str) -> Term:
    """The derivative before the adjoint that it multiplies, as figures write it."""
    match g:
        case Op("*", (Var(name), p)) if name == z:
            return replace(g, args=(p, g.args[0]))
    return g
