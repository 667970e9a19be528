"""Straight-line programs and their derivatives, forwards and in reverse, line by line.

A definition over numbers, without loops, arrays and choices, becomes lines that apply one function
to variables and constants each (`anf`); then every variable is used exactly once, after duplicating
those that are used more often (`dup`).  The derivative of a line is a line.

Source: T. Ellis, *Automatic differentiation: forwards and reverse*.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rvm.types import Scalar
from rvm_pure.adjoints import real
from rvm_pure.deep import deep
from rvm_pure.definition import Definition, Param
from rvm_pure.faults import not_straight
from rvm_pure.formulas import adjoint_gains
from rvm_pure.normal import normal
from rvm_pure.terms import (
    Let,
    Names,
    Num,
    Op,
    Pattern,
    Prim,
    Proj,
    Term,
    Tup,
    Var,
    binders,
    names_in,
    tup,
)
from rvm_pure.types import Product, Type, is_active

Line = tuple[Pattern, Term]


@dataclass(frozen=True, slots=True)
class Straight:
    """A straight-line program: its parameters, its lines, and the variables that it gives."""

    definition: Definition
    apart: dict[str, Term]
    """Each parameter as its numbers: a variable, or a tuple of those that a first line names."""
    lines: tuple[Line, ...]
    outputs: tuple[Var, ...]

    def made(
        self, lines: Sequence[Line], outputs: Sequence[Term], more: Sequence[Param] = ()
    ) -> Definition:
        """A definition with other lines and values, and more parameters."""
        body: Term = tup(outputs)
        for p, value in reversed([*self.first(), *lines]):
            body = Let(p, value, body)
        return replace(self.definition, params=(*self.params, *more), body=body, block=True)

    @property
    def params(self) -> tuple[Param, ...]:
        return self.definition.params

    @property
    def inputs(self) -> tuple[Var, ...]:
        """The numbers of the parameters."""
        return tuple(v for e in self.apart.values() for v in _variables(e))

    def first(self) -> Iterator[Line]:
        """The lines that take tuples apart."""
        for name, e in self.apart.items():
            if isinstance(e, Tup):
                yield _pattern(e), Var(name, type=e.type)

    def names(self) -> Names:
        """The names that are taken."""
        found = (n for p, _ in self.lines for n in names_in(p))
        return Names((*found, *(p.name for p in self.params), *(v.name for v in self.inputs)))


@deep
def anf(d: Definition) -> Definition:
    """One function applied to variables and constants a line."""
    s = flat(d)
    return s.made(s.lines, s.outputs)


@deep
def dup(d: Definition) -> Definition:
    """Each variable used exactly once: of k uses k - 1 are made by duplicating."""
    s = linear(flat(d))
    return s.made(s.lines, s.outputs)


def flat(d: Definition) -> Straight:
    """A definition as lines."""
    params = {p.name for p in d.params}
    body = normal(d.body, params)
    names = Names({*params, *binders(body)})
    apart = {p.name: _apart(p.name, p.type, names, p.name) for p in d.params}
    params |= {v.name for e in apart.values() for v in _variables(e)}
    lines: list[Line] = []
    env: dict[str, Term] = {name: e for name, e in apart.items() if isinstance(e, Tup)}

    def atom(e: Term) -> Term:
        """A variable or a constant, after the lines that it takes."""
        e = value(e)
        return e if isinstance(e, (Var, Num, Tup)) else named(names.new("i1"), e)

    def named(name: str, e: Term) -> Var:
        lines.append((name, e))
        return Var(name, type=e.type, start=e.start, end=e.end)

    def value(e: Term) -> Term:
        """A function applied to the results of `atom`, or the term itself."""
        match e:
            case Var(name):
                return env.get(name, e)
            case Num():
                return e
            case Tup(items):
                return replace(e, items=tuple(map(atom, items)))
            case Proj(k, of):
                whole = atom(of)
                return whole.items[k] if isinstance(whole, Tup) else replace(e, of=whole)
            case Op(_, args) if isinstance(e.type, Scalar):
                if all(isinstance(a.type, Scalar) for a in args):
                    return replace(e, args=tuple(map(atom, args)))
            case Prim("dup", (a,)):
                whole = atom(a)
                return Tup((whole, whole), type=e.type)
        raise not_straight(e)

    def bind(p: Pattern, e: Term) -> None:
        if isinstance(p, str):
            if p != "_":
                env[p] = e if isinstance(e, (Var, Num, Tup)) else named(p, e)
            return
        if not isinstance(e, Tup):
            raise not_straight(e)
        for q, item in zip(p, e.items, strict=True):
            bind(q, item)

    e: Term = body
    while isinstance(e, Let):
        found = value(e.value)
        if isinstance(e.pattern, str) and isinstance(found, (Var, Num)):
            # A name for what has one keeps its line, as the author wrote it.
            env[e.pattern] = named(e.pattern, found)
        else:
            bind(e.pattern, found)
        e = e.body
    results = value(e)
    outputs = []
    for item in results.items if isinstance(results, Tup) else (results,):
        if isinstance(item, Tup):
            raise not_straight(item)
        known = isinstance(item, Var) and item.name not in params and item not in outputs
        outputs.append(item if known else named(names.new("v"), item))
    return Straight(d, apart, tuple(lines), tuple(o for o in outputs if isinstance(o, Var)))


def _apart(name: str, t: Type, names: Names, stem: str = "") -> Term:
    """A variable of a type; of a tuple, variables for its parts, which are named by the stem."""
    if not isinstance(t, Product):
        return Var(name if stem == name else names.new(f"{stem}1"), type=t)
    stem = f"{stem}_" if stem == name and name[-1].isdigit() else stem
    return Tup(tuple(_apart("", item, names, stem) for item in t.items), type=t)


def _variables(e: Term) -> Iterator[Var]:
    """The variables of a tuple of such, or one."""
    if isinstance(e, Tup):
        for item in e.items:
            yield from _variables(item)
    elif isinstance(e, Var):
        yield e


def _pattern(e: Term) -> Pattern:
    """The pattern that takes a tuple of variables apart."""
    if isinstance(e, Tup):
        return tuple(map(_pattern, e.items))
    assert isinstance(e, Var)
    return e.name


def linear(s: Straight) -> Straight:
    """The same with each variable used exactly once; an output is a use."""
    names = s.names()
    uses: dict[str, int] = {}
    for _, e in s.lines:
        for v in used(e):
            uses[v.name] = uses.get(v.name, 0) + 1
    for v in s.outputs:
        uses[v.name] = uses.get(v.name, 0) + 1
    waiting: dict[str, list[str]] = {}
    lines: list[Line] = []

    def duplicate(v: Var) -> None:
        k, whole = uses.get(v.name, 0), v
        if k < 2 or not is_active(v.type):
            return
        given: list[str] = []
        stem = v.name if not v.name[-1].isdigit() else f"{v.name}_"
        for _ in range(k - 1):
            a, b = names.new(f"{stem}1"), names.new(f"{stem}1")
            lines.append(((a, b), Prim("dup", (whole,))))
            given.append(a)
            whole = replace(v, name=b)
        waiting[v.name] = [*given, whole.name]

    def next_of(v: Var) -> Var:
        if v.name not in waiting:
            return v
        return replace(v, name=waiting[v.name].pop(0))

    for v in s.inputs:
        duplicate(v)
    for p, e in s.lines:
        lines.append((p, _renamed(e, next_of)))
        assert isinstance(p, str)
        duplicate(Var(p, type=e.type))
    return replace(s, lines=tuple(lines), outputs=tuple(map(next_of, s.outputs)))


def _renamed(e: Term, f: object) -> Term:
    assert callable(f)
    if isinstance(e, Var):
        return f(e)  # type: ignore[no-any-return]
    if isinstance(e, (Op, Prim)):
        return replace(e, args=tuple(_renamed(a, f) for a in e.args))
    return e


def used(e: Term) -> Iterator[Var]:
    """The variables of a line, once for each occurrence."""
    if isinstance(e, Var):
        yield e
    elif isinstance(e, (Op, Prim)):
        for a in e.args:
            yield from used(a)


# Derivatives.


def neg(x: Term) -> Term:
    return Op("neg", (x,))


def mul(x: Term, y: Term) -> Term:
    return Op("*", (x, y))


def div(x: Term, y: Term) -> Term:
    return Op("/", (x, y))


@deep
def forward(d: Definition) -> Definition:
    """The program with the derivative of each line after it; `dx` for each input `x`."""
    s = flat(d)
    names = s.names()
    tangent: dict[str, Term] = {}
    lines: list[Line] = []

    def dotted(e: Term) -> Term:
        """The tangents of a parameter's numbers."""
        if isinstance(e, Tup):
            return replace(e, items=tuple(map(dotted, e.items)))
        assert isinstance(e, Var)
        name = names.new(f"d{e.name}" if is_active(e.type) else "_")
        if name != "_":
            tangent[e.name] = Var(name, type=e.type)
        return replace(e, name=name)

    more = []
    for q in s.params:
        if is_active(q.type):
            whole = s.apart[q.name]
            name = names.new(f"d{q.name}") if isinstance(whole, Tup) else ""
            numbers = _pattern(dotted(whole))
            if name:
                lines.append((numbers, Var(name, type=q.type)))
            more.append(replace(q, name=name or str(numbers)))
    for p, e in s.lines:
        assert isinstance(p, str)
        lines.append((p, e))
        found = _tangent(e, tangent)
        if found is not None:
            name = names.new(f"d{p}")
            tangent[p] = Var(name, type=e.type)
            lines.append((name, found))
    zero = Num(0.0)
    outputs = [x for v in s.outputs for x in (v, tangent.get(v.name, zero))]
    return s.made(lines, outputs, more)


def _tangent(e: Term, tangent: dict[str, Term]) -> Term | None:
    """The derivative of a line; None of a constant one."""
    if isinstance(e, Var):
        return tangent.get(e.name)
    if not isinstance(e, Op):
        return None
    d = [tangent.get(a.name) if isinstance(a, Var) else None for a in e.args]
    if all(t is None for t in d):
        return None
    match e.fn, e.args, d:
        case "+" | "-", _, (Term() as da, Term() as db):
            return Op(e.fn, (da, db))
        case "+", _, _:
            return d[0] if d[0] is not None else d[1]
        case "-", _, (da, db):
            return da if da is not None else neg(db) if db is not None else None
        case "*", (x, y), (Term() as dx, Term() as dy):
            return Op("+", (mul(dx, y), mul(x, dy)))
        case "*", (x, y), (dx, dy):
            return mul(x, dy) if dy is not None else mul(dx, y) if dx is not None else None
        case "/", (x, y), (Term() as dx, Term() as dy):
            return Op("+", (div(dx, y), neg(mul(div(x, mul(y, y)), dy))))
        case "/", (x, y), (None, Term() as dy):
            return neg(div(dy if x == Num(1) else mul(x, dy), mul(y, y)))
        case "/", (x, y), (Term() as dx, None):
            return div(dx, y)
        case "neg", _, (Term() as dx,):
            return neg(dx)
    total: Term | None = None
    for k, t in enumerate(d):
        gain = None if t is None else adjoint_gains(e, e.args, t)[k]
        if gain is not None:
            total = gain if total is None else Op("+", (total, gain))
    return total


@deep
def reverse(d: Definition) -> Definition:
    """The program with each variable used once, and after it the derivatives of lines, backwards.

    `d_dx` is how sensitive the output is to `x`; that of the output is a parameter.
    """
    s = linear(flat(d))
    names = s.names()
    adjoint: dict[str, str] = {}

    def of(x: Term) -> str:
        if not isinstance(x, Var) or not is_active(x.type):
            return "_"
        if x.name not in adjoint:
            adjoint[x.name] = names.new(f"d_d{x.name}")
        return adjoint[x.name]

    more = [Param(of(v), _scalar(v), 0, 0) for v in s.outputs if is_active(v.type)]
    lines: list[Line] = []
    for p, e in reversed(s.lines):
        for n in names_in(p):
            if n not in adjoint and _is_active_line(e):
                adjoint[n] = names.new(f"d_d{n}")
                lines.append((adjoint[n], Num(0.0)))
        found = _gains(p, e, adjoint, of)
        if found is not None:
            lines.append(found)

    def whole(e: Term) -> Term:
        """The sensitivities to a parameter's numbers."""
        if isinstance(e, Tup):
            return Tup(tuple(map(whole, e.items)))
        assert isinstance(e, Var) and isinstance(e.type, Scalar)
        if not is_active(e.type):
            return real(0.0, e.type)
        if e.name not in adjoint:
            lines.append((of(e), Num(0.0)))
        return Var(adjoint[e.name])

    outputs = [*s.outputs, *(whole(s.apart[q.name]) for q in s.params if is_active(q.type))]
    return s.made([*s.lines, *lines], outputs, more)


def _scalar(v: Var) -> Scalar:
    assert isinstance(v.type, Scalar)
    return v.type


def _is_active_line(e: Term) -> bool:
    return isinstance(e, Prim) or is_active(e.type)


def _gains(p: Pattern, e: Term, adjoint: dict[str, str], of: object) -> Line | None:
    """The derivative of a line: the sensitivities to what it uses."""
    assert callable(of)
    if isinstance(e, Prim):
        assert isinstance(p, tuple)
        both = tuple(Var(adjoint[n]) for n in names_in(p))
        return of(e.args[0]), Op("+", both)
    if isinstance(e, Num) or not is_active(e.type):
        return None
    assert isinstance(p, str)
    g = Var(adjoint[p], type=e.type)
    if isinstance(e, Var):
        return of(e), g
    assert isinstance(e, Op)
    to = tuple(of(a) for a in e.args)
    if all(t == "_" for t in to):
        return None
    match e.fn, e.args:
        case "+", _:
            return to, Prim("dup", (g,))
        case "-", _:
            return _tidy(to, (g, neg(g)))
        case "*", (x, y):
            return to, mul(g, Tup((y, x)))
        case "/", (x, y):
            by_x = div(g, y)
            if to[0] == "_":
                return to[1], neg(div(g if x == Num(1) else mul(g, x), mul(y, y)))
            return _tidy(to, (by_x, neg(mul(div(x, mul(y, y)), g))))
        case "neg", _:
            return to[0], neg(g)
    made = adjoint_gains(e, e.args, g)
    return _tidy(to, tuple(Num(0.0) if m is None else m for m in made))


def _tidy(to: tuple[str, ...], made: tuple[Term, ...]) -> Line:
    """A line for the sensitivities that are needed."""
    kept = [(t, m) for t, m in zip(to, made, strict=True) if t != "_"]
    if len(kept) == 1:
        return kept[0]
    return tuple(t for t, _ in kept), Tup(tuple(m for _, m in kept))
