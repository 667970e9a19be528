"""Unary form: a term as a list of primitives, each of which keeps its context and adds to it.

A context is a list of values x1, x2, …; a primitive works on the last ones, and `proj k d r` drops
d values after the first k.  The reverse of a primitive goes back along it with a continuation.

Source: Huot and Shaikhha, section 4, with the initial value of `reduce` on the list as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rvm.isa import FUNCTIONS
from rvm_pure.adjoints import zero
from rvm_pure.continuations import Slot, typeof
from rvm_pure.deep import deep
from rvm_pure.definition import Definition
from rvm_pure.direct import Direct
from rvm_pure.faults import StageFault, what
from rvm_pure.normal import normal
from rvm_pure.partial import closed
from rvm_pure.simplify import typed
from rvm_pure.terms import (
    App,
    Each,
    Fold,
    Lam,
    Let,
    Names,
    Num,
    Op,
    Proj,
    Term,
    Tup,
    Var,
    binders,
    substitute,
)
from rvm_pure.types import Arr, Type, is_active


@dataclass(frozen=True, slots=True)
class Primitive:
    """One primitive: its word, whole numbers that it takes, and a function or a constant."""

    word: str
    counts: tuple[int, ...] = ()
    fn: str = ""
    term: Term | None = None


@dataclass(frozen=True, slots=True)
class Unary:
    """A definition in unary form."""

    definition: Definition
    lines: tuple[Primitive, ...]
    is_reverse: bool = False


def name(k: int) -> str:
    """The name of the k-th value of a context, from 1."""
    return f"x{k}"


@deep
def unary(d: Definition) -> Unary:
    """A typed definition as a list of primitives; StageFault if it is not of the core language."""
    for p in d.params:
        if not is_active(p.type):
            raise StageFault(
                d.body, f"`{p.name}` carries no derivative", "unary form is of real values"
            )
    out: list[Primitive] = []
    start = {p.name: k + 1 for k, p in enumerate(d.params)}
    body = normal(d.body, start)
    _primitives(body, start, len(start), out)
    return Unary(d, tuple(out))


def _primitives(e: Term, at: dict[str, int], n: int, out: list[Primitive]) -> None:
    """Add the primitives that put a term's value behind a context of n values."""

    def after(items: Sequence[Term], own: Primitive, dropped: int) -> None:
        for k, x in enumerate(items):
            _primitives(x, at, n + k, out)
        out.append(own)
        out.append(Primitive("proj", (n, dropped, 1)))

    match e:
        case Var(v) if v in at:
            out.append(Primitive("var", (at[v],)))
        case Num():
            out.append(Primitive("const", term=e))
        case Let(str(v), a, b):
            _primitives(a, at, n, out)
            _primitives(b, {**at, v: n + 1}, n + 1, out)
            out.append(Primitive("proj", (n, 1, 1)))
        case Tup((a, b)):
            _primitives(a, at, n, out)
            _primitives(b, at, n + 1, out)
            out.append(Primitive("pair"))
        case Proj(k, a) if k < 2:
            after((a,), Primitive(("fst", "snd")[k]), 1)
        case Op(fn, args) if not any(isinstance(a.type, Arr) for a in (e, *args)):
            after(args, Primitive("op", fn=fn), len(args))
        case Each(fn, arrays):
            after(arrays, Primitive("map", (len(arrays),), term=_renamed(fn, at)), len(arrays))
        case Fold("reduce", fn, init, array):
            after((init, array), Primitive("reduce", term=_renamed(fn, at)), 2)
        case _:
            raise StageFault(e, f"{what(e)} has no primitive of the unary form")


def _renamed(fn: Lam, at: dict[str, int]) -> Lam:
    names = Names(name(k + 1) for k in range(max(at.values(), default=0) + 1))
    return substitute(fn, {v: Var(name(k)) for v, k in at.items()}, names)


class Rebuilt:
    """The term for a list of primitives, with types as far as it has been processed."""

    def __init__(self, u: Unary) -> None:
        d = u.definition
        self.env: dict[str, Type] = {}
        self.names = Names()
        self.context: list[str] = []
        self.lets: list[tuple[str | tuple[str, str], Term]] = []
        for p in d.params:
            self.context.append(p.name)
            self.env[p.name] = p.type
            self.names.taken.add(p.name)
        self.names.taken |= {b for line in u.lines if line.term for b in binders(line.term)}
        self.y = self.first = self.names.new("Y")

    def term(self, line: Primitive) -> Term:
        """The value that a primitive adds to the context."""
        here = {name(k + 1): Var(v) for k, v in enumerate(self.context)}

        def last(k: int) -> tuple[Term, ...]:
            return tuple(Var(v) for v in self.context[len(self.context) - k :])

        match line.word:
            case "var":
                return Var(self.context[line.counts[0] - 1])
            case "const":
                assert line.term is not None
                return line.term
            case "op":
                return Op(line.fn, last(FUNCTIONS[line.fn].arity))
            case "fst" | "snd":
                return Proj(int(line.word == "snd"), last(1)[0])
            case "pair":
                return Tup(last(2))
        assert isinstance(line.term, Lam)
        fn = substitute(line.term, here, self.names)
        if line.word == "map":
            return Each(fn, last(line.counts[0]))
        init, array = last(2)
        return Fold("reduce", fn, init, array)

    def slots(self) -> tuple[Slot, ...]:
        return tuple(Slot(v, self.env[v]) for v in self.context)

    def step(self, line: Primitive, reverse: bool) -> None:
        """Go along one primitive."""
        if line.word == "proj":
            kept, dropped, rest = line.counts
            self.project(kept, dropped, rest, reverse)
            return
        e = typed(self.term(line), self.env)
        new = self.names.new("w1")
        self.env[new] = typeof(e)
        if reverse:
            after = self.names.new("Y1")
            inner = Direct(self.names)
            self.lets.append(((new, after), inner.d(e, self.slots(), Var(self.y))))
            self.y = after
        else:
            self.lets.append((new, e))
        self.context.append(new)
        if line.word == "pair":
            self.project(len(self.context) - 3, 2, 1, reverse)

    def project(self, kept: int, dropped: int, rest: int, reverse: bool) -> None:
        """Forget values; their adjoints are zero."""
        gone = self.context[kept : kept + dropped]
        old = self.context
        self.context = [v for k, v in enumerate(old) if not kept <= k < kept + dropped]
        assert len(self.context) == kept + rest
        if reverse:
            ys = {v: self.names.new("y1") for v in self.context}
            args = tuple(zero(self.env[v], Var(v)) if v in gone else Var(ys[v]) for v in old)
            after = self.names.new("Y1")
            self.lets.append((after, Lam(tuple(ys.values()), App(Var(self.y), args))))
            self.y = after


@deep
def rebuilt(u: Unary) -> Definition:
    """The definition that a unary form stands for; of a reverse one, of value and gradient."""
    made = Rebuilt(u)
    for line in u.lines:
        made.step(line, u.is_reverse)
    body: Term = Var(made.context[-1])
    if u.is_reverse:
        body = Tup((body, Var(made.y)))
    for p, value in reversed(made.lets):
        body = Let(p, value, body)
    params = {p.name: p.type for p in u.definition.params}
    if u.is_reverse:
        body = closed(body, params, (made.first, *params))
    return replace(u.definition, body=body, block=False)
