"""Terms of the pure language, as plain data, and what every pass over them needs.

A term has its position in the text, and its type once `rvm_pure.typing` has processed it; terms are
equal if their contents are, regardless of position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from rvm_pure.types import Type

Pattern = str | tuple["Pattern", ...]
"""The target of a binding: a name, or patterns for the parts of a tuple; `_` binds nothing."""
T = TypeVar("T", bound="Term")


@dataclass(frozen=True, kw_only=True)
class Term:
    """Base of all terms."""

    start: int = field(default=0, compare=False, repr=False)
    end: int = field(default=0, compare=False, repr=False)
    type: Type | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Var(Term):
    """A variable, or a length that a parameter's type names."""

    name: str


@dataclass(frozen=True, eq=False)
class Num(Term):
    """A literal; `elem` is the written type of a typed one, `1.5'f32`."""

    value: Any
    elem: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Num) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        # 0.0 and -0.0 differ, and a NaN is itself.
        return type(self.value), repr(self.value), self.elem


@dataclass(frozen=True)
class Let(Term):
    """`let pattern = value in body`."""

    pattern: Pattern
    value: Term
    body: Term


@dataclass(frozen=True)
class Tup(Term):
    """`(a, b)`; one item is that item itself, and never made."""

    items: tuple[Term, ...]


@dataclass(frozen=True)
class Proj(Term):
    """The part of a tuple with the number `index`, from 0; `fst e`, `snd e`, `proj 3 e`."""

    index: int
    of: Term


@dataclass(frozen=True)
class Op(Term):
    """A function of the machine's table, by its name there."""

    fn: str
    args: tuple[Term, ...]


@dataclass(frozen=True)
class If(Term):
    """`if c then a else b`, of which only one is evaluated."""

    cond: Term
    yes: Term
    no: Term


@dataclass(frozen=True)
class Lam(Term):
    """`fun (x, (a, b)) -> body`; inside of `map` and its like `(x, (a, b). body)`."""

    params: tuple[Pattern, ...]
    body: Term


@dataclass(frozen=True)
class App(Term):
    """A variable or a function applied: `Y(a, b)`."""

    fn: Term
    args: tuple[Term, ...]


@dataclass(frozen=True)
class Each(Term):
    """`map f A`, `map2 f A B`, …: a function of the elements of arrays of one length."""

    fn: Lam
    arrays: tuple[Term, ...]


@dataclass(frozen=True)
class Fold(Term):
    """`reduce`, `foldl`: the last state; `scanl`, `scanr`: all of them, one more than elements."""

    kind: str
    fn: Lam
    init: Term
    array: Term


@dataclass(frozen=True)
class Prim(Term):
    """`shift1L A`, `shift1R A`, `iota n`, `replicate n e`, and 004's `dup x`."""

    name: str
    args: tuple[Term, ...]


@dataclass(frozen=True)
class Index(Term):
    """`x[i, j]`: an element, or a part with fewer dimensions."""

    of: Term
    items: tuple[Term, ...]


@dataclass(frozen=True)
class Update(Term):
    """`x with [i] = e`: an array equal to x except for one element."""

    of: Term
    items: tuple[Term, ...]
    value: Term


@dataclass(frozen=True)
class Loop(Term):
    """`loop p = init for i < n do body`; `down` is `for i = n - 1 to 0`."""

    pattern: Pattern
    init: Term
    var: str
    count: Term
    body: Term
    down: bool = False


@dataclass(frozen=True)
class Call(Term):
    """A definition's value: `f(a, b)`; typing puts the definition in its place."""

    name: str
    args: tuple[Term, ...]


FOLDS = ("reduce", "foldl", "scanl", "scanr")
PRIMS = {"shift1L": 1, "shift1R": 1, "iota": 1, "replicate": 2, "dup": 1}
"""Functions that are none of the table's, with the numbers of their arguments."""


def children(e: Term) -> tuple[Term, ...]:
    """The terms directly inside, in the order of evaluation; bodies of functions as `Lam`."""
    match e:
        case Let(value=a, body=b):
            return (a, b)
        case Tup(items) | Op(_, items) | Prim(_, items) | Call(_, items):
            return items
        case Proj(of=a) | Lam(body=a):
            return (a,)
        case If(a, b, c):
            return (a, b, c)
        case App(f, args):
            return (f, *args)
        case Each(f, arrays):
            return (*arrays, f)
        case Fold(_, f, init, array):
            return (init, array, f)
        case Index(a, items):
            return (a, *items)
        case Update(a, items, v):
            return (a, *items, v)
        case Loop(init=a, count=n, body=b):
            return (a, n, b)
    return ()


def rebuild(e: T, f: Callable[[Any], Any]) -> T:
    """A term with `f` applied to those directly inside; its type is kept."""
    out: Any
    match e:
        case Let(value=a, body=b):
            out = replace(e, value=f(a), body=f(b))
        case Tup(items):
            out = replace(e, items=tuple(map(f, items)))
        case Op(_, items) | Prim(_, items) | Call(_, items):
            out = replace(e, args=tuple(map(f, items)))
        case Proj(of=a):
            out = replace(e, of=f(a))
        case Lam(body=a):
            out = replace(e, body=f(a))
        case If(a, b, c):
            out = replace(e, cond=f(a), yes=f(b), no=f(c))
        case App(g, args):
            out = replace(e, fn=f(g), args=tuple(map(f, args)))
        case Each(g, arrays):
            out = replace(e, arrays=tuple(map(f, arrays)), fn=f(g))
        case Fold(_, g, init, array):
            out = replace(e, init=f(init), array=f(array), fn=f(g))
        case Index(a, items):
            out = replace(e, of=f(a), items=tuple(map(f, items)))
        case Update(a, items, v):
            out = replace(e, of=f(a), items=tuple(map(f, items)), value=f(v))
        case Loop(init=a, count=n, body=b):
            out = replace(e, init=f(a), count=f(n), body=f(b))
        case _:
            out = e
    return out  # type: ignore[no-any-return]


def names_in(p: Pattern) -> Iterator[str]:
    """The names that a pattern binds."""
    if isinstance(p, str):
        if p != "_":
            yield p
    else:
        for q in p:
            yield from names_in(q)


def bound_in(e: Term) -> tuple[tuple[Term, ...], tuple[tuple[Term, tuple[str, ...]], ...]]:
    """The terms inside that see what `e` sees, and those that see names of its own besides."""
    match e:
        case Let(p, a, b):
            return (a,), ((b, tuple(names_in(p))),)
        case Lam(params, b):
            return (), ((b, tuple(n for p in params for n in names_in(p))),)
        case Loop(pattern=p, init=a, var=i, count=n, body=b):
            return (a, n), ((b, (*names_in(p), i)),)
    return children(e), ()


def free(e: Term) -> dict[str, int]:
    """The free variables of a term and how often each is named, in the order of first use."""
    out: dict[str, int] = {}
    if isinstance(e, Var):
        return {e.name: 1}
    plain, under = bound_in(e)
    for a in plain:
        for name, k in free(a).items():
            out[name] = out.get(name, 0) + k
    for b, names in under:
        for name, k in free(b).items():
            if name not in names:
                out[name] = out.get(name, 0) + k
    return out


def walk(e: Term) -> Iterator[Term]:
    """A term and all inside, outermost first."""
    stack = [e]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(children(top)))


def again(e: Term) -> tuple[Term, ...]:
    """The terms directly inside that may run more than once."""
    match e:
        case Each(fn) | Fold(_, fn):
            return (fn,)
        case Loop(body=b):
            return (b,)
    return ()


def repeated(e: Term, name: str, runs: Callable[[Term], tuple[Term, ...]] = again) -> bool:
    """Whether a variable is used in a part that may run repeatedly, according to `runs`."""
    return any(name in free(x) for x in runs(e)) or any(
        repeated(x, name, runs) for x in children(e)
    )


def binders(e: Term) -> Iterator[str]:
    """Every name that is bound somewhere inside."""
    for x in walk(e):
        for _, names in bound_in(x)[1]:
            yield from names


class Names:
    """Names that are taken, and new ones beside them."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)

    def new(self, wish: str) -> str:
        """The name itself if it is free, else with the first number that makes it so."""
        if wish == "_":
            return wish
        name, k = wish, 1
        while name in self.taken:
            stem = wish.rstrip("0123456789") or wish
            name, k = f"{stem}{k}", k + 1
        self.taken.add(name)
        return name

    def pattern(self, p: Pattern, renamed: dict[str, Term]) -> Pattern:
        """A pattern of new names; what the old ones stand for goes to `renamed`."""
        if not isinstance(p, str):
            return tuple(self.pattern(q, renamed) for q in p)
        name = self.new(p)
        if name != "_":
            renamed[p] = Var(name)
        return name


def substitute(e: T, to: Mapping[str, Term], names: Names) -> T:
    """A term with terms for its free variables; every name that it binds becomes a new one."""
    return _substituted(e, dict(to), names)  # type: ignore[no-any-return]


def _substituted(e: Any, to: dict[str, Term], names: Names) -> Any:
    def inner(x: Term) -> Term:
        return _substituted(x, to, names)  # type: ignore[no-any-return]

    match e:
        case Var(name):
            found = to.get(name)
            if found is None:
                return e
            if isinstance(found, Var):
                return replace(found, start=e.start, end=e.end, type=e.type)
            return found
        case Let(p, a, b):
            own = dict(to)
            value = inner(a)
            pattern = names.pattern(p, own)
            return replace(e, pattern=pattern, value=value, body=_substituted(b, own, names))
        case Lam(params, b):
            own = dict(to)
            made = tuple(names.pattern(p, own) for p in params)
            return replace(e, params=made, body=_substituted(b, own, names))
        case Loop(pattern=p, init=a, var=i, count=n, body=b):
            own = dict(to)
            init, count = inner(a), inner(n)
            pattern = names.pattern(p, own)
            var = names.new(i)
            own[i] = Var(var)
            body = _substituted(b, own, names)
            return replace(e, pattern=pattern, init=init, var=var, count=count, body=body)
    return rebuild(e, inner)


def put(e: Term, to: Mapping[str, Term]) -> Term:
    """A term with others for variables; names are bound once, so that none is caught."""
    if not to:
        return e
    if isinstance(e, Var):
        return to.get(e.name, e)
    return rebuild(e, lambda x: put(x, to))


def tup(items: Iterable[Term]) -> Term:
    """A tuple of terms; of one it is that one."""
    found = tuple(items)
    return found[0] if len(found) == 1 else Tup(found)
