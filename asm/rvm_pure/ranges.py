"""Loops over elements whose conditions ask where the element stands, in pieces without them.

`map (i. if i > 0 then u[i - 1] else u[i]) (iota n)` is one loop over i = 0 and another from 1 on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rvm.expr import MIRRORED
from rvm.types import BOOL, I64
from rvm_pure.terms import If, Let, Num, Op, Term, Var, binders, free, rebuild, walk

MOST_PIECES = 6
"""The most loops that one becomes."""

Range = tuple[Term, Term]
"""From the first up to, not including, the second."""
_BELOW = {"<": 0, "<=": 1}
_FROM = {">=": 0, ">": 1}


def pieces(e: Term, i: str, count: Term) -> list[tuple[Range, Term]]:
    """An element by its number i as ranges of i and what it is there; one if that is too many."""
    zero: Term = Num(0, type=I64)
    whole: list[tuple[Range, Term]] = [((zero, count), e)]
    out: list[tuple[Range, Term]] = []
    todo = [(zero, count, _bare(e, {}))]
    while todo:
        first, end, term = todo.pop()
        found = next(_conditions(term, i), None)
        if found is None:
            out.append(((first, end), term))
        else:
            cond, ranges = found
            for low, high, holds in ranges:
                inner = _settled(term, cond, holds)
                a, b = _either("max", first, low), _either("min", end, high)
                if not any(_is_empty(x, y) for x in (first, low) for y in (end, high)):
                    todo.append((a, b, inner))
        if len(out) + len(todo) > MOST_PIECES:
            return whole
    return out if len(out) > 1 else whole


def _bare(e: Term, known: dict[str, Term]) -> Term:
    """A term without lets of numbers that conditions may be of."""
    match e:
        case Var(name):
            return known.get(name, e)
        case Let(str(p), a, b):
            value = _bare(a, known)
            if _is_plain(value):
                return _bare(b, {**known, p: value})
            return replace(e, value=value, body=_bare(b, known))
    return rebuild(e, lambda x: _bare(x, known))


def _is_plain(e: Term) -> bool:
    """Whether a term is inlined for its name: sums of whole numbers, and their comparisons."""
    match e:
        case Var() | Num():
            return True
        case Op("+" | "-", (a, b)):
            return e.type == I64 and _is_plain(a) and _is_plain(b)
        case Op(_, args):
            return e.type == BOOL and all(map(_is_plain, args))
    return False


def _distance(e: Term, i: str) -> int | None:
    """k where a term is i + k."""
    match e:
        case Var(name) if name == i:
            return 0
        case Op("+" | "-" as sign, (a, Num(int(k)))):
            d = _distance(a, i)
            return None if d is None else d + k if sign == "+" else d - k
    return None


def _conditions(e: Term, i: str) -> Iterator[tuple[Term, list[tuple[Term, Term, bool]]]]:
    """Comparisons of i with what does not change in the loop, and the ranges where each holds."""
    inside = {i, *binders(e)}
    for x in walk(e):
        if not isinstance(x, Op) or x.fn not in MIRRORED:
            continue
        left, right = x.args
        for fn, a, b in ((x.fn, left, right), (MIRRORED[x.fn], right, left)):
            d = _distance(a, i)
            if d is not None and b.type == I64 and not inside & set(free(b)):
                yield x, _ranges(fn, _plus(b, -d))


_LAST = Num(float("inf"))
_FIRST = Num(float("-inf"))


def _ranges(fn: str, at: Term) -> list[tuple[Term, Term, bool]]:
    if fn in ("==", "!="):
        same, after = fn == "==", _plus(at, 1)
        return [(after, _LAST, not same), (at, after, same), (_FIRST, at, not same)]
    if fn in _BELOW:
        at = _plus(at, _BELOW[fn])
        return [(at, _LAST, False), (_FIRST, at, True)]
    at = _plus(at, _FROM[fn])
    return [(at, _LAST, True), (_FIRST, at, False)]


def _settled(e: Term, cond: Term, holds: bool) -> Term:
    """A term where a condition is known, and choices by it are made."""
    if e == cond:
        return Num(holds, type=BOOL)
    done = rebuild(e, lambda x: _settled(x, cond, holds))
    match done:
        case If(Num(c), a, b) | Op("select", (Num(c), a, b)):
            return a if c else b
        case Op("and" | "or" as fn, (a, b)):
            for x, other in ((a, b), (b, a)):
                if isinstance(x, Num):
                    return other if bool(x.value) == (fn == "and") else x
        case Op("not", (Num(c),)):
            return Num(not c, type=BOOL)
    return done


def _sum(e: Term) -> tuple[Term | None, int]:
    """A whole number as a term and a constant offset."""
    match e:
        case Num(int(k)):
            return None, k
        case Op("+" | "-" as sign, (a, Num(int(k)))):
            base, more = _sum(a)
            return base, more + k if sign == "+" else more - k
    return e, 0


def _plus(e: Term, k: int) -> Term:
    base, more = _sum(e)
    more += k
    if base is None:
        return Num(more, type=I64)
    if not more:
        return base
    return Op("+" if more > 0 else "-", (base, Num(abs(more), type=I64)), type=I64)


def _either(fn: str, a: Term, b: Term) -> Term:
    """The greater or lesser of two ends."""
    if b is _LAST or b is _FIRST:
        return a
    (x, j), (y, k) = _sum(a), _sum(b)
    if x == y:
        return a if (j >= k) == (fn == "max") else b
    return Op(fn, (a, b), type=I64)


def _is_empty(first: Term, end: Term) -> bool:
    (x, j), (y, k) = _sum(first), _sum(end)
    return x == y and j >= k
