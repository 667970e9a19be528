"""Evaluating pure expressions by walking them: the law for every other engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rvm.engines.memory import find
from rvm.expr import Apply, Const, Expr, Place
from rvm.isa import array_value, value
from rvm.types import elem_of, rank_of


def evaluate(node: Expr, regs: Sequence[Any]) -> Any:
    """The raw value of a typed expression: a Python number, or an array."""
    if isinstance(node, Const):
        return node.value
    if isinstance(node, Place):
        return find(node, regs).read() if node.path else regs[node.reg]
    if not isinstance(node, Apply):
        raise TypeError(f"a template cannot be evaluated: {node!r}")
    f = node.memo
    if f is None:
        f = _resolve(node)
        object.__setattr__(node, "memo", f)
    if f in LAZY:
        # The right side is evaluated only if the left does not decide.
        left = evaluate(node.args[0], regs)
        return left if left is (f == "or") else evaluate(node.args[1], regs)
    return f(*[evaluate(a, regs) for a in node.args])


LAZY = ("and", "or")


def _resolve(node: Apply) -> Any:
    """What computes a function on arguments of these types: a callable, or a name in LAZY."""
    elems = tuple(elem_of(_type(a)) for a in node.args)
    if any(rank_of(_type(a)) for a in node.args):
        many = array_value(node.fn, elems)
        return lambda *args: plain(many(*args))
    return node.fn if node.fn in LAZY else value(node.fn, elems)


def _type(node: Expr) -> Any:
    assert node.type is not None, "an untyped expression reached an engine"
    return node.type


def plain(result: Any) -> Any:
    """A NumPy scalar as the Python number it stands for; arrays as they are."""
    if isinstance(result, np.generic) or (isinstance(result, np.ndarray) and not result.ndim):
        return result.item()
    return result
