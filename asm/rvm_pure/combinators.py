"""Control flow in traced functions: maps, folds, loops, choices."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from rvm.types import I64
from rvm_pure.recorder import ACTIVE, Recorder, refused
from rvm_pure.terms import Each, Fold, If, Loop, Prim, Term, Update
from rvm_pure.traced import Traced, element_type, term_of, value_of


def recorder_of(*values: Any) -> Recorder:
    """The trace that some of the values belong to, or else that of the function that is run."""
    for v in values:
        if isinstance(v, Traced):
            return v.recorder
        if isinstance(v, (tuple, list)):
            found = [x for x in v if isinstance(x, (Traced, tuple, list))]
            if found:
                return recorder_of(*found)
    active = ACTIVE.get()
    if active is None:
        raise refused("nothing is traced here", "`rvm.pure(f)` traces what `f` does")
    return active


def mapped(f: Callable[..., Any], *arrays: Any) -> Any:
    """f of the elements of arrays of one length, rows where they have more dimensions."""
    recorder = recorder_of(*arrays)
    terms = [recorder.typed(term_of(a)) for a in arrays]
    fn = recorder.function([element_type(t) for t in terms], _body(recorder, f))
    return value_of(recorder, recorder.named(Each(fn, tuple(terms))))


def _body(recorder: Recorder, f: Callable[..., Any]) -> Callable[..., Term]:
    def body(*args: Term) -> Term:
        try:
            signature(f).bind(*args)
        except TypeError as error:
            what = f"the function is called with {len(args)} value{'s' * (len(args) != 1)}: {error}"
            raise refused(what, "`loop` with (i, state), `reduce` and `scan` with two") from None
        return term_of(f(*(value_of(recorder, a) for a in args)))

    return body


def folded(kind: str) -> Callable[..., Any]:
    """`reduce`, `scan`: f(state, element) from an initial value on."""

    def fold(f: Callable[..., Any], init: Any, array: Any) -> Any:
        recorder = recorder_of(array, init)
        x = recorder.typed(term_of(array))
        elem = element_type(x)
        start = recorder.typed(term_of(init), elem)
        assert start.type is not None
        fn = recorder.function([start.type, elem], _body(recorder, f))
        return value_of(recorder, recorder.named(Fold(kind, fn, start, x)))

    return fold


def loop(n: Any, body: Callable[..., Any], init: Any) -> Any:
    """`state = body(i, state)` for i from 0 to n - 1."""
    recorder = recorder_of(n, init)
    start = recorder.typed(term_of(init))
    assert start.type is not None
    fn = recorder.function([I64, start.type], _body(recorder, body))
    var, p = fn.params
    assert isinstance(var, str)
    return value_of(recorder, recorder.named(Loop(p, start, var, term_of(n), fn.body)))


def where(c: Any, a: Any, b: Any) -> Any:
    """a where c holds, else b; where a and b are functions, only one of them is evaluated."""
    recorder = recorder_of(c, a, b)
    if callable(a) and callable(b):
        yes, no = recorder.block(lambda: term_of(a())), recorder.block(lambda: term_of(b()))
        return value_of(recorder, recorder.named(If(term_of(c), yes, no)))
    like = next(v for v in (a, b, c) if isinstance(v, Traced))
    return like.apply("select", c, a, b)


def iota(n: Any) -> Any:
    """The whole numbers below n."""
    recorder = recorder_of(n)
    return Traced(recorder, recorder.named(Prim("iota", (term_of(n),))))


def replicate(n: Any, v: Any) -> Any:
    """An array of n times one value."""
    recorder = recorder_of(n, v)
    return value_of(recorder, recorder.named(Prim("replicate", (term_of(n), term_of(v)))))


def update(x: Any, i: Any, v: Any) -> Any:
    """An array equal to x except for element i; a negative number counts from the end."""
    if isinstance(i, (int, np.integer)) and i < 0:
        i = x.shape[0] + int(i)
    return x._new(Update(x.term, (term_of(i),), term_of(v)))
