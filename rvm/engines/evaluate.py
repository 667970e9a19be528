"""Evaluating pure expressions by walking them: the reference for every other engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rvm.engines.memory import find
from rvm.expr import Apply, Const, Expr, Place
from rvm.faults import MachineError
from rvm.isa import array_value, value
from rvm.types import elem_of, rank_of

Call = Callable[[tuple[Expr, ...], Sequence[Any]], Any]


def evaluate(node: Expr, regs: Sequence[Any]) -> Any:
    """The raw value of a typed expression: a Python number, or an array."""
    if isinstance(node, Place):
        return find(node, regs).read() if node.path else regs[node.reg]
    if isinstance(node, Const):
        return node.value
    if not isinstance(node, Apply):
        raise TypeError(f"a template cannot be evaluated: {node!r}")
    call = node.memo
    if call is None:
        call = _resolve(node)
        object.__setattr__(node, "memo", call)
    return call(node.args, regs)


def _resolve(node: Apply) -> Call:
    """The implementation of a node: the function on these types, and how it takes its arguments."""
    if node.fn == "choose":
        return lambda args, regs: evaluate(args[1 if evaluate(args[0], regs) else 2], regs)
    elems = tuple(elem_of(_type(a)) for a in node.args)
    if any(rank_of(_type(a)) for a in node.args):
        many = array_value(node.fn, elems)
        return lambda args, regs: plain(_fitting(many, [evaluate(a, regs) for a in args]))
    if node.fn == "and":
        return lambda args, regs: evaluate(args[0], regs) and evaluate(args[1], regs)
    if node.fn == "or":
        return lambda args, regs: evaluate(args[0], regs) or evaluate(args[1], regs)
    f = value(node.fn, elems)
    if len(elems) == 1:
        return lambda args, regs: f(evaluate(args[0], regs))
    if len(elems) == 2:
        return lambda args, regs: f(evaluate(args[0], regs), evaluate(args[1], regs))
    return lambda args, regs: f(*[evaluate(a, regs) for a in args])


def _fitting(many: Callable[..., Any], args: list[Any]) -> Any:
    """The function on arrays; MachineError R008 where their shapes do not match."""
    try:
        return many(*args)
    except ValueError as error:
        raise MachineError(
            "R008",
            "the shapes of the arrays do not go together",
            values={f"shape {k}": list(np.shape(a)) for k, a in enumerate(args, 1)},
        ) from error


def _type(node: Expr) -> Any:
    assert node.type is not None, "an untyped expression reached an engine"
    return node.type


def plain(result: Any) -> Any:
    """A NumPy scalar as a Python number; arrays unchanged."""
    if isinstance(result, np.generic) or (isinstance(result, np.ndarray) and not result.ndim):
        return result.item()
    return result
