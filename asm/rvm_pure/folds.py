"""The reverse rules of folds: any state, free variables, no unit required, even no elements.

Of `reduce` and `foldl` with the states A0 before each element, the adjoints of the states are a
scan from the right, S = scanr (s, (a, b). ∂a f(a, b) s) z (zip A0 A); the initial value's is S[0],
and those of elements and free variables follow from A0, A and the adjoint after each element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rvm.types import Scalar
from rvm_pure.adjoints import plus, real, structured, total
from rvm_pure.continuations import Context, Continuations, Gains, element_type, slots, typeof
from rvm_pure.terms import (
    Each,
    Fold,
    Index,
    Lam,
    Let,
    Num,
    Op,
    Pattern,
    Prim,
    Proj,
    Term,
    Tup,
    Var,
    tup,
)
from rvm_pure.types import Arr, Product, Type, is_active

Lets = Callable[[list[Term]], Sequence[tuple[Pattern, Term]]]


class FoldRule:
    """D of one fold."""

    def __init__(self, direct: Continuations, e: Fold, context: Context) -> None:
        self.direct = direct
        self.e = e
        self.context = context
        self.state, self.elem = typeof(e.init), element_type(e.array)
        self.named = direct.named(e.fn, context)
        p, q = e.fn.params
        self.inner = (*slots(p, self.state), *slots(q, self.elem), *self.named)
        self.s = direct.names.new("s")
        """The adjoint after an element."""

    def product(self, parts: str) -> Term:
        """The vector-Jacobian product of the function: the parts `x`, `y` and `v` of it."""
        p, q = self.e.fn.params

        def result(g: Gains) -> Term:
            out = []
            if "x" in parts:
                out.append(structured(p, self.state, dict(g)))
            if "y" in parts and is_active(self.elem):
                out.append(structured(q, self.elem, dict(g)))
            if "v" in parts:
                out += [g[s.name] for s in self.named]
            return tup(out)

        if not is_active(self.elem) and parts == "y":
            return Tup(())
        return self.direct.vjp(self.e.fn.body, self.inner, Var(self.s), result)

    def pair(self, y: Term) -> Term:
        """The pair of value and continuation."""
        e, names = self.e, self.direct.names
        down = e.kind == "scanr"
        whole = e.kind.startswith("scan")
        states = names.new("A0")
        adjoints = names.new("S")
        p, q = e.fn.params
        z = Var(self.direct.z)
        count = is_active(self.elem) + len(self.named)
        rest = self.product("yv") if count else Tup(())
        single = not whole and isinstance(rest, Let) and _is_flat(self.elem, self.named)

        def between(xs: list[Term]) -> list[tuple[Pattern, Term]]:
            kind = "scanr" if down else "scanl"
            return [(states, Fold(kind, e.fn, xs[0], xs[1]))]

        before = Prim("shift1L" if down else "shift1R", (Var(states),))
        after = Prim("shift1R" if down else "shift1L", (Var(adjoints),))

        if single:
            return self._at_once(y, between, before, count)

        def inside(xs: list[Term]) -> list[tuple[Pattern, Term]]:
            over: list[Term] = [before, xs[1]]
            params: Pattern = (p, q)
            body = self.product("x")
            start: Term = z
            if whole:
                here = names.new("z")
                body = plus(self.state, Var(here), body)
                end = Num(0) if down else Op("len", (xs[1],))
                start = Index(z, (end,))
                over.append(Prim("shift1L" if down else "shift1R", (z,)))
                params = (p, q, here)
            fn = Lam((self.s, params), body)
            kind = "scanl" if down else "scanr"
            found: list[tuple[Pattern, Term]] = [
                (adjoints, Fold(kind, fn, start, _zip(over, names)))
            ]
            return found + lets((after, before, xs[1]))

        lets, made = self.direct.mapped((self.s, p, q), rest, count)

        def given(xs: list[Term]) -> list[Term]:
            out: list[Term] = []
            if is_active(self.state) and is_active(e.init.type):
                at = Op("len", (xs[1],)) if down else Num(0)
                out.append(Index(Var(adjoints), (at,)))
            if is_active(self.elem):
                out.append(made(0, (after, before, xs[1])))
            return out

        def gains(xs: list[Term]) -> dict[str, Term]:
            first = int(is_active(self.elem))
            return {
                v.name: total(v.type, Var(v.name), made(first + k, (after, before, xs[1])))
                for k, v in enumerate(self.named)
            }

        return self.direct.after(
            (e.init, e.array), self.context, y, self._value(states), given, gains, between, inside
        )

    def _value(self, states: str) -> Callable[[list[Term]], Term]:
        e = self.e
        if e.kind.startswith("scan"):
            return lambda xs: Var(states)
        return lambda xs: Fold(e.kind, e.fn, xs[0], xs[1])

    def _at_once(self, y: Term, between: Lets, before: Term, count: int) -> Term:
        """Adjoints of states, elements and free variables by one scan, where they share work."""
        e, names = self.e, self.direct.names
        p, q = e.fn.params
        scan = names.new("S")
        ignored = tuple("_" for _ in range(count))
        types = [self.elem] * is_active(self.elem) + [v.type for v in self.named]
        start = Tup((Var(self.direct.z), *(_flat_zero(t) for t in types)))
        parts = tuple(names.new("g1") for _ in range(count))
        taken = Prim("shift1R", (Var(scan),))

        def part(k: int) -> Term:
            return Each(Lam((("_", *parts),), Var(parts[k])), (taken,))

        def inside(xs: list[Term]) -> list[tuple[Pattern, Term]]:
            fn = Lam(((self.s, *ignored), (p, q)), self.product("xyv"))
            return [(scan, Fold("scanr", fn, start, _zip([before, xs[1]], names)))]

        def given(xs: list[Term]) -> list[Term]:
            out: list[Term] = []
            if is_active(e.init.type):
                out.append(Proj(0, Index(Var(scan), (Num(0),))))
            return out + [part(0)] * is_active(self.elem)

        first = int(is_active(self.elem))
        return self.direct.after(
            (e.init, e.array),
            self.context,
            y,
            self._value(""),
            given,
            lambda xs: {
                v.name: total(v.type, Var(v.name), part(first + k))
                for k, v in enumerate(self.named)
            },
            between,
            inside,
        )


def _zip(arrays: Sequence[Term], names: object) -> Term:
    params = tuple(f"{n}'" for n in "abc"[: len(arrays)])
    return Each(Lam(params, Tup(tuple(map(Var, params)))), tuple(arrays))


def _is_flat(elem: Type, named: Context) -> bool:
    """Whether zeros of these types need no array to be like."""
    return not any(_has_array(t) for t in (elem, *(s.type for s in named)))


def _has_array(t: Type) -> bool:
    return isinstance(t, Arr) or (isinstance(t, Product) and any(map(_has_array, t.items)))


def _flat_zero(t: Type) -> Term:
    if isinstance(t, Product):
        return Tup(tuple(_flat_zero(item) for item in t.items))
    assert isinstance(t, Scalar)
    return real(0.0, t)
