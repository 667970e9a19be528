"""Slices of arrays as terms, as long as their types say where that is known."""

from __future__ import annotations

from rvm_pure.lengths import size_of, size_term
from rvm_pure.recorder import Recorder
from rvm_pure.terms import Each, Index, Lam, Num, Op, Prim, Term, Var
from rvm_pure.types import Arr

End = Term | int | None
"""An end of a slice: a traced one, a number, or none that is written."""


def sliced(recorder: Recorder, x: Term, start: End, stop: End, step: int) -> Term:
    """`x[start:stop:step]`; a negative end that is a number counts from the end of x.

    Where only the run knows the length of x, ends that are numbers must be inside of it.
    """
    if (start, stop, step) == (None, None, 1):
        return x
    if (start, stop, step) == (1, None, 1):
        return recorder.named(Prim("shift1L", (x,)))
    if start in (None, 0) and (stop, step) == (-1, 1):
        return recorder.named(Prim("shift1R", (x,)))
    n = length_of(recorder, x)
    first, count = _span(n, start, stop, step)
    k = recorder.names.new("k")
    at: Term = Var(k) if abs(step) == 1 else Op("*", (Num(abs(step)), Var(k)))
    if step < 0:
        at = Op("-", (first, at))
    elif first != Num(0):
        at = Op("+", (at, first))
    return recorder.named(Each(Lam((k,), Index(x, (at,))), (Prim("iota", (count,)),)))


def _span(n: Term, start: End, stop: End, step: int) -> tuple[Term, Term]:
    """The first index, and the number of them."""
    if isinstance(n, Num) and not isinstance(start, Term) and not isinstance(stop, Term):
        found = range(*slice(start, stop, step).indices(int(n.value)))
        return Num(found.start), Num(len(found))
    if step < 0:
        start = -1 if start is None else start
        first = _end(start, n)
        if isinstance(start, int) and (stop is None or isinstance(stop, int)):
            # One before the first is where there is no stop; ends that count alike are numbers.
            end = -1 if stop is None else stop
            if stop is None or end >= 0:
                apart = plus(n, start - end) if start < 0 else Num(max(0, start - end))
            elif start < 0:
                apart = Num(max(0, start - end))
            else:
                apart = Op("-", (Num(start - end), n))
        else:
            apart = Op("+", (first, Num(1)))
            if stop is not None:
                apart = Op("-", (apart, Op("+", (_end(stop, n), Num(1)))))
    else:
        first = _end(start or 0, n)
        last = n if stop is None else _end(stop, n)
        apart = last if first == Num(0) else Op("-", (last, first))
        if isinstance(start, int) and (stop is None or (isinstance(stop, int) and stop < 0)):
            # As a length and so many less, which types know.
            apart = plus(n, (stop or 0) - start) if start >= 0 else Num(max(0, (stop or 0) - start))
        elif isinstance(stop, int) and _alike(start or 0, stop):
            apart = Num(max(0, stop - (start or 0)))  # type: ignore[operator]
    if isinstance(apart, Num):
        return first, Num(-(-int(apart.value) // abs(step)))
    if abs(step) != 1:
        apart = Op("//", (plus(apart, abs(step) - 1), Num(abs(step))))
    return first, apart


def _alike(a: End, b: int) -> bool:
    """Whether two ends are counted from the same end."""
    return isinstance(a, int) and (a < 0) == (b < 0)


def plus(a: Term, k: int) -> Term:
    """A length and k more, as types write it where they know it."""
    n = size_of(a)
    if n is None or (n.more < 0 and k > 0):
        return Op("+" if k > 0 else "-", (a, Num(abs(k)))) if k else a
    return size_term(n.plus(k))


def _end(v: Term | int, n: Term) -> Term:
    """An end of a slice as a term."""
    if isinstance(v, Term):
        return v
    return plus(n, v) if v < 0 else Num(v)


def length_of(recorder: Recorder, x: Term) -> Term:
    """The length of an array: by its name, where its type has one."""
    assert isinstance(x.type, Arr)
    n = x.type.length
    return recorder.named(Op("len", (x,))) if n is None else size_term(n)
