"""NumPy functions as terms: run once, on values that record operations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from rvm_asm.source import SourceMap

import rvm_pure.array_functions  # noqa: F401  (enters what is traced of NumPy)
from rvm.codes.words import described
from rvm.faults import UsageError
from rvm.types import I64
from rvm_pure.definition import Param
from rvm_pure.recorder import ACTIVE, Recorder, line_of
from rvm_pure.terms import Term, Var
from rvm_pure.traced import term_of, value_of
from rvm_pure.types import dims


def traced(f: Callable[..., Any], params: Sequence[Param], sources: SourceMap) -> Term:
    """The operations of a function on values for its parameters, as a term.

    Its positions are those of the expressions in Python, whose files are added to the sources.
    """
    recorder = Recorder({p.name: p.type for p in params}, sources)
    for p in params:
        for n in dims(p.type):
            if n is not None and n.name:
                recorder.env.setdefault(n.name, I64)
    recorder.names.taken |= set(recorder.env)
    given = {
        p.name: value_of(recorder, Var(p.name, type=p.type, start=p.start, end=p.end), True)
        for p in params
    }
    token = ACTIVE.set(recorder)
    try:
        kinds = [p.kind for p in inspect.signature(f).parameters.values()]
        values = list(zip(kinds, given.items(), strict=True))
        # By position where that is possible: a function around another may have no names for them.
        placed = [v for kind, (_, v) in values if kind is not inspect.Parameter.KEYWORD_ONLY]
        named = {n: v for kind, (n, v) in values if kind is inspect.Parameter.KEYWORD_ONLY}
        return recorder.block(lambda: result_of(f, f(*placed, **named)))
    finally:
        ACTIVE.reset(token)


def result_of(f: Callable[..., Any], v: Any) -> Term:
    """The result of a function as a term; UsageError U060 at the function if it is none."""
    try:
        return term_of(v)
    except UsageError as error:
        file, line = f.__code__.co_filename, f.__code__.co_firstlineno
        where = line_of(file, line)
        hint = "a traced function returns its value" if v is None else error.hint
        what = f"`{f.__name__}` returns {described(v)}, which cannot be part of a trace"
        raise UsageError("U060", what, where=where, hint=hint) from None
