"""Formulas of derivatives in the form with the lowest cost.

Signs are moved outside, where they turn additions into subtractions; a factor 1 / x becomes a
divisor; numbers are moved out of sums, and the sum of a product of two vectors is their `dot`.
"""

from __future__ import annotations

from rvm.expr import Apply, Const, Expr
from rvm.isa import FUNCTIONS
from rvm.isa.functions.formulas import rank
from rvm.isa.simplify import simplify
from rvm.isa.typing import apply, typed
from rvm.transform.graph import Graph
from rvm.types import elem_of

Scalings = list[tuple[str, Expr]]
"""Numbers that something is multiplied with or divided by, with the function that does it."""


def signed(graph: Graph, node: Expr) -> tuple[bool, Expr]:
    """Whether a formula over a graph's nodes is to be taken negative, and the formula without."""
    assert node.type is not None
    t = elem_of(node.type)
    if not (t.is_float or t.is_complex):
        return False, node
    match node:
        case Apply("neg", (a,)):
            negative, value = signed(graph, a)
            return not negative, value
        case Apply("*" | "/" as fn, (a, b)):
            (minus, one), (other, two) = signed(graph, a), signed(graph, b)
            return minus != other, _product(fn, one, two)
        case Apply("scaled", (a, b, pole)):
            (minus, one), (other, two) = signed(graph, a), signed(graph, b)
            return minus != other, simplify(apply("scaled", one, two, pole))
        case Apply("+", (a, b)):
            (minus, one), (other, two) = signed(graph, a), signed(graph, b)
            first, second = _divided(graph, one), _divided(graph, two)
            over = None
            if first and second and first[1] == second[1]:
                # Divided last: a factor that is divided may be too large where the sum is not.
                (one, over), (two, _) = first, second
            if minus == other:
                total = apply("+", one, two)
            else:
                total = apply("-", two, one) if minus else apply("-", one, two)
            return minus and other, total if over is None else apply("/", total, over)
        case Apply("sum", (a,)):
            negative, value = signed(graph, a)
            return negative, summed(graph, value)
        case Apply(fn, (a, *rest)) if FUNCTIONS[fn].linear:
            negative, value = signed(graph, a)
            return negative, apply(fn, value, *rest)
        case Const(value) if value == -1:
            return True, typed(Const(1), t)
        case _:
            return False, node


def _product(fn: str, a: Expr, b: Expr) -> Expr:
    match fn, b:
        case "*", Apply("/", (Const(value=one), x)) if one == 1:
            return apply("/", a, x)
        case "*", Apply("/", (Apply("/", (_, y)) as ratio, x)) if x == y:
            # The gain of a divisor, divided last: that of the dividend, a / x, or a derivative of
            # it, may leave the range of numbers where this one does not.
            return apply("/", apply("*", a, ratio), x)
        case _:
            return simplify(apply(fn, a, b))


def _divided(graph: Graph, node: Expr) -> tuple[Expr, Expr] | None:
    """The rest of a product, and what its first factor is divided by; None if by nothing."""
    match graph.opened(node):
        case Apply("/", (a, x)):
            return a, x
        case Apply("*", (a, b)):
            found = _divided(graph, a)
            return found and (apply("*", found[0], b), found[1])
        case _:
            return None


def summed(graph: Graph, node: Expr) -> Expr:
    """The sum of an array's elements: numbers stay outside of it."""
    array, scalings = _apart(graph, node)
    total = apply("sum", array)
    match array:
        case Apply("*", (a, b)) if _are_vectors(graph, a, b):
            total = apply("dot", a, b)
    for fn, number in scalings:
        total = _product(fn, total, number)
    return total


def _apart(graph: Graph, node: Expr) -> tuple[Expr, Scalings]:
    """An array without its scaling factors; values that are computed anyway are kept."""
    if not isinstance(node, Apply) or graph.has(node):
        return node, []
    match node:
        case Apply("*" | "/" as fn, (a, b)) if not rank(b):
            array, scalings = _apart(graph, a)
            return array, [*scalings, (fn, b)]
        case Apply("*", (a, b)) if not rank(a):
            array, scalings = _apart(graph, b)
            return array, [*scalings, ("*", a)]
        case Apply("*" | "/" as fn, (a, b)):
            one, scalings = _apart(graph, a)
            two, more = _apart(graph, b) if fn == "*" else (b, [])
            return apply(fn, one, two), scalings + more
        case _:
            return node, []


def _are_vectors(graph: Graph, a: Expr, b: Expr) -> bool:
    if rank(a) != 1 or rank(b) != 1:
        return False
    one, two = graph.dims(graph.intern(a)), graph.dims(graph.intern(b))
    return one is not None and one == two
