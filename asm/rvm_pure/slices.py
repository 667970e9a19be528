"""Slices of arrays as terms, as long as their types say where that is known."""

from __future__ import annotations

from rvm_pure.lengths import size_term
from rvm_pure.recorder import Recorder
from rvm_pure.terms import Each, Index, Lam, Num, Op, Prim, Term, Var
from rvm_pure.types import Arr

End = Term | int | None
"""An end of a slice: a traced one, a number, or none that is written."""


def sliced(recorder: Recorder, x: Term, start: End, stop: End) -> Term:
    """`x[start:stop]`; a negative end that is a number counts from the end of x."""
    if start is None and stop is None:
        return x
    if start == 1 and stop is None:
        return recorder.named(Prim("shift1L", (x,)))
    if start in (None, 0) and stop == -1:
        return recorder.named(Prim("shift1R", (x,)))
    n = length_of(recorder, x)
    first = _end(start or 0, n)
    count: Term = Op("-", (_end(n if stop is None else stop, n), first))
    if isinstance(start, int) and (stop is None or (isinstance(stop, int) and stop < 0)):
        # As a length and so many less, which types know.
        count = Op("-", (n, Num(start - (stop or 0)))) if start >= 0 else Num(-start)
    elif start in (None, 0) and isinstance(stop, int):
        count = Op("-", (n, Num(-stop))) if stop < 0 else Num(stop)
    k = recorder.names.new("k")
    at = Var(k) if first == Num(0) else Op("+", (Var(k), first))
    return recorder.named(Each(Lam((k,), Index(x, (at,))), (Prim("iota", (count,)),)))


def _end(v: Term | int, n: Term) -> Term:
    """An end of a slice as a term."""
    if isinstance(v, Term):
        return v
    return Op("-", (n, Num(-v))) if v < 0 else Num(v)


def length_of(recorder: Recorder, x: Term) -> Term:
    """The length of an array: by its name, where its type has one."""
    assert isinstance(x.type, Arr)
    n = x.type.length
    return recorder.named(Op("len", (x,))) if n is None else size_term(n)
