"""Definitions as reversible functions: `f(x)` becomes `func f(out, x)`, which adds it to `out`.

What one expression says is one addition; the rest are loops over elements, ancillas that hold one
value each, and states of folds and loops, which a routine makes and takes away again.  No float
is ever accumulated in an ancilla: a value is put there whole, and taken away whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rvm_asm.nodes import Application, Declared, Lit, Node, Operator, Ref, TypeRef, Word
from rvm_asm.stats import (
    AllocStat,
    Arm,
    For,
    Func,
    IfStat,
    Iterate,
    OpStat,
    Routine,
    Stat,
)

from rvm.isa import FUNCTIONS
from rvm.types import BOOL, I64, Scalar
from rvm_pure.definition import Definition
from rvm_pure.elements import elem, length
from rvm_pure.expressions import (
    PRODUCTS,
    Env,
    Hard,
    Value,
    bound,
    expression,
    field,
    indexed,
)
from rvm_pure.faults import StageFault
from rvm_pure.inplace import plan
from rvm_pure.invariants import lifted
from rvm_pure.keeping import ALL, Keep, bytes_of, bytes_text
from rvm_pure.normal import normal
from rvm_pure.printer import term as term_text
from rvm_pure.ranges import pieces
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
    Proj,
    Term,
    Tup,
    Update,
    Var,
    binders,
    children,
    free,
    rebuild,
    substitute,
    walk,
)
from rvm_pure.types import Arr, Product, Size, Type, dims, elem_type, names_of, parts
from rvm_pure.typing import lengths_of

OUT = "out"
"""The parameter that a definition's value is added to."""


Then = Callable[[Term, Env], list[Stat]]


class Lowering:
    """One definition on its way to a function."""

    def __init__(self, d: Definition, keep: Keep = ALL) -> None:
        self.d = d
        self.keep = keep
        self.start, self.end = d.name.start, d.name.end
        taken = {*(p.name for p in d.params), *lengths_of(d.params)}
        self._fixed = taken
        """Names that stand for what they stand for in types, too."""
        body = normal(d.body, taken)
        self.names = Names({*taken, *binders(body)})
        self.body = normal(lifted(body, self.names), taken)
        self.names.taken |= set(binders(self.body))
        self.notes: dict[str, tuple[str, str]] = {}
        """What became of each let and state by its name: what it is, its type and its bytes."""
        self._exchanges = False
        """Whether states that are arrays are exchanged, too, as numbers are: infinities come back.

        Else they are added and taken away whole, which machine code does in a fifth of the time.
        """
        self._steps: list[Func] = []
        """The functions that schedules play."""

    def functions(self, fresh: bool = False) -> list[Func]:
        """The function, whose first parameter is what the value is added to, and its loops' steps.

        If that is `fresh`, it holds zeros before, and infinities are taken away again.
        StageFault where a budget of bytes is asked for, and a state's size is not known.
        """
        d = self.d
        assert d.body.type is not None
        self._exchanges = fresh
        out = self.names.new(OUT)
        known = lengths_of(d.params)
        params = [Declared(out, self._type(d.body.type, known), self.start, self.end)]
        params += [
            Declared(_plain(p.name), self._type(p.type, None), p.start, p.end) for p in d.params
        ]
        env: dict[str, Value] = {n: self._ref(n) for n in known}
        env |= {p.name: self._places(self._ref(p.name), p.type) for p in d.params}
        place = self._places(self._ref(out), d.body.type)
        whole = fresh and isinstance(d.body.type, Scalar)
        body = [*self._checks(place, self.body, env), *self.add(place, self.body, env, whole)]
        for e in walk(self.body):
            if isinstance(e, Let) and isinstance(e.pattern, str):
                self.note(e.pattern, "put in where it is used", e.value, "0")
        word = Word(_plain(d.name.text), d.name.start, d.name.end)
        return [Func(word, [], params, body, self.start, self.end), *self._steps]

    def _ref(self, name: str, at: Term | None = None) -> Ref:
        start, end = (self.start, self.end) if at is None else (at.start, at.end)
        return Ref(_plain(name), (), start, end)

    def _places(self, of: Ref, t: Type) -> Value:
        """The places of a value: of a tuple one for each part, which are a record's fields."""
        inner = elem_type(t)
        if not isinstance(inner, Product):
            return of
        return tuple(
            self._places(field(of, f"p{k + 1}"), item) for k, item in enumerate(inner.items)
        )

    def _type(self, t: Type, known: object) -> TypeRef:
        """A type as written; of lengths that are not `known` nothing is said."""
        sizes: list[Node | None] = []
        while isinstance(t, Arr):
            n = t.length
            plain = n is not None and not (n.name and n.more)
            if known is not None and n is not None and n.name and n.name not in known:  # type: ignore[operator]
                plain = False
            both = n is not None and known is None
            sizes.append(self._size(n) if n is not None and (plain or both) else None)
            t = t.elem
        start, end = self.start, self.end
        if isinstance(t, Product):
            fields = [
                Declared(f"p{k + 1}", self._type(item, known), start, end)
                for k, item in enumerate(t.items)
            ]
            return TypeRef("Tuple", None, fields, sizes or None, start, end)
        frac = t.frac if t.is_fixed else None
        return TypeRef(t.name, frac, None, sizes or None, start, end)

    def _size(self, n: Size) -> Node:
        start, end = self.start, self.end
        if not n.name:
            return Lit(n.more, start, end)
        name: Node = Ref(n.name, (), start, end)
        if not n.more:
            return name
        sign = "+" if n.more > 0 else "-"
        return Operator(sign, [name, Lit(abs(n.more), start, end)], start, end)

    def length(self, e: Term) -> Term:
        """How many elements an array has: by a name of a length, where one is known."""
        n = e.type.length if isinstance(e.type, Arr) else None
        if n is None or (n.name and n.name not in self._fixed):
            return length(e)
        if not n.name:
            return Num(n.more, type=I64)
        name = Var(n.name, type=I64)
        if not n.more:
            return name
        more = Op("+" if n.more > 0 else "-", (name, Num(abs(n.more), type=I64)), type=I64)
        return more if n.more > 0 else Op("max", (more, Num(0, type=I64)), type=I64)

    def _checks(self, place: Value, e: Term, env: Env) -> list[Stat]:
        """Checks of what the type of `out` does not say of its length."""
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
        return [self._alloc("alloc", name, I64, have, e), self._alloc("free", name, None, want, e)]

    # Values added to places.

    def add(self, place: Value, e: Term, env: Env, fresh: bool = False) -> list[Stat]:
        """Statements that add a term's value to a place; one that is `fresh` holds zeros."""
        if fresh and self._exchanges and isinstance(e.type, Arr):
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
                return self._first(
                    part, e, env, lambda rest, inner: self.add(place, rest, inner, fresh)
                )
            case Fold("reduce") if fresh and part is e.array:
                # Its elements are held, and what they sum to is an expression.
                return self._first(part, e, env, lambda r, inner: self.add(place, r, inner, True))
            case Fold("reduce" | "foldl"):
                found = self._summed(place, e, env, fresh)
                if found is not None:
                    return found
                return self._last(e, env, lambda last, inner: self.add(place, last, inner, fresh))
            case Fold() if fresh:
                return self._scan(place, e, env)
            case Loop():
                return self.add(place, self._fold(e), env, fresh)
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
            if isinstance(e, Op) and e.fn in ("+", "-") and not fresh and _alike(*e.args):
                return self._apart(place, e, env)
        if part is e and not isinstance(e, Fold):
            part = _inside(e)
        return self._first(part, e, env, lambda rest, inner: self.add(place, rest, inner, fresh))

    def _apart(self, place: Value, e: Op, env: Env) -> list[Stat]:
        """Each part of a sum by itself, as those that are no expressions take less so."""
        a, b = e.args
        minus = b if e.fn == "+" else Op("neg", (b,), type=e.type, start=b.start, end=b.end)
        return [*self.add(place, a, env), *self.add(place, minus, env)]

    def _first(self, part: Term, e: Term, env: Env, then: Then) -> list[Stat]:
        """Statements over a term one part of which is made before, and taken away after."""
        name = self.names.new("t")
        var = Var(name, type=part.type, start=part.start, end=part.end)
        rest = _replaced(e, part, var)
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
        whole = isinstance(t, Scalar) or self._exchanges
        if fresh and whole and isinstance(scalar, Scalar) and not scalar.is_exact:
            # Taken away by what it is, not by a difference, which is NaN of infinities.
            # A state that is made again and again gets a new adjoint by that, too.
            name = self.names.new("v")
            made = self._alloc("alloc", name, t, v, e)
            made.declared.type = self._like(place, t, env, e)
            back = self._alloc("free", name, None, None, e)
            swap = OpStat("swap", [self._ref(name, e), place], e.start, e.start, e.end)
            return [made, swap, back]
        word = "xor" if isinstance(scalar, Scalar) and scalar.is_bool else "add"
        return [OpStat(word, [place, v], e.start, e.start, e.end)]

    def _alloc(self, word: str, name: str, t: Type | None, v: Node | None, at: Term) -> AllocStat:
        ref = None if t is None else self._type(t, None)
        declared = Declared(_plain(name), ref, at.start, at.end)
        return AllocStat(word, declared, v, at.start, at.end)

    def _like(self, place: Node, t: Type, env: Env, at: Term) -> TypeRef:
        """The type of an ancilla with the lengths of a place."""
        ref = self._type(t, None)
        sizes: list[Node | None] = []
        for axis, n in enumerate(dims(t)):
            if n is not None and (not n.name or n.name in self._fixed):
                sizes.append(self._node(self.length(Var("", type=Arr(t, n))), env))
            else:
                number = Lit(axis, at.start, at.end)
                sizes.append(Application("dim", [place, number], at.start, at.end))
        ref.dims = sizes or None
        return ref

    def _let(self, place: Value, e: Let, env: Env, fresh: bool) -> list[Stat]:
        uses = free(e.body)
        if isinstance(e.pattern, str):
            k = uses.get(e.pattern, 0)
            if k == 0:
                return self.add(place, e.body, env, fresh)
            once = k == 1 and not _repeated(e.body, e.pattern)
            if self._fuses(e.value, once):
                self.note(e.pattern, "each element is put in where it is used", e.value, "0")
                return self.add(place, _put(e.body, e.pattern, e.value, self.names), env, fresh)
            try:
                value = expression(e.value, env)
                small = isinstance(value, (Ref, Lit))
                if once and not small and isinstance(e.value.type, Arr):
                    return self.add(place, _put(e.body, e.pattern, e.value, self.names), env, fresh)
                if small or once:
                    return self.add(place, e.body, bound(e.pattern, value, env), fresh)
            except Hard:
                if once and not fresh and isinstance(e.value.type, Scalar):
                    # It may be a part that is added by itself.
                    return self.add(place, _put(e.body, e.pattern, e.value, self.names), env)
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
        return once or _is_light(one)

    def note(
        self, name: str, text: str, e: Term, count: str = "", more: Term | None = None
    ) -> None:
        """Say what became of a value, of which there are so many, or so many and one."""
        assert e.type is not None
        t = str(e.type)
        if more is not None:
            n = term_text(more)
            count = str(int(n) + 1) if n.isdigit() else f"({n} + 1)"
            t = f"{t}[{count.strip('()')}]" if isinstance(e.type, Scalar) else f"{count} of {t}"
        size = "" if count == "0" else f", {bytes_text(e.type, count)}"
        self.notes.setdefault(name, (text, f"{t}{size}"))

    def _held(self, name: str, e: Term, env: Env, body: Callable[[Env], list[Stat]]) -> list[Stat]:
        """Statements over a value that is made before, and taken away after."""
        fold = self._fold(e) if isinstance(e, Loop) else e
        if isinstance(fold, Fold) and fold.kind in ("reduce", "foldl") and _terms(fold.fn) is None:
            # The last state is the value.
            self.note(name, "put in where it is used", e, "0")
            return self._last(
                fold, env, lambda last, more: body({**more, name: expression(last, more)})
            )
        new = self.names.new(name) if name in self.names.taken and name in env else name
        self.names.taken.add(new)
        assert e.type is not None
        ref = self._ref(new, e)
        inner = {**env, name: self._places(ref, e.type)}
        if isinstance(elem_type(e.type), Scalar):
            try:
                value = expression(e, env)
            except Hard as hard:
                if isinstance(e.type, Scalar) and isinstance(hard.term.type, Arr):
                    # An array first, with which the value is an expression.
                    return self._first(
                        hard.term, e, env, lambda rest, more: self._held(name, rest, more, body)
                    )
            else:
                assert not isinstance(value, tuple)
                self.note(new, "an ancilla, freed by the same expression", e)
                room = self._room(new, e, env)
                return [
                    AllocStat("alloc", room, value, e.start, e.end),
                    *body(inner),
                    self._alloc("free", new, None, value, e),
                ]
        made: list[Stat] = []
        self._make(new, e, env, made)
        self.note(new, "stored, and uncomputed at the end", e)
        return [self._routine([*made, *self.add(inner[name], e, env, True)], body(inner), e)]

    def _room(self, name: str, e: Term, env: Env, more: Term | None = None) -> Declared:
        """An ancilla with room for a value, or for so many of them."""
        t = e.type
        assert t is not None
        sizes: list[Node | None] = []
        if more is not None:
            sizes.append(self._node(more, env))
        at: Term = e
        while isinstance(t, Arr):
            sizes.append(self._node(self.length(at), env))
            t = t.elem
            at = Index(at, (Num(0, type=I64),), type=t, start=e.start, end=e.end)
        ref = self._type(t, None)
        ref.dims = sizes or None
        return Declared(_plain(name), ref, e.start, e.end)

    def _make(
        self, name: str, e: Term, env: Env, out: list[Stat], more: Term | None = None
    ) -> None:
        """Make an ancilla of zeros for a value, or for so many of them."""
        declared = self._room(name, e, env, more)
        out.append(AllocStat("alloc", declared, None, e.start, e.end))

    def _node(self, e: Term, env: Env) -> Node:
        v = expression(e, env)
        assert not isinstance(v, tuple)
        return v

    def _routine(self, made: list[Stat], result: list[Stat], at: Term) -> Stat:
        word = Word(f" {self.names.new('routine')}", at.start, at.end)
        return Routine(word, made, result, at.start, at.end)

    # Loops.

    def _for(self, var: str, first: Node, end: Node, body: list[Stat], at: Term) -> Stat:
        last: Node = Operator("-", [end, Lit(1, at.start, at.end)], at.start, at.end)
        if isinstance(end, Lit):
            last = Lit(end.value - 1, at.start, at.end)
        word = Word(_plain(var), at.start, at.end)
        return For(word, first, last, None, False, body, at.start, at.end)

    def _elements(self, place: Value, e: Term, env: Env, fresh: bool) -> list[Stat]:
        i = self.names.new("i")
        var = Var(i, type=I64, start=e.start, end=e.end)
        one, n, node = elem(e, var, self.names), self.length(e), self._ref(i, e)
        inner = {**env, i: node}
        found = pieces(one, i, n)
        try:
            for _, part in found:
                expression(part, inner)
        except Hard:
            # What takes statements is written once.
            found = [((Num(0, type=I64), n), one)]
        return [
            self._for(
                i,
                self._node(first, env),
                self._node(end, env),
                self.add(_at(place, node), part, inner, fresh),
                e,
            )
            for (first, end), part in found
        ]

    def _summed(self, place: Value, e: Fold, env: Env, fresh: bool) -> list[Stat] | None:
        """A sum of what the elements give, which goes to a place that is not made here."""
        if fresh or isinstance(place, tuple):
            return None
        rest = _terms(e.fn)
        if rest is None:
            return None
        p = e.fn.params[1]
        if e.init.type != rest.type:
            return None
        i = self.names.new("i")
        node = self._ref(i, e)
        try:
            one = elem(e.array, Var(i, type=I64, start=e.start, end=e.end), self.names)
            count = self._node(self.length(e.array), env)
        except Hard as hard:
            return self._first(hard.term, e, env, lambda r, inner: self.add(place, r, inner))
        own = substitute(Lam((p,), rest), {}, self.names)
        body = Let(own.params[0], one, own.body, type=rest.type, start=e.start, end=e.end)
        stats = self.add(place, body, {**env, i: node})
        return [*self.add(place, e.init, env), self._for(i, _zero(e), count, stats, e)]

    def _last(self, e: Fold, env: Env, result: Then) -> list[Stat]:
        """The last state of a fold, made before what uses it and taken away after.

        It is updated in place if it can be, else a schedule is played, or all states are kept.
        """
        i = self.names.new("i")
        var = Var(i, type=I64, start=e.start, end=e.end)
        try:
            element = elem(e.array, var, self.names)
            n = self.length(e.array)
            count = self._node(n, env)
        except Hard as hard:
            return self._first(
                hard.term, e, env, lambda r, inner: self._last(_as_fold(r), inner, result)
            )
        s = self.names.new("s")
        assert e.init.type is not None
        here = {"type": e.init.type, "start": e.start, "end": e.end}
        place = self._places(self._ref(s, e), e.init.type)
        last: Term = Var(s, **here)  # type: ignore[arg-type]
        made: list[Stat] = []
        update = self._update(place, e, element, {**env, i: self._ref(i, e)})
        if update is not None:
            self._make(s, e.init, env, made)
            self.note(s, "the state of a fold or loop, in place", e.init)
            made += self.add(place, e.init, env, True)
            made.append(self._for(i, _zero(e), count, update, e))
        elif self.keep.has_budget:
            made = self._played(s, e, element, i, count, env)
        else:
            self.names.taken.discard(i)
            more = Op("+", (n, Num(1, type=I64)), type=I64)
            self._make(s, e.init, env, made, more)
            text = "the states of a fold or loop, stored and uncomputed"
            self.note(s, text, e.init, more=n)
            place = self._places(self._ref(s, e), Arr(e.init.type, None))
            made += self._scan(place, replace(e, kind="scanl"), env)
            last = Index(replace(last, type=Arr(e.init.type, None)), (n,), **here)  # type: ignore[arg-type]
        return [self._routine(made, result(last, {**env, s: place}), e)]

    def _update(self, place: Value, e: Fold, element: Term, env: Env) -> list[Stat] | None:
        """A step of a fold in place; None if its state goes on by what cannot be undone."""
        found = plan(e, element, self.names, self.keep.in_place)
        if found is None:
            return None
        parts, order, steps = found
        places = list(place) if isinstance(place, tuple) else [place]
        out: list[Stat] = []
        held = list(range(len(order)))
        for k, j in enumerate(order):
            at = held.index(j)
            if at != k:
                held[k], held[at] = held[at], held[k]
                pair = [places[k], places[at]]
                out.append(OpStat("swap", pair, e.start, e.start, e.end))  # type: ignore[arg-type]
        inner = {**env, **{parts[j]: places[k] for k, j in enumerate(order)}}
        try:
            for k, s in steps:
                target = places[k]
                for item in s.at:
                    target = _at(target, self._node(item, inner))
                operands = [] if s.by is None else [self._node(s.by, inner)]
                out.append(OpStat(s.word, [target, *operands], e.start, e.start, e.end))  # type: ignore[list-item]
        except Hard:
            return None
        return out

    def _played(self, s: str, e: Fold, element: Term, i: str, count: Node, env: Env) -> list[Stat]:
        """The last state of a fold in an ancilla, by a schedule that holds some of the states."""
        t = e.init.type
        assert t is not None
        pebbles = self._pebbles(e)
        made: list[Stat] = []
        first = self.names.new("first")
        self._make(first, e.init, env, made)
        self._make(s, e.init, env, made)
        start = self._ref(first, e)
        made += self.add(self._places(start, t), e.init, env, True)
        name = self.names.new(f"{self.d.name.text}.step")
        args = self._step(name, e, element, i, env)
        policy: list[tuple[Word, Node]] = [
            (Word("pebbles", e.start, e.end), Lit(pebbles, e.start, e.end))
        ]
        zero, one = (Lit(k, e.start, e.end) for k in (0, 1))
        end = Operator("-", [count, one], e.start, e.end)
        number, callee = Word(_plain(i), e.start, e.end), Word(_plain(name), e.start, e.end)
        made.append(
            Iterate(
                callee,
                [self._ref(s, e), start, self._ref(i, e), *args],
                number,
                zero,
                end,
                False,
                policy,
                e.start,
                e.end,
            )
        )
        text = f"the last state of a fold or loop, by a schedule with {pebbles} pebbles"
        self.note(s, text, e.init, str(pebbles + 2))
        return made

    def _pebbles(self, e: Fold) -> int:
        """How many states there may be besides the first and the last."""
        t, memory = e.init.type, self.keep.memory
        assert t is not None
        if memory is None:
            return self.keep.pebbles or 0
        size = bytes_of(t)
        if set(size) != {()}:
            what = f"how many bytes a state of type {t} has is not known before the run"
            raise StageFault(e, what, "say how many states there may be: `pebbles`")
        if memory < 3 * size[()]:
            what = f"{memory:,} bytes are less than three states of {size[()]:,} bytes each"
            raise StageFault(e, what, "the first, the last and one between them are held")
        return memory // size[()] - 2

    def _step(self, name: str, e: Fold, element: Term, i: str, env: Env) -> list[Node]:
        """Make the function of a step of a fold; what it takes besides its states and number."""
        t = e.init.type
        assert t is not None
        y, x = self.names.new("next"), self.names.new("state")
        fn = substitute(e.fn, {}, self.names)
        body: Term = Let(fn.params[1], element, fn.body, type=t, start=e.start, end=e.end)
        body = Let(fn.params[0], Var(x, type=t), body, type=t, start=e.start, end=e.end)
        params = [Declared(p, self._type(t, ()), e.start, e.end) for p in (y, x)]
        params.append(Declared(_plain(i), self._type(I64, None), e.start, e.end))
        inner: dict[str, Value] = {i: self._ref(i, e), x: self._places(self._ref(x, e), t)}
        args: list[Node] = []

        def passed(v: Value, t: Type, wish: str) -> Value:
            """A parameter for a value, and one for each part of a tuple."""
            if isinstance(v, tuple):
                return tuple(passed(w, item, wish) for w, item in zip(v, parts(t), strict=True))
            own = self.names.new(wish)
            params.append(Declared(_plain(own), self._type(t, ()), e.start, e.end))
            args.append(v)
            return self._ref(own, e)

        # Lengths are numbers there, as types of loops' values may name them.
        named = {n for v in walk(body) if v.type is not None for n in names_of(v.type)}
        types = {v.name: v.type or I64 for v in walk(body) if isinstance(v, Var)}
        for v in {**free(body), **dict.fromkeys(sorted(named & self._fixed))}:
            if v not in inner:
                inner[v] = passed(env[v], types.get(v, I64), v)
        outer, self._exchanges = self._exchanges, True
        stats = self.add(self._places(self._ref(y, e), t), body, inner, True)
        self._exchanges = outer
        word = Word(_plain(name), e.start, e.end)
        self._steps.append(Func(word, [], params, stats, e.start, e.end))
        return args

    def _scan(self, place: Value, e: Term, env: Env) -> list[Stat]:
        """The states of a fold, put into a fresh array with room for them."""
        assert isinstance(e, Fold)
        array = e.array
        i = self.names.new("i")
        var = Var(i, type=I64, start=e.start, end=e.end)
        down = e.kind == "scanr"
        n = self.length(array)
        one = Num(1, type=I64)
        where: Term = var
        if down:
            where = Op("-", (Op("-", (n, one), type=I64), var), type=I64)
        try:
            x = elem(array, where, self.names)
            self._node(n, env)
        except Hard as hard:
            return self._first(hard.term, e, env, lambda r, inner: self._scan(place, r, inner))
        inner: dict[str, Value] = {**env, i: self._ref(i, e)}
        old = Op("+", (where, one), type=I64) if down else where
        new = where if down else Op("+", (where, one), type=I64)
        fn = substitute(e.fn, {}, self.names)
        before = _at(place, self._node(old, inner))
        inner = bound(fn.params[0], before, inner)
        body = Let(fn.params[1], x, fn.body, type=fn.body.type, start=e.start, end=e.end)
        stats = self.add(_at(place, self._node(new, inner)), body, inner, True)
        first = n if down else Num(0, type=I64)
        init = self.add(_at(place, self._node(first, env)), e.init, env, True)
        return [*init, self._for(i, _zero(e), self._node(n, env), stats, e)]

    def _fold(self, e: Loop) -> Term:
        """A loop as a fold over the numbers of its steps, in a let if it counts down."""
        over = Prim("iota", (e.count,), type=Arr(I64, None), start=e.start, end=e.end)
        body, var = e.body, e.var
        if e.down:
            var = self.names.new(e.var)
            n = self.names.new("n")
            last = Op("-", (Var(n, type=I64), Num(1, type=I64)), type=I64)
            k = Op("-", (last, Var(var, type=I64)), type=I64)
            body = Let(e.var, k, e.body, type=e.body.type, start=e.start, end=e.end)
            over = replace(over, args=(Var(n, type=I64),))
        fn = Lam((e.pattern, var), body, start=e.start, end=e.end)
        fold: Term = Fold("foldl", fn, e.init, over, type=e.type, start=e.start, end=e.end)
        if e.down:
            fold = Let(n, e.count, fold, type=e.type, start=e.start, end=e.end)
        return fold


def _at(place: Value, i: Node) -> Value:
    if isinstance(place, tuple):
        return tuple(_at(q, i) for q in place)
    assert isinstance(place, Ref)
    return indexed(place, [i])


def _inside(e: Term) -> Term:
    """The part of a term that is to be made first."""
    match e:
        case Index(of) | Proj(_, of) | Update(of):
            return of
        case If(c):
            return c
    raise TypeError(f"a {type(e).__name__} is not lowered")


def _replaced(e: Term, part: Term, by: Term) -> Term:
    if e is part:
        return by
    return rebuild(e, lambda x: _replaced(x, part, by))


def _terms(fn: Lam) -> Term | None:
    """What a fold adds up, if it is a sum."""
    match fn:
        case Lam((str(s), _), Op("+", (Var(a), rest) | (rest, Var(a)))):
            if a == s and s not in free(rest):
                return rest
    return None


def _alike(a: Term, b: Term) -> bool:
    """Whether two arrays are as long in all dimensions."""
    return a.type is not None and b.type is not None and dims(a.type) == dims(b.type)


def _zero(at: Term) -> Lit:
    return Lit(0, at.start, at.end)


def _as_fold(e: Term) -> Fold:
    assert isinstance(e, Fold)
    return e


def _put(e: Term, name: str, by: Term, names: Names) -> Term:
    """A term with another for a variable, and elements of that for its elements.

    Every name is bound once, so that none is caught.
    """
    if isinstance(e, Var):
        return by if e.name == name else e
    if isinstance(e, Index) and isinstance(e.of, Var) and e.of.name == name:
        first, *rest = (_put(i, name, by, names) for i in e.items)
        try:
            one = elem(by, first, names)
        except Hard:
            pass
        else:
            return replace(e, of=one, items=tuple(rest)) if rest else one
    return rebuild(e, lambda x: _put(x, name, by, names))


def _is_light(e: Term) -> bool:
    """Whether an element is one of another array, perhaps one of several, by its number."""
    match e:
        case Let(_, a, b):
            return _is_light(a) and _is_light(b)
        case If(Op("<", _), a, b):
            return _is_light(a) and _is_light(b)
        case Op("+" | "-", args):
            return e.type == I64 and all(map(_is_light, args))
    return isinstance(e, (Index, Var, Num))


def _repeated(e: Term, name: str) -> bool:
    """Whether a variable is used in what runs more than once."""
    match e:
        case Each(fn) | Fold(_, fn):
            if name in free(fn):
                return True
        case Loop(body=b):
            if name in free(b):
                return True
        case Prim("replicate", (_, a)):
            if name in free(a):
                return True
        case Op(fn, args) if isinstance(e.type, Arr) and FUNCTIONS[fn].is_elementwise:
            # As a loop over elements it has its numbers in every one.
            if any(isinstance(a.type, Scalar) and name in free(a) for a in args):
                return True
    return any(_repeated(x, name) for x in children(e))


def _plain(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"


__all__ = ["BOOL", "OUT", "Lowering"]
