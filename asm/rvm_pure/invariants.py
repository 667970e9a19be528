"""Hoisting of loop invariants that take more than one operation.

An array is hoisted if its elements take nonlinear functions, reductions or products, and if it
needs no more memory than one of the arrays that it is made of.  What the function of an inner map
or fold makes of elements that are the same in every round becomes an array of all such values.

A value that may not exist, such as the greatest element of an empty array, is computed only if the
loop runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from rvm.expr import LENGTHS
from rvm.isa import FUNCTIONS
from rvm.types import BOOL, I64, Scalar
from rvm_pure.cost import MOVES, NLOPS
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
    Pattern,
    Prim,
    Term,
    Tup,
    Update,
    Var,
    binders,
    free,
    names_in,
    rebuild,
    substitute,
    walk,
)
from rvm_pure.types import Arr, Product, Type, dims, elem_type

Lets = list[tuple[str, Term]]
Arrays = tuple[Term, ...]


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
            return replace(e, arrays=made, fn=_body(fn, made[0], names, out, False))
        case Fold(_, fn, init, array):
            first, over = _strict(init, names, out), _strict(array, names, out)
            return replace(e, init=first, array=over, fn=_body(fn, over, names, out, True))
        case Prim("replicate", (n, a)) if _is_heavy(a) and isinstance(a.type, Scalar):
            name = names.new("c")
            out.append((name, _strict(a, names, out)))
            return replace(e, args=(_strict(n, names, out), Var(name, type=a.type)))
        case Loop(p, init, var, n, body):
            first, count = _strict(init, names, out), _strict(n, names, out)
            body, bound = lifted(body, names), {*names_in(p), var}
            inner = without(body, bound, loop_runs(count), names, out, is_round=True)
            return replace(e, init=first, count=count, body=inner)
    return rebuild(e, lambda x: _strict(x, names, out))


def _body(fn: Lam, array: Term, names: Names, out: Lets, is_round: bool) -> Lam:
    bound = {n for p in fn.params for n in names_in(p)}
    size = array.type.length if isinstance(array.type, Arr) else None
    runs = None
    if isinstance(array, Var):
        runs = loop_runs(Op("len", (array,), type=I64))
    elif size is not None and not size.more and size.name in names.taken:
        runs = loop_runs(Var(size.name, type=I64))
    body = without(lifted(fn.body, names), bound, runs, names, out, is_round=is_round)
    return replace(fn, body=body)


def loop_runs(count: Term) -> Term:
    """Whether a loop runs."""
    return Op(">", (count, Num(0, type=I64)), type=BOOL)


def without(
    body: Term,
    bound: set[str],
    runs: Term | None,
    names: Names,
    out: Lets,
    *,
    is_round: bool = False,
) -> Term:
    """A loop's body without what takes work and names nothing that is bound in it.

    `runs` is whether the loop runs, if that is known to be a term of what is bound outside of it.
    If the body is certainly a round of statements, a nonlinear function of a number is work, too:
    a formula of whole arrays computes it once.
    """

    def put(e: Term) -> Var | None:
        if not _fits(e):
            return None
        name = names.new("c")
        out.append((name, e))
        return Var(name, type=e.type, start=e.start, end=e.end)

    own = {*bound, *binders(body)}
    return _Body(own, {}, set(), runs, names, put, is_round).without(body)


@dataclass
class _Body:
    """A loop's body, or in it a function of elements that are the same in every round."""

    bound: set[str]
    """The names for what may change from round to round."""
    known: dict[str, Term]
    """The values of other names that are bound here."""
    heavy: set[str]
    """Those among them that take work."""
    runs: Term | None
    names: Names
    put: Callable[[Term], Var | None]
    """Puts a term before the loop, if it may, and gives its name here."""
    is_round: bool = False
    done: dict[str, Term | None] = field(default_factory=dict)

    def without(self, e: Term) -> Term:
        """A term without what is put before the loop."""
        if isinstance(e, Lam):
            return e
        names = free(e).keys()
        if self.bound.isdisjoint(names):
            if self.heavy.isdisjoint(names) and not _is_heavy(e, is_array=True):
                return e
            found = self._before(e)
            if found is not None:
                return found
        match e:
            case If(c):
                return replace(e, cond=self.without(c))
            case Loop(_, init, _, n):
                return replace(e, init=self.without(init), count=self.without(n))
            case Let(str(p), a, b) if self.bound.isdisjoint(free(a)):
                # It goes where it is used, and stays if that is here.
                self.known[p] = a
                self.bound.discard(p)
                if _is_heavy(a, is_array=True) or not self.heavy.isdisjoint(free(a)):
                    self.heavy.add(p)
                rest = self.without(b)
                if p not in free(rest):
                    return rest
                return replace(e, value=self.done.get(p) or self.without(a), body=rest)
        e = rebuild(e, self.without)
        match e:
            case Each(fn, arrays):
                fn, arrays = self._by_elements(fn, arrays)
                return replace(e, fn=fn, arrays=arrays)
            case Fold(_, fn, array=over):
                fn, (over, *more) = self._by_elements(fn, (over,))
                if more:
                    fn = replace(fn, params=(fn.params[0], fn.params[1:]))
                    over = self._zip((over, *more))
                return replace(e, fn=fn, array=over)
        return e

    def _before(self, e: Term) -> Term | None:
        """The name for what is the same in every round, if it takes enough work."""
        if isinstance(e, Var):
            if e.name in self.known and e.name not in self.done:
                self.done[e.name] = self._before(self.known[e.name])
            return self.done.get(e.name)
        t = e.type
        if t is None or not isinstance(elem_type(t), Scalar):
            return None
        whole = self._whole(e)
        if not _is_heavy(whole, self.is_round or isinstance(t, Arr)):
            return None
        if any(_is_partial(x) for x in walk(whole)):
            if self.runs is None or not isinstance(t, Scalar):
                return None
            zero = Num(False if t.is_bool else 0, type=t)
            whole = If(self.runs, whole, zero, type=t)
        return self.put(whole)

    def _whole(self, e: Term) -> Term:
        """A term with the lets for what it names."""
        for name, value in reversed(self.known.items()):
            if name in free(e):
                e = Let(name, value, e, type=e.type, start=e.start, end=e.end)
        return substitute(e, {}, self.names)

    def _by_elements(self, fn: Lam, arrays: Arrays) -> tuple[Lam, Arrays]:
        """A function of elements that takes elements of new arrays for what is made of old ones."""
        pairs = list(zip(fn.params[-len(arrays) :], arrays, strict=True))
        same = [(p, a) for p, a in pairs if self.bound.isdisjoint(free(a))]
        names = {n for p, _ in same for n in names_in(p)}
        if not (names or self.is_round):
            return fn, arrays
        first, more = arrays[0].type, list[tuple[Pattern, Term]]()
        assert isinstance(first, Arr)

        def put(x: Term) -> Var | None:
            uses = free(x)
            used = [(p, a) for p, a in (*same, *more) if not uses.keys().isdisjoint(names_in(p))]
            if not used:
                return self.put(x)
            params, over = zip(*used, strict=True)
            assert x.type is not None
            t = Arr(x.type, first.length)
            array = self.put(self._whole(Each(Lam(params, x), over, type=t, start=x.start)))
            if array is None:
                return None
            name = self.names.new("c")
            more.append((name, array))
            return Var(name, type=x.type, start=x.start, end=x.end)

        inner = replace(self, bound=self.bound - names, known=dict(self.known), put=put)
        inner = replace(inner, heavy=set(self.heavy), is_round=True, done={})
        body = inner.without(fn.body)
        params = (*fn.params, *(p for p, _ in more))
        return replace(fn, params=params, body=body), (*arrays, *(a for _, a in more))

    def _zip(self, arrays: Arrays) -> Term:
        """Arrays as one array of tuples."""
        types = [a.type for a in arrays if isinstance(a.type, Arr)]
        items = tuple(Var(self.names.new("e"), type=t.elem) for t in types)
        of = Product(tuple(t.elem for t in types))
        fn = Lam(tuple(x.name for x in items), Tup(items, type=of))
        return Each(fn, arrays, type=Arr(of, types[0].length), start=arrays[0].start)


def _fits(e: Term) -> bool:
    """Whether a value takes no more memory than one of the arrays that it is made of."""

    def sizes(t: Type | None) -> Counter[str]:
        return Counter(str(n and (n.name or n.more)) for n in dims(t or I64))

    size, names = sizes(e.type), free(e)
    arrays = (x.type for x in walk(e) if isinstance(x, Var) and x.name in names)
    return not size or ("None" not in size and any(size <= sizes(t) for t in arrays))


def _is_heavy(e: Term, is_array: bool = False) -> bool:
    """Whether a term takes more than a step for each function in it, or one of many, for arrays."""
    return any(
        isinstance(x, (Fold, Loop))
        or (
            isinstance(x, Op)
            and x.fn not in LENGTHS
            and (
                (is_array and FUNCTIONS[x.fn].cost == NLOPS)
                or (
                    FUNCTIONS[x.fn].cost != MOVES
                    and not FUNCTIONS[x.fn].is_elementwise
                    and any(isinstance(a.type, Arr) for a in x.args)
                )
            )
        )
        for x in walk(e)
    )


def _is_partial(e: Term) -> bool:
    if not isinstance(e, Op):
        return isinstance(e, (Index, Update))
    t = e.args[0].type
    elem = None if t is None else elem_type(t)
    return isinstance(elem, Scalar) and FUNCTIONS[e.fn].is_partial(elem)
