"""Typed expressions and places, as those who make code of statements look at them."""

from __future__ import annotations

from itertools import takewhile
from typing import cast

from rvm.expr import Expr, Index, Part, Place, Span
from rvm.types import Scalar, ValueType, rank_of


class Unprintable(Exception):
    """A statement that this printer leaves to the reference engine."""


def type_of(node: Expr) -> ValueType:
    assert node.type is not None
    return node.type


def scalar_of(place: Place) -> Scalar:
    return cast(Scalar, place.type)


def leading(place: Place) -> tuple[Expr, ...]:
    """The indices that a place begins with, before the first slice; places differ where they do."""
    first = place.path[0] if place.path else None
    items = first.items if isinstance(first, Index) else ()
    return tuple(takewhile(lambda item: not isinstance(item, Span), items))  # type: ignore[arg-type]


def element(place: Place) -> tuple[Expr, ...] | None:
    """The indices of a single element reached in one step (its part aside), else None."""
    path = place.path
    if path and isinstance(path[-1], Part) and not rank_of(type_of(place)):
        path = path[:-1]
    if len(path) != 1 or not isinstance(path[0], Index) or rank_of(type_of(place)):
        return None
    if any(isinstance(i, Span) for i in path[0].items):
        return None
    return cast("tuple[Expr, ...]", path[0].items)
