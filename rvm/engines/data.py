"""Executing data statements by walking them: the reference for every other engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rvm.engines.evaluate import evaluate, find
from rvm.engines.heap import fits
from rvm.engines.memory import store
from rvm.faults import InvertibilityError, MachineError
from rvm.isa import array_value, value
from rvm.numbers import system
from rvm.stmt import Exchange, Map, Stmt, Update, When
from rvm.types import Array, Scalar, elem_of

FACTORS = ("*", "/")
"""Updates by a factor, which must be such that it can be divided out again."""


def run_data(stmt: Stmt, regs: Any) -> None:
    """Execute an Update, Exchange, Map or When."""
    if isinstance(stmt, Update):
        dst = stmt.dst
        combine = stmt.memo or _combiner(stmt)
        if dst.path or not isinstance(dst.type, Scalar):
            store(dst, regs, combine(find(dst, regs).read(), evaluate(stmt.value, regs)))
        else:
            regs[dst.reg] = combine(regs[dst.reg], evaluate(stmt.value, regs))
        return
    match stmt:
        case Exchange(a, b):
            x, y = copied(find(a, regs).read()), copied(find(b, regs).read())
            _same_lengths(x, y)
            store(a, regs, y)
            store(b, regs, x)
        case Map(dsts, values, _):
            old = [find(d, regs).read() for d in dsts]
            new = [copied(evaluate(v, regs)) for v in values]
            for x, y in zip(old, new, strict=True):
                fits(x, y)
            for d, y in zip(dsts, new, strict=True):
                store(d, regs, y)
        case When(cond, body):
            if evaluate(cond, regs):
                for inner in body:
                    run_data(inner, regs)
        case _:
            raise TypeError(f"no data statement: {stmt!r}")


def combined(stmt: Update, old: Any, by: Any) -> Any:
    """The result of an update of an old value; nothing is stored."""
    return (stmt.memo or _combiner(stmt))(old, by)


def _combiner(stmt: Update) -> Callable[[Any, Any], Any]:
    """A function from an update's old value and expression to the new value."""
    t = stmt.dst.type
    assert t is not None
    elem = elem_of(t)
    op = stmt.op
    combine = (value if isinstance(t, Scalar) else array_value)(op, (elem, elem))
    factors, whole = system(elem).factors, isinstance(t, Array)
    by_factor = op in FACTORS and factors != "any"

    def checked(old: Any, new: Any) -> Any:
        if by_factor:
            _check_factor(new, factors)
        if whole:
            fits(old, new)
        return combine(old, new)

    made = checked if by_factor or whole else combine
    object.__setattr__(stmt, "memo", made)
    return made


def _check_factor(factor: Any, kind: str) -> None:
    # The logarithm of a factor is finite just if the factor is finite and not zero.
    if np.all(np.isfinite(factor)) and (kind == "finite" or np.all(np.not_equal(factor, 0))):
        return
    raise InvertibilityError(
        "R007",
        "multiplying or dividing by this loses the value",
        values={"factor": factor},
        hint="the factor must be finite and not zero",
    )


def _same_lengths(x: Any, y: Any) -> None:
    if np.shape(x) != np.shape(y):
        raise MachineError(
            "R008",
            "only places of one shape can be exchanged",
            values={"first shape": list(np.shape(x)), "second shape": list(np.shape(y))},
        )


def copied(v: Any) -> Any:
    return v.copy() if isinstance(v, np.ndarray) else v
