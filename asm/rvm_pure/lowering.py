"""Definitions as reversible functions: `f(x)` becomes `func f(out, x)`, which adds it to `out`.

A single expression is one addition; the rest are loops over elements, ancillas that hold one value
each, and states of folds and loops, which a routine computes and uncomputes.  No float is ever
accumulated in an ancilla: a value is stored whole, and removed whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from rvm_asm.names import quoted
from rvm_asm.nodes import Application, Declared, Lit, Ref, Word
from rvm_asm.stats import AllocStat, Arm, Func, IfStat, Stat

from rvm.isa import FUNCTIONS
from rvm.types import F64, I64, Scalar
from rvm_pure.deep import too_long
from rvm_pure.definition import Definition
from rvm_pure.elements import elem
from rvm_pure.expressions import PRODUCTS, Env, Hard, Value, bound, expression, size
from rvm_pure.formulas import adjoint_gains
from rvm_pure.invariants import Lets, lifted, loop_runs, without
from rvm_pure.keeping import ALL, Keep
from rvm_pure.normal import normal
from rvm_pure.outlined import outlined
from rvm_pure.ranges import pieces
from rvm_pure.states import States, Then
from rvm_pure.syntax import at, instruction, nought
from rvm_pure.terms import (
    Fold,
    If,
    Index,
    Lam,
    Let,
    Loop,
    Num,
    Op,
    Proj,
    Term,
    Tup,
    Update,
    Var,
    binders,
    children,
    free,
    repeated,
    substitute,
    walk,
)
from rvm_pure.types import Arr, Type, dims, elem_type, is_tuple, parts
from rvm_pure.typing import lengths_of
from rvm_pure.uses import is_light, put_in, replaced, spread

MOST_LETS = 1000
"""The most names for values in a definition that becomes a program."""
OUT = "out"
"""The parameter that a definition's value is added to."""


class Lowering(States):
    """The lowering of one definition to a function."""

    def __init__(self, d: Definition, keep: Keep = ALL) -> None:
        super().__init__(d, keep)
        if sum(isinstance(e, Let) for e in walk(d.body)) > MOST_LETS:
            raise too_long()
        body = normal(d.body, self.fixed)
        own = set(binders(body))
        self.names.taken |= own
        self.body = normal(lifted(body, self.names), self.fixed)
        self.lifted = set(binders(self.body)) - own
        """The names of values that are computed before a loop."""
        self.names.taken |= self.lifted

    def functions(self, fresh: bool = False) -> list[Func]:
        """The function, whose first parameter is what the value is added to, and its loops' steps.

        If that is `fresh`, it holds zeros before, and infinities are removed again; and each part
        of a tuple has a parameter of its own, which calls take faster than records.
        StageFault where a budget of bytes is asked for, and a state's size is not known.
        """
        d = self.d
        assert d.body.type is not None
        known = lengths_of(d.params)
        params: list[Declared] = []
        here = self.start, self.end

        def declared(
            name: str, t: Type, known: Collection[str] | None, at: tuple[int, int]
        ) -> Value:
            if fresh and is_tuple(t):
                return tuple(declared(self.names.new(name), x, known, at) for x in parts(t))
            params.append(Declared(quoted(name), self.type_of(t, known), *at))
            return self.places(self.ref(name), t)

        place = declared(self.names.new(OUT), d.body.type, known, here)
        env: dict[str, Value] = {n: self.ref(n) for n in known}
        env |= {p.name: declared(p.name, p.type, None, (p.start, p.end)) for p in d.params}
        whole = fresh and isinstance(d.body.type, Scalar)
        body = [*self._checks(place, self.body, env), *self.add(place, self.body, env, whole)]
        for e in walk(self.body):
            if isinstance(e, Let) and isinstance(e.pattern, str):
                self.note(e.pattern, "put in where it is used", e.value, "0")
        word = Word(quoted(d.name.text), d.name.start, d.name.end)
        funcs = [Func(word, [], params, body, self.start, self.end), *self.steps]
        return [made for f in funcs for made in outlined(f, self.names)]

    def _checks(self, place: Value, e: Term, env: Env) -> list[Stat]:
        """Checks of the length of `out`, as far as its type does not give it."""
        t = e.type
        if not isinstance(t, Arr) or (t.length is not None and not t.length.more):
            return []
        try:
            want = expression(self.length(e), env)
        except Hard:
            return []
        first = place
        while isinstance(first, tuple):
            first = first[0]
        assert not isinstance(want, tuple)
        have = Application("len", [first], e.start, e.end)
        # Known by a register that holds the one and is freed with the other.
        name = self.names.new(f"{OUT}_length")
        return [self.alloc("alloc", name, I64, have, e), self.alloc("free", name, None, want, e)]

    def add(
        self, place: Value, e: Term, env: Env, fresh: bool = False, is_hard: bool = False
    ) -> list[Stat]:
        """Statements that add a term's value to a place; one that is `fresh` holds zeros.

        `is_hard` says that it is known to be no expression.
        """
        if is_hard and isinstance(e, Let):
            return self._let(place, e, env, fresh)
        if fresh and isinstance(e.type, Arr):
            try:
                return self._elements(place, e, env, fresh)
            except Hard:
                pass
        try:
            return self._added(place, expression(e, env), e, e.type, env, fresh)
        except Hard as hard:
            part = hard.term
        match e:
            case Let():
                return self._let(place, e, env, fresh)
            case Tup(items):
                assert isinstance(place, tuple)
                return [
                    s for q, x in zip(place, items, strict=True) for s in self.add(q, x, env, fresh)
                ]
            case If(c, a, b) if part is e:
                cond = expression(c, env)
                assert not isinstance(cond, tuple)
                yes, no = self.add(place, a, env, fresh), self.add(place, b, env, fresh)
                return [IfStat([Arm(cond, None, yes)], no, e.start, e.end)]
            case Op("sum", (array,)) if len(dims(array.type or I64)) == 1 and not fresh:
                # As a fold, which adds to the place element by element.
                both = tuple(Var(v, type=e.type) for v in ("s'", "a'"))
                plus = Op("+", both, type=e.type)
                fn, zero = Lam(("s'", "a'"), plus), Num(0, type=e.type)
                fold: Term = Fold("reduce", fn, zero, array, type=e.type, start=e.start, end=e.end)
                return self.add(place, fold, env)
            case Op("+" | "-") if not fresh and isinstance(e.type, Scalar):
                return self._apart(place, e, env)
            case Op(fn) if fn in PRODUCTS and isinstance(e.type, Arr) and part is not e:
                return self.first(
                    part, e, env, lambda rest, inner: self.add(place, rest, inner, fresh)
                )
            case Fold("reduce") if fresh and part is e.array:
                # Its elements are held, and what they sum to is an expression.
                return self.first(part, e, env, lambda r, inner: self.add(place, r, inner, True))
            case Fold("reduce" | "foldl"):
                found = self._summed(place, e, env, fresh)
                if found is not None:
                    return found
                return self.last_state(
                    e, env, lambda last, inner: self.add(place, last, inner, fresh)
                )
            case Fold() if fresh:
                return self.states(place, e, env)
            case Loop():
                return self.add(place, self.as_loop(e), env, fresh)
        try:
            if isinstance(e.type, Arr):
                return self._elements(place, e, env, fresh)
            if isinstance(e, Index) and part is e:
                one = elem(e.of, e.items[0], self.names)
                rest = Index(one, e.items[1:], type=e.type) if e.items[1:] else one
                return self.add(place, rest, env, fresh)
        except Hard as hard:
            if part is e:
                part = hard.term
            if isinstance(e, Op) and e.fn in ("+", "-") and not fresh and alike(*e.args):
                return self._apart(place, e, env)
        if part is e and isinstance(e, Op):  # it is too large, its arguments are not
            part = max(e.args, key=lambda a: size(expression(a, env)))
        elif part is e and not isinstance(e, Fold):
            part = inside(e)
        return self.first(part, e, env, lambda rest, inner: self.add(place, rest, inner, fresh))

    def _apart(self, place: Value, e: Op, env: Env) -> list[Stat]:
        """Each part of a sum by itself, so that those that are not expressions take less memory."""
        a, b = e.args
        minus = b if e.fn == "+" else Op("neg", (b,), type=e.type, start=b.start, end=b.end)
        return [*self.add(place, a, env), *self.add(place, minus, env)]

    def first(self, part: Term, e: Term, env: Env, then: Then) -> list[Stat]:
        """Statements over a term, one part of which is computed before and uncomputed after."""
        name = self.names.new("t")
        var = Var(name, type=part.type, start=part.start, end=part.end)
        rest = replaced(e, part, var)
        return self._held(name, part, env, lambda inner: then(rest, inner))

    def _added(
        self, place: Value, v: Value, e: Term, t: Type | None, env: Env, fresh: bool
    ) -> list[Stat]:
        if isinstance(place, tuple):
            assert isinstance(v, tuple) and t is not None
            return [
                s
                for q, w, item in zip(place, v, parts(t), strict=True)
                for s in self._added(q, w, e, item, env, fresh)
            ]
        assert not isinstance(v, tuple) and t is not None
        scalar = elem_type(t)
        if isinstance(v, Lit) and v.value == 0 and str(v.value) != "-0.0":
            return []
        assert isinstance(scalar, Scalar)
        if fresh and not scalar.is_exact:
            # Taken away by what it is, not by a difference, which is NaN of infinities.
            # A state that is made again and again gets a new adjoint by that, too.
            name = self.names.new("v")
            made = self.alloc("alloc", name, t, v, e)
            made.declared.type = self.like(place, t, env, e)
            back = self.alloc("free", name, None, None, e)
            return [made, instruction("swap", e, self.ref(name, e), place), back]
        word = "xor" if scalar.is_bool else "mul" if scalar.is_log else "add"
        return [instruction(word, e, place, v)]

    def _let(self, place: Value, e: Let, env: Env, fresh: bool) -> list[Stat]:
        uses = free(e.body)
        if isinstance(e.pattern, str):
            k = uses.get(e.pattern, 0)
            if k == 0:
                return self.add(place, e.body, env, fresh)
            once = k == 1 and not repeated(e.body, e.pattern, spread)
            if self._fuses(e.value, once):
                self.note(e.pattern, "each element is put in where it is used", e.value, "0")
                return self.add(place, put_in(e.body, e.pattern, e.value, self.names), env, fresh)
            try:
                value = expression(e.value, env)
                small = isinstance(value, (Ref, Lit))
                if once and not small and isinstance(e.value.type, Arr):
                    return self.add(
                        place, put_in(e.body, e.pattern, e.value, self.names), env, fresh
                    )
                if small or once:
                    return self.add(place, e.body, bound(e.pattern, value, env), fresh, True)
            except Hard:
                if once and not fresh and isinstance(e.value.type, Scalar):
                    # It may be a part that is added by itself.
                    return self.add(place, put_in(e.body, e.pattern, e.value, self.names), env)
            return self._held(
                e.pattern, e.value, env, lambda inner: self.add(place, e.body, inner, fresh)
            )
        name = self.names.new("t")
        whole = Var(name, type=e.value.type, start=e.value.start, end=e.value.end)
        try:
            value = expression(e.value, env)
            if isinstance(value, tuple) and all(isinstance(v, (Ref, Lit)) for v in value):
                return self.add(place, e.body, bound(e.pattern, value, env), fresh)
        except Hard:
            pass

        def body(inner: Env) -> list[Stat]:
            return self.add(place, e.body, bound(e.pattern, inner[whole.name], inner), fresh)

        return self._held(name, e.value, env, body)

    def _fuses(self, e: Term, once: bool) -> bool:
        """Whether an array need not be made: each element is used once, or takes no work."""
        if not isinstance(e.type, Arr) or isinstance(e, Var):
            return False
        try:
            one = elem(e, Var("", type=I64), self.names)
        except Hard:
            return False
        return once or is_light(one)

    def _fused(self, e: Term) -> Term:
        """A term in which arrays need no names, since elements of them are put in."""
        if not isinstance(e, Let):
            return e
        p, a = e.pattern, e.value
        if isinstance(p, str) and isinstance(a.type, Arr):
            once = free(e.body).get(p) == 1 and not repeated(e.body, p, spread)
            if self._fuses(a, once):
                return self._fused(put_in(e.body, p, a, self.names))
        return replace(e, body=self._fused(e.body))

    def _held(self, name: str, e: Term, env: Env, body: Callable[[Env], list[Stat]]) -> list[Stat]:
        """Statements over a value that is computed before and uncomputed after."""
        fold = self.as_loop(e) if isinstance(e, Loop) else e
        if isinstance(fold, Fold) and fold.kind in ("reduce", "foldl") and summand(fold.fn) is None:
            # The last state is the value.
            self.note(name, "put in where it is used", e, "0")
            return self.last_state(
                fold, env, lambda last, more: body({**more, name: expression(last, more)})
            )
        new = self.names.new(name) if name in self.names.taken and name in env else name
        self.names.taken.add(new)
        assert e.type is not None
        ref = self.ref(new, e)
        inner = {**env, name: self.places(ref, e.type)}
        if isinstance(elem_type(e.type), Scalar):
            try:
                value = expression(e, env)
            except Hard as hard:
                product = isinstance(e, Op) and e.fn in PRODUCTS and hard.term is not e
                if (isinstance(e.type, Scalar) or product) and isinstance(hard.term.type, Arr):
                    # An array first, with which the value is an expression.
                    return self.first(
                        hard.term, e, env, lambda rest, more: self._held(name, rest, more, body)
                    )
            else:
                assert not isinstance(value, tuple)
                inside = product_read(e)
                if inside is not None:
                    # The derivatives of the function read it.
                    return self.first(
                        inside, e, env, lambda rest, more: self._held(name, rest, more, body)
                    )
                self.note(new, "an ancilla, freed by the same expression", e)
                room = self.room(new, e, env)
                return [
                    AllocStat("alloc", room, value, e.start, e.end),
                    *body(inner),
                    self.alloc("free", new, None, value, e),
                ]
        made: list[Stat] = []
        self.make(new, e, env, made)
        self.note(new, "stored, and uncomputed at the end", e)
        return [self.routine([*made, *self.add(inner[name], e, env, True)], body(inner), e)]

    def _elements(self, place: Value, e: Term, env: Env, fresh: bool) -> list[Stat]:
        i = self.names.new("i")
        var = Var(i, type=I64, start=e.start, end=e.end)
        one, n = self._fused(elem(e, var, self.names)), self.length(e)
        once: Lets = []
        one = without(one, {i}, loop_runs(n), self.names, once, is_round=True)

        def held(k: int, inner: Env) -> list[Stat]:
            """The loop over what all elements of a broadcast row have in common."""
            if k == len(once):
                return self._repeated(place, one, i, n, e, inner, fresh)
            return self._held(*once[k], inner, lambda more: held(k + 1, more))

        return held(0, env)

    def _repeated(
        self, place: Value, one: Term, i: str, n: Term, e: Term, env: Env, fresh: bool
    ) -> list[Stat]:
        """A loop, or several over parts, that adds `one` to element i of a place, for all i < n."""
        node = self.ref(i, e)
        inner = {**env, i: node}
        found = pieces(one, i, n)
        try:
            for _, part in found:
                expression(part, inner)
        except Hard:
            # What takes statements is written once.
            found = [((Num(0, type=I64), n), one)]
        bodies = [(ends, self.add(at(place, node), part, inner, fresh)) for ends, part in found]
        return [
            self.repeat(i, self.node(first, env), self.node(end, env), body, e)
            for (first, end), body in bodies
            if body
        ]

    def _summed(self, place: Value, e: Fold, env: Env, fresh: bool) -> list[Stat] | None:
        """A sum of what the elements give, which goes to a place that is not made here."""
        if fresh or isinstance(place, tuple):
            return None
        rest = summand(e.fn)
        if rest is None:
            return None
        p = e.fn.params[1]
        if e.init.type != rest.type:
            return None
        i = self.names.new("i")
        node = self.ref(i, e)
        try:
            one = elem(e.array, Var(i, type=I64, start=e.start, end=e.end), self.names)
            count = self.node(self.length(e.array), env)
        except Hard as hard:
            return self.first(hard.term, e, env, lambda r, inner: self.add(place, r, inner))
        own = substitute(Lam((p,), rest), {}, self.names)
        body = Let(own.params[0], one, own.body, type=rest.type, start=e.start, end=e.end)
        stats = self.add(place, body, {**env, i: node})
        return [*self.add(place, e.init, env), self.repeat(i, nought(e), count, stats, e)]


def inside(e: Term) -> Term:
    """The part of a term that is to be made first."""
    match e:
        case Index(of) | Proj(_, of) | Update(of):
            return of
        case If(c):
            return c
    raise TypeError(f"a {type(e).__name__} is not lowered")


def product_read(e: Term, is_read: bool = False) -> Term | None:
    """A matrix product in an array, whose value is read by the derivative of a function of it."""
    if not isinstance(e, Op) or not isinstance(e.type, Arr):
        return None
    row = FUNCTIONS[e.fn]
    if row.contracts:
        return e if is_read else None
    if not row.is_elementwise:
        return None
    # The types are those of elements.
    args = [Var(f"x{k}", type=elem_type(a.type or F64)) for k, a in enumerate(e.args)]
    own = Op(e.fn, tuple(args), type=elem_type(e.type))
    gains = [g for g in adjoint_gains(own, args, Var("z", type=own.type)) if g is not None]
    read = {v.name for g in gains for v in _variables(g, own)}
    found = (product_read(a, is_read or x.name in read) for a, x in zip(e.args, args, strict=True))
    return next(filter(None, found), None)


def _variables(e: Term, known: Op) -> Iterator[Var]:
    """The variables in a term, apart from those in a part that is known."""
    if isinstance(e, Op) and (e.fn, e.args) == (known.fn, known.args):
        return
    if isinstance(e, Var):
        yield e
    for inner in children(e):
        yield from _variables(inner, known)


def summand(fn: Lam) -> Term | None:
    """The term that a fold adds up, if it is a sum."""
    match fn:
        case Lam((str(s), _), Op("+", (Var(a), rest) | (rest, Var(a)))):
            if a == s and s not in free(rest):
                return rest
    return None


def alike(a: Term, b: Term) -> bool:
    """Whether two arrays are as long in all dimensions."""
    return a.type is not None and b.type is not None and dims(a.type) == dims(b.type)
