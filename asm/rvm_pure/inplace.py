"""Loops that need not keep their states: each part is updated in place by reversible changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from rvm.types import Scalar
from rvm_pure.terms import (
    Fold,
    Index,
    Let,
    Names,
    Num,
    Op,
    Pattern,
    Proj,
    Term,
    Tup,
    Update,
    Var,
    children,
    free,
    names_in,
    rebuild,
    substitute,
    tup,
)
from rvm_pure.types import Arr, Product, Type

MOST_NODES = 400
"""The largest body of a loop, its lets put in, that is looked at."""
MOST_PARTS = 4
"""The most parts of a state of which every exchange is tried."""
MOST_TRIES = 100
"""The largest number of changes of parts that are tried to find an order."""


class Step:
    """A change of a part of the state: an instruction, its operand, the element that it is of."""

    def __init__(self, word: str, by: Term | None = None, at: tuple[Term, ...] = ()) -> None:
        self.word = word
        self.by = by
        self.at = at


Plan = tuple[tuple[str, ...], tuple[int, ...], list[tuple[int, Step]]]
"""Names of the parts, which of them moves to each place, and the steps on places after that."""


def plan(e: Fold, element: Term, names: Names, floats: bool) -> Plan | None:
    """A plan for updating the state of a fold over such elements in place, if there is one.

    Inexact numbers are updated only if `floats` says so.
    """
    t = e.init.type
    types = t.items if isinstance(t, Product) else (t,)
    if not all(_may_change(x, floats) for x in types):
        return None
    state, pattern = e.fn.params
    parts = [Var(names.new("p"), type=x) for x in types]
    whole: Term = tup(parts) if isinstance(t, Product) else parts[0]
    body = Let(state, whole, Let(pattern, element, e.fn.body))
    if _weight(body, {}) > MOST_NODES:
        return None
    found = _inlined(body, names)
    items = found.items if isinstance(t, Product) and isinstance(found, Tup) else (found,)
    if len(items) != len(parts):
        return None
    where = [p.name for p in parts]
    for order in permutations(range(len(parts))):
        steps = _ordered(items, [where[j] for j in order], floats)
        if steps is not None:
            return tuple(where), order, steps
        if len(parts) > MOST_PARTS:
            break
    return None


def _may_change(t: Type | None, floats: bool) -> bool:
    while isinstance(t, Arr):
        t = t.elem
    return isinstance(t, Scalar) and (t.is_exact or (floats and not t.is_log))


def _weight(e: Term, known: dict[str, int]) -> int:
    """The number of terms in a term with lets inlined."""
    if isinstance(e, Var):
        return known.get(e.name, 1)
    if isinstance(e, Let):
        k = _weight(e.value, known)
        return _weight(e.body, {**known, **dict.fromkeys(names_in(e.pattern), k)})
    return 1 + sum(_weight(x, known) for x in children(e))


def _inlined(e: Term, names: Names) -> Term:
    """A term without lets: their values are put in."""

    def inner(e: Term, env: dict[str, Term]) -> Term:
        match e:
            case Var(name):
                return env.get(name, e)
            case Let(p, a, b):
                return inner(b, {**env, **_bound(p, inner(a, env))})
            case Proj(k, of):
                whole = inner(of, env)
                return whole.items[k] if isinstance(whole, Tup) else Proj(k, whole, type=e.type)
            case Tup() | Op() | Index() | Update():
                return rebuild(e, lambda x: inner(x, env))
        # What binds names of its own sees these values by names that it has not.
        return substitute(e, {n: v for n, v in env.items() if n in free(e)}, names)

    return inner(e, {})


def _bound(p: Pattern, v: Term) -> dict[str, Term]:
    if isinstance(p, str):
        return {p: v}
    out: dict[str, Term] = {}
    types = v.type.items if isinstance(v.type, Product) else (None,) * len(p)
    for k, (q, t) in enumerate(zip(p, types, strict=True)):
        out |= _bound(q, v.items[k] if isinstance(v, Tup) else Proj(k, v, type=t))
    return out


def _ordered(
    items: Sequence[Term], own: Sequence[str], floats: bool
) -> list[tuple[int, Step]] | None:
    """The steps that make `items` of places that hold the parts `own`, in an order that can be.

    An operand names parts that still are what they were, or is made of those that are new.
    """
    tries = MOST_TRIES

    def rest(left: tuple[int, ...], new: dict[Term, str]) -> list[tuple[int, Step]] | None:
        nonlocal tries
        gone = {p for k, p in enumerate(own) if k not in left}
        for k in left:
            if (tries := tries - 1) < 0:
                return None
            steps = _changes(_made(items[k], new), own[k], {*gone, own[k]}, floats)
            if steps is not None:
                more = rest(tuple(j for j in left if j != k), {**new, items[k]: _NEW + own[k]})
                if more is not None:
                    return [*((k, _renamed(s)) for s in steps), *more]
        return None if left else []

    return rest(tuple(range(len(items))), {})


def _made(e: Term, new: dict[Term, str]) -> Term:
    """A term with places for the values they hold by now."""
    if e in new:
        return Var(new[e], type=e.type)
    return rebuild(e, lambda x: _made(x, new)) if free(e) else e


_NEW = "new "


def _renamed(s: Step) -> Step:
    """A step that names places by the parts that were in them at first."""

    def plain(e: Term) -> Term:
        if isinstance(e, Var):
            return Var(e.name.removeprefix(_NEW), type=e.type, start=e.start, end=e.end)
        return rebuild(e, plain)

    return Step(s.word, None if s.by is None else plain(s.by), tuple(map(plain, s.at)))


def _changes(e: Term, own: str, gone: set[str], floats: bool) -> list[Step] | None:
    """The steps from a part to a term, with operands that name nothing that is gone.

    None if it is not made of that part by what can be undone.
    """
    part: Term = Var(own)
    at: tuple[Term, ...] = ()
    if isinstance(e, Update) and e.of == part and not isinstance(e.value.type, Arr):
        part, at, e = Index(e.of, e.items), e.items, e.value
        if any(gone & set(free(x)) for x in at):
            return None

    def steps(e: Term) -> list[Step] | None:
        if e == part:
            return []
        if isinstance(e, Op) and isinstance(e.type, Scalar):
            for words, whole, by in _undone(e, floats):
                if by is None or not gone & set(free(by)):
                    before = steps(whole)
                    if before is not None:
                        *plain, last = words
                        return [*before, *(Step(w, None, at) for w in plain), Step(last, by, at)]
        return None

    return steps(e)


def _undone(e: Op, floats: bool) -> Iterator[tuple[tuple[str, ...], Term, Term | None]]:
    """The instructions that a function is: on which argument, the last by which operand."""
    t = e.type
    assert isinstance(t, Scalar)
    match e.fn, e.args:
        case "+", (a, b):
            yield ("add",), a, b
            yield ("add",), b, a
        case "-", (a, b):
            yield ("sub",), a, b
            if t.is_signed or not t.is_integer:
                yield ("neg", "add"), b, a
        case "neg", (a,):
            yield ("neg",), a, None
        case "~" | "not", (a,):
            yield ("not",), a, None
        case ("^", (a, b)) | ("!=", (a, b)) if e.fn == "^" or a.type == t:
            yield ("xor",), a, b
            yield ("xor",), b, a
        case "rotl", (a, b):
            yield ("rol",), a, b
        case "rotr", (a, b):
            yield ("ror",), a, b
        case "*", (a, b):
            for x, y in ((a, b), (b, a)):
                odd = isinstance(y, Num) and isinstance(y.value, int) and y.value % 2 == 1
                if (t.is_integer and odd) or (floats and not t.is_exact):
                    yield ("mul",), x, y
        case "/", (a, b) if floats and not t.is_exact:
            yield ("div",), a, b
