"""What an expression passes back: the adjoints of the places that it reads.

For a value with the adjoint g, every differentiable place in the expression
gains something; `contributions` lists the gains, one for each occurrence, so
that `x * x` gives x two of them and both arrive.
"""

from __future__ import annotations

from collections.abc import Iterator

from rvm.expr import Apply, Expr, Place
from rvm.isa.derivatives import adjoint_type, gains
from rvm.isa.simplify import simplify
from rvm.isa.typing import apply
from rvm.types import elem_of, rank_of

Gain = tuple[Place, Expr]
"""A place that is read, and what its adjoint gains."""


def carries(node: Expr) -> bool:
    """Whether a value of this expression's type has an adjoint."""
    assert node.type is not None
    return adjoint_type(elem_of(node.type)) is not None


def contributions(node: Expr, g: Expr) -> Iterator[Gain]:
    """The gains of all places in `node` when its value has the adjoint `g`; typed both."""
    if isinstance(node, Place):
        if carries(node):
            yield node, like(g, node)
        return
    if not isinstance(node, Apply) or not any(carries(a) for a in node.args):
        return
    for arg, gain in zip(node.args, gains(node.fn, node.args, g), strict=True):
        if gain is not None:
            yield from contributions(arg, simplify(gain))


def like(g: Expr, place: Place) -> Expr:
    """An adjoint in the shape of what was broadcast to it: summed over what was repeated."""
    assert g.type is not None and place.type is not None
    if not rank_of(g.type):
        return g
    if not rank_of(place.type):
        return apply("sum", g)
    return apply("sum_like", g, place)
