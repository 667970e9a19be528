"""Constant folding in formulas, since derivative rules leave many constants.

Only changes that preserve the bits are made: a function of constants becomes its value, a factor or
exponent of one and a decided `select` are removed.
"""

from __future__ import annotations

from math import isfinite

from rvm.expr import Apply, Const, Expr, rebuild
from rvm.faults import RvmError
from rvm.isa.implementation import value
from rvm.isa.typing import apply
from rvm.types import Scalar, elem_of, rank_of


def simplify(node: Expr) -> Expr:
    """The typed expression after constant folding."""
    done = rebuild(node, simplify)
    if not isinstance(done, Apply) or done.type is None:
        return done
    if isinstance(done.type, Scalar) and all(isinstance(a, Const) for a in done.args):
        return _folded(done, done.type)
    match done:
        case Apply("*", (one, other)) if _is_one(one):
            return other if other.type == done.type else done
        case Apply("*" | "/" | "**", (other, one)) if _is_one(one):
            return other if other.type == done.type else done
        case Apply("scaled", (a, b, _)) if _is_factor(a) or _is_factor(b):
            found = apply("*", a, b)
            return simplify(found) if found.type == done.type else done
        case Apply("select", (Const(cond), a, b)):
            chosen = a if cond else b
            return chosen if chosen.type == done.type else done
        case Apply("conj", (a,)) if not elem_of(a.type or done.type).is_complex:
            return a
        case Apply("neg", (Apply("neg", (a,)),)) if elem_of(done.type).is_float:
            return a
    return done


def _is_one(node: Expr) -> bool:
    # The raw 1 of a fixed-point number or of a logarithm is not the number one.
    return isinstance(node, Const) and node.value == 1 and not _scaled(node)


def _is_factor(node: Expr) -> bool:
    """Whether multiplying by it never makes a number 0 or a 0 nonzero."""
    return isinstance(node, Const) and node.value != 0 and isfinite(node.value)


def _scaled(node: Const) -> bool:
    return node.type is not None and (node.type.is_fixed or node.type.is_log)


def _folded(node: Apply, t: Scalar) -> Expr:
    elems = tuple(elem_of(a.type) for a in node.args if a.type is not None)
    if len(elems) != len(node.args) or any(rank_of(a.type or t) for a in node.args):
        return node
    try:
        return Const(
            value(node.fn, elems)(*(a.value for a in node.args if isinstance(a, Const))), t
        )
    except RvmError:
        return node
