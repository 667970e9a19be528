"""Algebraic simplification: the parts of a term that can be decided without values.

The rules are those of Huot and Shaikhha's figure 12, and others that it lacks: `e * 1`, `e + 0`,
maps that use only one array or none, scans and shifts of constant arrays, substitution of constants
and of lets used once, zeros of tuples.  As there, zero times anything is taken as zero, which does
not hold for infinities and NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rvm_asm.cursor import Bad
from rvm_asm.messages import Reporter
from rvm_asm.source import SourceMap

from rvm.types import Scalar
from rvm_pure.arrays import each, fold, length, more, prim
from rvm_pure.constants import constant, folded, is_value, like_zero, spread_constant
from rvm_pure.faults import StageFault
from rvm_pure.normal import normal
from rvm_pure.terms import (
    Each,
    Fold,
    If,
    Index,
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
    children,
    free,
    names_in,
    put,
    rebuild,
    repeated,
)
from rvm_pure.types import Arr, Type
from rvm_pure.typing import Typer

ROUNDS = 60
"""The largest number of passes over a term; each must simplify something."""


def typed(e: Term, env: Mapping[str, Type]) -> Term:
    """A term of ours with its types."""
    sources = SourceMap()
    sources.add("", "")
    report = Reporter(sources)
    try:
        return Typer((), report).term(e, env)
    except Bad:
        raise StageFault(e, f"it becomes a term with an error: {report.found[0].message}") from None


def simplified(e: Term, env: Mapping[str, Type]) -> Term:
    """The typed term in its simplest form that the rules lead to; `env` types its variables."""
    for _ in range(ROUNDS):
        e = typed(normal(e, env), env)
        made = _simpler(e)
        if made == e:
            return e
        e = made
    return typed(e, env)


def tidied(e: Term) -> Term:
    """A term without types that was just made, with sums with zero and needless lets gone."""
    for _ in range(ROUNDS):
        made = _simpler(e)
        if made == e:
            break
        e = made
    return e


def _simpler(e: Term) -> Term:
    if isinstance(e, Let):
        return _let(e)
    done = rebuild(e, _simpler)
    match done:
        case Op():
            return _op(done)
        case Proj(k, Tup(items)):
            return items[k]
        case Proj(k, If(c, a, b)):
            return If(c, Proj(k, a), Proj(k, b))
        case If(Num(c), a, b):
            return a if c else b
        case If(_, a, b) if a == b:
            return a
        case Each():
            return each(done)
        case Fold(kind, fn, init, array) if _stays(fn.params[0], init, fn.body):
            return Prim("replicate", (more(array), init)) if "scan" in kind else init
        case Fold():
            return fold(done)
        case Prim():
            return prim(done)
        case Index(of, items):
            return _index(done, of, items)
        case Update(of, _, v) if _same(of, v):
            return of
        case Loop(p, init, _, _, body) if value_is(body, p) or _stays(p, init, body):
            return init
    return done


def value_is(e: Term, p: Pattern) -> bool:
    """Whether a term is the value that a pattern takes apart."""
    if isinstance(p, str):
        return isinstance(e, Var) and e.name == p
    if not isinstance(e, Tup) or len(e.items) != len(p):
        return False
    return all(value_is(x, q) for x, q in zip(e.items, p, strict=True))


def _stays(p: Pattern, init: Term, body: Term) -> bool:
    """Whether a state begins as a constant that each step leaves as it is, as a zero adjoint."""
    if not _same(init, init):
        return False
    return _same(tidied(put(body, {q: v for q, v in _apart(p, init) if isinstance(q, str)})), init)


def _same(a: Term, b: Term) -> bool:
    """Whether two terms are known to be one constant."""
    if isinstance(a, Tup) and isinstance(b, Tup):
        return all(map(_same, a.items, b.items))
    return constant(a) is not None and constant(a) == constant(b)


def _index(e: Index, of: Term, items: tuple[Term, ...]) -> Term:
    match of:
        case Prim("replicate", (_, v)) if len(items) == 1:
            return v
        case Each(fn, arrays) if len(items) == 1 and isinstance(fn.body, (Num, Var)):
            body = fn.body
            for p, a in zip(fn.params, arrays, strict=True):
                if isinstance(body, Var) and body.name in names_in(p):
                    return Index(a, items) if p == body.name else e
            return body
        case Prim("shift1L", (a,)) if len(items) == 1:
            return Index(a, (Op("+", (items[0], Num(1))),))
        case Prim("shift1R", (a,)) if len(items) == 1:
            return Index(a, items)
        case Prim("iota") if len(items) == 1:
            return items[0]
    return e


def _op(e: Op) -> Term:
    """Sums, products and quotients with zeros and ones."""
    known = folded(e)
    if known is not None:
        return known
    c = [constant(a) for a in e.args]
    alone = spread_constant(e, c)
    if alone is not None:
        return alone
    match e.fn, e.args, c:
        case "*", _, (0, _) | (_, 0):
            return like_zero(e)
        case "/", _, (0, _):
            return like_zero(e)
        case "+", (a, b), (x, y):
            if x == 0 and b.type == e.type:
                return b
            if y == 0 and a.type == e.type:
                return a
            if isinstance(b, Op) and b.fn == "neg":
                return replace(e, fn="-", args=(a, b.args[0]))
        case "-", (a, b), (x, y):
            if y == 0 and a.type == e.type:
                return a
            if x == 0 and b.type == e.type:
                return Op("neg", (b,))
            if isinstance(b, Op) and b.fn == "neg":
                return replace(e, fn="+", args=(a, b.args[0]))
        case "*", (a, b), (x, y):
            if x == 1 and b.type == e.type:
                return b
            if y == 1 and a.type == e.type:
                return a
            if x == -1 and b.type == e.type:
                return Op("neg", (b,))
            if y == -1 and a.type == e.type:
                return Op("neg", (a,))
        case "/", (a, _), (_, 1) if a.type == e.type:
            return a
        case "neg", (Op("neg", (a,)),), _:
            return a
        case "sum", _, (0,):
            return like_zero(e)
        case "len", (a,), _:
            return length(a)
        case "sum_like", (v, a), _ if v.type is not None and v.type == a.type:
            return v
        case "spread_like", (v, a), _ if isinstance(v.type, Scalar):
            if isinstance(a.type, Arr) and isinstance(a.type.elem, Scalar):
                return Prim("replicate", (length(a), v))
    return e


# Lets.


def _let(e: Let) -> Term:
    """A chain of lets from the inside out: dead ones are removed, those used once inlined."""
    lets: list[tuple[Pattern, Term]] = []
    body: Term = e
    seen: dict[Term, str] = {}
    known: dict[str, Term] = {}
    while isinstance(body, Let):
        value = _simpler(put(body.value, known))
        if isinstance(body.pattern, str) and value in seen:
            known[body.pattern] = Var(seen[value], type=value.type)
        else:
            if isinstance(body.pattern, str) and not is_value(value):
                seen[value] = body.pattern
            lets += _apart(body.pattern, value)
        body = body.body
    body = _simpler(put(body, known))
    for p, value in reversed(lets):
        body = _bound(p, value, body)
    return body


def _apart(p: Pattern, value: Term) -> Iterable[tuple[Pattern, Term]]:
    """A let of a known tuple as lets of its parts."""
    if isinstance(p, tuple) and isinstance(value, Tup):
        for q, item in zip(p, value.items, strict=True):
            yield from _apart(q, item)
    else:
        yield p, value


def _bound(p: Pattern, value: Term, body: Term) -> Term:
    uses = free(body)
    if isinstance(p, tuple):
        if not any(n in uses for n in names_in(p)):
            return body
        return _narrowed(p, value, body, uses)
    k = uses.get(p, 0)
    if not k:
        return body
    if is_value(value) or (k == 1 and not repeated(body, p)):
        return put(body, {p: value})
    if isinstance(value, Tup) and _only_parts(body, p):
        stem = [f"{p}'{j}" for j in range(len(value.items))]
        named = {
            j: Var(n, type=x.type) for j, (n, x) in enumerate(zip(stem, value.items, strict=True))
        }
        out = _parts(body, p, named)
        for n, x in reversed(list(zip(stem, value.items, strict=True))):
            out = Let(n, x, out)
        return out
    return Let(p, value, body)


def _narrowed(p: tuple[Pattern, ...], value: Term, body: Term, uses: Mapping[str, int]) -> Term:
    """A let of a tuple without the parts that are never named, if the value allows it."""
    kept = [k for k, q in enumerate(p) if any(n in uses for n in names_in(q))]
    if len(kept) < len(p):
        made = _only(value, kept)
        if made is not None:
            q: Pattern = tuple(p[k] for k in kept) if len(kept) > 1 else p[kept[0]]
            return Let(q, made, body)
    return Let(tuple(_used(q, uses) for q in p), value, body)


def _used(p: Pattern, uses: Mapping[str, int]) -> Pattern:
    """A pattern with `_` for unused names."""
    if isinstance(p, str):
        return p if p in uses else "_"
    return tuple(_used(q, uses) for q in p)


def _only(e: Term, kept: list[int]) -> Term | None:
    """The parts of a tuple that are kept; None if all of it must be computed."""
    match e:
        case Tup(items):
            found = tuple(items[k] for k in kept)
            return found[0] if len(found) == 1 else Tup(found)
        case Let(p, a, b):
            body = _only(b, kept)
            return None if body is None else Let(p, a, body)
        case If(c, a, b):
            yes, no = _only(a, kept), _only(b, kept)
            return None if yes is None or no is None else If(c, yes, no)
        case Loop(tuple() as p, Tup(items), var, n, body, down) if len(p) == len(items):
            # Parts of the state that those which are kept do not need.
            rest = _only(body, kept)
            dropped = {n for k, q in enumerate(p) if k not in kept for n in names_in(q)}
            if rest is None or dropped & set(free(rest)):
                return None
            q = tuple(p[k] for k in kept)
            start = tuple(items[k] for k in kept)
            one = len(kept) == 1
            return Loop(q[0] if one else q, start[0] if one else Tup(start), var, n, rest, down)
    return None


def _only_parts(e: Term, name: str) -> bool:
    """Whether of a tuple only parts are used."""
    match e:
        case Var(n):
            return n != name
        case Proj(_, Var(n)) if n == name:
            return True
    return all(_only_parts(x, name) for x in children(e))


def _parts(e: Term, name: str, to: Mapping[int, Term]) -> Term:
    match e:
        case Proj(k, Var(n)) if n == name:
            return to[k]
    return rebuild(e, lambda x: _parts(x, name, to))
